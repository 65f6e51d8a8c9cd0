//! Clients and suites of MCP, from npm and PyPI: `./test` installs them into the target directory. Where they are
//! not, a test says so and ends.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dsl::Sage;

pub struct Installed {
    dir: PathBuf,
}

impl Installed {
    /// None if `needed`, a path below the folder of all of them, is not there.
    pub fn find(needed: &str) -> Option<Installed> {
        let given = std::env::var_os("SAGE_TEST_MCP").map(PathBuf::from);
        let target = PathBuf::from(env!("CARGO_BIN_EXE_sage"));
        let beside = target.ancestors().nth(2).map(|dir| dir.join("tools/mcp"));
        let installed = Installed { dir: given.or(beside)? };
        if !installed.dir.join(needed).exists() {
            println!("skipped: {needed} is not installed (./test does)");
            return None;
        }
        Some(installed)
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.join(below)
    }

    /// A Node that is new enough, with nothing of the user's in its environment.
    pub fn node(&self, sage: &Sage, script: &Path) -> Command {
        let mut command = self.program(sage, &self.path("node_modules/node/bin/node"));
        command.arg(script).env("NODE_PATH", self.path("node_modules"));
        command
    }

    pub fn python(&self, sage: &Sage, script: &Path) -> Command {
        let mut command = self.program(sage, Path::new("python3"));
        command.arg(script).env("PYTHONPATH", self.path("python")).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn program(&self, sage: &Sage, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(sage.root());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // What it starts is known by this, and ended with the project.
        command.env("XDG_STATE_HOME", sage.user_state());
        command.env("HOME", sage.outside()).env("TMPDIR", sage.outside());
        command
    }
}

/// Runs to the end, or is killed after `limit`: whether it succeeded, what it printed and what it complained of.
pub fn finished(mut command: Command, limit: Duration) -> (bool, String, String) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let [stdout, stderr] = [Box::new(stdout) as Box<dyn Read + Send>, Box::new(stderr)].map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} took more than {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status.success(), stdout.join().unwrap(), stderr.join().unwrap())
}
