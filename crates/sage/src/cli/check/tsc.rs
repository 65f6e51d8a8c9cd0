//! The TypeScript compiler of the project or the machine, asked for types only.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_agents::{Silent, Spec, ask};
use sage_core::diagnostic::{Severity, Shown};

use super::super::failure::Failure;

/// A project of thousands of files takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// More than this helps nobody.
const MAX_ERRORS: usize = 200;
/// Code returns its value at top level; only here that is right.
const RETURN_AT_TOP: &str = "TS1108";

/// The user's own.
pub fn on_path() -> Option<PathBuf> {
    sage_agents::agent::on_path("tsc".as_ref(), &std::env::var_os("PATH").unwrap_or_default())
}

pub async fn run(program: &Path, project: &Path, root: &Path) -> Result<Vec<Shown>, Failure> {
    let words: [&OsStr; 4] = ["-p".as_ref(), project.as_os_str(), "--pretty".as_ref(), "false".as_ref()];
    let spec = Spec::new(program, words, root);
    let name = program.display();
    let asked = tokio::task::spawn_blocking(move || ask(&spec, PATIENCE)).await;
    let output = match asked {
        Ok(Ok(said)) => said,
        Ok(Err(Silent::Late(_))) => {
            return Err(Failure::failed(format!("`{name}` did not end within {} s", PATIENCE.as_secs())));
        }
        Ok(Err(error)) => return Err(Failure::failed(format!("cannot run `{name}`: {error}"))),
        Err(error) => return Err(Failure::failed(format!("cannot run `{name}`: {error}"))),
    };
    let text = output.text();
    let found: Vec<Shown> = text.lines().filter_map(read).take(MAX_ERRORS).collect();
    let known = text.contains(RETURN_AT_TOP);
    if found.is_empty() && !output.succeeded() && !known {
        let words: String =
            format!("{text}{}", String::from_utf8_lossy(&output.stderr)).chars().take(500).collect();
        return Err(Failure::failed(format!("`{name}` failed: {}", words.trim())));
    }
    Ok(found)
}

/// `.sage/skills/rank/skill.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.`
fn read(line: &str) -> Option<Shown> {
    let (place, rest) = line.split_once("): error ")?;
    let (file, place) = place.rsplit_once('(')?;
    let (line, column) = place.split_once(',')?;
    let (code, message) = rest.split_once(": ")?;
    (code != RETURN_AT_TOP).then_some(())?;
    Some(Shown {
        severity: Severity::Error,
        field: String::new(),
        message: format!("{message} ({code})"),
        file: file.to_string(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
        hint: None,
        also: None,
        excerpt: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_and_a_return_at_top_is_none() {
        let shown = read("a (1)/b.ts(3,7): error TS2322: Type 'x': no.").unwrap();
        assert_eq!((shown.file.as_str(), shown.line, shown.column), ("a (1)/b.ts", 3, 7));
        assert_eq!(shown.message, "Type 'x': no. (TS2322)");
        assert!(
            read("b.ts(1,1): error TS1108: A 'return' statement can only be used within a function body.")
                .is_none()
        );
        assert!(read("  more words").is_none());
    }
}
