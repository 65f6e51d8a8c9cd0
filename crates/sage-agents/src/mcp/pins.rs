//! Which definitions of tools are trusted: those that were there when a server was used first, or that a person has
//! approved since. A server that changes what a tool says it does, or takes, has to be approved again.
//!
//! One file per server, `.sage/state/tools/<server>.json`; it also remembers which lifecycle has worked.
//! What must stay true: a file that cannot be read trusts no tool; one that this user did not write (a clone brought
//! it) counts as none; two processes never lose each other's pins.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sage_core::seal::{self, Key};
use sage_fence::private;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::difference;
use super::server::Lifecycle;
use super::tool::Tool;

const VERSION: u32 = 1;
/// Definitions of thousands of tools.
const MAX_BYTES: u64 = 64 << 20;
/// Names that a note lists.
const LISTED: usize = 5;

#[derive(Debug)]
pub struct Pins {
    /// Without one, what is trusted is forgotten at the end.
    dir: Option<PathBuf>,
    /// The user's; there is one where there is a directory.
    key: Option<Key>,
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
    /// Its tools were listed before, also if it had none then.
    #[serde(default)]
    met: bool,
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
    pub fn new(dir: Option<PathBuf>, key: Option<Key>) -> Pins {
        Pins { dir: dir.filter(|_| key.is_some()), key, seen: Mutex::default() }
    }

    /// The key for the file of one server.
    fn scoped(&self, server: &str) -> Option<Key> {
        self.key.as_ref().map(|key| key.scoped("tools", server))
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

    /// Pins the tools of a server that is met for the first time. Later, tools that are new or not what they were
    /// are refused until a person approves them. Returns what a person should know.
    pub fn admit(&self, server: &str, tools: &mut [Tool]) -> Result<Vec<String>, String> {
        let known = self.read(server)?;
        if !known.met && known.tools.is_empty() {
            return self.meet(server, tools);
        }
        for tool in &mut *tools {
            tool.refused = match known.tools.get(&tool.name) {
                Some(pin) if pin.hash == tool.hash => None,
                Some(pin) => Some(changed(tool, pin)),
                None => Some(added(tool)),
            };
        }
        let new: Vec<&Tool> = tools.iter().filter(|tool| !known.tools.contains_key(&tool.name)).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let names = listed(&new);
        Ok(vec![format!(
            "server `{server}` has new tools, which are not used until they are approved: {names}; to \
             review them: sage tools approve {server}"
        )])
    }

    fn meet(&self, server: &str, tools: &[Tool]) -> Result<Vec<String>, String> {
        self.change(server, |pinned| {
            pinned.met = true;
            for tool in tools {
                pinned.tools.entry(tool.name.clone()).or_insert_with(|| Pin::of(tool));
            }
        })?;
        if tools.is_empty() {
            return Ok(Vec::new());
        }
        let names = listed(&tools.iter().collect::<Vec<_>>());
        Ok(vec![format!(
            "server `{server}` is used for the first time; its tools are approved as they are now: {names}"
        )])
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
            Some(dir) => load(&path(dir, server), self.scoped(server).as_ref()),
        }
    }

    fn change(&self, server: &str, change: impl FnOnce(&mut Pinned)) -> Result<(), String> {
        let Some(dir) = &self.dir else {
            change(self.seen().entry(server.to_owned()).or_default());
            return Ok(());
        };
        let path = path(dir, server);
        let failed = |error: io::Error| format!("`{}` cannot be written: {error}", path.display());
        let lock = private::open_lock(&dir.join(".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let key = self.scoped(server);
        let mut pinned = load(&path, key.as_ref())?;
        change(&mut pinned);
        pinned.v = VERSION;
        save(&path, &pinned, key.as_ref()).map_err(failed)
    }
}

/// A name has no `/`, so it stays in the folder.
fn path(dir: &Path, server: &str) -> PathBuf {
    dir.join(format!("{server}.json"))
}

fn load(path: &Path, key: Option<&Key>) -> Result<Pinned, String> {
    let unread = |why: String| {
        let path = path.display();
        format!(
            "`{path}` says which tools are trusted and cannot be read: {why}; to trust them anew: rm {path}"
        )
    };
    let text = match private::read_text(path, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pinned::default()),
        Err(error) => return Err(unread(error.to_string())),
    };
    let pinned: Pinned = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
    if !seal::is_sealed(&text, key) {
        return Ok(Pinned::default());
    }
    if pinned.v > VERSION {
        return Err(unread("a newer sage has written it".into()));
    }
    Ok(pinned)
}

fn save(path: &Path, pinned: &Pinned, key: Option<&Key>) -> io::Result<()> {
    let text = seal::document_text(pinned, key).map_err(io::Error::other)?;
    private::write_durable(path, text.as_bytes())
}

fn changed(tool: &Tool, pin: &Pin) -> String {
    let Tool { server, name, .. } = tool;
    let changed = difference(&pin.definition, &tool.definition());
    format!(
        "`{name}` of server `{server}` changed since it was approved: {changed}; to accept it: \
         sage tools approve {server} {name}"
    )
}

fn added(tool: &Tool) -> String {
    let Tool { server, name, .. } = tool;
    format!(
        "`{name}` of server `{server}` is new and not approved yet; to accept it: \
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
