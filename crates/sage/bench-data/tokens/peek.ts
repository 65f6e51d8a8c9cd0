import { readTextFile } from "servers/filesystem";
import { gitLog } from "servers/git";
import { readQuery } from "servers/sqlite";

const root = "/srv/ledger";
const log = await readTextFile({ path: `${root}/logs/import-2026-03-14.log`, head: 4 });
const entries = await readTextFile({ path: `${root}/data/entries-2026-03-14.csv`, head: 3 });
const commits = await gitLog({ repo_path: root, max_count: 2 });
const owners = await readQuery({ query: "SELECT * FROM owners LIMIT 1" });
return { log: log.content, entries: entries.content, commits, owners };
