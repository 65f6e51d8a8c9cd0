//! Plan mode: the program makes a plan, and works when a person has approved it.
//!
//! Until then nothing but its plan file may change: the program leaves that to whoever answers its questions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sage_core::port::{AskKind, Permission, PermissionAsk};
use serde_json::{Value, json};

use super::home;
use crate::agent::{Order, PLAN_TOOL};

/// Where it keeps plans, in its own folder.
const FOLDER: &str = "plans";

#[derive(Clone, Debug)]
pub struct Planning {
    under_way: Arc<AtomicBool>,
    folder: Option<PathBuf>,
    /// What it would do, as it has told so far: its version of the plan is not always in the question.
    told: String,
}

impl Planning {
    pub fn of(order: &Order) -> Planning {
        let folder = home::home(&order.config).map(|home| home.join(FOLDER));
        Planning { under_way: Arc::new(AtomicBool::new(order.plans)), folder, told: String::new() }
    }

    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::SeqCst)
    }

    pub fn says(&mut self, text: &str) {
        if self.is_under_way() && !text.trim().is_empty() {
            self.told = text.to_string();
        }
    }

    /// It gives its plan with the tool that ends planning.
    pub fn uses(&mut self, tool: &str, input: &Value) {
        let plan = || input["plan"].as_str().map(str::to_string);
        if let Some(plan) = Some(tool).filter(|tool| *tool == PLAN_TOOL).and_then(|_| plan()) {
            self.told = plan;
        }
    }

    /// The plan that a question is about, where it does not say so.
    pub fn complete(&self, tool: &str, input: &mut Value) {
        if tool == PLAN_TOOL && input["plan"].as_str().is_none_or(|plan| plan.trim().is_empty()) {
            match input.as_object_mut() {
                Some(fields) => drop(fields.insert("plan".into(), self.told.clone().into())),
                None => *input = json!({"plan": self.told}),
            }
        }
    }

    /// It only writes down its plan, in its own folder.
    pub fn is_about_plan_file(&self, ask: &PermissionAsk) -> bool {
        let (true, [path]) = (self.is_under_way() && ask.kind == AskKind::Write, ask.paths.as_slice()) else {
            return false;
        };
        let real = |path: &Path| sage_fence::real(Path::new("/"), path).ok();
        let folder = self.folder.as_deref().and_then(real);
        folder.is_some() && real(Path::new(path)).as_deref().and_then(Path::parent) == folder.as_deref()
    }

    /// Whatever a person said about its plan. From a yes on it may work.
    pub fn hears(&self, tool: &str, permission: &Permission) {
        if tool == PLAN_TOOL && matches!(permission, Permission::Allow { .. }) {
            self.under_way.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::describe;

    // covers: R17, P3
    #[test]
    fn before_its_plan_is_approved_only_the_plan_file_is_its_own_affair() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plans");
        std::fs::create_dir(dir.path().join("else")).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let planning = Planning {
            under_way: Arc::new(AtomicBool::new(true)),
            folder: Some(folder.clone()),
            told: "t".into(),
        };
        let write = |path: &Path| describe("1", "Write", json!({"file_path": path, "content": "x"}));
        assert!(planning.is_about_plan_file(&write(&folder.join("a.md"))));
        std::os::unix::fs::symlink("../else/b.md", folder.join("b.md")).unwrap();
        for other in ["plans/b.md", "else/a.md", "plans/../else/a.md", "plans/x/a.md"] {
            assert!(!planning.is_about_plan_file(&write(&dir.path().join(other))), "{other}");
        }
        assert!(!planning.is_about_plan_file(&describe("1", "Bash", json!({"command": "ls"}))));
        planning.hears("Write", &Permission::Allow { input: None });
        planning.hears(PLAN_TOOL, &Permission::Deny { message: "no".into() });
        assert!(planning.is_under_way());
        planning.hears(PLAN_TOOL, &Permission::Allow { input: None });
        assert!(!planning.is_under_way() && !planning.is_about_plan_file(&write(&folder.join("a.md"))));
    }

    #[test]
    fn a_plan_that_the_question_leaves_out_is_what_it_said() {
        let under_way = Arc::new(AtomicBool::new(true));
        let mut planning = Planning { under_way, folder: None, told: String::new() };
        let completed = |planning: &Planning, mut input: Value| {
            planning.complete(PLAN_TOOL, &mut input);
            input["plan"].clone()
        };
        planning.says("I would paint");
        assert_eq!(completed(&planning, json!({})), "I would paint");
        planning.uses(PLAN_TOOL, &json!({"plan": "1. paint"}));
        planning.uses("Bash", &json!({"plan": "no"}));
        assert_eq!(completed(&planning, Value::Null), "1. paint");
        assert_eq!(completed(&planning, json!({"plan": "own"})), "own");
    }
}
