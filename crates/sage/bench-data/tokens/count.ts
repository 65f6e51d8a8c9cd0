import { readTextFile } from "servers/filesystem";

const log = await readTextFile({ path: "/srv/ledger/logs/import-2026-03-14.log" });
return log.content.split("\n").filter((line) => line.includes("code=E4127")).length;
