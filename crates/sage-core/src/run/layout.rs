//! Laying out steps: a plan as a scope, the items of a fan-out, another round of a phase.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digest::Digest;
use crate::event::{Expansion, Payload, StepExpanded};
use crate::plan::Plan;
use crate::run::step::{Children, State, Step};
use crate::run::{Called, Calls, DemandId, FoldError, Phase, PhaseId, Run, Scope, ScopeId, StepId};

impl Run {
    pub(super) fn expanded(&mut self, event: &StepExpanded, now: u64) -> Result<(), FoldError> {
        let id = self.startable("step.expanded", &event.step)?;
        self.tally.total = self.tally.total.saturating_sub(1);
        self.step_mut(id).started_ms = now;
        match &event.into {
            Expansion::Items { count, items, digests, ordinals } => {
                self.expand_items(id, *count, items, digests, ordinals, now);
            }
            Expansion::Scope { template, inputs } => {
                let Some(plan) = self.plans.get(template).cloned() else {
                    return Err(FoldError::Template {
                        name: template.clone(),
                        why: "not in the journal".into(),
                    });
                };
                let prefix = format!("{}/", self.step(id).path).into();
                let (identity, height) = (self.identity_below(id), self.step(id).height);
                let scope = ScopeId(self.scopes.len() as u32);
                self.step_mut(id).children = Some(Box::new(Children::Scope(scope)));
                self.transition(id, State::Open { left: 0, failed: 0, cancelling: false });
                self.lay_out(plan, Some(id), prefix, Some(inputs.clone()), identity, height, now);
            }
            Expansion::Code { input, dialect } => {
                let calls = Calls::new(input.clone(), *dialect);
                self.step_mut(id).children = Some(Box::new(Children::Calls(calls)));
                self.transition(id, State::Open { left: 0, failed: 0, cancelling: false });
            }
        }
        Ok(())
    }

    fn expand_items(
        &mut self,
        fan: StepId,
        count: u32,
        items: &Payload,
        digests: &[Digest],
        ordinals: &[u32],
        now: u64,
    ) {
        let first = self.steps.len() as u32;
        let (path, scope, plan_step, phase, height) = {
            let step = self.step(fan);
            (step.path.clone(), step.scope, step.plan_step, step.phase, step.height)
        };
        for index in 0..count {
            let path = format!("{path}[{index}]").into();
            self.push_step(path, scope, plan_step, phase, Some((fan, index)), height, 0, None);
        }
        let steps: Vec<StepId> = (first..first + count).map(StepId).collect();
        let children = Children::Items {
            steps: steps.clone(),
            items: items.clone(),
            digests: digests.to_vec(),
            ordinals: ordinals.to_vec(),
        };
        self.step_mut(fan).children = Some(Box::new(children));
        self.transition(fan, State::Open { left: count, failed: 0, cancelling: false });
        for step in steps {
            self.step_mut(step).ready_ms = now;
            self.transition(step, State::Ready);
        }
        if count == 0 {
            let mut queue = Vec::new();
            self.close_fan(fan, 0, false, &mut queue, now);
            self.drain(queue, now);
        }
    }

    /// Identity of what lies inside a step: the items and ordinals around it, down to its own.
    pub fn identity_below(&self, id: StepId) -> Digest {
        let step = self.step(id);
        let outer = self.scope(step.scope).identity;
        let Some((fan, index)) = step.item else {
            return outer;
        };
        // The script is the same for all of its calls: only the call tells them apart.
        if let Some(call) = &step.call {
            let around = self.identity_below(fan);
            return Digest::of_all(&[around, call.identity, Digest::of(&call.ordinal.to_le_bytes())]);
        }
        let Some(Children::Items { digests, ordinals, .. }) = self.step(fan).children.as_deref() else {
            return outer;
        };
        let (item, ordinal) = (digests[index as usize], ordinals[index as usize]);
        Digest::of_all(&[outer, item, Digest::of(&ordinal.to_le_bytes())])
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call site per way a step comes to be; a struct would only rename them"
    )]
    pub(super) fn push_step(
        &mut self,
        path: Arc<str>,
        scope: ScopeId,
        plan_step: u32,
        phase: PhaseId,
        item: Option<(StepId, u32)>,
        height: u32,
        waiting_on: u32,
        call: Option<Box<Called>>,
    ) -> StepId {
        let id = StepId(self.steps.len() as u32);
        let unknown = self.lost_paths.remove(&path);
        self.by_path.insert(path.clone(), id);
        self.tally.total += 1;
        self.steps.push(Step {
            path,
            scope,
            plan_step,
            phase,
            item,
            height,
            waiting_on,
            state: State::Pending,
            attempts: 0,
            ready_ms: 0,
            started_ms: 0,
            ended_ms: 0,
            time: Default::default(),
            active_ms: 0,
            life_ms: 0,
            demand: DemandId::default(),
            usage: None,
            key: None,
            output: None,
            failure: None,
            children: None,
            reused: false,
            fresh: false,
            unknown,
            repeatable: false,
            tries: 0,
            asked_again: false,
            gone: false,
            degraded: false,
            alternative: None,
            beside: Vec::new(),
            delay_ms: None,
            stall_restarts: 0,
            session: None,
            verdict: None,
            preempted: false,
            accepted: false,
            cache: None,
            call,
            checked: None,
        });
        // Items are laid out one after the other, and all ask for the same.
        let demand = match item {
            Some((_, index)) if index > 0 && self.step(id).call.is_none() => {
                self.steps[id.0 as usize - 1].demand
            }
            _ => self.demand_of(id),
        };
        self.step_mut(id).demand = demand;
        self.keep_tries(id);
        self.spenders = self.spenders.saturating_add(self.shares(id));
        id
    }

    /// Lays a plan out as a new scope and opens the phases that wait for nothing.
    #[expect(clippy::too_many_arguments, reason = "the six facts that make a scope")]
    pub(super) fn lay_out(
        &mut self,
        plan: Arc<Plan>,
        parent: Option<StepId>,
        prefix: Arc<str>,
        inputs: Option<Payload>,
        identity: Digest,
        height: u32,
        now: u64,
    ) {
        let id = ScopeId(self.scopes.len() as u32);
        let open_phases = plan.phases.len() as u32;
        self.scopes.push(Scope {
            plan: plan.clone(),
            parent,
            prefix,
            steps: Vec::new(),
            before: BTreeMap::new(),
            phases: Vec::new(),
            open_phases,
            inputs,
            identity,
            gone: false,
            released: vec![false; plan.phases.len()],
        });
        for number in 0..plan.phases.len() as u32 {
            let phase = self.lay_phase(id, number, 1, height);
            self.scope_mut(id).phases.push(phase);
            let members = self.phase(phase).members.clone();
            self.scope_mut(id).steps.extend(members);
        }
        for phase in self.scope(id).phases.clone() {
            if self.phase(phase).waiting_on == 0 {
                self.open_phase(phase, now);
            }
        }
    }

    /// Appends one round of a phase and its members. The caller enters them in the scope.
    pub(super) fn lay_phase(&mut self, scope: ScopeId, number: u32, round: u32, height: u32) -> PhaseId {
        let plan = self.scope(scope).plan.clone();
        let id = PhaseId(self.phases.len() as u32);
        self.phases.push(Phase {
            scope,
            plan_phase: number,
            round,
            waiting_on: plan.phases[number as usize].dependencies.len() as u32,
            open: false,
            members: Vec::new(),
            settled: 0,
            ok: 0,
            skipped: 0,
            degraded_members: 0,
            judged: None,
            repeating: false,
            restarts: 0,
            opened_ms: 0,
            judged_ms: 0,
            time: Default::default(),
            counts: Default::default(),
            digest: None,
        });
        let label = self.phase(id).label(&plan);
        let prefix = self.scope(scope).prefix.clone();
        for number in plan.phases[number as usize].steps.clone() {
            let spec = &plan.steps[number as usize];
            let path = format!("{prefix}{label}/{}", plan.operation(number).id).into();
            let step = self.push_step(
                path,
                scope,
                number,
                id,
                None,
                height + spec.height,
                spec.needs.len() as u32 + 1,
                None,
            );
            self.phase_mut(id).members.push(step);
        }
        self.set_phase_caps(id);
        id
    }
}
