//! Calls that hold a thread which others wait for: blocking ones in functions that are `async`.

use super::super::facts::{Call, FileFacts};
use super::super::issue::Severity;
use super::Slow;

pub(super) fn slow(file: &FileFacts) -> Vec<Slow> {
    let waiting = |call: &&Call| !call.in_test && file.function(call.function).is_some_and(|f| f.is_async);
    let blocking =
        file.calls.iter().filter(waiting).filter(|call| blocks(file, call) && !is_moved(file, call));
    let slow = |call: &Call| Slow {
        line: call.line as usize,
        what: "blocking call in an async function",
        why: "Everything else on this thread waits until it is over.",
        // A look at a small file is over soon.
        severity: if file.slice(call.callee).contains("fs") { Severity::Low } else { Severity::Medium },
        confidence: 0.75,
    };
    blocking.map(slow).collect()
}

fn blocks(file: &FileFacts, call: &Call) -> bool {
    let callee: String = file.slice(call.callee).chars().filter(|c| !c.is_whitespace()).collect();
    let name = file.slice(call.name);
    match file.language {
        "Rust" => {
            let own = file
                .imports
                .iter()
                .any(|import| import.path.contains("tokio::fs") || import.path.contains("async_std::fs"));
            let files = ["std::fs::", "fs::read", "fs::write", "fs::copy", "fs::remove", "fs::create_dir"];
            let awaited = file
                .text
                .get(call.arguments.end as usize..)
                .is_some_and(|rest| rest.trim_start().starts_with(".await"));
            let sleeps = callee.ends_with("thread::sleep");
            sleeps
                || (!own
                    && !awaited
                    && !callee.contains("tokio")
                    && files.iter().any(|start| callee.starts_with(start)))
        }
        "Python" => {
            let starts =
                ["time.sleep", "requests.", "subprocess.run", "subprocess.check_", "urllib.request.urlopen"];
            starts.iter().any(|start| callee.starts_with(start))
        }
        "TypeScript" | "JavaScript" => {
            name.ends_with("Sync") && ["fs.", "child_process."].iter().any(|start| callee.starts_with(start))
        }
        _ => false,
    }
}

/// Handed to a thread that is there for it.
fn is_moved(file: &FileFacts, call: &Call) -> bool {
    let pools = ["spawn_blocking", "block_in_place", "run_in_executor", "to_thread", "spawn"];
    file.calls.iter().any(|around| {
        let inside =
            around.arguments.start <= call.callee.start && call.arguments.end <= around.arguments.end;
        inside && pools.contains(&file.slice(around.name))
    })
}
