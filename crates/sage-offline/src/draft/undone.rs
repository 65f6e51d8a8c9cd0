//! `implement` and its relatives without a model: nothing is changed, everything is a ticket. Never invented code.

use serde_json::{Value, json};

use super::earlier::Earlier;
use super::found;
use super::markdown::count;
use super::task::Task;
use crate::parts::{Side, side};
use crate::request::{Request, Trouble};
use crate::research;
use crate::walk::Tree;

const WHY: &str = "writing code needs a model or a person; the offline agent has neither";
const METHOD: &str =
    "offline: nothing was changed; the tickets are the plan's tasks, or what earlier steps found";
const MOST_FOUND: usize = 12;

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let earlier = Earlier::read(&request.steps);
    let tree = Tree::read(&request.project)?;
    let tests = research::commands(&tree).test;
    let command = tests.first().map(|command| command.shell());
    let part = request.item.as_ref().filter(|item| item.is_object());
    let mut tasks = match part {
        Some(part) => Task::read_all(part.get("tasks")),
        None => Task::planned(&earlier),
    };
    if tasks.is_empty() && part.is_none() {
        tasks = from_findings(request, &earlier, command.as_deref());
    }
    let wanted = match request.operation.as_str() {
        "implement.backend" => Some(Side::Backend),
        "implement.frontend" => Some(Side::Frontend),
        _ => None,
    };
    if let Some(wanted) = wanted {
        tasks = of_side(tasks, wanted);
    }
    let open: Vec<Value> = tasks.iter().map(|task| json!({"id": task.id, "why": WHY})).collect();
    let detail = command.map_or("no test command is known".to_string(), |command| {
        format!("nothing was changed, so nothing was tested; the project's command is `{command}`")
    });
    let mut result = json!({"summary": summary(request, &tasks), "filesChanged": [], "done": [], "open": open,
        "tests": {"ran": false, "passed": null, "detail": detail},
        "tickets": tasks.iter().map(Task::ticket).collect::<Vec<_>>(), "method": METHOD});
    if let Some(id) = part.and_then(|part| part.get("id")) {
        result["part"] = id.clone();
    }
    Ok(result)
}

fn summary(request: &Request, tasks: &[Task]) -> String {
    let side = match request.operation.as_str() {
        "implement.backend" => " of the backend",
        "implement.frontend" => " of the frontend",
        _ => "",
    };
    match tasks.len() {
        0 => format!("Nothing to do{side}: no task and no finding asks for a change."),
        n => format!(
            "Nothing was changed: {} stay{} open{side}, each with its files and acceptance. {}.",
            count(n, "task"),
            if n == 1 { "s" } else { "" },
            super::markdown::capital(WHY)
        ),
    }
}

/// Tasks with a file on that side; those without any file are everybody's and belong to the backend.
fn of_side(tasks: Vec<Task>, wanted: Side) -> Vec<Task> {
    let ours = |task: &Task| match task.files.is_empty() {
        true => wanted == Side::Backend,
        false => task.files.iter().any(|file| side(file) == wanted),
    };
    let mut kept: Vec<Task> = tasks.into_iter().filter(ours).collect();
    for task in &mut kept {
        task.files.retain(|file| side(file) == wanted);
    }
    kept
}

/// Without a plan: what was found, the most relevant first; for a fix, with the test that would have caught it.
fn from_findings(request: &Request, earlier: &Earlier, command: Option<&str>) -> Vec<Task> {
    let fix = request.operation == "implement.fix";
    let wanted = earlier
        .findings()
        .into_iter()
        .filter(|(step, f)| (fix || found::is_work(step, f)) && !f.evidence.is_empty());
    let mut tasks: Vec<Task> = Vec::new();
    for (step, finding) in wanted.filter(|(_, finding)| finding.relevance >= 0.3) {
        if tasks.len() == MOST_FOUND {
            break;
        }
        let files = found::existing(&request.project, &finding.evidence);
        let mut task = Task { id: format!("T{}", tasks.len() + 1), ..found::task(step, finding, files) };
        if fix {
            task.acceptance = vec![
                "A test fails because of it before the change and passes after it, or a sentence says why it is not the cause.".to_string(),
            ];
        }
        task.acceptance.extend(command.map(|command| format!("`{command}` passes.")));
        if !tasks.iter().any(|known| known.title == task.title) {
            tasks.push(task);
        }
    }
    tasks
}
