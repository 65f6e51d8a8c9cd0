//! Room for deep nesting: a parser that descends needs a stack as deep as the text is nested.
//!
//! Short texts are read where they are. Others are read on a thread whose stack fits the worst text of that
//! length; texts that are nested beyond reason are refused before they are read.

use std::thread;

use sage_core::diagnostic::Diagnostic;
use sage_core::template::Span;

/// Nobody writes deeper; generated text that does is data.
const MAX_DEPTH: u32 = 1_000;
/// Such a text cannot be nested deeper than any stack allows.
const SHORT: usize = 512;
const LEAST_STACK: usize = 16 << 20;
/// Address space only: pages are taken when they are used.
const MOST_STACK: usize = 1 << 30;
const STACK_PER_BYTE: usize = 16 << 10;

/// Runs `read` with a stack that fits `text`.
pub(super) fn with_room_for<R: Send>(
    text: &str,
    read: impl FnOnce() -> R + Send,
) -> Result<R, Vec<Diagnostic>> {
    if let Some(at) = too_deep(text) {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        return Err(vec![Diagnostic::error("", Span { start: at, end: at + 1 }, message)]);
    }
    if text.len() <= SHORT {
        return Ok(read());
    }
    let stack = text.len().saturating_mul(STACK_PER_BYTE).clamp(LEAST_STACK, MOST_STACK);
    let answered = thread::scope(|scope| {
        let thread = thread::Builder::new().name("strip".to_owned()).stack_size(stack);
        thread.spawn_scoped(scope, read).ok().and_then(|thread| thread.join().ok())
    });
    answered.ok_or_else(|| {
        let message = "the script could not be read: no memory for it, or it is nested too deeply";
        vec![Diagnostic::error("", Span { start: 0, end: 0 }, message)]
    })
}

/// Where brackets, or words and signs that take what follows them, pile up too high.
fn too_deep(text: &str) -> Option<u32> {
    let (mut depth, mut prefixes) = (0_u32, 0_u32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match byte {
            b'!' | b'~' | b'-' | b'+' | b'<' => prefixes += 1,
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => prefixes = 0,
        }
        if depth > MAX_DEPTH || prefixes > MAX_DEPTH {
            return Some(at as u32);
        }
    }
    None
}
