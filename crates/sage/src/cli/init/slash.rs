//! The slash command `/sage.workflow` of Claude Code. Its file is updated as long as its text is one that Sage wrote.

use std::io;
use std::path::Path;

use sage_core::digest::Digest;

use super::super::config::MAX_BYTES;
use super::clients::replace;

pub const COMMAND: &str = ".claude/commands/sage.workflow.md";
const TEXT: &str = include_str!("sage.workflow.md");
/// The texts of earlier versions, by digest.
const EARLIER: &[&str] = &[
    "3e31a974533f860c3be8df106b722802ea793443a2c5454d9992130e1bb10324",
    "7483bcd121c9153f9c44b94ec7dcd42c2873bd4c9278cf5957b580080ad60266",
];

/// What became of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slash {
    /// It is new, or an older one was replaced.
    Written,
    Current,
    /// A person changed it: it stays.
    Edited,
}

pub fn write(path: &Path) -> io::Result<Slash> {
    match sage_agents::text_file::read(path, MAX_BYTES) {
        Ok(text) if text == TEXT => return Ok(Slash::Current),
        Ok(text) if !EARLIER.contains(&digest(&text).as_str()) => return Ok(Slash::Edited),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), |folder| sage_fence::make_folder(&sage_fence::real_dir(folder)))?;
        }
        Err(error) => return Err(error),
    }
    replace(path, TEXT)?;
    Ok(Slash::Written)
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever changes the text adds the digest of the one before to `EARLIER`, and the new one here.
    const CURRENT: &str = "bff750e5faf97f3434417f9f9c01086ae82bc98f1354050ce17649aea9986ee2";

    // covers: R16
    #[test]
    fn a_text_that_was_shipped_stays_known() {
        assert_eq!(digest(TEXT), CURRENT, "add the old digest to EARLIER and write the new one here");
        assert!(!EARLIER.contains(&CURRENT));
    }
}
