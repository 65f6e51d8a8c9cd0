//! What an agent asks for. What its role settles is settled at once; all else is somebody else's to answer.
//!
//! Options are chosen by their kind, never by their id or place. Nothing is allowed for longer than once, if
//! the agent leaves the choice. The protocol carries no reasons: they are in the log and in `_meta`.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome,
};
use sage_core::port::{Permission, PermissionAsk};
use serde_json::{Map, Value, json};

use super::tool::Call;
use crate::agent::{Order, Reach};

#[derive(Debug, PartialEq)]
pub enum Decision {
    Allow,
    Deny(String),
    Ask(PermissionAsk),
}

pub fn decide(call: &Call, id: String, order: &Order, reach: &Reach) -> Decision {
    let ask = call.ask(id);
    if let Some(why) = reach.forbids(&ask) {
        return Decision::Deny(why);
    }
    let inside = ask.paths.iter().all(|path| reach.is_inside(path.as_ref()));
    let listed = order.tools.iter().any(|tool| call.is(tool));
    if listed || (call.only_looks() && inside) { Decision::Allow } else { Decision::Ask(ask) }
}

/// What is said to the agent, and why not where it is not allowed.
pub fn respond(
    options: &[PermissionOption],
    permission: Permission,
) -> (RequestPermissionResponse, Option<String>) {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let (kinds, why) = match permission {
        Permission::Allow { input: None } => ([AllowOnce, AllowAlways], None),
        // The tool would run with what it was given first, and that was not allowed.
        Permission::Allow { input: Some(_) } => {
            let why = "it was allowed with other input, which this agent cannot be given";
            ([RejectOnce, RejectAlways], Some(why.to_string()))
        }
        Permission::Deny { message } => ([RejectOnce, RejectAlways], Some(message)),
    };
    let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    let outcome = match chosen {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    };
    let meta = why.as_ref().map(|why| Map::from_iter([("sage".to_string(), json!({ "message": why }))]));
    let meta: Option<Map<String, Value>> = meta;
    (RequestPermissionResponse::new(outcome).meta(meta), why)
}

/// The turn is over before anybody has answered.
pub fn cancelled() -> RequestPermissionResponse {
    RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(kinds: &[&str]) -> Vec<PermissionOption> {
        let option = |kind: &&str| json!({"optionId": format!("id of {kind}"), "name": "x", "kind": kind});
        serde_json::from_value(kinds.iter().map(option).collect()).unwrap()
    }

    fn chosen(kinds: &[&str], permission: Permission) -> String {
        match respond(&options(kinds), permission).0.outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".into(),
        }
    }

    // covers: S4
    #[test]
    fn options_are_chosen_by_kind_and_never_for_longer_than_needed() {
        let allow = || Permission::Allow { input: None };
        let deny = || Permission::Deny { message: "no".into() };
        let all = ["reject_always", "allow_always", "reject_once", "allow_once"];
        assert_eq!(chosen(&all, allow()), "id of allow_once");
        assert_eq!(chosen(&all, deny()), "id of reject_once");
        assert_eq!(chosen(&["allow_always", "reject_once"], allow()), "id of allow_always");
        assert_eq!(chosen(&["allow_once", "reject_always"], deny()), "id of reject_always");
        assert_eq!(chosen(&["allow_once"], deny()), "cancelled");
        assert_eq!(chosen(&["reject_once"], allow()), "cancelled");
        assert_eq!(chosen(&all, Permission::Allow { input: Some(json!({})) }), "id of reject_once");
        let (response, why) = respond(&options(&all), deny());
        assert_eq!((why.as_deref(), &response.meta.unwrap()["sage"]["message"]), (Some("no"), &json!("no")));
    }
}
