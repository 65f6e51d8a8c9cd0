import { readTextFile } from "servers/filesystem";
import { gitLog, gitShow } from "servers/git";
import { readQuery } from "servers/sqlite";

const root = "/srv/ledger";
const night = "2026-03-14";
const most = (sums: Record<string, number>): [string, number] =>
  Object.entries(sums).reduce((a, b) => (b[1] > a[1] ? b : a));

const log = await readTextFile({ path: `${root}/logs/import-${night}.log` });
const counts: Record<string, number> = {};
for (const [, stage, code] of log.content.matchAll(/ ERROR .* stage=(\w+) code=(\w+)/g)) {
  counts[`${code} ${stage}`] = (counts[`${code} ${stage}`] ?? 0) + 1;
}
const [worst, failures] = most(counts);
const [code, stage] = worst.split(" ");

const history = (await gitLog({ repo_path: root, max_count: 140 })) as string;
const changed = history.split("Commit: ").find((text) => text.includes(`Message: ${stage}:`))!;
const commit = changed.slice(0, 40);
const author = /Author: (.*)/.exec(changed)![1];
const ticket = /Refs (\S+)/.exec(changed)![1];
const diff = (await gitShow({ repo_path: root, revision: commit })) as string;
const rules = /^\+RULES = "(\w+)"/m.exec(diff)![1];

const entries = await readTextFile({ path: `${root}/data/entries-${night}.csv` });
const rows = entries.content.trim().split("\n").slice(1).map((line) => line.split(","));
const rejected = rows.filter((row) => row[3] === rules && row[5] === "rejected");
const regions: Record<string, number> = {};
for (const row of rejected) regions[row[2]] = (regions[row[2]] ?? 0) + Number(row[4]);
const cents = Object.values(regions).reduce((a, b) => a + b, 0);

const query = `SELECT team, channel FROM owners WHERE stage = '${stage}'`;
const owner = (await readQuery({ query })) as string;
const [, team, channel] = /'team': '(.*?)', 'channel': '(.*?)'/.exec(owner)!;

return {
  code, failures, stage, commit, author, ticket, rules,
  rejected: rejected.length, cents, region: most(regions)[0], team, channel,
};
