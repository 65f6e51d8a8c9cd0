//! Whether the checks themselves were made weaker while the run was under way: tests that are gone or switched off, a
//! command that does something else now. Compared with the commit that the project was at when the run began.
//!
//! Such a change can be right. Then a person says so; that the remaining tests pass does not.

use std::path::Path;

use super::order::Order;
use crate::git::git;
use crate::request::Request;

/// More changed files than these are not compared one by one.
const MOST_FILES: usize = 300;
const NAMED: usize = 3;

/// Fewer tests than before.
pub fn tests(request: &Request) -> Option<String> {
    let project = &request.project;
    let base = base(request)?;
    let changed = git(project, &["diff", "--name-only", "-z", "--no-renames", "--relative", &base]).ok()?;
    let new = git(project, &["ls-files", "-z", "--others", "--exclude-standard"]).unwrap_or_default();
    let paths = |text: &str| -> Vec<String> {
        text.split('\0').filter(|path| markers(path).is_some()).map(str::to_string).collect()
    };
    let changed = paths(&changed);
    if changed.is_empty() || changed.len() > MOST_FILES {
        return None;
    }
    let (mut before, mut after, mut fewer) = (0, 0, Vec::new());
    for path in &changed {
        let then = count(path, &git(project, &["show", &format!("{base}:./{path}")]).unwrap_or_default());
        let now = count(path, &read(project, path));
        (before, after) = (before + then, after + now);
        if now < then {
            fewer.push(format!("`{path}` ({then} before, {now} now)"));
        }
    }
    // Tests may have moved to a file that git does not know yet.
    after += paths(&new).iter().map(|path| count(path, &read(project, path))).sum::<usize>();
    (after < before).then(|| {
        let more = if fewer.len() > NAMED { format!(" and {} more", fewer.len() - NAMED) } else { String::new() };
        fewer.truncate(NAMED);
        let tests = if before - after == 1 { "test was" } else { "tests were" };
        format!(
            "{} {tests} removed or switched off since commit {}: {}{more}. A person must say whether that is right.",
            before - after,
            short(&base),
            fewer.join(", ")
        )
    })
}

/// A command that is not what it was.
pub fn commands(request: &Request, orders: &[Order]) -> Option<String> {
    let base = base(request)?;
    let is_other = |order: &&Order| {
        let file = order.evidence.rsplit_once(':').map_or("", |(file, _)| file);
        let then = git(&request.project, &["show", &format!("{base}:./{file}")]);
        let lines = order.definition.lines().map(str::trim).filter(|line| !line.is_empty());
        then.is_ok_and(|then| {
            lines.into_iter().any(|line| !then.contains(line) && !then.contains(&quoted(line)))
        })
    };
    let order = orders.iter().filter(|order| !order.definition.is_empty()).find(is_other)?;
    Some(format!(
        "What `{}` does was changed since commit {} ({}). A person must say whether that is right.",
        order.line,
        short(&base),
        order.evidence
    ))
}

fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// As JSON writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().trim_matches('"').to_string()
}

/// The commit that HEAD was at when the run began, by git's own record of where it has been.
fn base(request: &Request) -> Option<String> {
    // Git counts in seconds: what was committed in the run's first one is the run's.
    let then = request.run_began_s.map(|began_s| format!("HEAD@{{{}}}", began_s.saturating_sub(1)));
    let ask = |name: &str| git(&request.project, &["rev-parse", "--verify", "--quiet", name]).ok();
    let found = then.and_then(|then| ask(&then)).or_else(|| ask("HEAD"))?;
    Some(found.trim().to_string()).filter(|commit| !commit.is_empty())
}

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).unwrap_or_default()
}

/// How tests begin in a language, and how one is switched off.
type Markers = (&'static [&'static str], &'static [&'static str]);

fn markers(path: &str) -> Option<Markers> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    Some(match ending {
        "py" => (
            &["def test", "async def test"],
            &["@unittest.skip(", "@pytest.mark.skip", "@skip(", "pytest.skip(", "self.skipTest("],
        ),
        "rs" => (&["#[test]", "#[tokio::test", "#[rstest"], &["#[ignore"]),
        "go" => (&["func Test", "func Fuzz"], &["t.Skip(", "t.SkipNow("]),
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            (&["it(", "test(", "it.each", "test.each", "it.only(", "test.only("], &[])
        }
        "java" | "kt" | "scala" => (&["@Test", "@ParameterizedTest"], &["@Disabled", "@Ignore"]),
        _ => return None,
    })
}

/// Tests of a file that are not switched off.
fn count(path: &str, text: &str) -> usize {
    let Some((begins, off)) = markers(path) else { return 0 };
    let lines = || text.lines().map(str::trim_start);
    let tests = lines().filter(|line| begins.iter().any(|start| line.starts_with(start))).count();
    let skipped = lines().filter(|line| off.iter().any(|start| line.starts_with(start))).count();
    tests.saturating_sub(skipped)
}
