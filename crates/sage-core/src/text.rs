//! Text as programs print it, made readable.

/// Without colours and other escape sequences.
pub fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\x1b', Some('[')) => {
                rest.next();
                while rest.next_if(|c| ('\x20'..='\x3f').contains(c)).is_some() {}
                rest.next_if(|c| ('\x40'..='\x7e').contains(c));
            }
            ('\x1b', Some(']' | 'P' | '_' | '^')) => {
                while rest.next_if(|c| !matches!(c, '\x07' | '\x1b' | '\n')).is_some() {}
                if rest.next_if_eq(&'\x1b').is_some() {
                    rest.next_if_eq(&'\\');
                } else {
                    rest.next_if_eq(&'\x07');
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// What a terminal shows of a line that was written over, as progress bars do.
pub fn last_state(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default()
}

/// The beginning of a text, with `…` where something was cut off.
pub fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
