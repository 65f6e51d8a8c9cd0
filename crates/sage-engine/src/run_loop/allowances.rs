//! What agents say about the use of their accounts.
//!
//! They say it with every answer. The journal has it when it is new or has changed enough for a person to care.

use sage_core::event::AccountUsed;
use sage_core::port::Allowance;
use sage_core::run::StepId;

use super::{LoopError, RunLoop};

/// Percent that are worth a record.
const STEP_PERCENT: u32 = 5;
/// Resets are told in seconds and differ by a few.
const SAME_RESET_MS: u64 = 60_000;

impl RunLoop {
    pub(super) fn allowance_told(
        &mut self,
        id: StepId,
        attempt: u32,
        allowance: Allowance,
    ) -> Result<(), LoopError> {
        let Some(agent) = self.run.agent_of(id).map(str::to_string) else { return Ok(()) };
        let live = self.live.contains_key(&(id, attempt)) && !self.run.step(id).gone;
        let known = self.run.allowance(&agent, &allowance.window);
        if !live || known.is_some_and(|known| is_same(known, &allowance)) {
            return Ok(());
        }
        self.emit(AccountUsed { agent, allowance }).map(drop)
    }
}

fn is_same(known: &Allowance, told: &Allowance) -> bool {
    let resets = [known, told].map(|it| it.reset_at_ms.unwrap_or_default());
    known.is_near() == told.is_near()
        && known.used_percent.abs_diff(told.used_percent) < STEP_PERCENT
        && resets[0].abs_diff(resets[1]) < SAME_RESET_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: R18
    #[test]
    fn small_changes_are_not_worth_a_record() {
        let told = |used_percent, reset_at_ms, warning| Allowance {
            window: "5-hour".into(),
            used_percent,
            reset_at_ms: Some(reset_at_ms),
            warning,
        };
        let known = told(40, 1_000_000, false);
        assert!(is_same(&known, &told(44, 1_001_000, false)));
        assert!(!is_same(&known, &told(45, 1_000_000, false)));
        assert!(!is_same(&known, &told(40, 9_000_000, false)), "another window has begun");
        assert!(!is_same(&known, &told(40, 1_000_000, true)));
        assert!(!is_same(&told(74, 0, false), &told(75, 0, false)), "from here on people are told");
    }
}
