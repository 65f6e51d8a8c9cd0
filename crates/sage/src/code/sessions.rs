//! The sessions of a process: found by name, the one that was not used for the longest time goes first.

use std::sync::Arc;

use sage_script::code::CodeSession;

/// Each may hold some megabytes of values.
const MAX_SESSIONS: usize = 32;
const MAX_NAME: usize = 64;

#[derive(Debug, Default)]
pub struct Sessions {
    /// The one that was used last comes last.
    open: Vec<(String, Arc<CodeSession>)>,
    made: u64,
}

impl Sessions {
    pub fn get(
        &mut self,
        name: Option<&str>,
        make: impl FnOnce() -> CodeSession,
    ) -> (Arc<CodeSession>, String) {
        let name = match name.map(|name| name.chars().take(MAX_NAME).collect::<String>()) {
            Some(name) if !name.is_empty() => name,
            _ => self.next(),
        };
        let known = self.open.iter().position(|(open, _)| *open == name).map(|at| self.open.remove(at).1);
        let session = known.unwrap_or_else(|| Arc::new(make()));
        self.open.push((name.clone(), Arc::clone(&session)));
        if self.open.len() > MAX_SESSIONS {
            self.open.remove(0);
        }
        (session, name)
    }

    fn next(&mut self) -> String {
        loop {
            self.made += 1;
            let name = format!("s{}", self.made);
            if !self.open.iter().any(|(open, _)| *open == name) {
                return name;
            }
        }
    }
}
