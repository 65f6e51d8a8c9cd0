//! Event streams (`text/event-stream`), byte by byte: however a network cuts them, the events are the same.

/// No single event of a model is longer.
const LINE_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty where the stream names no events.
    pub name: String,
    pub data: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    event: Event,
    /// At least one `data:` came, even an empty one.
    has_data: bool,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Parser {
    /// The events that are complete with these bytes. What is left open at the end of a stream is no event.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_cr) => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    events.extend(self.end_line());
                }
                byte => {
                    self.after_cr = false;
                    self.line.push(*byte);
                }
            }
            if self.line.len() + self.event.data.len() > LINE_BYTES {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line: &str = &text;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_string(),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments, ids, retry times: nothing of use here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\nevent: a\r\ndata: {\"x\":\"ä\"}\r\n\r\ndata: one\ndata:two\n\n\
        event: named\rdata: [DONE]\r\revent: no data\n\ndata\n\nid: 7\ndata: last\n\n\ndata: never ended";

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    fn events() -> Vec<Event> {
        vec![
            event("a", "{\"x\":\"ä\"}"),
            event("", "one\ntwo"),
            event("named", "[DONE]"),
            event("", ""),
            event("", "last"),
        ]
    }

    #[test]
    fn a_stream_is_the_same_however_it_is_cut() {
        let bytes = STREAM.as_bytes();
        assert_eq!(Parser::default().push(bytes).unwrap(), events());
        for cut in 0..=bytes.len() {
            let mut parser = Parser::default();
            let mut found = parser.push(&bytes[..cut]).unwrap();
            found.extend(parser.push(&bytes[cut..]).unwrap());
            assert_eq!(found, events(), "cut at {cut}");
        }
        let mut parser = Parser::default();
        let single: Vec<Event> = bytes.chunks(1).flat_map(|byte| parser.push(byte).unwrap()).collect();
        assert_eq!(single, events());
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; 1 << 20];
        let refused = (0..20).any(|_| parser.push(&chunk) == Err(TooLong));
        assert!(refused);
        let mut parser = Parser::default();
        let lines = "data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(1 << 15);
        assert!((0..40).any(|_| parser.push(lines.as_bytes()) == Err(TooLong)));
    }
}
