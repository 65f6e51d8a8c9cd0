//! Reuse across runs: only where a step asks for it.

/// How long a result may be taken by later runs, and which files of the project it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePolicy {
    /// `None` means the project's default.
    pub ttl_ms: Option<u64>,
    /// Globs below the project, `!` in front leaves out. When such a file changes, the result is another one.
    pub files: Vec<String>,
}
