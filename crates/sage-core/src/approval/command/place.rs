//! Where a command works, and which files outside of the project anybody may read.

/// The place that a command line is judged for.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The real path of the directory that the agent works in.
    pub cwd: &'a str,
    /// The real path of a file. Relative ones are below `cwd`, `~/` is the home directory; `..` if it cannot be told.
    pub real: &'a dyn Fn(&str) -> String,
    /// How the project is built and tested.
    pub checks: &'a super::Checks,
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Programs, libraries and temporary files of the system.
const SYSTEM: &[&str] =
    &["/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/tmp", "/var/tmp", "/private/tmp"];
const FILES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/etc/os-release",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/version",
];
/// Where tools keep the packages that a project depends on.
const PACKAGES: &[&str] = &[
    "/.cargo/registry/",
    "/.cargo/git/checkouts/",
    "/.rustup/toolchains/",
    "/go/pkg/mod/",
    "/site-packages/",
    "/dist-packages/",
    "/node_modules/",
    "/.m2/repository/",
    "/.pyenv/versions/",
    "/.nvm/versions/",
];

/// Whether a file outside of the project holds nothing of the user's. `path` is a real path.
pub fn is_public(path: &str) -> bool {
    let below =
        |dir: &&str| path == *dir || path.strip_prefix(*dir).is_some_and(|rest| rest.starts_with('/'));
    let package = PACKAGES.iter().any(|part| format!("{path}/").contains(part));
    path.starts_with('/') && (SYSTEM.iter().any(below) || FILES.contains(&path) || package)
}

/// Writing there changes nothing.
pub(super) fn is_sink(path: &str) -> bool {
    ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&path)
}

/// A path without `.` and `..`, as text.
pub(super) fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path as seen from a directory.
pub(super) fn join(dir: &str, path: &str) -> String {
    match path {
        path if path.starts_with('/') || path == "~" || path.starts_with("~/") => path.to_string(),
        path => format!("{}/{path}", dir.trim_end_matches('/')),
    }
}
