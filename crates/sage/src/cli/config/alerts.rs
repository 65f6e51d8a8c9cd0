//! `[alerts]`: when the last lines of a run warn.
//!
//! ```toml
//! [alerts]
//! timeWarn = "5m"        # longer than this
//! timeCritical = "10m"
//! tokens = 100000        # more than this, all classes together
//! reloads = 0
//! resume = 0.9           # a resume that keeps less than this share of the finished steps
//! errors = 0.05          # more than this share of attempts fails
//! ```

use sage_core::alert::Thresholds;

use super::file::{AlertsFile, File, Time};
use super::values::{time, wrong};
use super::{FROM_FILE, FROM_NOWHERE, Setting, tell};
use crate::cli::failure::Failure;

pub(super) fn read(settings: &mut Vec<Setting>, file: &File) -> Result<Option<Thresholds>, Failure> {
    let usual = Thresholds::default();
    let Some(given) = &file.alerts else {
        show(settings, &AlertsFile::default(), &usual);
        return Ok(None);
    };
    let ms = |key: &str, given: &Option<Time>, usual: Option<u64>| match given {
        Some(given) => time(&format!("alerts.{key}"), given).map(Some),
        None => Ok(usual),
    };
    let limits = Thresholds {
        time_warn_ms: ms("timeWarn", &given.time_warn, usual.time_warn_ms)?,
        time_critical_ms: ms("timeCritical", &given.time_critical, usual.time_critical_ms)?,
        tokens: given.tokens.or(usual.tokens),
        reloads: given.reloads.or(usual.reloads),
        resume: share("resume", given.resume)?.or(usual.resume),
        errors: share("errors", given.errors)?.or(usual.errors),
    };
    if given.enabled == Some(false) {
        tell(settings, "alerts".into(), "off".into(), FROM_FILE);
        return Ok(Some(Thresholds::off()));
    }
    show(settings, given, &limits);
    Ok(Some(limits))
}

fn share(key: &str, given: Option<f64>) -> Result<Option<f64>, Failure> {
    match given {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(wrong(&format!("alerts.{key}"), format!("{share} is not a share from 0 to 1"))
                .hint(format!("[alerts] {key} = 0.05")))
        }
        given => Ok(given),
    }
}

fn show(settings: &mut Vec<Setting>, given: &AlertsFile, limits: &Thresholds) {
    let ms = |limit: Option<u64>| limit.map(crate::display::text::clock_text);
    let rows = [
        ("timeWarn", ms(limits.time_warn_ms), given.time_warn.is_some()),
        ("timeCritical", ms(limits.time_critical_ms), given.time_critical.is_some()),
        ("tokens", limits.tokens.map(|limit| limit.to_string()), given.tokens.is_some()),
        ("reloads", limits.reloads.map(|limit| limit.to_string()), given.reloads.is_some()),
        ("resume", limits.resume.map(|limit| limit.to_string()), given.resume.is_some()),
        ("errors", limits.errors.map(|limit| limit.to_string()), given.errors.is_some()),
    ];
    for (name, value, from_file) in rows {
        let source = if from_file { FROM_FILE } else { FROM_NOWHERE };
        tell(settings, format!("alerts.{name}"), value.unwrap_or_default(), source);
    }
}
