//! Which definitions of tools are trusted: those that were there when a server was used first, or that a person has
//! approved since. A server that changes what a tool says it does, or takes, has to be approved again.
//!
//! One file per server, `.sage/state/tools/<server>.json`; it also remembers which lifecycle has worked.
//! What must stay true: a file that cannot be read trusts nobody; two processes never lose each other's pins.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::difference;
use super::server::Lifecycle;
use super::tool::Tool;
use crate::process::private_file;

const VERSION: u32 = 1;
/// Names that a note lists.
const LISTED: usize = 5;

#[derive(Debug)]
pub struct Pins {
    /// Without one, what is trusted is forgotten at the end.
    dir: Option<PathBuf>,
    seen: Mutex<BTreeMap<String, Pinned>>,
}

/// What is known of one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pinned {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<Lifecycle>,
    #[serde(default)]
    tools: BTreeMap<String, Pin>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pin {
    pub hash: String,
    /// To say what has changed.
    pub definition: Value,
}

impl Pin {
    fn of(tool: &Tool) -> Pin {
        Pin { hash: tool.hash.clone(), definition: tool.definition() }
    }

    /// Calling the tool twice is as good as once.
    pub fn is_repeatable(&self) -> bool {
        let hint = |name: &str| self.definition["hints"][name].as_bool().unwrap_or(false);
        hint("readOnly") || hint("idempotent")
    }
}

impl Pins {
    pub fn new(dir: Option<PathBuf>) -> Pins {
        Pins { dir, seen: Mutex::default() }
    }

    pub fn lifecycle(&self, server: &str) -> Option<Lifecycle> {
        self.read(server).ok()?.lifecycle
    }

    /// What is not remembered only costs time.
    pub fn remember(&self, server: &str, lifecycle: Lifecycle) {
        if self.lifecycle(server) != Some(lifecycle) {
            let _ = self.change(server, |pinned| pinned.lifecycle = Some(lifecycle));
        }
    }

    pub fn pin(&self, server: &str, tool: &str) -> Option<Pin> {
        self.read(server).ok()?.tools.remove(tool)
    }

    /// Refuses those of `tools` that are not what they were, and pins those that nobody has seen before. Returns what
    /// a person should know.
    pub fn admit(&self, server: &str, tools: &mut [Tool]) -> Result<Vec<String>, String> {
        let known = self.read(server)?;
        for tool in &mut *tools {
            let pin = known.tools.get(&tool.name).filter(|pin| pin.hash != tool.hash);
            tool.refused = pin.map(|pin| refusal(tool, pin));
        }
        let new: Vec<&Tool> = tools.iter().filter(|tool| !known.tools.contains_key(&tool.name)).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let is_first = known.tools.is_empty();
        self.change(server, |pinned| {
            for tool in &new {
                pinned.tools.entry(tool.name.clone()).or_insert_with(|| Pin::of(tool));
            }
        })?;
        let names = listed(&new);
        Ok(vec![if is_first {
            format!(
                "server `{server}` is used for the first time: its tools are trusted as they are now ({names})"
            )
        } else {
            format!("server `{server}` has new tools, trusted as they are now: {names}")
        }])
    }

    /// Trusts `tools` as they are now.
    pub fn approve(&self, server: &str, tools: &[&Tool]) -> Result<(), String> {
        self.change(server, |pinned| {
            pinned.tools.extend(tools.iter().map(|tool| (tool.name.clone(), Pin::of(tool))));
        })
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Pinned>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, server: &str) -> Result<Pinned, String> {
        match &self.dir {
            None => Ok(self.seen().get(server).cloned().unwrap_or_default()),
            Some(dir) => load(&path(dir, server)),
        }
    }

    fn change(&self, server: &str, change: impl FnOnce(&mut Pinned)) -> Result<(), String> {
        let Some(dir) = &self.dir else {
            change(self.seen().entry(server.to_owned()).or_default());
            return Ok(());
        };
        let path = path(dir, server);
        let failed = |error: io::Error| format!("`{}` cannot be written: {error}", path.display());
        let lock = private_file(&dir.join(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut pinned = load(&path)?;
        change(&mut pinned);
        pinned.v = VERSION;
        save(&path, &pinned).map_err(failed)
    }
}

/// A name has no `/`, so it stays in the folder.
fn path(dir: &Path, server: &str) -> PathBuf {
    dir.join(format!("{server}.json"))
}

fn load(path: &Path) -> Result<Pinned, String> {
    let unread = |why: String| {
        let path = path.display();
        format!(
            "`{path}` says which tools are trusted and cannot be read: {why}; to trust them anew: rm {path}"
        )
    };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pinned::default()),
        Err(error) => return Err(unread(error.to_string())),
    };
    let pinned: Pinned = serde_json::from_slice(&text).map_err(|error| unread(error.to_string()))?;
    if pinned.v > VERSION {
        return Err(unread("a newer sage has written it".into()));
    }
    Ok(pinned)
}

/// Written aside and renamed: nobody ever reads half of it.
fn save(path: &Path, pinned: &Pinned) -> io::Result<()> {
    let aside = path.with_extension("json.new");
    let mut file: File = private_file(&aside)?;
    let mut text = serde_json::to_vec_pretty(pinned)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()?;
    std::fs::rename(aside, path)
}

fn refusal(tool: &Tool, pin: &Pin) -> String {
    let Tool { server, name, .. } = tool;
    let changed = difference(&pin.definition, &tool.definition());
    format!(
        "`{name}` of server `{server}` is not what was trusted: {changed}; if that is well: \
         sage tools approve {server} {name}"
    )
}

fn listed(tools: &[&Tool]) -> String {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).take(LISTED).collect();
    let more = format!("{} more", tools.len().saturating_sub(LISTED));
    if tools.len() > LISTED {
        names.push(&more);
    }
    names.join(", ")
}
