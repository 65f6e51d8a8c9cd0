//! Okapi BM25 over the name, the description and the parameters of each tool. The name counts most.

use serde_json::Value;

use super::ToolDef;
use super::words::words;
use crate::typing::{self, Function, Server, sentence};

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// How often a word of the name, the server and a parameter counts.
const NAME: usize = 4;
const SERVER: usize = 2;
const PARAMETER: usize = 1;
/// Parameters of a tool that are looked at.
const MAX_PARAMETERS: usize = 100;
/// Of a description; some are handbooks.
const MAX_TEXT: usize = 4_000;
/// Of a line in a list of names.
const NAME_CHARS: usize = 80;

/// How much is told of each tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// `github/list-issues: Lists issues of a repository`
    #[default]
    Names,
    /// How it is imported and called.
    Signatures,
    /// Its whole file, with the comments.
    Full,
}

impl Detail {
    pub const NAMES: [&'static str; 3] = ["names", "signatures", "full"];

    pub fn parse(text: &str) -> Option<Detail> {
        match text {
            "names" => Some(Detail::Names),
            "signatures" => Some(Detail::Signatures),
            "full" => Some(Detail::Full),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Where it is in the catalogue.
    pub index: usize,
    pub server: String,
    pub tool: String,
    /// What code imports and calls.
    pub module: String,
    pub function: String,
    pub score: f64,
    /// What is told of it.
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// How many fit, also those beyond the limit.
    pub total: usize,
}

impl Found {
    /// For a model: the lines and nothing else.
    pub fn text(&self) -> String {
        let mut lines: Vec<&str> = self.hits.iter().map(|hit| hit.text.as_str()).collect();
        let more =
            format!("({} more fit; ask for more words or a higher limit)", self.total - self.hits.len());
        if self.total > self.hits.len() {
            lines.push(&more);
        }
        lines.join("\n")
    }
}

/// The tools that fit best, best first. Without words all of them, in the order of the catalogue.
pub fn search(catalogue: &[ToolDef], query: &str, detail: Detail, limit: usize) -> Found {
    let ranked = rank(catalogue, query);
    let servers = typing::servers(catalogue);
    let hits = ranked
        .iter()
        .take(limit)
        .filter_map(|(index, score)| hit(catalogue, &servers, *index, *score, detail));
    Found { hits: hits.collect(), total: ranked.len() }
}

fn hit(catalogue: &[ToolDef], servers: &[Server], index: usize, score: f64, detail: Detail) -> Option<Hit> {
    let tool = &catalogue[index];
    let server = servers.iter().find(|server| server.name == tool.server)?;
    let function = server.functions.iter().find(|function| function.index == index)?;
    Some(Hit {
        index,
        server: tool.server.clone(),
        tool: tool.name.clone(),
        module: format!("servers/{}", server.module),
        function: function.name.clone(),
        score,
        text: told(tool, server, function, detail),
    })
}

fn told(tool: &ToolDef, server: &Server, function: &Function, detail: Detail) -> String {
    match detail {
        Detail::Names => match sentence(&tool.description, NAME_CHARS) {
            said if said.is_empty() => format!("{}/{}", server.module, function.name),
            said => format!("{}/{}: {said}", server.module, function.name),
        },
        Detail::Signatures => typing::signature(tool, server, function),
        Detail::Full => format!(
            "// import {{ {} }} from \"servers/{}\";\n{}",
            function.name,
            server.module,
            typing::declare(tool, function)
        ),
    }
}

fn rank(catalogue: &[ToolDef], query: &str) -> Vec<(usize, f64)> {
    let mut asked: Vec<String> = Vec::new();
    words(query).into_iter().take(64).for_each(|word| {
        if !asked.contains(&word) {
            asked.push(word);
        }
    });
    if asked.is_empty() {
        return (0..catalogue.len()).map(|index| (index, 0.0)).collect();
    }
    let texts: Vec<Vec<String>> = catalogue.iter().map(said).collect();
    let mean = texts.iter().map(Vec::len).sum::<usize>() as f64 / (texts.len().max(1)) as f64;
    let weights: Vec<f64> = asked
        .iter()
        .map(|word| {
            let with = texts.iter().filter(|text| text.iter().any(|it| fits(it, word))).count() as f64;
            (1.0 + (texts.len() as f64 - with + 0.5) / (with + 0.5)).ln()
        })
        .collect();
    let mut ranked: Vec<(usize, f64)> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let length = K1 * (1.0 - B + B * text.len() as f64 / mean.max(1.0));
        let mut score = 0.0;
        for (word, weight) in asked.iter().zip(&weights) {
            let times = text.iter().filter(|it| fits(it, word)).count() as f64;
            score += weight * times * (K1 + 1.0) / (times + length);
        }
        if exact(&catalogue[index], query) {
            score += 1_000.0;
        }
        if score > 0.0 {
            ranked.push((index, score));
        }
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

/// Equal, or the longer one begins with the other: `repo` asks for `repository`.
fn fits(said: &str, asked: &str) -> bool {
    said == asked || asked.len() >= 4 && said.starts_with(asked) || said.len() >= 4 && asked.starts_with(said)
}

fn exact(tool: &ToolDef, query: &str) -> bool {
    let query = query.trim();
    let last = query.rsplit('/').next().unwrap_or_default();
    let named = last == tool.name || last == typing::function_name(&tool.name);
    named && (last == query || query.strip_suffix(last).is_some_and(|server| server.contains(&tool.server)))
}

/// All words of a tool, those of its name several times.
fn said(tool: &ToolDef) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |text: &str, times: usize| {
        let words = words(text);
        (0..times).for_each(|_| all.extend(words.iter().cloned()));
    };
    add(&tool.name, NAME);
    add(&tool.server, SERVER);
    add(&tool.description[..tool.description.floor_char_boundary(MAX_TEXT)], 1);
    let fields = tool.input_schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().take(MAX_PARAMETERS).for_each(|(name, _)| add(name, PARAMETER));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalogue() -> Vec<ToolDef> {
        let tool = |server: &str, name: &str, description: &str, field: &str| ToolDef {
            server: server.into(),
            name: name.into(),
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {field: {"type": "string"}}}),
            ..ToolDef::default()
        };
        vec![
            tool("github", "list_issues", "List issues of a repository. With filters and pages.", "repo"),
            tool("github", "create_pull_request", "Open a pull request.", "branch"),
            tool("filesystem", "read_file", "Read the complete contents of a file.", "path"),
            tool("filesystem", "write_file", "Create a new file or overwrite one.", "content"),
            tool("slack", "post-message", "Post a message to a channel.", "channel_id"),
        ]
    }

    fn best(query: &str) -> String {
        search(&catalogue(), query, Detail::Names, 1).hits.first().map_or("-".into(), |hit| hit.tool.clone())
    }

    // covers: R21
    #[test]
    fn the_best_tool_comes_first() {
        assert_eq!(best("list the issues of my repo"), "list_issues");
        assert_eq!(best("read a file"), "read_file");
        assert_eq!(best("pull requests"), "create_pull_request");
        assert_eq!(best("send message to a channel"), "post-message");
        assert_eq!(best("branch"), "create_pull_request");
        assert_eq!(best("filesystem/writeFile"), "write_file");
        assert_eq!(best("zebra"), "-");
    }

    #[test]
    fn names_are_tiny_and_the_rest_is_counted() {
        let found = search(&catalogue(), "", Detail::Names, 2);
        assert_eq!(found.total, 5);
        assert_eq!(
            found.text(),
            "github/listIssues: List issues of a repository\ngithub/createPullRequest: Open a pull request\n(3 more fit; ask for more words or a higher limit)"
        );
        let full = search(&catalogue(), "post message", Detail::Full, 1);
        assert!(full.text().contains("import { postMessage } from \"servers/slack\""), "{}", full.text());
        assert!(full.text().contains("callTool(\"slack\", \"post-message\", input)"), "{}", full.text());
    }

    #[test]
    fn an_empty_catalogue_has_nothing() {
        assert_eq!(search(&[], "x", Detail::Full, 10), Found::default());
    }
}
