//! `output` and `session` of a step: as the template has them, and as they were in the run that a fork comes from.

use sage_core::port::Evaluator;
use sage_core::template::{Operation, Source};
use serde_json::Value;

use super::{Request, render};
use crate::output::Target;

impl Request {
    /// In a fork: the name that the session had in the run that it comes from, if it was used there.
    pub(super) fn session_before(
        &self,
        session: &Option<Source>,
        context: &Value,
        evaluator: &dyn Evaluator,
    ) -> Option<String> {
        let (_, known) = self.facts.forked.as_ref()?;
        self.as_before(session, context, evaluator).filter(|name| known.contains(name))
    }

    /// In a fork: a text as it was in the run that it comes from.
    pub(super) fn as_before(
        &self,
        source: &Option<Source>,
        context: &Value,
        evaluator: &dyn Evaluator,
    ) -> Option<String> {
        let (feature, _) = self.facts.forked.as_ref()?;
        let mut context = context.clone();
        context["feature"] = feature.as_str().into();
        render(&source.as_ref()?.text, &context, evaluator).ok()
    }
}

/// `output` and `session` as the template has them.
pub(super) fn verbatim_texts(operation: &Operation) -> (Option<Target>, Option<String>) {
    let text = |source: &Option<Source>| source.as_ref().map(|source| source.text.clone());
    let output = text(&operation.output).map(|path| Target { path, of_feature: false });
    (output, text(&operation.session))
}
