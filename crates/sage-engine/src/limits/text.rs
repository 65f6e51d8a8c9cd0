//! A board as text: a line per thing, words separated by one space. It is rewritten at each step and read by
//! every run, so it is short and quick rather than general.
//!
//! ```text
//! sage-board 1
//! o heavy 2                          a limit that a person has set: pool, limit
//! m 01J9... run_01J9...              a member: id, run; what follows is its
//! p heavy 1 -                        pool, units held
//! p target:x 0 2 1700000 1700900 0   ... and its ticket: priority, since, asked, reserves
//! ```

use std::fmt::Write as _;

use super::board::{Board, Row, Share, Ticket};

const FIRST_LINE: &str = "sage-board 1";
const ANY_VERSION: &str = "sage-board ";

/// What a file holds that should hold a board.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Board(Board),
    /// Of a sage that knows more than we do: not ours to overwrite.
    Newer,
    /// Not a board. Nobody who lives is named in it.
    Foreign,
}

pub(super) fn write(board: &Board) -> String {
    let mut text = String::with_capacity(512);
    text.push_str(FIRST_LINE);
    text.push('\n');
    for (pool, limit) in &board.overrides {
        line(&mut text, "o", &[pool], &[u64::from(*limit)], "");
    }
    for (member, row) in &board.members {
        line(&mut text, "m", &[member, &row.run], &[], "");
        for (pool, share) in &row.pools {
            let held = u64::from(share.held);
            match &share.ticket {
                None => line(&mut text, "p", &[pool], &[held], " -"),
                Some(t) => {
                    let ticket = [held, t.priority.into(), t.since_ms, t.asked_ms, t.reserves.into()];
                    line(&mut text, "p", &[pool], &ticket, "");
                }
            }
        }
    }
    text
}

/// Without the formatting machinery: it is most of what a step pays for the board.
fn line(text: &mut String, kind: &str, words: &[&str], numbers: &[u64], end: &str) {
    text.push_str(kind);
    for name in words {
        text.push(' ');
        push_word(text, name);
    }
    for number in numbers {
        text.push(' ');
        push_number(text, *number);
    }
    text.push_str(end);
    text.push('\n');
}

fn push_number(text: &mut String, number: u64) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

pub(super) fn read(bytes: &[u8]) -> Content {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Content::Foreign;
    };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if first != FIRST_LINE {
        let version = first.strip_prefix(ANY_VERSION).and_then(|version| version.parse::<u32>().ok());
        return if version.is_some_and(|version| version > 1) { Content::Newer } else { Content::Foreign };
    }
    let mut board = Board::default();
    let mut member = None;
    for line in lines {
        if read_line(&mut board, &mut member, line).is_none() {
            return Content::Foreign;
        }
    }
    Content::Board(board)
}

fn read_line(board: &mut Board, member: &mut Option<String>, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["o", pool, limit] => {
            board.overrides.insert(unword(pool)?, limit.parse().ok()?);
        }
        ["m", id, run] => {
            let id = unword(id)?;
            board.members.insert(id.clone(), Row { run: unword(run)?, ..Row::default() });
            *member = Some(id);
        }
        ["p", pool, held, ref ticket @ ..] => {
            let ticket = match *ticket {
                ["-"] => None,
                [priority, since, asked, reserves] => Some(Ticket {
                    priority: priority.parse().ok()?,
                    since_ms: since.parse().ok()?,
                    asked_ms: asked.parse().ok()?,
                    reserves: reserves.parse().ok()?,
                }),
                _ => return None,
            };
            let row = board.members.get_mut(member.as_deref()?)?;
            row.pools.insert(unword(pool)?, Share { held: held.parse().ok()?, ticket });
        }
        _ => return None,
    }
    Some(())
}

/// A name as one word: what would end a word or a line is written as `%xx`.
fn push_word(text: &mut String, name: &str) {
    let plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'%' || !byte.is_ascii();
    if name.is_empty() {
        text.push('%');
    } else if name.as_bytes().iter().all(plain) {
        text.push_str(name);
    } else {
        for char in name.chars() {
            if char == '%' || char == ' ' || char.is_ascii_control() {
                // Writing to a String can't fail.
                let _ = write!(text, "%{:02x}", char as u32);
            } else {
                text.push(char);
            }
        }
    }
}

fn unword(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    let mut parts = word.split('%');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        text.push(char::from(u8::from_str_radix(part.get(..2)?, 16).ok()?));
        text.push_str(&part[2..]);
    }
    Some(text)
}
