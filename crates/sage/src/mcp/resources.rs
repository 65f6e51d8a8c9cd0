//! Resources: what can be read without a tool. All runs, one run, the roster of open ones.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use sage_core::slug::Feature;
use sage_engine::open::OpenError;
use serde_json::{Value, json};

use super::call::Call;
use super::error::{Code, ToolError};
use super::tools::status;
use crate::cli::context::Context;
use crate::cli::{list, roster};

const RUNS: &str = "sage://runs";
const ROSTER: &str = "sage://roster";
const JSON: &str = "application/json";
/// Features that are listed by name; all of them can be read.
const LISTED: usize = 200;

pub async fn list(call: &Call) -> Result<ListResourcesResult, ErrorData> {
    let features = call.blocking(|context| Ok(list::features(&context.engine()))).await;
    let fixed = [
        Resource::new(RUNS, "runs").with_description("The newest run of every feature"),
        Resource::new(ROSTER, "roster").with_description("Open runs, who has them and what is at work"),
    ];
    let run = |feature: String| {
        Resource::new(format!("{RUNS}/{feature}"), feature).with_description("Where this run stands")
    };
    let runs = features.unwrap_or_default().into_iter().take(LISTED).map(run);
    let all = fixed.into_iter().chain(runs).map(|resource| resource.with_mime_type(JSON)).collect();
    Ok(ListResourcesResult::with_all_items(all))
}

pub fn templates() -> ListResourceTemplatesResult {
    let run = ResourceTemplate::new(format!("{RUNS}/{{feature}}"), "run")
        .with_description("Where the newest run of a feature stands; its title or slug")
        .with_mime_type(JSON);
    ListResourceTemplatesResult::with_all_items(vec![run])
}

pub async fn read(call: &Call, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let wanted = uri.to_string();
    let found = call.blocking(move |context| content(context, &wanted)).await;
    match found {
        Ok(Some(value)) => {
            let text = ResourceContents::text(value.to_string(), uri).with_mime_type(JSON);
            Ok(ReadResourceResult::new(vec![text]))
        }
        Ok(None) => {
            let shown: String = uri.chars().take(200).collect();
            let known = json!({"uri": shown, "known": [RUNS, ROSTER, format!("{RUNS}/{{feature}}")]});
            Err(ErrorData::resource_not_found(format!("no resource `{}`", shown.escape_debug()), Some(known)))
        }
        Err(error) => {
            let body = error.into_result().structured_content.unwrap_or_default();
            let message = body["message"].as_str().unwrap_or_default().to_string();
            Err(ErrorData::internal_error(message, Some(body)))
        }
    }
}

fn content(context: &Context, uri: &str) -> Result<Option<Value>, ToolError> {
    match uri {
        RUNS => Ok(Some(json!({"workflows": list::rows(&context.engine(), None)?}))),
        ROSTER => Ok(Some(json!({"runs": roster::Roster::new(context).rows()}))),
        other => {
            let name = other.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('/'));
            let Some(Ok(feature)) = name.map(Feature::from_title) else { return Ok(None) };
            match context.engine().read(feature.slug()) {
                Ok(snapshot) => Ok(Some(status::view(context, &snapshot)?)),
                Err(OpenError::Unknown(_)) => Ok(None),
                Err(error) => Err(ToolError::from(error).code(Code::Corrupted)),
            }
        }
    }
}
