//! `sage_skill`: what earlier runs found out. Approving one is for people: it will steer agents without asking.

use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::error::{Code, ToolError};
use crate::cli::context::Context;
use crate::cli::skills::{self, failure, list, save, search, show};
use crate::display::text::plural;

pub async fn call(call: &Call, mut args: Args) -> Result<Answer, ToolError> {
    match args.one_of("action", &["list", "search", "show", "save", "approve"])?.unwrap_or("list") {
        "approve" => Err(ToolError::new(Code::Conflict, "a skill is approved by a person who has read it")
            .hint("type: sage skills approve <name>")),
        "search" => {
            let query = args.needed("query")?;
            args.finish()?;
            call.blocking(move |context| {
                let found = search::json(&store(context).index(), &query);
                Ok(listed(found))
            })
            .await
        }
        "show" => {
            let name = args.needed("name")?;
            args.finish()?;
            call.blocking(move |context| shown(context, &name)).await
        }
        "save" => {
            let wanted = save::Args {
                feature: args.needed("feature")?,
                name: args.text("name")?,
                from: args.texts("steps")?,
                description: args.text("description")?,
                tags: args.texts("tags")?,
                ..save::Args::default()
            };
            args.finish()?;
            call.blocking(move |context| saved(context, &wanted)).await
        }
        _ => {
            args.finish()?;
            call.blocking(|context| Ok(listed(list::json(&store(context).index())))).await
        }
    }
}

fn store(context: &Context) -> sage_engine::skills::Store {
    skills::store(&context.project, context.disk.clone(), context.key.as_ref())
}

fn listed(mut value: serde_json::Value) -> Answer {
    if let Some(fields) = value.as_object_mut() {
        fields.remove("type");
    }
    let text = plural(value["skills"].as_array().map_or(0, Vec::len) as u64, "skill");
    Answer::shown(value, text)
}

fn shown(context: &Context, name: &str) -> Result<Answer, ToolError> {
    let index = store(context).index();
    let found = index.find(name).map_err(|error| ToolError::from(failure(error)).code(Code::NotFound))?;
    let skill = show::json(&index, found)?;
    let text = skill["text"].as_str().unwrap_or_default().to_string();
    Ok(Answer::new(json!({"skill": skill}), text))
}

fn saved(context: &Context, wanted: &save::Args) -> Result<Answer, ToolError> {
    let store = store(context);
    let feature = sage_core::slug::Feature::from_title(&wanted.feature)?;
    // Told with the right code before anything is gathered.
    context.engine().read(feature.slug())?;
    let tried = save::save(context, &store, wanted)?;
    let value = save::json(&store.index(), &tried)?;
    if tried.saved.is_none() {
        return Err(ToolError::from(save::refused(&tried)).with(value));
    }
    let text = format!("saved {}; nobody uses it by itself before a person has approved it", tried.name);
    Ok(Answer::shown(json!({"success": true, "skill": value, "notes": tried.notes}), text))
}
