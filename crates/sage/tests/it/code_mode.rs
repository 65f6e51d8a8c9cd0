//! Code mode with the real binary: the sandbox, tools of a server, skills, types, models.

use std::time::Duration;

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::{Sage, is_alive, wait_until};
use crate::mcp_server::client::{Client, Era};

/// A project with the fake server `research`, whose starts are noted in `starts`.
fn with_server(more: &str) -> Sage {
    let sage = Sage::new();
    let starts = sage.path("starts").display().to_string();
    let command = env!("CARGO_BIN_EXE_sage");
    let toml = format!(
        "[mcp.research]\ncommand = {command:?}\nargs = [\"debug\", \"fake-mcp\", {starts:?}]\n{more}"
    );
    sage.write("sage.toml", toml);
    sage
}

const MAIL: &str = r#"import { echo } from "servers/research";
type Answer = { list: string[] };

const answers = await Promise.all([1, 2, 3].map((n) => echo({ n, list: ["ann@example.com", "x".repeat(5000)] })));
console.log("answers:", answers.length);
return { who: (answers[0] as Answer).list[0], word: input.word };
"#;

// covers: R21, R19
#[test]
fn code_calls_tools_and_says_only_its_answer() {
    let sage = with_server("");
    sage.write("mail.ts", MAIL);
    let outcome = sage.sage("code run mail.ts -i word=sky --json").exit(0);
    let told = outcome.json();
    assert_eq!(told["value"], json!({"who": "[EMAIL_1]", "word": "sky"}));
    assert_eq!((&told["counts"]["calls"], &told["success"]), (&json!(3), &json!(true)));
    assert!(told["counts"]["bytesKeptOut"].as_u64().unwrap() > 15_000, "{told}");
    sage.sage("code run mail.ts --reveal").exit(0).stdout_has("ann@example.com").stderr_has("answers: 3");
    let pids: Vec<u32> = sage.lines("starts").iter().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(pids.len(), 2, "one server for a run, also for several calls");
    assert!(pids.into_iter().all(|pid| !is_alive(pid)), "no server is left");
}

// covers: R21
#[test]
fn code_needs_no_servers_and_fails_with_its_own_lines() {
    let sage = Sage::bare();
    sage.write("good.ts", "const list: number[] = [3, 1, 2];\nreturn list.sort()");
    sage.write("bad.ts", "const a = 1;\nreturn (a as any).b.c");
    sage.write("broken.ts", "const a: = 1");
    sage.write("fetches.ts", "import fs from \"node:fs\";\nreturn fs");
    assert_eq!(sage.sage("code run good.ts --json").exit(0).json()["value"], json!([1, 2, 3]));
    sage.sage("code run bad.ts").exit(1).stderr_has("bad.ts:2:").stderr_has("2 | return (a as any).b.c");
    sage.sage("code run broken.ts").exit(2).stderr_has("broken.ts:1:10");
    sage.sage("code run fetches.ts").exit(2).stderr_has("no files, network or packages");
    sage.write("both.ts", "export const a = 1;\nreturn a");
    sage.sage("code run both.ts")
        .exit(1)
        .stderr_has("both.ts:1:1")
        .stderr_has("write `export default value`");
    sage.sage("code run none.ts").exit(2).stderr_has("cannot read `none.ts`");
    sage.sage("code run good.ts -i x").exit(2).stderr_has("is not KEY=VALUE");
    let told = sage.sage("code run bad.ts --json").exit(1).json();
    assert_eq!((&told["kind"], &told["success"]), (&json!("threw"), &json!(false)));
}

// covers: R12, R21
#[test]
fn code_that_worked_becomes_a_skill_that_other_code_imports() {
    let sage = Sage::new();
    sage.write("rank.ts", "export const best = (list: number[]) => Math.max(...list);\nexport default (input: { list: number[] }) => best(input.list ?? [1]);");
    sage.write("use.ts", "import * as rank from \"skills/rank\";\nreturn rank.best([4, 8])");
    sage.write("fails.ts", "throw new Error('no')");
    sage.args(["code", "run", "fails.ts", "--save", "rank", "--description", "x"]).run().exit(1);
    assert!(!sage.path(".sage/skills/rank").exists(), "what failed is not kept");
    sage.args(["code", "run", "rank.ts", "--save", "../rank", "--description", "x"]).run().exit(2);
    sage.args(["code", "run", "rank.ts", "--save", "rank", "--description", "Ranks numbers"])
        .run()
        .exit(0)
        .stderr_has("sage skills approve rank");
    let text = std::fs::read_to_string(sage.path(".sage/skills/rank/SKILL.md")).unwrap();
    assert!(text.contains("import { best } from \"skills/rank\""), "{text}");
    // Nobody has read it yet.
    sage.sage("code run use.ts").exit(2).stderr_has("is not approved").stderr_has("sage skills approve rank");
    sage.sage("skills run rank").exit(2).stderr_has("is not approved");
    sage.sage("skills approve rank --yes").exit(0);
    sage.sage("code run use.ts").exit(0).stdout_has("8");
    sage.sage("skills run rank list=[3,5]").exit(0).stdout_has("5");
    // What was approved is what runs.
    sage.write(".sage/skills/rank/skill.ts", "export const best = () => 'other';");
    sage.sage("code run use.ts").exit(2).stderr_has("is not approved");
}

// covers: R12
#[test]
fn secrets_are_not_kept_in_skills() {
    let sage = Sage::new();
    let key = format!("ghp_{}", "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2");
    sage.write("s.ts", format!("const key = \"{key}\";\nreturn key.length"));
    let run = sage.args(["code", "run", "s.ts", "--save", "s", "--description", "x"]).run();
    run.exit(1).stderr_has("it would hold secrets").stderr_lacks(&key);
    assert!(!sage.path(".sage/skills/s").exists());
}

// covers: R21
#[test]
fn code_is_checked_before_it_runs() {
    let sage = with_server("");
    sage.sage("check --syntax").exit(0).stdout_has("there is no code");
    sage.write(".sage/skills/a/SKILL.md", "---\nname: a\ndescription: x\n---\n");
    sage.write(".sage/skills/a/skill.ts", "enum A { B }\nreturn A.B");
    sage.write(".sage/templates/w.ts", "export default async (sage, input) => 1");
    sage.sage("check --syntax").exit(2).stderr_has("skill.ts:1:1").stdout_has("2 files: 1 error");
    let told = sage.sage("check .sage/skills/a/skill.ts --syntax --json").exit(2).json();
    assert_eq!((&told["valid"], &told["errors"][0]["line"]), (&json!(false), &json!(1)));
    sage.write(
        ".sage/skills/a/skill.ts",
        "import { echo } from \"servers/research\";\nreturn await echo({ a: 1 })",
    );
    let Some(tsc) = crate::types::tsc() else { return };
    sage.write("good.ts", "import { echo } from \"servers/research\";\nimport { tools } from \"sage\";\nconst n: number = (await tools.search(\"x\")).length;\nreturn [await echo({ a: n }), input.x]");
    sage.write(
        "bad.ts",
        "import { echo, ecko } from \"servers/research\";\n\nconst n: number = 'x';\nreturn [n, echo, ecko]",
    );
    let path = format!("{}:{}", tsc.display(), std::env::var("PATH").unwrap_or_default());
    let check = |file: &str| sage.args(["check", file]).env("PATH", &path).run();
    check("good.ts").exit(0).stdout_has("1 file: nothing wrong");
    check("bad.ts")
        .exit(2)
        .stderr_has("bad.ts:3:7")
        .stderr_has("TS2322")
        .stderr_has("`ecko`".trim_matches('`'));
    assert!(sage.path(".sage/types/servers/research/echo.ts").is_file());
    sage.args(["check"]).env("PATH", &path).run().exit(2).stderr_has("w.ts:1:");
}

#[test]
fn without_a_compiler_types_are_not_checked_and_that_is_told() {
    let sage = Sage::new();
    sage.write("a.ts", "const n: number = 'x';\nreturn n");
    let outcome = sage.args(["check", "a.ts"]).env("PATH", "/nowhere").run();
    outcome.exit(0).stderr_has("types were not checked").stderr_has("npm install --save-dev typescript");
}

/// The children of a process that run code.
fn sandboxes(owner: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_owner = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent == Some(owner) && line.contains("__script")
    };
    pids.filter(of_owner).collect()
}

// covers: R21
#[test]
fn the_sandbox_dies_with_its_owner_and_has_no_environment() {
    let sage = Sage::new();
    sage.write("endless.ts", "while (true) {}");
    let running = sage.spawn("code run endless.ts --timeout 60s");
    let pid = running.pid();
    wait_until(|| !sandboxes(pid).is_empty(), Duration::from_secs(60), "the sandbox runs");
    let sandbox = sandboxes(pid)[0];
    let hardened = || {
        let limits = std::fs::read_to_string(format!("/proc/{sandbox}/limits")).unwrap_or_default();
        let zero = |name: &str| {
            let soft = |line: &str| line.strip_prefix(name)?.split_whitespace().next().map(str::to_owned);
            limits.lines().filter_map(soft).any(|soft| soft == "0")
        };
        zero("Max core file size") && zero("Max file size")
    };
    wait_until(hardened, Duration::from_secs(60), "its limits");
    let environ = std::fs::read_to_string(format!("/proc/{sandbox}/environ")).unwrap_or_default();
    assert!(environ.is_empty() || environ == "TZ=UTC\0", "{environ}");
    assert!(running.kill());
    wait_until(|| !is_alive(sandbox), Duration::from_secs(30), "the sandbox is gone");
}

// covers: R19, R21, R3
#[test]
fn a_model_gets_two_tools_instead_of_all_definitions() {
    let code = "import { echo } from \"servers/research\";\nconst all = await Promise.all([1, 2].map((n) => echo({ n })));\nreturn all.map((one) => one.n)";
    let fake = FakeLlm::start(json!([
        {"tool": {"name": "tools_search", "input": {"query": "echo", "detail": "signatures"}}},
        {"tool": {"name": "code_run", "input": {"code": "import { ecko } from \"servers/research\";\nreturn 1"}}},
        {"tool": {"name": "code_run", "input": {"code": code}}},
        {"text": "done"},
    ]))
    .unwrap();
    let sage = with_server(&format!(
        "[agents.m]\nadapter = \"llm\"\napi = \"anthropic\"\nurl = \"{}\"\nmodel = \"m\"\n[approvals]\ntools = [\"research/echo\"]\n",
        fake.url()
    ));
    let sage = sage.template("t", "name: t\nphases:\n  - id: p\n    operations:\n      - { id: ask, type: agent, agent: m, prompt: \"ask\" }\n");
    sage.sage("run x -t t").exit(0);
    let prompts = fake.prompts();
    assert_eq!(prompts.len(), 4);
    let first = prompts[0].to_string();
    assert!(
        first.contains("tools_search") && first.contains("code_run") && !first.contains("\"echo\""),
        "{first}"
    );
    let last: &Value = &prompts[3];
    let text = last.to_string();
    assert!(text.contains("servers/research: echo(input?:"), "{text}");
    assert!(text.contains("did you mean `echo`?"), "{text}");
    assert!(text.contains("[1,2]"), "{text}");
    assert_eq!(
        sage.lines("starts").iter().filter(|line| line.parse::<u32>().is_ok()).count(),
        1,
        "one server for the run"
    );
    sage.assert_nothing_alive();
}

/// Calls that got no answer, by whatever way, are counted together; then nobody calls the server for a while.
// covers: R7, R24, R21
#[test]
fn a_server_that_breaks_is_left_alone_by_code_and_by_hand() {
    let sage = with_server("");
    for _ in 0..2 {
        sage.sage("tools call research/crash").exit(1);
    }
    let crash = "import { crash } from \"servers/research\";\nconst said = [];\n\
        for (let n = 0; n < 4; n++) try { await crash({}); } catch (error) { said.push(error.message); }\nreturn said";
    sage.write("crash.ts", crash);
    let told = sage.sage("code run crash.ts --json").exit(0).json();
    let said: Vec<&str> = told["value"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(said.iter().filter(|said| said.contains("it is tried again in")).count(), 1, "{said:?}");
    assert!(said[3].contains("to call it before: sage breakers reset server:research"), "{said:?}");

    let starts = sage.lines("starts").len();
    sage.sage("tools call research/echo").exit(1).stderr_has("server `research` is not called now");
    sage.sage("code run crash.ts").exit(2).stderr_has("left out: server `research` is not called now");
    let mut client = Client::start(&sage, Era::Stateless);
    let refused = client.call("sage_code_run", json!({"code": crash})).error("WORKFLOW_VALIDATION_ERROR");
    assert!(refused["message"].as_str().unwrap().contains("it is tried again in"), "{refused}");
    drop(client);
    assert_eq!(sage.lines("starts").len(), starts, "nobody has started it");
    sage.sage("breakers server:research").exit(0).stdout_has("open");

    sage.sage("breakers reset server:research").exit(0);
    sage.sage("tools call research/text --arg text=well").exit(0).stdout_has("well");
    // That a tool says no is an answer.
    for _ in 0..6 {
        sage.sage("tools call research/error --arg text=never").exit(1).stderr_has("never");
    }
    sage.sage("tools call research/text --arg text=well").exit(0).stdout_has("well");
    sage.args(["breakers", "isolate", "server:research", "-m", "under repair"]).run().exit(0);
    sage.sage("tools call research/text").exit(1).stderr_has("is switched off (under repair)");
}

// covers: R21
#[test]
fn a_large_value_is_told_by_its_shape_unless_it_is_asked_for() {
    let sage = Sage::bare();
    sage.write("big.ts", "return Array.from({ length: 5000 }, (_, id) => ({ id, name: \"x\".repeat(20) }))");
    let short = sage.sage("code run big.ts").exit(0);
    assert!(short.stdout.len() < 2_000, "{}", short.stdout);
    short.stdout_has("\"length\": 5000").stderr_has("sage code run big.ts --full    # or -o value.json");
    let told = sage.sage("code run big.ts --json").exit(0).json();
    assert_eq!((&told["cut"], &told["value"]["handle"]), (&json!(true), &Value::Null), "{told}");

    let whole = |text: &str| serde_json::from_str::<Value>(text).unwrap().as_array().unwrap().len();
    assert_eq!(whole(&sage.sage("code run big.ts --full").exit(0).stdout), 5_000);
    let file = sage.path("all.json").display().to_string();
    let written = sage.args(["code", "run", "big.ts", "-o", &file]).run().exit(0);
    assert_eq!(written.stdout, "");
    assert_eq!(whole(&std::fs::read_to_string(&file).unwrap()), 5_000);
    let told = sage.args(["code", "run", "big.ts", "-o", &file, "--json"]).run().exit(0).json();
    assert_eq!((&told["file"], &told["value"]), (&json!(file), &Value::Null));
}
