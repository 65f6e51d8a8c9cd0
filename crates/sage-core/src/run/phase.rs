//! A phase of a run: two gates (open, judged) and the count between them.

use crate::digest::Digest;
use crate::plan::Plan;
use crate::run::ScopeId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhaseId(pub u32);

#[derive(Debug)]
pub struct Phase {
    pub scope: ScopeId,
    pub plan_phase: u32,
    /// 1, or more after `repeat`.
    pub round: u32,
    /// Phases before it that are not judged yet.
    pub waiting_on: u32,
    pub open: bool,
    /// Its members by plan number, this round's.
    pub members: Vec<super::StepId>,
    pub settled: u32,
    pub ok: u32,
    pub skipped: u32,
    /// Members that succeeded although some of their own children failed.
    pub degraded_members: u32,
    pub judged: Option<Judgement>,
    /// Waits for the `while` of its `repeat`.
    pub repeating: bool,
    pub restarts: u32,
    pub opened_ms: u64,
    pub judged_ms: u64,
    /// From its opening to its judgement.
    pub time: super::ActiveTime,
    pub counts: super::PhaseCounts,
    /// Of all its members' results: part of the keys of those who depend on it.
    pub digest: Option<Digest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Reached,
    /// Reached, but not everything in it succeeded.
    Degraded,
    Missed,
    /// It never opened: a phase before it was missed.
    Blocked,
}

impl Judgement {
    pub fn reached(self) -> bool {
        matches!(self, Judgement::Reached | Judgement::Degraded)
    }
}

impl Phase {
    /// `research`, or `research@2` in the second round.
    pub fn label(&self, plan: &Plan) -> String {
        let id = &plan.phase(self.plan_phase).id;
        if self.round > 1 { format!("{id}@{}", self.round) } else { id.clone() }
    }
}
