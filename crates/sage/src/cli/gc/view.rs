//! What was removed, by category, and what a person may want to look at.

use sage_engine::gc::{Category, Item, Policy, Report};
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::{print, print_json};
use crate::command_line::sage;
use crate::display::text::{clean, plural, time_text};

/// What stays is told so far; the rest is with `--json`.
const TOLD: usize = 20;

pub fn show(report: &Report, policy: &Policy, json: bool) -> Result<(), Failure> {
    if json {
        let category = |category: &Category| {
            let (count, bytes) = report.of(*category);
            json!({"category": category, "count": count, "bytes": bytes})
        };
        let categories: Vec<Value> = Category::ALL.iter().map(category).collect();
        return print_json(&json!({
            "type": "gc", "success": report.failed.is_empty(), "dryRun": policy.dry_run,
            "categories": categories, "bytes": report.bytes(),
            "removed": report.removed, "kept": report.kept, "failed": report.failed,
        }));
    }
    if policy.dry_run {
        report.removed.iter().for_each(|item| print(format_args!("{}\n", line(item))));
    }
    table(report, policy.dry_run);
    for stays in report.kept.iter().take(TOLD) {
        eprintln!("kept: {} {}: {}", stays.category.name(), clean(&stays.name), clean(&stays.why));
    }
    if report.kept.len() > TOLD {
        let all = sage("gc --dry-run --json");
        eprintln!("kept: {} more ({all})", report.kept.len() - TOLD);
    }
    for stays in &report.failed {
        let (category, name) = (stays.category.name(), clean(&stays.name));
        eprintln!("warning: cannot remove {category} {name}: {}", clean(&stays.why));
    }
    if policy.dry_run && !report.removed.is_empty() {
        eprintln!("hint: without --dry-run, they go");
    }
    Ok(())
}

/// `runs  login  run_01K..  1.2 MB  31d 4h old`
fn line(item: &Item) -> String {
    let feature = item.feature.as_ref().map(|feature| format!("{}  ", clean(feature))).unwrap_or_default();
    let age = item.age_ms.map(|ms| format!("  {} old", time_text(ms))).unwrap_or_default();
    let (category, size) = (item.category.name(), size_text(item.bytes));
    format!("{category:9}  {feature}{}  {size}{age}", clean(&item.name))
}

fn table(report: &Report, dry_run: bool) {
    let verb = if dry_run { "would go" } else { "removed" };
    if report.removed.is_empty() {
        print(format_args!("nothing to remove\n"));
        return;
    }
    for category in Category::ALL {
        let (count, bytes) = report.of(category);
        if count > 0 {
            print(format_args!("{:9}  {count:>6}  {:>9}\n", category.name(), size_text(bytes)));
        }
    }
    let all = plural(report.removed.len() as u64, "item");
    print(format_args!("{verb}: {all}, {}\n", size_text(report.bytes())));
}

/// `1.2 MB`
pub fn size_text(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => format!("{bytes} B"),
    }
}
