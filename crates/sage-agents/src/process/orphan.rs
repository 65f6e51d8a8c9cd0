//! Programs that belong to a process of ours and to no run, after its death: MCP servers whose keeper was killed with
//! their owner. They carry their owner's name, so nobody ends those of somebody who lives.

use super::sweep::{Swept, sweep_all};
use super::tree::{Process, start_time};

/// Names the owner: its name space, pid and start time.
pub const OWNER_VARIABLE: &str = "SAGE_OWNER";

/// The name of this process, for what it starts.
pub fn owner_mark() -> String {
    let pid = std::process::id();
    format!("{}.{pid}.{}", name_space(), start_time(pid).unwrap_or_default())
}

/// Kills what dead owners have left behind.
pub fn sweep_orphans() -> Swept {
    let here = name_space();
    sweep_all(&|process: &Process| owner_of(process.pid).is_some_and(|owner| is_dead(&owner, &here)))
}

/// A pid means something only in its own name space: what others have started is never judged.
fn is_dead(owner: &str, here: &str) -> bool {
    let mut parts = owner.rsplitn(3, '.');
    let (started, pid, space) = (parts.next(), parts.next(), parts.next());
    let (Some(started), Some(pid)) = (number(started), number(pid)) else { return false };
    let Ok(pid) = u32::try_from(pid) else { return false };
    space == Some(here) && !here.is_empty() && start_time(pid) != Some(started)
}

fn number(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

fn owner_of(pid: u32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let name = format!("{OWNER_VARIABLE}=");
    let line = environ.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(name.as_bytes()))?;
    String::from_utf8(line.to_vec()).ok()
}

/// Empty where there is none, or it cannot be told.
fn name_space() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S2
    #[test]
    fn only_the_dead_of_this_name_space_are_dead() {
        let (me, here) = (owner_mark(), name_space());
        assert!(!is_dead(&me, &here), "{me}");
        let pid = std::process::id();
        assert!(is_dead(&format!("{here}.{pid}.1"), &here), "an earlier process with this pid");
        assert!(!is_dead(&format!("1{here}.{pid}.1"), &here), "another name space");
        for odd in ["", "7", "a.b.c", "..", &format!("{here}..")] {
            assert!(!is_dead(odd, &here), "{odd}");
        }
    }
}
