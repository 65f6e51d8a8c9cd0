//! One turn: a program under its keeper, the conversation with it, and the end of both.
//!
//! ```text
//! dialog <--Channel--> wire <--lines-- stdout of the program
//!   |                  mouth --lines-> stdin
//!   +-- answered: the program's input ends, it is given time to leave, then it is made to
//! the program is gone: what it said last is heard, then the dialog ends
//! ```

use std::convert::Infallible;
use std::ffi::OsString;
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionRequest, RequestPermissionResponse, SessionNotification, WriteTextFileRequest,
    WriteTextFileResponse,
};
use agent_client_protocol::{Agent, Channel, Client, Error, on_receive_notification, on_receive_request};
use sage_core::policy::FailureClass;
use sage_core::port::{AskKind, Permission, StepCx, Stop, StopSignal, Usage};

use super::dialog::{Dialog, Said, Silence};
use super::hear::Ears;
use super::permit::{self, Decision};
use super::wire::Wire;
use super::{elicit, files};
use super::{usage, verdict};
use crate::agent::{Feed, Order, Reach, Turn};
use crate::attempt::Attempt;
use crate::outcome::{Miss, exit_code, exit_message};
use crate::process::{End, Finished};
use crate::talk::Talk;

/// Time for a program to save what it knows and leave by itself when it is not needed any more.
const LEAVE_PATIENCE: Duration = Duration::from_secs(3);

pub async fn take(attempt: &Attempt<'_>, order: &Order, feed: &Feed) -> Turn {
    let ears = Ears::new(feed, order, Reach::of(attempt, order));
    let ended = converse(attempt, order, feed, &ears).await;
    ears.close();
    match ended {
        Ok((said, finished)) => settle(said, &finished, &ears, order),
        Err(miss) => Turn::missed(miss),
    }
}

async fn converse(
    attempt: &Attempt<'_>,
    order: &Order,
    feed: &Feed,
    ears: &Ears<'_>,
) -> Result<(Result<Said, Silence>, Finished), Miss> {
    let argv = argv(order)?;
    let (talk, mouth) = Talk::open(attempt)?;
    let (ours, theirs) = Channel::duplex();
    let (mut spoken, heard) = theirs.into_parts();
    // The program is told to stop by the protocol first: its own signal comes later, or never.
    let stop = StopSignal::default();
    let cx = StepCx { stop: stop.clone(), ..attempt.cx.clone() };
    let inner = Attempt { cx: &cx, config: attempt.config, call: attempt.call };

    let program = async {
        let mut wire = Wire::new(attempt.config.output_cap, feed, move |frame| {
            // A dialog that is over does not listen any more.
            let _ = heard.unbounded_send(frame);
        });
        let mut on_stdout = |chunk: &[u8]| wire.hear(chunk);
        tokio::select! {
            finished = inner.converse(argv, order.environment(), talk, &mut on_stdout) => finished,
            never = pass_on_now(&attempt.cx.stop, &stop) => match never {},
        }
    };
    let dialog = async {
        let speaking = async {
            while let Ok(frame) = spoken.recv().await {
                frame.to_json().into_iter().for_each(|line| mouth.say(line));
            }
            drop(mouth);
        };
        tokio::join!(connect(ours, attempt.cx, order, feed, ears), speaking).0
    };

    let (mut program, mut dialog) = (std::pin::pin!(program), std::pin::pin!(dialog));
    tokio::select! {
        said = &mut dialog => {
            let stopped = matches!(said, Ok(Said::Stopped(_)));
            let patience = if stopped { Duration::ZERO } else { LEAVE_PATIENCE };
            let finished = match tokio::time::timeout(patience, &mut program).await {
                Ok(finished) => finished,
                Err(_) => {
                    stop.set(Stop::Graceful);
                    program.await
                }
            };
            Ok((said, finished?))
        }
        finished = &mut program => {
            let finished = finished?;
            Ok((dialog.await, finished))
        }
    }
}

fn argv(order: &Order) -> Result<Vec<OsString>, Miss> {
    if order.config.command.is_empty() {
        let name = &order.config.name;
        let message =
            format!("agent `{name}` has no `command`: the program that speaks ACP, with its arguments");
        return Err(Miss::invalid(message));
    }
    Ok(order.config.command.iter().map(OsString::from).collect())
}

async fn pass_on_now(from: &StopSignal, to: &StopSignal) -> Infallible {
    from.reached(Stop::Now).await;
    to.set(Stop::Now);
    std::future::pending().await
}

/// Holds the dialog while the protocol is served in both directions.
async fn connect(
    channel: Channel,
    cx: &StepCx,
    order: &Order,
    feed: &Feed,
    ears: &Ears<'_>,
) -> Result<Said, Silence> {
    let (stop, scratch) = (&cx.stop, cx.scratch.as_path());
    let client = Client
        .v1()
        .name("sage")
        .on_receive_notification(
            async |update: SessionNotification, _to| {
                ears.update(update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async |request: RequestPermissionRequest, responder, to: ConnectionTo<Agent>| {
                let answer = permission(request, feed, ears, stop);
                to.spawn(async move { responder.respond(answer.await) })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: CreateElicitationRequest, responder, to: ConnectionTo<Agent>| {
                let answer = inquiry(&request, feed, ears, stop);
                to.spawn(async move { responder.respond(answer.await) })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: ReadTextFileRequest, responder, _to| {
                responder
                    .respond_with_result(files::read(&ears.reach, &request).map(ReadTextFileResponse::new))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: WriteTextFileRequest, responder, _to| {
                feed.tool("", "fs/write_text_file", &request.path.to_string_lossy().into());
                let written = match ears.heard().is_planning() {
                    true => Err(files::refused(&request.path, "your plan has to be approved first".into())),
                    false => files::write(&ears.reach, &request),
                };
                responder.respond_with_result(written.map(|()| WriteTextFileResponse::new()))
            },
            on_receive_request!(),
        );
    let ended = client.connect_with(channel, async |to: ConnectionTo<Agent>| {
        let messages = &cx.messages;
        Ok::<_, Error>(Dialog { to, order, feed, ears, stop: stop.clone(), scratch, messages }.hold().await)
    });
    ended.await.unwrap_or(Err(Silence::Gone))
}

/// What the role settles is answered at once; a question is open from here on.
fn permission(
    request: RequestPermissionRequest,
    feed: &Feed,
    ears: &Ears<'_>,
    stop: &StopSignal,
) -> impl Future<Output = RequestPermissionResponse> + Send + 'static {
    let (call, decision) = ears.asked(&request);
    let tool = call.tool();
    let is_plan = matches!(&decision, Decision::Ask(ask) if ask.kind == AskKind::Plan);
    let answer = match decision {
        Decision::Allow => Box::pin(std::future::ready(Permission::Allow { input: None })),
        Decision::Deny(message) => {
            feed.note(&format!("`{tool}` is not allowed: {message}"));
            Box::pin(std::future::ready(Permission::Deny { message })) as _
        }
        Decision::Ask(ask) => feed.ask(ask),
    };
    let (stop, ledger, options) = (stop.clone(), ears.ledger(), request.options);
    async move {
        tokio::select! {
            permission = answer => {
                if is_plan {
                    ledger.plan(&permission);
                }
                let permission = if is_plan { without_comment(permission) } else { permission };
                let (response, why) = permit::respond(&options, permission);
                why.iter().for_each(|why| ledger.denied(&tool, why));
                response
            }
            () = stop.reached(Stop::Graceful) => permit::cancelled(),
        }
    }
}

/// A yes to a plan with a comment is a yes: the protocol has no place for the comment.
fn without_comment(permission: Permission) -> Permission {
    match permission {
        Permission::Allow { .. } => Permission::Allow { input: None },
        denied => denied,
    }
}

/// What the agent wants to know is a question from here on.
fn inquiry(
    request: &CreateElicitationRequest,
    feed: &Feed,
    ears: &Ears<'_>,
    stop: &StopSignal,
) -> impl Future<Output = CreateElicitationResponse> + Send + 'static {
    let asked = ears.inquired(request).map(|(form, ask)| (form, feed.ask(ask)));
    let stop = stop.clone();
    async move {
        let Some((form, answer)) = asked else { return elicit::cancelled() };
        tokio::select! {
            permission = answer => form.response(permission),
            () = stop.reached(Stop::Graceful) => elicit::cancelled(),
        }
    }
}

/// The answer counts, however the program ended afterwards. Without one, its end says why.
fn settle(said: Result<Said, Silence>, finished: &Finished, ears: &Ears<'_>, order: &Order) -> Turn {
    let heard = ears.heard();
    let used = |response: Option<&_>| {
        let mut all = heard.earlier.clone();
        all.add(&usage::of_turn(response, &heard.told, heard.tools.used));
        all
    };
    let (answer, usage) = match &said {
        Ok(Said::Answer(response)) => {
            let answer = verdict::answer(response, &heard, order.schema.is_some());
            (answer.map_err(|miss| timed_out(finished).unwrap_or(miss)), used(Some(response)))
        }
        Ok(Said::Stopped(response)) => (Err(Miss::Stopped), used(response.as_ref())),
        Ok(Said::UnknownConversation) => {
            let miss = Miss::invalid("the agent does not know the conversation");
            return Turn { unknown_conversation: true, ..Turn::new(Err(miss), Usage::default()) };
        }
        Err(Silence::Miss(miss)) => (Err(miss.clone()), used(None)),
        Err(silence) => (Err(gone(silence, finished)), used(None)),
    };
    // A request that was refused uses nothing; where tools were used, others came before it.
    let refused = usage.is_empty() && !heard.tools.used && answer.as_ref().is_err_and(Miss::is_refusal);
    let usage = if refused { Usage::none() } else { usage };
    Turn { context_tokens: heard.told.context_tokens, ..Turn::new(answer, usage) }
}

/// An agent that is told to end because its time is over may still answer that its turn was cancelled.
fn timed_out(finished: &Finished) -> Option<Miss> {
    matches!(finished.end, End::TimedOut(_)).then(|| exit_code(&finished.end).err()).flatten()
}

fn gone(silence: &Silence, finished: &Finished) -> Miss {
    let code = match exit_code(&finished.end) {
        Ok(code) => code,
        Err(miss) => return miss,
    };
    let why = exit_message(code, &finished.stdout, &finished.stderr);
    match silence {
        Silence::NoWelcome if code != 0 => Miss::invalid(format!("the agent did not start: {why}")),
        _ => Miss::failed(FailureClass::Lost, format!("ended without an answer: {why}")),
    }
}
