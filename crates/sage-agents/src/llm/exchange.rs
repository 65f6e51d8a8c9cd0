//! One request and its answer: sent once, heard to its terminal event, given up when told so or when it takes
//! too long.

use std::time::SystemTime;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use sage_core::policy::FailureClass;
use sage_core::port::{Refusal, Stop, StopSignal};
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::http::Http;
use super::patience::Patience;
use super::reply::{Heard, Reply};
use super::sse::Parser;
use super::wire::{Ask, Fold};
use super::{quota, trouble};
use crate::agent::Feed;
use crate::https::reasons;
use crate::outcome::{Miss, excerpt};

/// Of an error's own text.
const ERROR_BYTES: usize = 1 << 20;
/// No answer of a model is longer, with everything around it.
const ANSWER_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub struct Line<'a> {
    pub http: &'a Http,
    pub endpoint: &'a Endpoint,
    pub feed: &'a Feed,
    pub stop: &'a StopSignal,
    pub patience: &'a mut Patience,
    /// The endpoint answered with an error instead of a stream: nothing was used.
    pub refused: bool,
}

impl Line<'_> {
    /// `fold` holds what was heard, also of an answer that broke off.
    pub async fn ask(&mut self, ask: &Ask<'_>, fold: &mut dyn Fold) -> Result<Reply, Miss> {
        let body = self.endpoint.api.body(ask);
        let response = self.wait(self.http.post(self.endpoint, &body)).await??;
        let (head, body) = response.into_parts();
        if let Some(signal) = quota::signal(&head.headers, SystemTime::now()) {
            self.feed.quota(signal);
        }
        self.moved();
        if head.status != 200 {
            self.refused = true;
            let told = self.wait(Limited::new(body, ERROR_BYTES).collect()).await?;
            let told = told.map(|told| told.to_bytes()).unwrap_or_default();
            let told = String::from_utf8_lossy(&told);
            return Err(trouble::refused(head.status.as_u16(), &head.headers, &told, SystemTime::now()));
        }
        check_kind(&head.headers)?;
        self.listen(body, fold).await
    }

    async fn listen(&mut self, mut body: Incoming, fold: &mut dyn Fold) -> Result<Reply, Miss> {
        let (mut parser, mut bytes) = (Parser::default(), 0);
        let too_long = || Miss::unfit("the answer is too long to be one");
        loop {
            let frame = match self.wait(body.frame()).await? {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(broke_off(&reasons(&error))),
                None => return fold.reply().ok_or_else(|| broke_off("the stream ended too early")),
            };
            let Ok(data) = frame.into_data() else { continue };
            bytes += data.len();
            if bytes > ANSWER_BYTES {
                return Err(too_long());
            }
            for event in parser.push(&data).map_err(|_| too_long())? {
                match fold.event(&event)? {
                    Heard::Quiet => {}
                    Heard::Moved => self.moved(),
                    Heard::Over => return fold.reply().ok_or_else(|| broke_off("it ended without a reason")),
                }
            }
        }
    }

    /// Whatever is waited for here is given up when the attempt is stopped or takes too long.
    pub async fn wait<T>(&self, what: impl Future<Output = T>) -> Result<T, Miss> {
        tokio::select! {
            biased;
            () = self.stop.reached(Stop::Graceful) => Err(Miss::Stopped),
            miss = self.patience.over() => Err(miss),
            done = what => Ok(done),
        }
    }

    /// Time in which a person thinks is nobody's.
    pub async fn wait_for_person<T>(&mut self, what: impl Future<Output = T>) -> Result<T, Miss> {
        let asked = Instant::now();
        let done = tokio::select! {
            biased;
            () = self.stop.reached(Stop::Graceful) => Err(Miss::Stopped),
            done = what => Ok(done),
        };
        self.patience.excuse(asked.elapsed());
        done
    }

    pub fn moved(&mut self) {
        self.patience.moved();
        self.feed.alive();
    }
}

fn broke_off(why: &str) -> Miss {
    trouble::broken(format!("the answer broke off: {why}"))
}

/// Something else than a model may live at the address, and answer 200 to everything.
fn check_kind(headers: &HeaderMap) -> Result<(), Miss> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
    if kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
        return Ok(());
    }
    let kind = excerpt(kind);
    let message = format!("the endpoint answered with `{kind}` instead of an event stream; check `url`");
    Err(Miss::of_endpoint(FailureClass::Invalid, message, Refusal::default()))
}
