//! Appends entries, as long as there is room. Nothing here can fail a step.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sage_core::text::cut;

use super::FILE;
use super::entry::{Entry, What};

/// Of one attempt.
const FILE_BYTES: usize = 16 << 20;
/// Of one message.
const TEXT_CHARS: usize = 100_000;
const FULL: &str = "the activity log is full; later activity is not recorded";

#[derive(Debug)]
pub struct Writer {
    file: Option<File>,
    left_bytes: usize,
}

impl Writer {
    /// Goes on where an earlier turn of the attempt has ended.
    pub fn open(scratch: &Path) -> Writer {
        let file = sage_fence::private::append(&scratch.join(FILE)).ok();
        let written =
            file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len() as usize);
        Writer { file, left_bytes: FILE_BYTES.saturating_sub(written) }
    }

    /// An attempt that is started again in the same place begins with nothing.
    pub fn begin(scratch: &Path) {
        // What cannot be removed is gone on with.
        let _ = std::fs::remove_file(scratch.join(FILE));
    }

    pub fn write(&mut self, what: What) {
        let Some(line) = line(shortened(what)) else { return };
        if line.len() > self.left_bytes {
            let last = self::line(What::Note { text: FULL.into() });
            self.append(last.as_deref().unwrap_or_default());
            self.file = None;
            return;
        }
        self.left_bytes -= line.len();
        self.append(&line);
    }

    /// One write: who reads meanwhile sees whole lines, or the beginning of one.
    fn append(&mut self, line: &str) {
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_err()
        {
            self.file = None;
        }
    }
}

fn line(what: What) -> Option<String> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    Some(serde_json::to_string(&Entry { at, what }).ok()? + "\n")
}

fn shortened(what: What) -> What {
    match what {
        What::Message { text } => What::Message { text: cut(&text, TEXT_CHARS) },
        What::Note { text } => What::Note { text: cut(&text, TEXT_CHARS) },
        What::Heard { text } => What::Heard { text: cut(&text, TEXT_CHARS) },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    // covers: R20
    #[test]
    fn the_file_stays_bounded_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path());
        for _ in 0..1_000 {
            writer.write(What::Message { text: "x".repeat(200_000) });
        }
        let size = std::fs::metadata(dir.path().join(FILE)).unwrap().len() as usize;
        assert!(size < FILE_BYTES + 1_000, "{size}");
        let (mut reader, mut last) = (Reader::new(dir.path()), None);
        loop {
            let entries = reader.read();
            let Some(entry) = entries.last() else { break };
            last = Some(entry.what.clone());
        }
        assert_eq!(last, Some(What::Note { text: FULL.into() }));
    }
}
