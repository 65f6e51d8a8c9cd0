//! What earlier steps found, as work: in files that a task touches anyway, and elsewhere.

use super::brief::Brief;
use super::markdown::{code, places, short};
use super::place::{self, Standing, standing};
use super::requirements::Requirement;
use super::task::Task;
use crate::finding::Finding;

const KINDS: &[&str] =
    &["quality", "performance", "security", "accessibility", "errors", "bug", "log", "risk"];
const LEAST: f64 = 0.5;
const MOST: usize = 5;

/// Is it something to work on, rather than something to know? Patterns and standards are kept, never done.
pub fn is_work(step: &str, found: &Finding) -> bool {
    let to_know = ["pattern", "standard", "convention"].iter().any(|word| step.contains(word));
    !to_know && KINDS.contains(&found.kind.as_str()) && found.relevance >= LEAST
}

/// Findings in one file, as sentences.
pub fn sentences(brief: &Brief, path: &str) -> String {
    let here = |evidence: &String| place::split(evidence).0 == path;
    let all = brief.earlier.findings().into_iter();
    let found = all.filter(|(step, found)| is_work(step, found) && found.evidence.iter().any(here)).take(3);
    let told = found.map(|(step, found)| {
        let at: Vec<String> = found.evidence.iter().filter(|evidence| here(evidence)).cloned().collect();
        format!(
            " {} found: {} ({}).",
            code(step),
            short(found.title.trim_end_matches('.'), 140),
            places(&at, 2)
        )
    });
    told.collect()
}

/// A task for each finding in a file that no other task touches.
pub fn tasks(brief: &Brief, taken: &[String]) -> Vec<Task> {
    let mut made: Vec<Task> = Vec::new();
    for (step, found) in brief.earlier.findings().into_iter().filter(|(step, found)| is_work(step, found)) {
        let files = files(brief, &found.evidence);
        let new = !files.is_empty() && !files.iter().any(|file| taken.contains(file));
        let known = made.iter().any(|task| task.files.iter().any(|file| files.contains(file)));
        if new && !known && made.len() < MOST {
            made.push(task(step, found, files));
        }
    }
    made
}

pub fn task(step: &str, found: &Finding, files: Vec<String>) -> Task {
    let at =
        if found.evidence.is_empty() { String::new() } else { format!(" {}", places(&found.evidence, 4)) };
    let detail = format!("{} Found by {}.{at}", short(&found.detail, 400), code(step));
    Task {
        title: short(found.title.trim_end_matches('.'), 120),
        detail: detail.trim().to_string(),
        files,
        acceptance: vec!["It is dealt with, or a sentence says why it stays.".to_string()],
        priority: if found.relevance >= 0.8 { "P1" } else { "P2" }.to_string(),
        ..Task::default()
    }
}

/// Requirements of another agent that point at no file of a task.
pub fn requirements(brief: &Brief, requirements: &[Requirement], taken: &[String]) -> Vec<Task> {
    let foreign = requirements.iter().filter(|requirement| requirement.origin.is_none());
    let open = foreign
        .filter(|requirement| !files(brief, &requirement.evidence).iter().any(|file| taken.contains(file)));
    let to_task = |requirement: &Requirement| Task {
        title: format!("{}: {}", requirement.id, short(requirement.text.trim_end_matches('.'), 110)),
        detail: requirement.text.clone(),
        files: files(brief, &requirement.evidence),
        acceptance: vec![format!("{} holds.", requirement.id)],
        priority: "P1".to_string(),
        ..Task::default()
    };
    open.take(2 * MOST).map(to_task).collect()
}

/// Files of the project among the evidence, each once.
pub fn files(brief: &Brief, evidence: &[String]) -> Vec<String> {
    existing(&brief.project.tree.root, evidence)
}

pub fn existing(project: &std::path::Path, evidence: &[String]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for item in evidence.iter().filter(|item| standing(project, item) == Standing::There) {
        let path = place::split(item).0.to_string();
        if !files.contains(&path) && project.join(&path).is_file() {
            files.push(path);
        }
    }
    files
}
