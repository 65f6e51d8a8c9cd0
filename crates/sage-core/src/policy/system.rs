//! Errors of the system that say something about the machine, not about what was asked of it.

/// What the machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemError {
    /// Room on a disk, or a disk that can be written.
    Storage,
    /// Descriptors, processes or memory.
    Resources,
}

impl SystemError {
    /// Of an error number; `None` if it is about the file, the program or the call itself.
    pub fn of(errno: i32) -> Option<SystemError> {
        const ENOMEM: i32 = 12;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const EFBIG: i32 = 27;
        const ENOSPC: i32 = 28;
        const EROFS: i32 = 30;
        const EAGAIN: i32 = if cfg!(target_os = "linux") { 11 } else { 35 };
        const EDQUOT: i32 = if cfg!(target_os = "linux") { 122 } else { 69 };
        match errno {
            ENOSPC | EROFS | EDQUOT | EFBIG => Some(SystemError::Storage),
            EMFILE | ENFILE | ENOMEM | EAGAIN => Some(SystemError::Resources),
            _ => None,
        }
    }
}
