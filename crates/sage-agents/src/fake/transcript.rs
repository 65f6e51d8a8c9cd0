//! What the fake agent has said so far: its lines, read as they come, in bounded memory.

use sage_core::port::{Message, Stage, Usage};
use serde_json::Value;

use super::line::Line;
use crate::agent::Feed;
use crate::complaint::Complaint;
use crate::lines::Lines;

#[derive(Debug)]
pub struct Transcript {
    lines: Lines,
    /// Longest line, and most text that is kept.
    cap_bytes: usize,
    pub text: String,
    /// Of all responses so far.
    pub usage: Usage,
    /// At most two: the second one is already a mistake.
    pub results: Vec<Value>,
    pub error: Option<Complaint>,
    pub garbage_lines: u64,
    /// Questions that nobody has passed on yet.
    pub asks: Vec<Value>,
}

impl Transcript {
    pub fn new(cap_bytes: usize) -> Transcript {
        Transcript {
            lines: Lines::new(cap_bytes),
            cap_bytes,
            text: String::new(),
            usage: Usage::default(),
            results: Vec::new(),
            error: None,
            garbage_lines: 0,
            asks: Vec::new(),
        }
    }

    /// Takes in a chunk of output; `feed` hears what others need to know at once.
    pub fn push(&mut self, chunk: &[u8], feed: &Feed) {
        self.read(feed, |lines, take| lines.push(chunk, take));
    }

    /// The stream is over; a last line without its newline counts if it is whole.
    pub fn end(&mut self, feed: &Feed) {
        self.read(feed, |lines, take| lines.end(take));
    }

    fn read(&mut self, feed: &Feed, cut: impl FnOnce(&mut Lines, &mut dyn FnMut(&[u8]))) {
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(self.cap_bytes));
        cut(&mut lines, &mut |line| match serde_json::from_slice(line) {
            Ok(line) => self.take(line, feed),
            Err(_) => self.garbage_lines += 1,
        });
        self.garbage_lines += std::mem::take(&mut lines.overlong);
        self.lines = lines;
    }

    fn take(&mut self, line: Line, feed: &Feed) {
        match line {
            Line::Text { text } => {
                feed.text(&text);
                if self.text.len() + text.len() <= self.cap_bytes {
                    self.text += &text;
                }
            }
            Line::Tool { tool, input } => feed.tool(&tool, &tool, &input),
            Line::ToolResult { tool, output, failed } => feed.result(&tool, &output, failed),
            Line::Heard { text } => feed.heard(&Message { id: String::new(), text }),
            Line::Ask { ask } => self.asks.push(ask),
            Line::Usage(used) => {
                self.usage.add(&used.usage);
                let stage = if used.goes_on { Stage::GoesOn } else { Stage::Answered };
                // All of this attempt so far: a report that is lost or comes twice changes nothing.
                feed.usage(self.usage.clone(), stage);
            }
            Line::Limits(signal) => feed.quota(signal),
            Line::Result { result } if self.results.len() < 2 => self.results.push(result),
            Line::Result { .. } => {}
            // The first one is the cause.
            Line::Error(error) => _ = self.error.get_or_insert(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sage_core::port::{Progress, StepCx, StopSignal};

    use super::*;

    /// A feed in a directory of its own, and the usage that it was told.
    fn feed(dir: &std::path::Path) -> (Feed, Arc<Mutex<Vec<Usage>>>) {
        let told: Arc<Mutex<Vec<Usage>>> = Arc::default();
        let sink = told.clone();
        let cx = StepCx {
            watch: None,
            capped: false,
            project: dir.to_path_buf(),
            scratch: dir.to_path_buf(),
            children_lock: None,
            proofs: Vec::new(),
            stop: StopSignal::default(),
            nudge: Default::default(),
            questions: Default::default(),
            messages: Default::default(),
            crowd: Default::default(),
            prices: Default::default(),
            progress: Arc::new(move |it| {
                if let Progress::Usage(usage, _) = it {
                    sink.lock().unwrap().push(usage);
                }
            }),
        };
        (Feed::new(&cx, &Default::default(), Box::new(|_| {})), told)
    }

    #[test]
    fn lines_are_read_across_any_cut() {
        let text =
            b"{\"type\":\"text\",\"text\":\"h\xc3\xa9\"}\nnot json\n\n{\"type\":\"usage\",\"input\":3}\n\
            {\"type\":\"usage\",\"input\":4,\"output\":1}\n{\"type\":\"result\",\"result\":{\"a\":1}}";
        let dir = tempfile::tempdir().unwrap();
        for size in 1..text.len() {
            let mut transcript = Transcript::new(1_000);
            let (feed, told) = feed(dir.path());
            text.chunks(size).for_each(|chunk| transcript.push(chunk, &feed));
            transcript.end(&feed);
            assert_eq!(transcript.text, "hé");
            assert_eq!(transcript.garbage_lines, 1);
            assert_eq!((transcript.usage.input, transcript.usage.output), (Some(7), Some(1)));
            assert_eq!(transcript.results, [serde_json::json!({"a": 1})]);
            let told: Vec<_> = told.lock().unwrap().iter().map(|it| (it.input, it.output)).collect();
            assert_eq!(told, [(Some(3), None), (Some(7), Some(1))]);
        }
    }

    #[test]
    fn endless_lines_and_texts_stay_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (feed, _) = feed(dir.path());
        let mut transcript = Transcript::new(100);
        for _ in 0..1_000 {
            transcript.push(b"xxxxxxxxxx", &feed);
            assert!(transcript.lines.held() <= 200);
        }
        transcript.push(b"\n", &feed);
        for _ in 0..100 {
            transcript.push(b"{\"type\":\"text\",\"text\":\"0123456789\"}\n", &feed);
        }
        transcript.push(b"{\"type\":\"result\",\"result\":1}\n", &feed);
        assert_eq!((transcript.garbage_lines, transcript.text.len(), transcript.results.len()), (1, 100, 1));
    }
}
