//! `tickets.create` and `tickets.update`: a plan becomes tickets, and results say which of them are done.
//!
//! Both may be called again with the same results: what was made or said once is not made or said twice.

use std::path::Path;

use sage_core::ticket;
use sage_engine::tickets::{Store, TicketError};
use serde_json::{Map, Value, json};

use crate::cli::context::Context;
use crate::display::text::plural;

/// Tickets for the plan among the results of `steps`. `feature` is the slug.
pub fn create(project: &Path, run: &str, feature: &str, steps: &Map<String, Value>) -> Result<Value, String> {
    let planned = store(project)?
        .change(|book, at| ticket::create(book, run, feature, steps, at))
        .map_err(|error| told(&error))?;
    let created = plural(planned.created.len() as u64, "ticket");
    let kept = match planned.kept.len() {
        0 => String::new(),
        kept => format!(", {kept} were there"),
    };
    let summary = format!("{created} created{kept}");
    Ok(
        json!({"summary": with_notes(summary, &planned.notes), "created": planned.created, "kept": planned.kept}),
    )
}

/// What the results of `steps` say about the tickets of this run.
pub fn update(project: &Path, run: &str, steps: &Map<String, Value>) -> Result<Value, String> {
    let updated = store(project)?
        .change(|book, at| Ok::<_, TicketError>(ticket::update(book, run, steps, at)))
        .map_err(|error| told(&error))?;
    let done = plural(updated.done.len() as u64, "ticket");
    let summary = format!("{done} done, {} left open", updated.open.len());
    Ok(json!({"summary": with_notes(summary, &updated.notes), "done": updated.done, "open": updated.open}))
}

fn store(project: &Path) -> Result<Store, String> {
    let context = Context::find(Some(project)).map_err(|failure| failure.message)?;
    Ok(Store::new(&context.project, context.disk.clone(), sage_engine::clock::Clock::System))
}

fn with_notes(summary: String, notes: &[String]) -> String {
    if notes.is_empty() { summary } else { format!("{summary}; {}", notes.join("; ")) }
}

fn told(error: &TicketError) -> String {
    format!("the tickets were not changed: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(result: &Value) -> Map<String, Value> {
        let step = json!({"state": "succeeded", "result": {}, "full": result, "artifacts": []});
        [("planning/plan".to_string(), step)].into_iter().collect()
    }

    // covers: R22
    #[test]
    fn a_plan_becomes_tickets_and_results_finish_them_however_often_it_is_said() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        std::fs::create_dir(root.join(".sage")).unwrap();
        let plan = json!({"tasks": [
            {"id": "T1", "title": "Store", "priority": "P0"},
            {"id": "T2", "title": "Check", "dependsOn": ["T1"]}]});
        let made = create(root, "run_1", "login", &steps(&plan)).unwrap();
        assert_eq!(made, json!({"summary": "2 tickets created", "created": ["T-1", "T-2"], "kept": []}));
        let again = create(root, "run_1", "login", &steps(&plan)).unwrap();
        assert_eq!((&again["created"], &again["kept"]), (&json!([]), &json!(["T-1", "T-2"])));
        let result = json!({"done": ["T1"], "open": [{"id": "T2", "why": "no key"}], "filesChanged": []});
        for _ in 0..2 {
            let updated = update(root, "run_1", &steps(&result)).unwrap();
            assert_eq!(updated["summary"], "1 ticket done, 1 left open");
        }
        let book = store(root).unwrap().read().unwrap();
        assert_eq!((book.tickets[1].blocked_by.join(" "), book.tickets[1].notes.len()), ("T-1".into(), 1));
        assert_eq!(book.ready()[0].id, "T-2");
    }

    // covers: R22
    #[test]
    fn a_plan_that_waits_for_itself_is_told_and_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".sage")).unwrap();
        let plan = json!({"tasks": [{"id": "A", "title": "a", "dependsOn": ["A"]}]});
        let refused = create(home.path(), "run_1", "f", &steps(&plan)).unwrap_err();
        assert_eq!(refused, "the tickets were not changed: the plan waits for itself: A -> A");
        assert!(!home.path().join(".sage/tickets/index.json").exists());
    }
}
