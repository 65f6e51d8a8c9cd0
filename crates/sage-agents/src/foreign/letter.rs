//! The order as a file: what a person or a program needs to know, and how to report.

use std::io;
use std::path::{Path, PathBuf};

use sage_fence::private;

use crate::agent::Order;
use crate::attempt::Attempt;

/// `session_id` is whom the report must name; the rest is for whoever reads it.
#[derive(Debug)]
pub struct Letter {
    path: PathBuf,
    head: String,
    body: String,
}

impl Letter {
    pub fn new(attempt: &Attempt<'_>, order: &Order, session: &str, orders: &Path, reports: &Path) -> Letter {
        let call = attempt.call;
        let role = call.role.map_or("none", |role| role.name());
        let files: Vec<&str> = call.files.iter().map(|file| file.path.as_str()).collect();
        let fields = [
            ("session_id", session),
            ("step", &call.path),
            ("feature", &call.feature),
            ("run", &call.run),
            ("role", role),
            ("work_in", &order.cwd.display().to_string()),
            ("files", &files.join(", ")),
            ("report_to", &reports.display().to_string()),
        ];
        let mut head = String::from("---\n");
        // A text in JSON is one in YAML, whatever is in it.
        fields
            .iter()
            .filter(|(name, value)| *name != "files" || !value.is_empty())
            .for_each(|(name, value)| head.push_str(&format!("{name}: {}\n", serde_json::json!(value))));
        head.push_str("---\n");
        Letter { path: orders.join(format!("{session}.md")), head, body: String::new() }
    }

    /// What is asked, and what was said before.
    pub fn write(&mut self, body: &str, schema: Option<&serde_json::Value>) -> io::Result<()> {
        self.body = body.to_string();
        let text = format!("{}\n{}\n\n{}", self.head, body.trim_end(), how_to_report(schema));
        private::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
        private::write(&self.path, text.as_bytes())
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody shall begin with what is not wanted any more.
    pub fn take_back(&self) {
        // Gone already is as good; what cannot be removed is only read in vain.
        let _ = private::remove_file(&self.path);
    }
}

fn how_to_report(schema: Option<&serde_json::Value>) -> String {
    let mut text = String::from(
        "## How to report\n\nPut a JSON file of any name into the folder `report_to`, or type `sage wake`:\n\n\
         ```json\n{\"session_id\": \"<session_id>\", \"type\": \"COMPLETE\", \"summary\": \"what was done\", \
         \"deliverables\": {\"files\": []}}\n```\n\n\
         `type` is COMPLETE, ERROR (it cannot be done), BLOCKED (`summary` is a question; the answer appears \
         here) or FINDING (something worth telling while the work goes on).\n",
    );
    if let Some(schema) = schema {
        text.push_str(&format!("\nWith COMPLETE, `result` must be JSON that fits this schema: `{schema}`\n"));
    }
    text
}
