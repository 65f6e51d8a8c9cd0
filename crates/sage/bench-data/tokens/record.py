"""Records what `sage bench tokens` plays: definitions of real MCP servers, and real results of calls.

    npm install --prefix D <npm packages below>; python3 -m venv D/venv; D/venv/bin/pip install <pip packages below>
    python3 -m venv D/sqlite; D/sqlite/bin/pip install mcp-server-sqlite==2025.4.25 'mcp<2'
    python3 record.py D /srv/ledger

Writes servers.jsonl (one server a line) and results.jsonl (one call a line) beside itself. The project that the
calls look at is made up, from a fixed seed; definitions and results are as the servers sent them.
"""

import json
import os
import pathlib
import queue
import random
import shutil
import sqlite3
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).parent
MIT_APACHE = "MIT, newer parts Apache-2.0"
MCP = "Model Context Protocol a Series of LF Projects, LLC"
ANTHROPIC = "Anthropic, PBC"
# The order in which the sets of 10, 50 and 200 tools are filled, after those that the bench puts first.
SERVERS = [
    ("filesystem", "@modelcontextprotocol/server-filesystem", "dist/index.js", MIT_APACHE, MCP),
    ("git", "mcp-server-git", "venv", "MIT", ANTHROPIC),
    ("sqlite", "mcp-server-sqlite", "sqlite", "MIT", ANTHROPIC),
    ("memory", "@modelcontextprotocol/server-memory", "dist/index.js", MIT_APACHE, MCP),
    ("github", "@modelcontextprotocol/server-github", "dist/index.js", "MIT", ANTHROPIC),
    ("playwright", "@playwright/mcp", "cli.js", "Apache-2.0", "Microsoft Corporation"),
    ("mongodb", "mongodb-mcp-server", "dist/esm/index.js", "Apache-2.0", "MongoDB"),
    ("chrome-devtools", "chrome-devtools-mcp", "build/src/bin/chrome-devtools-mcp.js", "Apache-2.0",
     "Google LLC"),
    ("everything", "@modelcontextprotocol/server-everything", "dist/index.js", MIT_APACHE, MCP),
    ("slack", "@modelcontextprotocol/server-slack", "dist/index.js", "MIT", ANTHROPIC),
    ("gitlab", "@modelcontextprotocol/server-gitlab", "dist/index.js", "MIT", "GitLab, PBC"),
    ("time", "mcp-server-time", "venv", "MIT", "Mariusz Korzekwa"),
    ("fetch", "mcp-server-fetch", "venv", "MIT", ANTHROPIC),
    ("context7", "@upstash/context7-mcp", "dist/index.js", "MIT", "Upstash, Inc."),
    ("sequential-thinking", "@modelcontextprotocol/server-sequential-thinking", "dist/index.js", MIT_APACHE, MCP),
    ("firecrawl", "firecrawl-mcp", "dist/index.js", "MIT", "vrknetha"),
]
# Only so that the servers start: listing tools asks nobody.
KEYS = ["GITHUB_PERSONAL_ACCESS_TOKEN", "GITLAB_PERSONAL_ACCESS_TOKEN", "SLACK_BOT_TOKEN", "SLACK_TEAM_ID",
        "FIRECRAWL_API_KEY"]


class Server:
    def __init__(self, command):
        env = {**os.environ, **{key: "none" for key in KEYS}}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env)
        self.messages, self.id = queue.Queue(), 0
        threading.Thread(target=self.read, daemon=True).start()
        client = {"name": "recorder", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.ask("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            try:
                self.messages.put(json.loads(line))
            except ValueError:
                pass

    def send(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        while True:
            answer = self.messages.get(timeout=60)
            if answer.get("id") == self.id and "method" not in answer:
                return answer["result"]

    def tools(self):
        tools, cursor = [], None
        while True:
            page = self.ask("tools/list", {"cursor": cursor} if cursor else {})
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor:
                return tools


def command(programs, name, package, start, project):
    if not start.endswith("js"):
        line = [f"{programs}/{start}/bin/{package}"]
        more = ["--db-path", f"{project}/data/owners.db"] if name == "sqlite" else []
    else:
        line = ["node", f"{programs}/node_modules/{package}/{start}"]
        more = [str(project)] if name == "filesystem" else []
    return line + more


def version(programs, package, start):
    if start.endswith("js"):
        return json.loads(pathlib.Path(f"{programs}/node_modules/{package}/package.json").read_text())["version"]
    shown = subprocess.run([f"{programs}/{start}/bin/pip", "show", package], capture_output=True, text=True)
    return next(line.split()[1] for line in shown.stdout.splitlines() if line.startswith("Version"))


STAGES = ["parse", "dedupe", "fx_convert", "tariff_rounding", "settle", "archive", "notify", "reconcile"]
PEOPLE = ["Mira Okafor", "Jonas Weber", "Aiko Tanaka", "Luis Herrera", "Priya Nair", "Tom Lindqvist"]


def log(r):
    """A night's import: mostly routine, some failures, of which one kind is new."""
    lines, ms = [], 2 * 3600_000
    messages = {"E1009": "upstream closed the connection", "E2204": "duplicate entry", "E3310": "slow query",
                "E4127": "no rounding rule for region"}
    for n in range(330):
        ms += r.randrange(2_000, 24_000)
        stamp = f"2026-03-14T{ms // 3600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}Z"
        at = f"worker={r.randrange(1, 9)} batch=B-{400 + n // 6:04}"
        if n > 60 and r.random() < 0.14:
            lines.append(f"{stamp} ERROR ledger.import {at} stage=tariff_rounding code=E4127 "
                         f"entry=EN-{30000 + n * 7} msg=\"{messages['E4127']} {r.choice(REGIONS)}\"")
        elif r.random() < 0.12:
            code = r.choice(["E1009", "E2204", "E3310"])
            lines.append(f"{stamp} ERROR ledger.import {at} stage={r.choice(STAGES)} code={code} "
                         f"entry=EN-{30000 + n * 7} msg=\"{messages[code]}\"")
        else:
            lines.append(f"{stamp} INFO  ledger.import {at} stage={r.choice(STAGES)} rows={r.randrange(80, 900)} "
                         f"took_ms={r.randrange(20, 2500)} queue={r.randrange(0, 40)}")
    return "\n".join(lines) + "\n"


REGIONS = ["DE-NW", "DE-BY", "FR-IDF", "NL-ZH", "PL-MZ", "ES-MD"]


def entries(r):
    rows = ["entry,account,region,rules,amount_cents,status"]
    for n in range(620):
        rules = r.choice(["tariff_rules_v5", "tariff_rules_v6", "tariff_rules_v6", "tariff_rules_v7"])
        bad = rules == "tariff_rules_v7" and r.random() < 0.55 or r.random() < 0.04
        rows.append(f"EN-{30000 + n * 4},AC-{r.randrange(1000, 9999)},{r.choice(REGIONS)},{rules},"
                    f"{r.randrange(150, 90_000)},{'rejected' if bad else 'booked'}")
    return "\n".join(rows) + "\n"


def rules(name, r):
    head = f'"""Rounding of tariffs, by region."""\n\nRULES = "{name}"\n\nTABLE = {{\n'
    return head + "".join(f'    "{region}-{n}": ({r.randrange(1, 9)}, "{r.choice(["half_up", "half_even"])}"),\n'
                          for region in REGIONS for n in range(8)) + "}\n"


def project(root, r):
    shutil.rmtree(root, ignore_errors=True)
    for folder in ["logs", "data", "ledger/stages"]:
        (root / folder).mkdir(parents=True)

    def git(*args, **env):
        subprocess.run(["git", "-C", root, *args], check=True, capture_output=True, env={**os.environ, **env})

    def commit(n, message, body=""):
        who = PEOPLE[n * 7 % len(PEOPLE)]
        mail = who.split()[0].lower() + "@example.com"
        date = f"2026-{1 + n // 60:02}-{1 + n % 60 // 2:02}T{8 + n % 9:02}:{n % 60:02}:00+00:00"
        git("add", "-A")
        git("commit", "-m", message + body, GIT_AUTHOR_NAME=who, GIT_AUTHOR_EMAIL=mail, GIT_AUTHOR_DATE=date,
            GIT_COMMITTER_NAME=who, GIT_COMMITTER_EMAIL=mail, GIT_COMMITTER_DATE=date)

    git("init", "-q", "-b", "main")
    (root / ".gitignore").write_text("logs/\ndata/\n")
    (root / "ledger/stages/tariff_rounding.py").write_text(rules("tariff_rules_v6", random.Random(3)))
    for n in range(140):
        stage = r.choice([s for s in STAGES if s != "tariff_rounding"])
        verb = r.choice(["speed up", "document", "tidy", "guard", "test", "log"])
        thing = r.choice(["empty batches", "retries", "late entries", "the queue", "currency pairs", "timeouts"])
        message, body = f"{stage}: {verb} {thing}", f"\n\nRefs LED-{1900 + n * 3}"
        if n == 131:
            (root / "ledger/stages/tariff_rounding.py").write_text(rules("tariff_rules_v7", random.Random(4)))
            message = "tariff_rounding: take the rules of the new year"
        elif n in (17, 64):
            message = f"tariff_rounding: {verb} {thing}"
        (root / f"ledger/stages/{stage}.py").write_text(f'"""{stage}."""\n\nREVISION = {n}\n')
        commit(n, message, body)
    (root / "logs/import-2026-03-14.log").write_text(log(r))
    (root / "data/entries-2026-03-14.csv").write_text(entries(r))
    with sqlite3.connect(root / "data/owners.db") as database:
        database.execute("CREATE TABLE owners (stage TEXT PRIMARY KEY, team TEXT, channel TEXT)")
        database.executemany("INSERT INTO owners VALUES (?, ?, ?)",
                             [(s, f"{s.split('_')[0]} crew", f"#ops-{s.replace('_', '-')}") for s in STAGES])


def calls(root):
    show = subprocess.run(["git", "-C", root, "log", "--format=%H", "--grep", "^tariff_rounding:", "-1"],
                          capture_output=True, text=True, check=True).stdout.strip()
    query = "SELECT team, channel FROM owners WHERE stage = 'tariff_rounding'"
    return [
        ("filesystem", "read_text_file", {"path": f"{root}/logs/import-2026-03-14.log"}),
        ("filesystem", "read_text_file", {"path": f"{root}/logs/import-2026-03-14.log", "head": 4}),
        ("filesystem", "read_text_file", {"path": f"{root}/data/entries-2026-03-14.csv"}),
        ("filesystem", "read_text_file", {"path": f"{root}/data/entries-2026-03-14.csv", "head": 3}),
        ("git", "git_log", {"repo_path": str(root), "max_count": 140}),
        ("git", "git_log", {"repo_path": str(root), "max_count": 2}),
        ("git", "git_show", {"repo_path": str(root), "commit": show}),
        ("git", "git_show", {"repo_path": str(root), "revision": show}),
        ("sqlite", "read_query", {"query": query}),
        ("sqlite", "read_query", {"query": "SELECT * FROM owners LIMIT 1"}),
    ]


def result(server, name, tool, arguments):
    answer = server.ask("tools/call", {"name": tool, "arguments": arguments})
    text = "\n".join(part["text"] for part in answer["content"])
    structured = answer.get("structuredContent")
    # Where a server sends the same text twice, it is kept once.
    assert structured in (None, {"content": text}), structured
    failed = answer.get("isError", False)
    return {"server": name, "tool": tool, "arguments": arguments, "isError": failed,
            "structured": structured is not None, "text": text}


def main():
    programs, root = sys.argv[1], pathlib.Path(sys.argv[2])
    project(root, random.Random(2026))
    running, lines = {}, []
    for name, package, start, license, holder in SERVERS:
        server = running[name] = Server(command(programs, name, package, start, root))
        lines.append({"server": name, "package": package, "version": version(programs, package, start),
                      "license": license, "holder": holder, "tools": server.tools()})
        print(name, len(lines[-1]["tools"]), "tools")
    results = [result(running[name], name, tool, arguments) for name, tool, arguments in calls(root)]
    for server in running.values():
        server.process.kill()
    for file, rows in [("servers.jsonl", lines), ("results.jsonl", results)]:
        text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
        (HERE / file).write_text(text)
        print(file, len(text.encode()), "bytes")


main()
