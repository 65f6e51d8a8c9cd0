//! What Claude Code says about the use of a subscription (`rate_limit_event`).
//!
//! ```text
//! {"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.87, "resetsAt": 1794972058,
//!  "unifiedWindows": {"five_hour": {"utilization", "resetsAt", "status"}, "seven_day": {…}}}
//! ```
//! Older versions tell only the window that is nearest to its limit, and often no utilization.

use sage_core::port::Allowance;
use serde_json::Value;

const WARNING: &str = "allowed_warning";

/// When the window of a limit is over, in ms since the epoch.
pub fn reset_at_ms(info: &Value) -> Option<u64> {
    info["resetsAt"].as_u64().map(|seconds| seconds.saturating_mul(1_000))
}

pub fn read(info: &Value) -> Vec<Allowance> {
    let nearest = info["rateLimitType"].as_str();
    let warned = info["status"] == WARNING;
    let windows = info["unifiedWindows"].as_object().into_iter().flatten();
    let mut told: Vec<Allowance> = windows
        .filter_map(|(name, window)| {
            let warning = window["status"] == WARNING || (warned && nearest == Some(name));
            allowance(name, window, warning)
        })
        .collect();
    if told.is_empty() {
        told.extend(nearest.and_then(|name| allowance(name, info, warned)));
    }
    told
}

fn allowance(name: &str, window: &Value, warning: bool) -> Option<Allowance> {
    let used = window["utilization"].as_f64().filter(|used| (0.0..=10.0).contains(used));
    // A warning counts also where nobody says how much is used: it is given at a fixed share.
    let used = used.or_else(|| window["surpassedThreshold"].as_f64().filter(|_| warning))?;
    let used_percent = (used * 100.0).round() as u32;
    Some(Allowance { window: named(name), used_percent, reset_at_ms: reset_at_ms(window), warning })
}

/// `five_hour` as `5-hour`, `seven_day_opus` as `7-day opus`.
fn named(window: &str) -> String {
    let name = window.replace("five_hour", "5-hour").replace("seven_day", "7-day");
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(info: Value) -> Vec<(String, u32, Option<u64>, bool)> {
        read(&info).into_iter().map(|it| (it.window, it.used_percent, it.reset_at_ms, it.warning)).collect()
    }

    /// The first is one that 2.1.325 has told.
    // covers: R18
    #[test]
    fn every_window_is_told_with_its_use() {
        let windows = json!({"five_hour": {"utilization": 0.87, "resetsAt": 9, "status": "allowed"},
            "seven_day": {"utilization": 0.35, "resetsAt": 10}});
        let info = json!({"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.87,
            "resetsAt": 9, "unifiedWindows": windows});
        let five = |warning| ("5-hour".to_string(), 87, Some(9_000), warning);
        assert_eq!(told(info), [five(true), ("7-day".to_string(), 35, Some(10_000), false)]);
        let alone =
            json!({"status": "allowed", "rateLimitType": "five_hour", "utilization": 0.87, "resetsAt": 9});
        assert_eq!(told(alone), [five(false)]);
        let opus = json!({"status": "allowed_warning", "rateLimitType": "seven_day_opus", "surpassedThreshold": 0.75});
        assert_eq!(told(opus), [("7-day opus".to_string(), 75, None, true)]);
        assert_eq!(told(json!({"status": "allowed", "isUsingOverage": false})), []);
    }
}
