//! The tests that the checks of a run will make, run once before the first step that may change files.

use sage_core::run::Run;
use sage_core::template::Operation;
use sage_offline::{Before, Executed, Request};
use serde_json::{Map, Value, json};

use super::{lines_of_operation, read, write};
use crate::cli::context::Context;

const TESTS: &[&str] = &["test.run", "test.regression"];
/// Tests that take longer are not compared: they would keep the step that waits for them.
const TIMEOUT_MS: u64 = 5 * 60 * 1_000;

/// Runs them and notes what ran, unless that was done before. A run without such checks has nothing to measure.
pub fn measure(context: &Context, run: &str, feature: &str) -> Result<Value, String> {
    let (project, key) = (&context.project, context.key.as_ref());
    let Some(mut record) = read(project, run, key).filter(|record| !record.measured) else {
        return Ok(Value::Null);
    };
    let Ok(snapshot) = context.engine().read(feature) else { return Ok(Value::Null) };
    let wanted = wanted(context, &snapshot.run);
    if wanted.is_empty() {
        return Ok(Value::Null);
    }
    // Written first: if it is cut off, files may have changed by the next time.
    record.measured = true;
    write(project, run, &record, key);
    let mut ran: Vec<Executed> = Vec::new();
    for named in wanted {
        let params = Map::from_iter([("timeoutMs".to_string(), json!(TIMEOUT_MS))]);
        let request = Request {
            operation: "test.baseline".to_string(),
            project: project.root.clone(),
            params,
            named,
            before: Before::Unasked,
            ..Request::default()
        };
        let told = sage_offline::perform(&request).map_err(|trouble| trouble.to_string())?;
        ran.extend(serde_json::from_value::<Vec<Executed>>(told["tests"].clone()).unwrap_or_default());
    }
    let result = json!({ "tests": ran });
    if let Some(baseline) = &mut record.project {
        baseline.ran = ran;
    }
    write(project, run, &record, key);
    Ok(result)
}

/// Named commands, and `None` for those of the project's files. Each once.
fn wanted(context: &Context, run: &Run) -> Vec<Option<Vec<String>>> {
    let plans = run.named_plans();
    let templates = std::iter::once(&run.plan().template).chain(plans.iter().map(|(_, plan)| &plan.template));
    let phases = templates.flat_map(|template| &template.phases);
    let checks = phases.flat_map(|phase| &phase.operations).filter(|operation| is_test(operation));
    let mut all: Vec<Option<Vec<String>>> = Vec::new();
    for operation in checks {
        let own = lines_of_operation(operation);
        let part = operation.params.get("part").and_then(Value::as_str).unwrap_or("all");
        let named = match own.is_empty() {
            true => context.config.file.check_commands("test", part),
            false => Some(own),
        };
        // An empty list says that there is nothing to run.
        if named.as_ref().is_none_or(|lines| !lines.is_empty()) && !all.contains(&named) {
            all.push(named);
        }
    }
    all
}

/// One that runs the project's commands, and not another agent in its place.
fn is_test(operation: &Operation) -> bool {
    TESTS.contains(&operation.type_name.as_str()) && operation.agent.as_deref() == Some("offline")
}
