//! A mark on everything that Sage starts, which no program can take off: a hard limit on file locks.
//!
//! The kernel stopped enforcing `RLIMIT_LOCKS` in 2.4 but still hands it down to every child, through namespaces,
//! new sessions and `exec`. An unprivileged process can lower a hard limit and cannot raise it: that needs
//! `CAP_SYS_RESOURCE` outside of all user namespaces. Neither a hidden `/proc` nor a new pid namespace removes it.
//! Every process of Sage takes it when it begins (`begin` in above.rs), and keepers once more.

/// Any finite limit is the mark, since a program could lower it further.
#[cfg(target_os = "linux")]
pub fn set() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    /// More locks than a machine has.
    const LIMIT: u64 = 1 << 62;
    if !is_set() {
        // A sandbox that refuses it leaves the ancestors.
        let _ = setrlimit(Resource::Locks, Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) });
    }
}

#[cfg(target_os = "linux")]
pub fn is_set() -> bool {
    rustix::process::getrlimit(rustix::process::Resource::Locks).maximum.is_some()
}

#[cfg(not(target_os = "linux"))]
pub fn set() {}

#[cfg(not(target_os = "linux"))]
pub fn is_set() -> bool {
    false
}
