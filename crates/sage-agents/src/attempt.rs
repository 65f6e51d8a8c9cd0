//! What all programs of an attempt share: environment, private files, working directory, limits.
//!
//! Files in the attempt's scratch directory: `input.json` (SAGE_INPUT; `input.before.json` is that of the attempt
//! with the same number before the template was edited), `stdin.txt` (the prompt),
//! `script.json` (fake agent), `schema.json`, `stdout.log` and `stderr.log` (live output), `nudge`
//! (SAGE_NUDGE of agents): absent until the agent is reminded to go on, then the number of reminders.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sage_core::port::{StepCall, StepCx};
use sage_core::template::{Isolation, Kind};
use sage_fence::{Fence, private};

use crate::executor::ExecutorConfig;
use crate::outcome::Miss;
use crate::params::Params;
use crate::process::{self, Finished, Limits, Marker, Sinks, Spec};
use crate::talk::Talk;
use crate::{secrets, worktree};

/// An argument of Linux ends at 128 KiB; longer scripts go through a file.
const ARGUMENT_BYTES: usize = 100 * 1024;

#[derive(Debug)]
pub struct Attempt<'a> {
    pub config: &'a ExecutorConfig,
    pub cx: &'a StepCx,
    pub call: &'a StepCall,
}

impl<'a> Attempt<'a> {
    pub fn params(&self) -> Params<'a> {
        Params(&self.call.params)
    }

    /// Runs a program in the attempt's environment; `env` are the step's own variables.
    pub async fn run(
        &self,
        argv: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        stdin: Option<PathBuf>,
        keep_stdout: usize,
        on_stdout: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Finished, Miss> {
        let sinks = Sinks { stdout: on_stdout, stderr: &mut |_| {} };
        self.run_heard(argv, env, stdin, keep_stdout, sinks).await
    }

    /// Like `run`, for who also listens to its standard error.
    pub async fn run_heard(
        &self,
        argv: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        stdin: Option<PathBuf>,
        keep_stdout: usize,
        sinks: Sinks<'_>,
    ) -> Result<Finished, Miss> {
        let mut argv = argv.into_iter();
        let program = argv.next().ok_or_else(|| Miss::invalid("there is no program to start"))?;
        let nudge = self.nudge_file()?;
        let redactor = self.config.redactor.with(secrets::of_step(&env));
        let env = self.env(env, nudge.as_deref())?;
        let unset = if self.is_isolated() { worktree::unwanted_variables() } else { Vec::new() };
        let spec = Spec { program, args: argv.collect(), cwd: self.cwd()?, env, unset, bare: false, stdin };
        let (limits, marker) = (Limits { redactor, ..self.limits(keep_stdout) }, self.marker());
        let running = process::run(&self.config.keeper, &spec, &limits, &marker, self.cx, sinks);
        let Some(nudge) = nudge else {
            return Ok(running.await);
        };
        tokio::select! {
            finished = running => Ok(finished),
            never = self.pass_on_nudges(&nudge) => match never {},
        }
    }

    /// Like `run`, with an input that stays open for as long as a `Mouth` of `talk` is there.
    pub async fn converse(
        &self,
        argv: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        talk: Talk,
        on_stdout: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Finished, Miss> {
        let stdin = Some(talk.path().to_path_buf());
        let mut talking = std::pin::pin!(async {
            talk.drive().await;
            std::future::pending::<Infallible>().await
        });
        tokio::select! {
            finished = self.run(argv, env, stdin, 0, on_stdout) => finished,
            never = &mut talking => match never {},
        }
    }

    /// Where an agent finds its reminders. A file of an earlier call of this attempt would wake it at once.
    fn nudge_file(&self) -> Result<Option<PathBuf>, Miss> {
        if self.call.kind != Kind::Agent {
            return Ok(None);
        }
        let path = self.cx.scratch.join("nudge");
        match private::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let message = format!("cannot remove `{}`: {error}", path.display());
                Err(Miss::of_io(&error, message))
            }
            _ => Ok(Some(path)),
        }
    }

    /// Goes on for as long as the program runs. A file that cannot be written costs a reminder, not the step.
    async fn pass_on_nudges(&self, path: &Path) -> Infallible {
        let mut seen = 0;
        loop {
            self.cx.nudge.after(seen).await;
            seen = self.cx.nudge.count();
            // Renamed into its place: nobody ever reads half a number.
            if let Ok(new) = self.write("nudge.new", format!("{seen}\n").as_bytes()) {
                let _ = private::rename(&new, path);
            }
        }
    }

    /// Writes a private file of this attempt and returns its path.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, Miss> {
        let path = self.cx.scratch.join(name);
        private::create(&path).and_then(|mut file| file.write_all(content)).map_err(|error| {
            // A full disk may have room again; that the directory is there is the engine's promise.
            Miss::of_io(&error, format!("cannot write `{}`: {error}", path.display()))
        })?;
        Ok(path)
    }

    /// What the step is given: for its program, and for whoever asks later why it ran again.
    pub fn write_input(&self) -> Result<PathBuf, Miss> {
        let input = serde_json::to_vec(&self.call.input)
            .map_err(|error| Miss::invalid(format!("the step's input is not JSON: {error}")))?;
        let path = self.cx.scratch.join("input.json");
        match private::read(&path, input.len() as u64) {
            Ok(same) if same == input => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // If it cannot be kept, only the explanation is poorer.
            _ => drop(private::rename(&path, &self.cx.scratch.join("input.before.json"))),
        }
        self.write("input.json", &input)
    }

    /// `sh -c script`. No `-e`: the script means what it would mean in a terminal.
    pub fn shell(&self, script: &str) -> Result<Vec<OsString>, Miss> {
        if script.contains('\0') {
            return Err(Miss::invalid("`run` contains a NUL character"));
        }
        if script.len() > ARGUMENT_BYTES {
            return Ok(vec!["/bin/sh".into(), self.write("script.sh", script.as_bytes())?.into()]);
        }
        Ok(vec!["/bin/sh".into(), "-c".into(), script.into()])
    }

    /// The project, or `cwd` in it. Who means a place outside must write an absolute path.
    pub fn cwd(&self) -> Result<PathBuf, Miss> {
        let Some(wanted) = self.params().text("cwd")?.filter(|cwd| !cwd.is_empty()) else {
            return Ok(self.cx.project.clone());
        };
        let unusable = |why: &dyn std::fmt::Display| Miss::invalid(format!("`cwd` is not usable: {why}"));
        let path = if Path::new(wanted).is_absolute() {
            Path::new(wanted).canonicalize().map_err(|error| unusable(&format!("`{wanted}`: {error}")))?
        } else {
            let fence = Fence::new(&self.cx.project);
            fence.root().join(fence.locate(Path::new(wanted)).map_err(|refused| unusable(&refused))?)
        };
        if path.is_dir() { Ok(path) } else { Err(unusable(&format!("`{wanted}` is not a directory"))) }
    }

    /// The step's own variables first: nobody can hide from a sweep by naming a marker.
    fn env(
        &self,
        own: Vec<(OsString, OsString)>,
        nudge: Option<&Path>,
    ) -> Result<Vec<(OsString, OsString)>, Miss> {
        let input = self.write_input()?;
        let mut env = own;
        env.extend([
            ("SAGE_RUN".into(), self.call.run.clone().into()),
            ("SAGE_FEATURE".into(), self.call.feature.clone().into()),
            ("SAGE_STEP".into(), self.call.path.clone().into()),
            ("SAGE_ATTEMPT".into(), self.call.attempt.to_string().into()),
            ("SAGE_KEY".into(), self.call.key.clone().into()),
            ("SAGE_INPUT".into(), input.into()),
        ]);
        if self.is_isolated() {
            env.extend(worktree::variables(&self.cx.project));
        }
        env.extend(nudge.map(|path| ("SAGE_NUDGE".into(), path.into())));
        Ok(env)
    }

    fn is_isolated(&self) -> bool {
        self.call.isolation == Isolation::Worktree
    }

    fn marker(&self) -> Marker {
        Marker {
            run: self.call.run.clone(),
            step: Some(self.call.path.clone()),
            attempt: Some(self.call.attempt),
        }
    }

    fn limits(&self, keep_stdout: usize) -> Limits {
        Limits {
            grace: self.config.grace,
            keep_stdout,
            output_cap: self.config.output_cap,
            whole_stdout: self.call.keep_output,
            redactor: self.config.redactor.clone(),
            timeout: self.call.timeout_ms.map(Duration::from_millis),
            idle_timeout: self.call.idle_timeout_ms.map(Duration::from_millis),
        }
    }
}
