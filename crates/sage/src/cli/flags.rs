//! Flags that `run` and `resume` share: what a run may use and spend.

use sage_core::approval::Mode;
use sage_core::budget::Cap;
use sage_core::event::Settings;
use sage_core::run::Run;
use sage_core::template::Template;

use super::config::{self, Config};
use super::failure::Failure;
use crate::command_line::CommandLine;
use crate::trust::person::refuse_steps;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct Limits {
    /// An input of the template; JSON if it reads as such, else text
    #[arg(short, long = "input", value_name = "KEY=VALUE")]
    pub inputs: Vec<String>,
    /// The agent of steps that name none
    #[arg(long)]
    pub agent: Option<String>,
    /// How many steps may run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub parallel: Option<u32>,
    /// One step at a time, for comparison
    #[arg(long, conflicts_with = "parallel")]
    pub sequential: bool,
    /// Active time after which the run pauses, e.g. 30m
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// What the run may spend: 5usd, 200k tokens, or 5usd+200k
    #[arg(long, value_name = "AMOUNT")]
    pub budget: Option<String>,
    /// Who goes first where runs share a limit: P0 (first) to P3
    #[arg(long, value_name = "P0..P3", value_parser = config::priority)]
    pub priority: Option<u8>,
    /// What agents may do without asking: edits, commands or all
    #[arg(long, value_name = "WHAT", value_parser = allowance)]
    pub allow: Option<Mode>,
    /// Take no results of earlier runs; what is made is kept for later ones all the same
    #[arg(long)]
    pub no_cache: bool,
    /// Exit 4 instead of waiting for a known time
    #[arg(long)]
    pub no_wait: bool,
}

impl Limits {
    pub fn given(&self) -> bool {
        self.agent.is_some()
            || self.parallel.is_some()
            || self.sequential
            || self.timeout.is_some()
            || self.budget.is_some()
            || self.priority.is_some()
            || self.allow.is_some()
            || self.no_cache
    }

    /// Flags win, then the template, then the environment and sage.toml. `built_in`: the template comes with Sage, so
    /// its timeout is a default, and the user's own comes first.
    pub fn settings(
        &self,
        config: &Config,
        template: &Template,
        built_in: bool,
    ) -> Result<Settings, Failure> {
        let sequential = self.sequential || (!config.parallel_enabled && self.parallel.is_none());
        let flag = self.timeout.as_deref().map(time_with_unit).transpose()?;
        let own = Some(config.timeout.ms).filter(|_| built_in && config.timeout.is_given);
        // What the template says is left to it: an edited template may say something else.
        let budget = config.budget.filter(|_| template.budget.is_none());
        let priority = config.priority.filter(|_| template.priority.is_none());
        Ok(Settings {
            together: Some(config.parallel),
            parallel: if sequential { 1 } else { self.parallel.unwrap_or(config.parallel) },
            sequential,
            pools: config.pools.clone(),
            timeout_ms: flag.or(own).or(template.timeout_ms).or(Some(config.timeout.ms)),
            agent: self.agent.clone().or_else(|| config.file.agent.clone()),
            priority: self.priority.or(priority),
            budget: self.cap()?.or(budget),
            providers: config.providers.clone(),
            agent_budgets: config.agent_budgets.clone(),
            no_cache: self.no_cache,
            alerts: config.alerts.clone(),
            allow: self.allow,
        })
    }

    /// The flags as they were typed.
    pub fn typed(&self, command: CommandLine) -> CommandLine {
        let priority = self.priority.map(|priority| format!("P{priority}"));
        let command = self.inputs.iter().fold(command, |command, input| command.option("-i", input));
        let command = command.option_if("--agent", self.agent.as_deref());
        let command = command.option_if("--parallel", self.parallel.map(|n| n.to_string()));
        let command = command.flag_if("--sequential", self.sequential);
        let command = command.option_if("--timeout", self.timeout.as_deref());
        let command = command.option_if("--budget", self.budget.as_deref());
        let command = command.option_if("--priority", priority);
        let command = command.option_if("--allow", self.allow.map(Mode::name));
        command.flag_if("--no-cache", self.no_cache).flag_if("--no-wait", self.no_wait)
    }

    /// The settings that a run has, changed by the flags that are given and by nothing else.
    pub fn change(&self, run: &Run) -> Result<Settings, Failure> {
        let mut changed = run.settings.clone();
        if let Some(parallel) = self.parallel {
            (changed.parallel, changed.sequential) = (parallel, false);
        }
        if self.sequential {
            (changed.parallel, changed.sequential) = (1, true);
        }
        if let Some(timeout) = &self.timeout {
            changed.timeout_ms = Some(time_with_unit(timeout)?);
        }
        changed.agent = self.agent.clone().or(changed.agent);
        changed.priority = self.priority.or(changed.priority);
        changed.allow = self.allow.or(changed.allow);
        changed.no_cache |= self.no_cache;
        if let Some(cap) = self.cap()? {
            changed.budget = Some(cap);
        }
        Ok(changed)
    }

    fn cap(&self) -> Result<Option<Cap>, Failure> {
        let cap = self.budget.as_deref().map(Cap::parse).transpose();
        cap.map_err(|error| Failure::usage(error.to_string()).hint("--budget 5usd"))
    }
}

/// What `--allow` can be. `ask` is what agents may do anyway.
fn allowance(text: &str) -> Result<Mode, String> {
    let modes = [Mode::Edits, Mode::Commands, Mode::All];
    let found = modes.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| format!("must be one of {}", modes.map(Mode::name).join(", ")))
}

impl Limits {
    /// The budget of the project holds for a run that no person starts, whatever its template says.
    pub fn keep_within(&self, most: Cap, own: Option<Cap>, settings: &mut Settings) -> Result<(), Failure> {
        if let Some(wanted) = self.cap()?
            && wanted.exceeds(most)
        {
            return Err(Failure::usage(format!(
                "only a person can give a run more than the project's budget of {most}"
            ))
            .hint("sage run ... --budget AMOUNT    (in a terminal)"));
        }
        settings.budget = Some(settings.budget.or(own).unwrap_or(most).within(most));
        Ok(())
    }

    /// Budgets and permissions are a person's: a step cannot give them to a run.
    pub fn refuse_steps(&self, command: &str, is_new: bool) -> Result<(), Failure> {
        if self.budget.is_some() && !is_new {
            refuse_steps("change the budget of a run", command)?;
        }
        match self.allow {
            Some(_) => refuse_steps("say what agents may do without asking", command),
            None => Ok(()),
        }
    }
}

/// In a file a plain number is milliseconds; on a command line nobody means that.
fn time_with_unit(text: &str) -> Result<u64, Failure> {
    match super::config::duration(text)? {
        0 => Err(Failure::usage("a time limit must be longer than 0")),
        _ if text.bytes().all(|c| c.is_ascii_digit()) => {
            Err(Failure::usage(format!("`{text}` has no unit"))
                .hint(format!("--timeout {text}s, or {text}m")))
        }
        ms => Ok(ms),
    }
}
