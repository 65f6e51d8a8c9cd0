//! The machine's own trouble: no room, no descriptors, no processes, a state directory that cannot be written.
//!
//! It is nobody's failure. A step that meets it goes back to waiting and keeps its tries; the run pauses with the
//! cause and goes on when it is gone. What it is, is decided here, where the error of the system is still known.

use std::fmt;
use std::io;

use sage_core::event::PauseReason;
use sage_core::policy::SystemError;
use sage_core::port::NoValue;

use crate::blobs::{BlobError, KEEP};
use crate::digest::Digest;
use crate::journal::JournalError;
use crate::results::ResultError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What a run says of itself that waits for its end.
    pub reason: PauseReason,
    pub cause: String,
}

/// What keeps a step from being worked on although nothing is wrong with the step itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Trouble(Trouble),
    /// The result of an earlier step is gone from the disk, or is not what it was.
    Lost(Digest),
}

impl Trouble {
    /// Of a file that others share with us; `None` if the error says something about that file alone.
    pub fn of(error: &io::Error, cause: impl fmt::Display) -> Option<Trouble> {
        let reason = match SystemError::of(error.raw_os_error()?)? {
            SystemError::Storage => PauseReason::Storage,
            SystemError::Resources => PauseReason::System,
        };
        Some(Trouble { reason, cause: cause.to_string() })
    }

    /// Of a file that is the engine's own: that it may not be written is the machine's trouble, too.
    pub fn of_state(error: &io::Error, cause: impl fmt::Display) -> Option<Trouble> {
        let denied = matches!(error.kind(), io::ErrorKind::PermissionDenied);
        let own = || denied.then(|| Trouble { reason: PauseReason::Storage, cause: cause.to_string() });
        Trouble::of(error, &cause).or_else(own)
    }

    /// Of a journal that cannot be written for now. Whatever else is wrong with it, waiting does not mend.
    pub fn of_journal(error: &JournalError) -> Option<Trouble> {
        match error {
            JournalError::Io { source, .. } => Trouble::of_state(source, error),
            _ => None,
        }
    }
}

impl Obstacle {
    /// Of a result that cannot be read or kept; an error that repeating does not mend is given back as its text.
    pub fn of(error: &ResultError) -> Result<Obstacle, String> {
        let trouble = |source: &io::Error| Trouble::of_state(source, error).map(Obstacle::Trouble);
        let found = match error {
            ResultError::Blob(BlobError::Missing { digest } | BlobError::Damaged { digest, .. }) => {
                Some(Obstacle::Lost(*digest))
            }
            ResultError::Blob(lost @ BlobError::Io { path, .. }) if lost.is_loss() => {
                path.file_name().and_then(|name| name.to_str()?.parse().ok()).map(Obstacle::Lost)
            }
            // A result that exists is not given up, whatever keeps it from being stored.
            ResultError::Blob(BlobError::Io { op: KEEP, source, .. }) => trouble(source).or_else(|| {
                let (reason, cause) = (PauseReason::Storage, error.to_string());
                Some(Obstacle::Trouble(Trouble { reason, cause }))
            }),
            ResultError::Blob(BlobError::Io { source, .. }) => trouble(source),
            ResultError::Io(source) => trouble(source),
            ResultError::Blob(BlobError::TooLarge { .. }) | ResultError::Json(_) => None,
        };
        found.ok_or_else(|| error.to_string())
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Trouble(trouble) => f.write_str(&trouble.cause),
            Obstacle::Lost(digest) => write!(f, "blob `{digest}` is missing or damaged"),
        }
    }
}

/// Why something about a step cannot be worked out.
#[derive(Debug)]
pub enum Refused {
    Invalid(String),
    Hindered(Obstacle),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Invalid(why) => f.write_str(why),
            Refused::Hindered(obstacle) => obstacle.fmt(f),
        }
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Invalid(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused::Invalid(why.into())
    }
}

impl From<NoValue> for Refused {
    fn from(error: NoValue) -> Refused {
        match error {
            NoValue::Invalid(why) => Refused::Invalid(why),
            NoValue::System(cause) => {
                Refused::Hindered(Obstacle::Trouble(Trouble { reason: PauseReason::System, cause }))
            }
        }
    }
}

impl From<ResultError> for Refused {
    fn from(error: ResultError) -> Refused {
        Obstacle::of(&error).map_or_else(Refused::Invalid, Refused::Hindered)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::vfs::NotRegular;

    // covers: R15
    #[test]
    fn only_what_the_machine_lacks_is_its_trouble() {
        let of = |errno: Errno| Trouble::of(&errno.into(), "x").map(|trouble| trouble.reason);
        for full in [Errno::NOSPC, Errno::DQUOT, Errno::ROFS] {
            assert_eq!(of(full), Some(PauseReason::Storage), "{full}");
        }
        for lacking in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
            assert_eq!(of(lacking), Some(PauseReason::System), "{lacking}");
        }
        for other in [Errno::NOENT, Errno::ACCESS, Errno::IO, Errno::NOTDIR, Errno::NAMETOOLONG] {
            assert_eq!(of(other), None, "{other}");
        }
        let denied = Trouble::of_state(&Errno::ACCESS.into(), "cannot write");
        assert_eq!(denied.map(|trouble| trouble.cause).as_deref(), Some("cannot write"));
        assert_eq!(
            Trouble::of_state(&Errno::IO.into(), "x"),
            None,
            "a disk that breaks is no passing trouble"
        );
    }

    // covers: R15
    #[test]
    fn a_blob_that_is_gone_is_lost_and_one_that_cannot_be_opened_is_trouble() {
        let digest = Digest::of(b"x");
        let lost = Obstacle::of(&ResultError::Blob(BlobError::Missing { digest }));
        assert_eq!(lost, Ok(Obstacle::Lost(digest)));
        let io = |source: io::Error| {
            Obstacle::of(&ResultError::Blob(BlobError::Io {
                op: "read",
                path: digest.to_string().into(),
                source,
            }))
        };
        assert!(matches!(io(Errno::MFILE.into()), Ok(Obstacle::Trouble(_))));
        let replaced = NotRegular { path: "x".into(), what: "a FIFO" };
        assert_eq!(io(io::Error::new(io::ErrorKind::InvalidInput, replaced)), Ok(Obstacle::Lost(digest)));
        assert!(io(Errno::IO.into()).is_err());
        let path = digest.to_string().into();
        let unkept = BlobError::Io { op: KEEP, path, source: Errno::IO.into() };
        assert!(matches!(Obstacle::of(&ResultError::Blob(unkept)), Ok(Obstacle::Trouble(_))));
    }
}
