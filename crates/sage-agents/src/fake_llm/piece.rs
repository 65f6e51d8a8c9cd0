//! What a streamed answer consists of: events, pauses, and the ways it can break.

use std::time::Duration;

use bytes::Bytes;
use sage_core::port::Usage;
use serde_json::Value;

use super::turn::{Hang, Turn};

#[derive(Clone, Debug)]
pub enum Piece {
    /// `sent` is what the client learns about usage with it.
    Event {
        bytes: Bytes,
        sent: Option<Usage>,
    },
    Pause(Duration),
    Hang(Hang),
    /// The connection is closed in the middle.
    Drop,
}

impl Piece {
    /// An event with a name, as Anthropic and `/v1/responses` send them.
    pub fn named(name: &str, data: &Value) -> Piece {
        Piece::Event { bytes: format!("event: {name}\ndata: {data}\n\n").into(), sent: None }
    }

    pub fn data(data: &Value) -> Piece {
        Piece::Event { bytes: format!("data: {data}\n\n").into(), sent: None }
    }

    pub fn sends(self, usage: Usage) -> Piece {
        match self {
            Piece::Event { bytes, .. } => Piece::Event { bytes, sent: Some(usage) },
            other => other,
        }
    }
}

/// What comes after the text: a stall, and the end if it ends here.
pub fn breaks_off(turn: &Turn, error: impl FnOnce(&str) -> Piece) -> (Option<Piece>, Option<Piece>) {
    let stall = turn.stall.map(Piece::Hang);
    let end = if turn.drop { Some(Piece::Drop) } else { turn.midstream_error.as_deref().map(error) };
    (stall, end)
}

/// A text in up to four parts, so that a client must put it together; never inside a character.
pub fn parts(text: &str) -> impl Iterator<Item = String> + use<> {
    let letters: Vec<char> = text.chars().collect();
    let size = (letters.len() / 3).max(1);
    letters.chunks(size).map(|part| part.iter().collect()).collect::<Vec<String>>().into_iter()
}

pub fn pause(pieces: &mut Vec<Piece>, ms: u64) {
    if ms > 0 {
        pieces.push(Piece::Pause(Duration::from_millis(ms)));
    }
}
