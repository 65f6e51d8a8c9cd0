//! `skills.discover` without a model: the skills that can be found from the project, compared with the title.

use std::path::Path;

use sage_engine::skills::discover as fitting;
use sage_engine::vfs::DiskFs;
use serde_json::{Map, Value};

use super::super::context::project_at;
use super::super::skills::store;
use crate::trust::user;

/// Texts in `params` are further words about the work.
pub fn discover(project: &Path, title: &str, params: &Map<String, Value>) -> Result<Value, String> {
    let project = project_at(sage_fence::real_dir(project));
    let index = store(&project, DiskFs::new(), user::key().as_ref()).index();
    let more: Vec<&str> = params.values().filter_map(Value::as_str).collect();
    let mut result = fitting(&index, title, &more.join("\n")).to_json();
    // What could not be read is told to whoever reads the result, not lost.
    let problems = index.problems.iter().map(|it| format!("{}: {}", index.shown(&it.path), it.message));
    let problems: Vec<String> = problems.collect();
    if !problems.is_empty() {
        result["problems"] = problems.into();
    }
    Ok(result)
}
