//! Standard output, whose failures are not forgotten: a command whose data could not be written has failed.
//!
//! A reader that has seen enough (`| head`) is no failure.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

static PROBLEM: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output.
#[derive(Debug, Default)]
pub struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(note)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(note)
    }
}

fn note(error: io::Error) -> io::Error {
    let kind = error.kind();
    if !matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) {
        let noted = error.raw_os_error().map_or_else(|| kind.into(), io::Error::from_raw_os_error);
        PROBLEM.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(noted);
    }
    error
}

/// What went wrong since the start, if anything did. Writes what is still buffered.
pub fn problem() -> Option<io::Error> {
    let _ = Out.flush();
    PROBLEM.lock().unwrap_or_else(PoisonError::into_inner).take()
}
