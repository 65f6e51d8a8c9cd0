//! Workflow scripts of Claude Code, unchanged: ten as people write them, and each line of their format.
//!
//! The agent behind them is `bot.sh`, which answers by what it is asked and notes every call that was really
//! made. The last tests have the real Claude Code behind them, and a scripted model behind that.

mod api;
mod format;
mod killed;
mod other_ways;
mod real;
mod ten;

use serde_json::Value;

use crate::dsl::Sage;

/// Name, text.
pub const SCRIPTS: [(&str, &str); 10] = [
    ("fan-out", include_str!("claude_workflows/scripts/fan-out.js")),
    ("pipeline", include_str!("claude_workflows/scripts/pipeline.js")),
    ("skeptics", include_str!("claude_workflows/scripts/skeptics.js")),
    ("until-dry", include_str!("claude_workflows/scripts/until-dry.js")),
    ("nested", include_str!("claude_workflows/scripts/nested.js")),
    ("budget", include_str!("claude_workflows/scripts/budget.js")),
    ("worktrees", include_str!("claude_workflows/scripts/worktrees.js")),
    ("losses", include_str!("claude_workflows/scripts/losses.js")),
    ("judges", include_str!("claude_workflows/scripts/judges.js")),
    ("map-reduce", include_str!("claude_workflows/scripts/map-reduce.js")),
];

/// A project with all ten scripts, whose agent is the bot.
pub fn project() -> Sage {
    let sage = Sage::new();
    for (name, text) in SCRIPTS {
        sage.write(&format!(".claude/workflows/{name}.js"), text);
    }
    let bot = sage.outside().join("bot.sh");
    std::fs::write(&bot, include_str!("claude_workflows/bot.sh")).unwrap();
    let (bot, out) = (bot.display().to_string(), sage.root().display().to_string());
    let config = format!(
        "agent = \"bot\"\n[agents.bot]\nadapter = \"command\"\ncommand = [\"sh\", {bot:?}]\n[agents.bot.env]\nOUT = {out:?}\n\
         [agents.other]\nadapter = \"command\"\ncommand = [\"sh\", \"-c\", \"echo other\"]\n"
    );
    sage.write("sage.toml", config);
    sage
}

/// A project with one script of a test's own, called `t`.
pub fn script(body: &str) -> Sage {
    let sage = project();
    sage.write(".claude/workflows/t.js", whole(body));
    sage
}

/// Lines of `body` begin in line 2.
pub fn whole(body: &str) -> String {
    format!("export const meta = {{ name: 't', description: 'of a test' }}\n{body}\n")
}

#[track_caller]
pub fn value(sage: &Sage) -> Value {
    sage.sage("result x main/script").exit(0).json()
}

/// Runs `body` and gives what it returned.
#[track_caller]
pub fn returned(body: &str) -> Value {
    let sage = script(body);
    sage.sage("run x -t t").exit(0);
    value(&sage)
}

/// First lines of all prompts that an agent really got, sorted.
pub fn asked(sage: &Sage) -> Vec<String> {
    let lines = sage.lines("x.out");
    let mut asked: Vec<String> =
        lines.iter().map(|line| line.split_once(' ').map_or("", |(_, first)| first).to_owned()).collect();
    asked.sort();
    asked
}
