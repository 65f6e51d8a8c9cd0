//! What the suites expect to read, word for word.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResult, PromptMessage, ReadResourceResult,
    ResourceContents, Role,
};
use serde_json::json;

/// One red pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No samples at all.
pub const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

pub fn image() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}

pub fn embedded(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(kind))
}

pub fn prompt(asked: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let given = asked.arguments.as_ref().and_then(|arguments| arguments.get(name)?.as_str());
        given.ok_or_else(|| ErrorData::invalid_params(format!("the argument `{name}` is missing"), None))
    };
    let content = match asked.name.as_str() {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![ContentBlock::text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(argument("resourceUri")?, "text/plain", "Embedded resource content for testing."),
            ContentBlock::text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), ContentBlock::text("Please analyze the image above.")],
        name => return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)),
    };
    let messages = content.into_iter().map(|content| PromptMessage::new(Role::User, content));
    Ok(GetPromptResult::new(messages.collect()))
}

pub fn resource(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = |kind: &str, text: String| ResourceContents::text(text, uri).with_mime_type(kind);
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => {
            text("text/plain", "This is the content of the static text resource.".into())
        }
        ("test://static-binary", _) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        ("test://watched-resource", _) => text("text/plain", "Watched.".into()),
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            text("application/json", data.to_string())
        }
        _ => {
            let data = json!({"uri": uri});
            return Err(ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(data)));
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
