//! Reuse across runs: only where a step asks for it.

use crate::role::Paths;
use crate::template::{Isolation, Operation};

/// How long a result may be taken by later runs, and which files of the project it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePolicy {
    /// `None` means the project's default.
    pub ttl_ms: Option<u64>,
    /// Globs below the project, `!` in front leaves out. When such a file changes, the result is another one.
    pub files: Vec<String>,
}

impl Operation {
    /// Its results are kept for later runs and taken from earlier ones.
    pub fn caches(&self) -> bool {
        self.cache.is_some() && self.uncacheable().is_none()
    }

    /// Why its result cannot stand for what it does: it is more than its result.
    pub fn uncacheable(&self) -> Option<&'static str> {
        if !self.kind.holds_slot() {
            return Some("the step waits or holds others, and makes no result of its own");
        }
        if self.isolation != Isolation::None {
            return Some("the step works in a worktree, and the work is there and not in its result");
        }
        if self.role.is_some_and(|role| role.access().paths == Paths::All) {
            return Some("its role changes files, and they are not in its result");
        }
        if self.session.is_some() {
            return Some("the step goes on with a conversation, which must hear it");
        }
        if self.expects("headMoved") == Some(true) || self.expects("changes") == Some(true) {
            return Some("a change is expected of it, which is not in its result");
        }
        if self.is_check() {
            return Some("the step checks the project as it is now");
        }
        let command = self.expect.as_ref().and_then(|expect| expect.get("command"));
        command.map(|_| "a command has to check what it did")
    }
}

#[cfg(test)]
mod tests {
    use crate::template::Operation;

    fn operation(fields: &str) -> Operation {
        let text =
            format!("name: t\nphases:\n  - id: p\n    operations: {{ id: x, cache: true, {fields} }}\n");
        let frozen = crate::event::Frozen::new("t", crate::source::Format::Yaml, text);
        crate::load::reload(&frozen).unwrap().phases.remove(0).operations.remove(0)
    }

    // covers: R11
    #[test]
    fn only_what_is_nothing_but_its_result_is_cached() {
        let agent = |fields: &str| operation(&format!("type: agent, agent: fake, prompt: x{fields}"));
        for fields in
            ["", ", role: researcher", ", role: planner", ", output: docs/x.md", ", expect: { files: [a] }"]
        {
            assert!(agent(fields).caches(), "{fields}");
        }
        let more = [
            ", isolation: worktree",
            ", role: implementer",
            ", role: cleaner",
            ", session: s",
            ", expect: { headMoved: true }",
            ", expect: { changes: true }",
            ", expect: { passed: true }",
            ", expect: { command: make }",
        ];
        for fields in more {
            assert!(!agent(fields).caches(), "{fields}");
        }
        assert!(operation("type: shell, params: { run: ls }").caches());
        assert!(!operation("type: sleep, params: { ms: 1 }").caches());
        assert!(!Operation { cache: None, ..agent("") }.caches());
    }
}
