//! Every request that arrived, without keys: in memory, and as JSON lines for whoever wants a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::HeaderMap;
use serde_json::{Map, Value, json};

/// Their values are never kept.
const SECRET: [&str; 4] = ["authorization", "x-api-key", "cookie", "proxy-authorization"];

#[derive(Debug, Default)]
pub struct Log {
    entries: Mutex<Vec<Value>>,
    file: Option<File>,
}

impl Log {
    pub fn open(file: Option<&Path>) -> io::Result<Log> {
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        Ok(Log { entries: Mutex::default(), file: file.map(open).transpose()? })
    }

    /// `{"t": ms, "method", "path", "headers", "auth": "x-api-key" | "bearer" | null, "body"}`
    pub fn record(&self, method: &str, path: &str, headers: &HeaderMap, body: &Value) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let entry = json!({
            "t": since.as_millis() as u64, "method": method, "path": path,
            "headers": plain(headers), "auth": auth(headers), "body": body,
        });
        let mut entries = self.lock();
        if let Some(mut file) = self.file.as_ref() {
            // Under the lock, so that lines are whole and in order. Nobody is there to hear of a full disk.
            let _ = file.write_all(format!("{entry}\n").as_bytes());
        }
        entries.push(entry);
    }

    pub fn entries(&self) -> Vec<Value> {
        self.lock().clone()
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn plain(headers: &HeaderMap) -> Map<String, Value> {
    let open = headers.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
    open.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into())).collect()
}

fn auth(headers: &HeaderMap) -> Option<&'static str> {
    let has = |name: &str| headers.contains_key(name);
    if has("x-api-key") { Some("x-api-key") } else { has("authorization").then_some("bearer") }
}
