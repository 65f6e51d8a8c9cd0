//! Alerts: figures of a run that are beyond what was to be expected (R18). A pure function of metrics and limits;
//! nothing is stopped by them, budgets and timeouts do that.

use serde::{Deserialize, Serialize};

use crate::wire::WorkflowMetrics;

/// What is beyond these is told. `None` never is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    pub time_warn_ms: Option<u64>,
    pub time_critical_ms: Option<u64>,
    pub tokens: Option<u64>,
    pub reloads: Option<u32>,
    /// The least share of finished steps that a resume keeps.
    pub resume: Option<f64>,
    /// The largest share of attempts that fail.
    pub errors: Option<f64>,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            time_warn_ms: Some(5 * 60_000),
            time_critical_ms: Some(10 * 60_000),
            tokens: Some(100_000),
            reloads: Some(0),
            resume: Some(0.9),
            errors: Some(0.05),
        }
    }
}

impl Thresholds {
    pub fn off() -> Thresholds {
        Thresholds {
            time_warn_ms: None,
            time_critical_ms: None,
            tokens: None,
            reloads: None,
            resume: None,
            errors: None,
        }
    }
}

/// Time and tokens warn first; lost context, lost work and failing attempts are critical at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    Warn,
    Critical,
}

/// Named after the field of the metrics that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Metric {
    TotalTime,
    TotalTokens,
    ContextReloads,
    ResumeSuccess,
    ErrorRate,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    pub metric: Metric,
    pub level: Level,
    pub value: f64,
    pub limit: f64,
}

pub fn alerts(metrics: &WorkflowMetrics, limits: &Thresholds) -> Vec<Alert> {
    let above = |metric, level, value: f64, limit: Option<f64>| {
        let limit = limit.filter(|&limit| value > limit)?;
        Some(Alert { metric, level, value, limit })
    };
    let time = metrics.total_time as f64;
    let ms = |limit: Option<u64>| limit.map(|ms| ms as f64);
    let critical = above(Metric::TotalTime, Level::Critical, time, ms(limits.time_critical_ms));
    let late = critical.or_else(|| above(Metric::TotalTime, Level::Warn, time, ms(limits.time_warn_ms)));
    let kept = limits.resume.zip(metrics.resume_success).filter(|(least, kept)| kept < least);
    let lost = kept.map(|(limit, value)| Alert {
        metric: Metric::ResumeSuccess,
        level: Level::Critical,
        value,
        limit,
    });
    let (tokens, reloads) = (metrics.total_tokens as f64, f64::from(metrics.context_reloads));
    let all = [
        late,
        above(Metric::TotalTokens, Level::Warn, tokens, limits.tokens.map(|tokens| tokens as f64)),
        above(Metric::ContextReloads, Level::Critical, reloads, limits.reloads.map(f64::from)),
        lost,
        above(Metric::ErrorRate, Level::Critical, metrics.error_rate, limits.errors),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(change: impl Fn(&mut WorkflowMetrics)) -> WorkflowMetrics {
        let mut metrics = WorkflowMetrics::default();
        change(&mut metrics);
        metrics
    }

    fn told(metrics: &WorkflowMetrics, limits: &Thresholds) -> Vec<(Metric, Level)> {
        alerts(metrics, limits).iter().map(|alert| (alert.metric, alert.level)).collect()
    }

    // covers: R18
    #[test]
    fn each_limit_is_crossed_above_it_and_not_at_it() {
        let usual = Thresholds::default();
        let at = metrics(|m| {
            (m.total_time, m.total_tokens, m.context_reloads) = (300_000, 100_000, 0);
            (m.resume_success, m.error_rate) = (Some(0.9), 0.05);
        });
        assert_eq!(told(&at, &usual), []);
        let above = metrics(|m| {
            (m.total_time, m.total_tokens, m.context_reloads) = (300_001, 100_001, 1);
            (m.resume_success, m.error_rate) = (Some(0.899), 0.051);
        });
        let all = [
            (Metric::TotalTime, Level::Warn),
            (Metric::TotalTokens, Level::Warn),
            (Metric::ContextReloads, Level::Critical),
            (Metric::ResumeSuccess, Level::Critical),
            (Metric::ErrorRate, Level::Critical),
        ];
        assert_eq!(told(&above, &usual), all);
        assert_eq!(told(&above, &Thresholds::off()), []);
        let late = metrics(|m| m.total_time = 600_001);
        let alert = &alerts(&late, &usual)[0];
        assert_eq!((alert.level, alert.value, alert.limit), (Level::Critical, 600_001.0, 600_000.0));
        let only_warn = Thresholds { time_critical_ms: None, ..usual };
        assert_eq!(told(&late, &only_warn), [(Metric::TotalTime, Level::Warn)]);
    }

    // covers: R18
    #[test]
    fn a_run_that_was_never_resumed_has_no_resume_to_complain_about() {
        assert_eq!(told(&metrics(|m| m.resume_success = None), &Thresholds::default()), []);
    }
}
