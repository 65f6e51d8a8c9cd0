//! A terminal with a person at it: a pseudo-terminal whose other end the test holds.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::dsl::{DEADLINE, Invocation, wait_until};

pub struct Terminal {
    ours: File,
    /// Keeps the terminal there, and tells its modes.
    theirs: Option<File>,
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    pub fn start(invocation: Invocation<'_>, columns: u16) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).unwrap();
        let end = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
        let mut command = invocation.env("TERM", "xterm").env("NO_COLOR", "1").command();
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let (ours, seen) = (File::from(ours), Arc::new(Mutex::new(Vec::new())));
        let (mut ends, sink) = (ours.try_clone().unwrap(), seen.clone());
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Linux tells the end of a terminal as an error.
            while let Ok(count @ 1..) = ends.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Terminal { ours, theirs: Some(theirs), child, seen, reader: Some(reader) }
    }

    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn until(&self, text: &str) {
        wait_until(|| self.seen().contains(text), DEADLINE, &format!("{text:?} in {:?}", self.seen()));
    }

    pub fn type_in(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// SIGTERM, as `kill` sends it.
    pub fn terminate(&self) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
    }

    /// Whether what is typed is shown and taken line by line, as it should be after every command.
    pub fn is_calm(&self) -> bool {
        let modes = tcgetattr(self.theirs.as_ref().unwrap()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Its exit code and all that was shown.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        wait_until(|| self.child.try_wait().unwrap().is_some(), DEADLINE, "the command to end");
        let code = self.child.wait().unwrap().code();
        assert!(self.is_calm(), "the terminal is as it was");
        // Nobody has it any more: what was written is read to its end.
        self.theirs = None;
        self.reader.take().unwrap().join().unwrap();
        (code, self.seen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
