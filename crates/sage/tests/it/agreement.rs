//! One run, many readers, many situations: an automatic comparison (R8, R16, R18).
//!
//! `views` takes what every reader says of a run at one moment: `status`, `list`, the roster, `explain`, `graph`, the
//! inbox, MCP, the checkpoint and the registry, as text and as JSON. `compare` lists all in which they differ, and all
//! that does not fit together inside of one of them. The other modules bring runs into situations.

mod closed;
mod compare;
mod live;
mod standing;
mod text;
mod times;
mod views;

use crate::dsl::Sage;
use crate::mcp_server::client::{BOTH, Client};
use views::Views;

/// A project, and a client of its MCP server.
struct Desk {
    sage: Sage,
    client: Client,
}

impl Desk {
    fn new(sage: Sage) -> Desk {
        let client = Client::start(&sage, BOTH[0]);
        Desk { sage, client }
    }

    /// All readers say the same of the run, which people are told is `word`.
    #[track_caller]
    fn agrees(&mut self, feature: &str, word: &str) -> Views {
        let views = Views::take(&self.sage, &mut self.client, feature);
        let found = compare::disagreements(&views);
        assert!(found.is_empty(), "{feature}:\n- {}\n{}", found.join("\n- "), views.status_text);
        assert_eq!(views.word(), word, "{feature}:\n{}", views.status_text);
        views
    }

    /// Runs a template to its end or its pause; the last lines agree with what readers say afterwards.
    #[track_caller]
    fn runs(&mut self, template: &str, exit: i32, word: &str) -> Views {
        let feature = format!("x-{template}");
        let ran = self.sage.args(["run", &feature, "-t", template]).run().exit(exit);
        let views = self.agrees(&feature, word);
        let found = text::last_lines(&views, &ran.stdout);
        assert!(found.is_empty(), "{feature}:\n- {}\n{}", found.join("\n- "), ran.stdout);
        views
    }
}

/// `{ id: a, type: shell, params: { run: .. } }` with further fields.
fn shell(id: &str, run: &str, more: &str) -> String {
    format!("{{ id: {id}, type: shell, params: {{ run: '{run}' }}{more} }}")
}

/// A fan-out over 0, 1 and 2; `run` knows the item as `$I`.
fn fan(id: &str, run: &str, more: &str) -> String {
    let params = format!("params: {{ env: {{ I: '{{{{ item }}}}' }}, run: '{run}' }}");
    format!("{{ id: {id}, type: shell, foreach: '[range(3)]', {params}{more} }}")
}

/// Phases one after the other: each with its fields and its operations.
fn template(phases: &[(&str, &[String])]) -> String {
    let mut text = String::from("name: t\nphases:\n");
    let mut before: Option<String> = None;
    for (fields, operations) in phases {
        let id = fields.split([',', ' ']).next().unwrap();
        let rest = fields.strip_prefix(id).unwrap().trim_start_matches(',');
        text.push_str(&format!("  - id: {id}\n"));
        text.extend(before.map(|before| format!("    dependencies: [{before}]\n")));
        text.extend(
            rest.split(';').filter(|field| !field.trim().is_empty()).map(|f| format!("    {}\n", f.trim())),
        );
        text.push_str("    operations:\n");
        text.extend(operations.iter().map(|operation| format!("      - {operation}\n")));
        before = Some(id.to_string());
    }
    text
}
