//! `plan`: tasks with real files, in the order in which they can be done, and how one sees that each is done.

use serde_json::{Value, json};

use super::brief::Brief;
use super::fuzzy;
use super::markdown::{capital, code, count, joined, list, section};
use super::project::Project;
use super::requirements::{self, Requirement};
use super::task::Task;
use super::{questions, risks, spec, tasks};
use crate::request::{Request, Trouble};

/// A plan and what it was made from.
pub struct Plan {
    pub tasks: Vec<Task>,
    pub questions: Vec<String>,
    pub risks: Vec<String>,
    pub made: String,
}

pub fn perform(request: &Request) -> Result<Value, Trouble> {
    let project = Project::read(request)?;
    let brief = Brief::of(request, &project);
    let plan = draft(request, &brief);
    let summary = summary(&plan);
    let document = document(&brief, &plan, &summary, "");
    Ok(json!({"document": document, "summary": summary, "tasks": plan.tasks, "openQuestions": plan.questions,
        "method": spec::METHOD}))
}

pub fn draft(request: &Request, brief: &Brief) -> Plan {
    let (requirements, questions, source) = match brief.earlier.specification() {
        Some(spec) => {
            (read(spec, brief), fuzzy::texts(spec.get("openQuestions")), "the specification before it")
        }
        None => {
            let own = requirements::derive(brief);
            let asked = questions::ask(brief, &own).into_iter().map(|question| question.text).collect();
            (own, asked, "the project alone: no specification came with this step")
        }
    };
    let feature = if request.feature.is_empty() { "feature" } else { &request.feature };
    let tasks = tasks::derive(brief, &requirements, feature, questions.len());
    Plan { tasks, questions, risks: risks::name(brief), made: format!("From {source}.") }
}

/// The specification's requirements; those that are ours get their origin back, by their text.
fn read(spec: &Value, brief: &Brief) -> Vec<Requirement> {
    let own = requirements::derive(brief);
    let items = spec["requirements"].as_array().into_iter().flatten().enumerate();
    let read = |(at, item): (usize, &Value)| {
        let text = item.as_str().or_else(|| item["text"].as_str().or_else(|| item["title"].as_str()))?;
        let known = own.iter().find(|requirement| requirement.text == text);
        let id = item["id"].as_str().map_or_else(|| format!("R{}", at + 1), str::to_string);
        Some(Requirement {
            id,
            text: text.to_string(),
            evidence: fuzzy::places(item.get("evidence")),
            origin: known.and_then(|known| known.origin),
        })
    };
    items.filter_map(read).collect()
}

fn summary(plan: &Plan) -> String {
    let begin: Vec<&str> =
        plan.tasks.iter().filter(|task| task.depends_on.is_empty()).map(|task| task.id.as_str()).collect();
    let start = match begin.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} can begin at once"),
        several => format!(
            "; {} can begin at once",
            joined(&several.iter().map(|id| id.to_string()).collect::<Vec<_>>())
        ),
    };
    format!("{}{start}.", count(plan.tasks.len(), "task"))
}

pub fn document(brief: &Brief, plan: &Plan, summary: &str, parts: &str) -> String {
    let mut text = format!("# {}: plan\n\n{}", capital(&brief.title), summary);
    text += "\n\n> [!NOTE]\n> A draft from facts, made without a model: files, functions and commands are the \
             project's own. How each task is done is not in here.\n";
    text += &section("Order", &format!("```text\n{}```", picture(&plan.tasks)));
    text += parts;
    text += &section("Tasks", &plan.tasks.iter().map(task).collect::<Vec<_>>().join("\n"));
    text += &section("Risks", &list(&plan.risks, "None that the files show."));
    text += &section("Open questions that block", &blocked(plan));
    text += &section(
        "How this was made",
        &format!("By Sage's offline agent, without a model. {} {}", plan.made, ORDER),
    );
    text
}

const ORDER: &str = "The order follows from who calls whom: tests for what is untested, then the files nearest the \
                     feature, then those that call them, then documents and checks.";

/// Tasks by how early they can begin:
/// ```text
/// 1  T1 Answer   T2 Cover
/// 2  T3 Change      after T1, T2
/// ```
pub fn picture(tasks: &[Task]) -> String {
    let mut level: Vec<usize> = vec![1; tasks.len()];
    // As often as there are tasks is enough for any order, and ends also where a plan goes in circles.
    for _ in 0..tasks.len() {
        for at in 0..tasks.len() {
            let before =
                |id: &String| tasks.iter().position(|task| task.id == *id).map_or(0, |before| level[before]);
            let needed = tasks[at].depends_on.iter().map(before).max().unwrap_or(0) + 1;
            level[at] = needed.min(tasks.len());
        }
    }
    let mut text = String::new();
    let width = tasks.iter().map(|task| task.id.chars().count()).max().unwrap_or(0);
    for number in 1..=level.iter().copied().max().unwrap_or(0) {
        let mut label = number.to_string();
        for (task, _) in tasks.iter().zip(&level).filter(|(_, at)| **at == number) {
            let after = if task.depends_on.is_empty() {
                String::new()
            } else {
                format!("   <- {}", task.depends_on.join(", "))
            };
            let title = task.title.replace('`', "");
            text += &format!("{label:>2}  {:<width$}  {title}{after}\n", task.id);
            label = String::new();
        }
    }
    text
}

fn task(task: &Task) -> String {
    let mut text = format!("### {} {} ({})\n\n", task.id, task.title, task.priority);
    if !task.detail.is_empty() {
        text += &format!("{}\n\n", task.detail);
    }
    let files: Vec<String> = task.files.iter().map(|file| code(file)).collect();
    if !files.is_empty() {
        text += &format!("- Files: {}\n", files.join(", "));
    }
    if !task.depends_on.is_empty() {
        text += &format!("- After: {}\n", task.depends_on.join(", "));
    }
    text += &task.acceptance.iter().map(|criterion| format!("- [ ] {criterion}\n")).collect::<String>();
    text
}

/// Which tasks wait for answers.
fn blocked(plan: &Plan) -> String {
    if plan.questions.is_empty() {
        return String::new();
    }
    let answers = plan.tasks.first().map(|task| task.id.clone()).unwrap_or_default();
    let waits = |task: &&Task| task.depends_on.contains(&answers);
    let waiting: Vec<String> = plan.tasks.iter().filter(waits).map(|task| task.id.clone()).collect();
    let numbered = plan.questions.iter().enumerate().map(|(at, text)| format!("**Q{}** {text}", at + 1));
    let who = match waiting.is_empty() {
        true => String::new(),
        false => format!("Until they are answered, {} cannot begin.\n\n", joined(&waiting)),
    };
    format!("{who}{}", list(&numbered.collect::<Vec<_>>(), ""))
}
