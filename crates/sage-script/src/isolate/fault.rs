//! Why code did not come to its end, in words that name the script's own lines.

use rquickjs::{Ctx, Object, Value};

/// Files of our own in stack traces begin with this.
const OWN: &str = "sage:";
/// Frames that are told; a recursion has thousands of the same.
const MAX_FRAMES: usize = 10;
const MAX_MESSAGE_BYTES: usize = 4_096;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The code's own doing.
    #[error("{0}")]
    Threw(Thrown),
    #[error("it used more than {0} ms of CPU time without waiting for anything")]
    Cpu(u64),
    #[error("it used more than {} of memory", size(*.0))]
    Memory(usize),
    /// It was told to end from outside.
    #[error("it was stopped")]
    Stopped,
    /// The engine itself could not go on.
    #[error("{0}")]
    Broken(String),
}

/// `50 MB`, where it is whole ones.
fn size(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MB", bytes >> 20) } else { format!("{bytes} bytes") }
}

/// What was thrown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thrown {
    /// `TypeError`; empty for a value that is no error.
    pub name: String,
    pub message: String,
    /// `code` of the error, if it has one.
    pub code: Option<String>,
    /// `review.ts:12:9` or `inner (review.ts:12:9)`, without frames of our own.
    pub frames: Vec<String>,
}

impl std::fmt::Display for Thrown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        f.write_str(&self.message)?;
        self.frames.iter().try_for_each(|frame| write!(f, "\n    at {frame}"))
    }
}

impl Thrown {
    /// Reads an exception without running code of the script where that can be helped.
    pub fn read(value: &Value<'_>) -> Thrown {
        // What is left of an error that found no memory for itself. Nobody throws `null` otherwise.
        if value.is_null() {
            return Thrown::out_of_memory();
        }
        let Some(object) = value.as_object() else {
            return Thrown { message: plain(value), ..Thrown::default() };
        };
        if !object.is_error() {
            let message = text(object, "message").unwrap_or_else(|| json(value));
            return Thrown { message: cut(message), code: text(object, "code"), ..Thrown::default() };
        }
        Thrown {
            name: text(object, "name").unwrap_or_else(|| "Error".to_owned()),
            message: cut(text(object, "message").unwrap_or_default()),
            code: text(object, "code"),
            frames: frames(&text(object, "stack").unwrap_or_default()),
        }
    }

    pub(super) fn out_of_memory() -> Thrown {
        Thrown { name: "InternalError".to_owned(), message: "out of memory".to_owned(), ..Thrown::default() }
    }

    /// An allocation that failed: a limit, not the script's verdict.
    pub fn is_out_of_memory(&self) -> bool {
        self.name == "InternalError" && self.message == "out of memory"
    }
}

fn text(object: &Object<'_>, name: &str) -> Option<String> {
    let value: Value<'_> = object.get(name).ok()?;
    value.as_string().and_then(|text| text.to_string().ok())
}

fn plain(value: &Value<'_>) -> String {
    match value.as_string() {
        Some(text) => cut(text.to_string().unwrap_or_default()),
        None => cut(json(value)),
    }
}

fn json(value: &Value<'_>) -> String {
    let ctx: &Ctx<'_> = value.ctx();
    let text = ctx.json_stringify(value.clone()).ok().flatten().and_then(|text| text.to_string().ok());
    // A getter or `toJSON` that throws must not leave its exception behind.
    if ctx.has_exception() {
        ctx.catch();
    }
    text.unwrap_or_else(|| value.type_name().to_owned())
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        let end = (0..=MAX_MESSAGE_BYTES).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push_str(" ...");
    }
    message
}

/// The lines of a stack that are the script's: `inner (review.ts:12:9)`, `review.ts:12:9`.
pub fn frames(stack: &str) -> Vec<String> {
    stack.lines().filter_map(frame).take(MAX_FRAMES).collect()
}

fn frame(line: &str) -> Option<String> {
    let line = line.trim().strip_prefix("at ")?;
    let (name, place) = match line.strip_suffix(')').and_then(|line| line.split_once(" (")) {
        Some((name, place)) => (name, place),
        None => ("", line),
    };
    if place.starts_with(OWN) || place == "native" || !place.contains(':') {
        return None;
    }
    let unnamed = matches!(name, "" | "<anonymous>" | "<eval>" | "default" | "<module>");
    Some(if unnamed { place.to_owned() } else { format!("{name} ({place})") })
}
