//! What may go wrong, from figures and from what earlier steps found in the same files.

use super::brief::{Brief, Item};
use super::markdown::{code, count, joined, places, short};
use super::place;

/// Above this a function is hard to change (cyclomatic).
const COMPLEX: usize = 10;
const LONG_LINES: usize = 60;
const MANY_CALLERS: usize = 3;
const MOST_RELIED_ON: usize = 3;
/// A finding about more places is about the project, not about this feature.
const MOST_PLACES: usize = 4;
const MOST_FOUND: usize = 4;

pub fn name(brief: &Brief) -> Vec<String> {
    let mut risks = Vec::new();
    risks.extend(untested(brief));
    for item in &brief.items {
        let function = brief.function(item);
        if function.complexity > COMPLEX || function.lines > LONG_LINES {
            let figures =
                format!("{} and a complexity of {}", count(function.lines, "line"), function.complexity);
            risks.push(format!("{} (`{}`) has {figures}.", brief.called(item), brief.place(item)));
        }
    }
    risks.extend(relied_on(brief));
    risks.extend(found(brief));
    if brief.project.commands.test.is_empty() && !brief.project.sources.is_empty() {
        risks.push("No command that runs tests is known, so nothing would notice a break.".to_string());
    }
    risks
}

/// What many places rely on.
fn relied_on(brief: &Brief) -> Vec<String> {
    let mut items: Vec<_> = brief.items.iter().filter(|item| item.callers.len() >= MANY_CALLERS).collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.callers.len()));
    let told = |item: &&Item| {
        let at: Vec<String> = item.callers.iter().map(|call| brief.caller(call).1).collect();
        let calls = count(item.callers.len(), "place");
        format!("{} is called from {calls}: {}.", brief.called(item), places(&at, 4))
    };
    items.iter().take(MOST_RELIED_ON).map(told).collect()
}

fn untested(brief: &Brief) -> Option<String> {
    let bare = brief.items.iter().filter(|item| item.is_untested && brief.function(item).is_public);
    let names: Vec<String> =
        bare.map(|item| format!("{} (`{}`)", brief.called(item), brief.place(item))).collect();
    match names.len() {
        0 => None,
        n if n > 6 => Some(format!(
            "{n} public functions near it are called by no test: {} and {} more.",
            names[..5].join(", "),
            n - 5
        )),
        _ => Some(format!("No test calls {} directly.", joined(&names))),
    }
}

/// Findings about quality, speed and safety in files of the core.
fn found(brief: &Brief) -> Vec<String> {
    let kinds = ["quality", "security", "performance", "accessibility", "risk"];
    let core = brief.core_paths();
    let near = |evidence: &String| core.iter().any(|path| path == place::split(evidence).0);
    let all = brief.earlier.findings().into_iter();
    let here = all.filter(|(_, f)| {
        kinds.contains(&f.kind.as_str()) && f.evidence.len() <= MOST_PLACES && f.evidence.iter().any(near)
    });
    here.take(MOST_FOUND)
        .map(|(step, f)| {
            let at: Vec<String> = f.evidence.iter().filter(|evidence| near(evidence)).cloned().collect();
            format!("{} ({}; {})", short(&f.title, 160), code(step), places(&at, 3))
        })
        .collect()
}
