//! One turn of the agent: ask, let tools be used, ask again, until there is an answer.

use sage_core::policy::FailureClass;
use sage_core::port::{FileKind, Message, PromptFile, Stage, Usage};
use sage_core::price::{Bill, Of};
use serde_json::Value;

use super::endpoint::Endpoint;
use super::exchange::Line;
use super::history::History;
use super::http::Http;
use super::patience::Patience;
use super::person::ASK_PERSON;
use super::reply::{Answered, Call, Reply, Stop};
use super::structured::{STRUCTURED, Shape};
use super::tools::{ToolSpec, Toolboxes};
use super::trouble;
use super::wire::Ask;
use crate::agent::{Feed, Order, Turn, effort};
use crate::attempt::Attempt;
use crate::command::unfenced;
use crate::outcome::Miss;
use crate::prompt_files::in_words;
use crate::session::message_text;

/// Answers of the model in one turn of the agent, where nobody says otherwise: an end to going round in circles.
const MAX_TURNS: u32 = 50;

pub struct Dialogue<'a> {
    attempt: &'a Attempt<'a>,
    order: &'a Order,
    feed: &'a Feed,
    endpoint: Endpoint,
    history: History,
    tools: &'a Toolboxes,
    specs: Vec<ToolSpec>,
    shape: Option<Shape>,
    usage: Usage,
    bill: Bill,
    /// What the next request carries along.
    context_tokens: Option<u64>,
}

impl<'a> Dialogue<'a> {
    pub fn new(
        attempt: &'a Attempt<'a>,
        order: &'a Order,
        feed: &'a Feed,
        endpoint: Endpoint,
        history: History,
        tools: &'a Toolboxes,
    ) -> Dialogue<'a> {
        let (specs, shape) = (tools.specs(), order.schema.as_ref().map(Shape::of));
        let (usage, bill) = (Usage::default(), Bill::default());
        Dialogue {
            attempt,
            order,
            feed,
            endpoint,
            history,
            tools,
            specs,
            shape,
            usage,
            bill,
            context_tokens: None,
        }
    }

    pub async fn hold(mut self) -> Turn {
        let answer = self.answer().await;
        let context_tokens = self.context_tokens;
        let spoiled = answer.as_ref().err().is_some_and(trouble::blames_history);
        Turn { context_tokens, spoiled, ..Turn::new(answer, self.usage) }
    }

    async fn answer(&mut self) -> Result<Value, Miss> {
        let http = Http::new(&self.endpoint)?;
        let mut patience = Patience::new(self.attempt.call);
        let files = &self.order.files;
        let words = in_words(&self.attempt.cx.scratch, files, |file| file.kind != FileKind::Text);
        let others: Vec<PromptFile> =
            files.iter().filter(|file| file.kind != FileKind::Text).cloned().collect();
        let text = format!("{}{words}", self.order.prompt);
        self.feed.sent(self.order.system.as_deref(), &text);
        self.history.say(&text, &others);
        let most = self.order.max_turns.unwrap_or(MAX_TURNS).max(1);
        for _ in 0..most {
            self.hear(self.attempt.cx.messages.take());
            self.save();
            let reply = self.exchange(&http, &mut patience).await?;
            self.history.add(reply.entries.iter().cloned());
            // Killed while a tool works: the call is known, and that nobody knows what became of it.
            self.save();
            if let Some(answer) = self.conclude(&reply)? {
                self.leave_off(&reply.calls);
                let messages = self.attempt.cx.messages.take_last();
                if messages.is_empty() {
                    return Ok(answer);
                }
                self.hear(messages);
                continue;
            }
            self.use_tools(&reply.calls, &http, &mut patience).await?;
        }
        self.save();
        let message = format!("no answer after {most} turns; raise `maxTurns`, or ask for less");
        Err(Miss::of_answer(FailureClass::Failed, message))
    }

    async fn exchange(&mut self, http: &Http, patience: &mut Patience) -> Result<Reply, Miss> {
        let effort = self.order.effort.as_deref();
        let ask = Ask {
            model: &self.endpoint.model,
            system: self.order.system.as_deref(),
            history: self.history.entries(),
            tools: &self.specs,
            shape: self.shape.as_ref(),
            max_tokens: self.endpoint.max_tokens,
            effort: effort.and_then(|wanted| effort::nearest(wanted, self.endpoint.api.efforts())),
        };
        let mut fold = self.endpoint.api.fold();
        let stop = &self.attempt.cx.stop;
        let mut line =
            Line { http, endpoint: &self.endpoint, feed: self.feed, stop, patience, refused: false };
        let reply = line.ask(&ask, &mut *fold).await;
        let (text, used, refused) = (fold.text(), fold.usage(), line.refused);
        if !text.is_empty() {
            self.feed.text(&text);
        }
        if refused && used.is_empty() {
            self.usage.add(&Usage::none());
        }
        if !used.is_empty() {
            self.count(&used);
            let goes_on = reply.as_ref().is_ok_and(|reply| self.wants_more(reply));
            self.feed.usage(self.usage.clone(), if goes_on { Stage::GoesOn } else { Stage::Answered });
            if goes_on {
                self.feed.caught_up().await;
            }
        }
        reply
    }

    /// One answer more, and what it costs.
    fn count(&mut self, used: &Usage) {
        let prices = self.feed.prices();
        // An endpoint may call the model something that nobody knows.
        let told = used.model.as_deref().filter(|model| prices.price(model).is_some());
        let asked = Some(self.endpoint.model.as_str()).filter(|model| prices.price(model).is_some());
        let model = told.or(asked).or(used.model.as_deref()).unwrap_or(&self.endpoint.model);
        self.bill.add(prices, Some(model), None, used, Of::Request { cache_write_1h: 0 });
        self.usage.add(used);
        self.usage = self.bill.onto(std::mem::take(&mut self.usage));
        self.context_tokens = Some(used.total());
    }

    /// It is no answer yet: another request follows.
    fn wants_more(&self, reply: &Reply) -> bool {
        let structured = reply.calls.iter().any(|call| call.name == STRUCTURED && call.input.is_ok());
        match reply.stop {
            Stop::Paused => true,
            Stop::Whole => !(reply.calls.is_empty() || structured && self.shape.is_some()),
            Stop::Length | Stop::Refused | Stop::Unknown(_) => false,
        }
    }

    /// The answer, if it is one; `None` goes on.
    fn conclude(&self, reply: &Reply) -> Result<Option<Value>, Miss> {
        let failed = |message: String| Err(Miss::of_answer(FailureClass::Failed, message));
        match &reply.stop {
            Stop::Whole => {}
            Stop::Paused => return Ok(None),
            Stop::Length => {
                return failed("the answer was cut off: it reached the most tokens that one may have".into());
            }
            Stop::Refused => return failed(format!("the model refused: {}", reply.text)),
            Stop::Unknown(word) => {
                return failed(format!("the answer ended for an unknown reason, `{word}`"));
            }
        }
        if let Some(shape) = &self.shape {
            let given = reply.calls.iter().find(|call| call.name == STRUCTURED);
            if let Some(Ok(answer)) = given.map(|call| &call.input) {
                return Ok(Some(shape.unwrap(answer.clone())));
            }
        }
        if !reply.calls.is_empty() {
            return Ok(None);
        }
        let text = reply.text.trim();
        if text.is_empty() {
            return failed("the model gave no answer".into());
        }
        // What is not JSON is judged by who asked for it.
        let parsed = self.shape.as_ref().and_then(|shape| {
            serde_json::from_str(unfenced(text)).ok().map(|answer: Value| shape.unwrap(answer))
        });
        Ok(Some(parsed.unwrap_or_else(|| text.into())))
    }

    /// The conversation may go on some day: every call in it needs a result.
    fn leave_off(&mut self, calls: &[Call]) {
        let result = |call: &Call| {
            if call.name == STRUCTURED {
                Ok("received".into())
            } else {
                Err("not done: the answer was given".into())
            }
        };
        let answered: Vec<Answered<'_>> =
            calls.iter().map(|call| Answered { call, result: result(call) }).collect();
        if !answered.is_empty() {
            self.history.add(self.endpoint.api.results(&answered));
            self.save();
        }
    }

    async fn use_tools(&mut self, calls: &[Call], http: &Http, patience: &mut Patience) -> Result<(), Miss> {
        let (endpoint, feed, stop) = (&self.endpoint, self.feed, &self.attempt.cx.stop);
        let mut answered = Vec::new();
        for call in calls {
            let mut line = Line { http, endpoint, feed, stop, patience, refused: false };
            let result = match &call.input {
                Err(why) => Err(why.clone()),
                Ok(input) => {
                    feed.tool(&call.id, &call.name, input);
                    let working = self.tools.call(&call.name, input);
                    let result = match call.name == ASK_PERSON {
                        true => line.wait_for_person(working).await?,
                        false => line.wait(working).await?,
                    };
                    let (Ok(text) | Err(text)) = &result;
                    feed.result(&call.id, text, result.is_err());
                    result
                }
            };
            line.moved();
            answered.push(Answered { call, result });
        }
        if !answered.is_empty() {
            self.history.add(endpoint.api.results(&answered));
        }
        Ok(())
    }

    /// What people said meanwhile comes with the next request.
    fn hear(&mut self, messages: Vec<Message>) {
        if !messages.is_empty() {
            self.history.say(&message_text(&messages), &[]);
            messages.iter().for_each(|message| self.feed.heard(message));
        }
    }

    /// A conversation that cannot be kept costs a reload some day; the turn goes on.
    fn save(&self) {
        match self.history.save() {
            Ok(()) => self.feed.conversation(self.order.conversation.id()),
            Err(error) => self.feed.note(&format!("the conversation could not be saved: {error}")),
        }
    }
}
