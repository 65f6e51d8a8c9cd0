//! The program's lines as frames of the protocol. Some agents print other things, too: noted, and left out.

use agent_client_protocol::TransportFrame;

use crate::agent::Feed;
use crate::lines::Lines;
use crate::outcome::excerpt;

/// Lines of no use that the log shows; a program that prints nothing else would fill it.
const NOTES: u32 = 20;

pub struct Wire<'a> {
    lines: Lines,
    strangers: Strangers<'a>,
    pass: Box<dyn FnMut(TransportFrame) + Send + 'a>,
}

impl<'a> Wire<'a> {
    pub fn new(cap_bytes: usize, feed: &'a Feed, pass: impl FnMut(TransportFrame) + Send + 'a) -> Wire<'a> {
        let strangers = Strangers { feed, left: NOTES, overlong: 0 };
        Wire { lines: Lines::new(cap_bytes), strangers, pass: Box::new(pass) }
    }

    pub fn hear(&mut self, chunk: &[u8]) {
        let Wire { lines, strangers, pass } = self;
        lines.push(chunk, &mut |line| match frame(line) {
            Some(frame) => pass(frame),
            None => strangers.note(&format!("not a message: {}", excerpt(&String::from_utf8_lossy(line)))),
        });
        if lines.overlong > strangers.overlong {
            strangers.overlong = lines.overlong;
            strangers.note("a message was too long and is lost");
        }
    }
}

/// Whatever is no object is not meant for us. A wrong object is answered by the protocol itself.
fn frame(line: &[u8]) -> Option<TransportFrame> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let frame = text.starts_with('{').then(|| TransportFrame::parse_json(text))?;
    match &frame {
        TransportFrame::Malformed { .. } if serde_json::from_str::<serde_json::Value>(text).is_err() => None,
        _ => Some(frame),
    }
}

struct Strangers<'a> {
    feed: &'a Feed,
    left: u32,
    overlong: u64,
}

impl Strangers<'_> {
    fn note(&mut self, text: &str) {
        if self.left > 0 {
            self.left -= 1;
            self.feed.note(text);
        }
    }
}
