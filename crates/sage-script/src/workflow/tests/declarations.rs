//! `sage.d.ts` is what `tsc --strict` accepts, and says no where it should.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::DECLARATIONS;

/// `tsc` of the tools that tests install, or of the machine.
fn tsc() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let bins = ["tools/agents/node_modules/.bin/tsc", "tools/ts/node_modules/.bin/tsc"];
    let mut installed = exe.ancestors().flat_map(|dir| bins.map(|bin| dir.join(bin)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut there = std::env::split_paths(&path).map(|dir| dir.join("tsc"));
    installed.find(|path| path.exists()).or_else(|| there.find(|path| path.exists()))
}

/// Checks files of these texts together; what is wrong, by lines that begin with the file's name.
fn check(tsc: &Path, texts: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sage.d.ts"), DECLARATIONS).unwrap();
    for (name, text) in texts {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let options = ["--strict", "--noEmit", "--target", "es2023", "--module", "esnext", "--lib", "es2023"];
    let names = texts.iter().map(|(name, _)| *name);
    let output = Command::new(tsc)
        .current_dir(dir.path())
        .args(options)
        .arg("sage.d.ts")
        .args(names)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_declarations_are_strict_typescript() {
    let Some(tsc) = tsc() else {
        eprintln!("skipped: no `tsc` in the tools folder or on PATH");
        return;
    };
    let right = r#"
import type { Sage } from "sage";
interface Found { rows: string[] }
export default async (sage: Sage, input: { topic: string }) => {
  sage.phase("Scan");
  const text: string = await sage.agent("scout", `look at ${input.topic}`);
  const found = await sage.agent<Found>("find", { prompt: text, schema: { type: "object" }, timeout: "5m", key: 1 });
  const [a, b] = await Promise.all([sage.tool<number>("s", "t", { x: 1 }), sage.shell("ls")]);
  const answer = await sage.approve("Ship?", { choices: ["yes", "no"], deadline: "1h" });
  const list: (string | number)[] = await sage.parallel([() => sage.agent("a", "b"), async () => 2], { limit: 2 });
  const piped: number[] = await sage.pipeline(["a"], (p: string, item: string, index: number) => index, (p: number) => p + 1);
  await sage.sleep("10m"); await sage.workflow("audit"); await sage.run("research.market", {}, { filter: { top: 3 } });
  sage.log("x", sage.budget.remaining(), sage.feature, sage.title);
  return { rows: found.rows, a, out: b.stdout, choice: answer.choice, list, piped };
};"#;
    let claude = r#"
export const meta = { name: "x", description: "y" };
const one: string | null = await agent("x", { label: "l", effort: "low", isolation: "worktree" });
const two = await agent<{ n: number }>("y", { schema: { type: "object" } });
const all: (string | null)[] = await parallel([() => agent("x"), () => agent("y")]);
phase("p"); log("l", budget.spent(), args, two?.n, one, all); await workflow({ scriptPath: "./x.js" }, 1);
const piped = await pipeline([1, 2], (p: number, item: number, index: number) => String(p), (p: string) => p.length);
const n: number | null | undefined = piped[0]; log(n);
"#;
    let head = "import type { Sage } from 'sage'; export default (sage: Sage) =>";
    let wrong = [
        ("name.ts", format!("{head} sage.agent(1)")),
        ("option.ts", format!("{head} sage.agent('a', {{ propmt: 'x' }})")),
        ("word.ts", format!("{head} sage.nothing()")),
        ("effort.ts", "export {}; agent('x', { effort: 'tiny' })".to_owned()),
    ];
    let mut texts = vec![("right.ts", right), ("claude.ts", claude)];
    texts.extend(wrong.iter().map(|(name, text)| (*name, text.as_str())));
    let told = check(&tsc, &texts);
    for name in ["right.ts", "claude.ts", "sage.d.ts", "error"] {
        assert!(!told.lines().any(|line| line.starts_with(name)), "{name}:\n{told}");
    }
    for (name, _) in &wrong {
        assert!(told.lines().any(|line| line.starts_with(name)), "{name} passed:\n{told}");
    }
}
