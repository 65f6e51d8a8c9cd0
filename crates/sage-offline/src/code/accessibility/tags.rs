//! A reader of tags that takes anything: HTML, templates and JSX alike. It never fails; what it cannot read is text.

/// What comes next in markup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Open(Tag),
    Close(String),
    /// Text that is not blank, or something that may become text.
    Text,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub name: String,
    /// Names in small letters, with their value if it is plain text.
    pub attributes: Vec<(String, Option<String>)>,
    pub line: usize,
    /// `<br/>`
    pub closed: bool,
}

impl Tag {
    pub fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| {
            known.trim_start_matches([':', '[']).trim_end_matches(']') == name
                || known == &format!("v-bind:{name}")
        })
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.as_deref())
    }

    /// Attributes that are put in as a whole can be any.
    pub fn is_open(&self) -> bool {
        self.attributes.iter().any(|(name, _)| {
            name.starts_with("{...") || name == "v-bind" || name.starts_with("{{") || name.starts_with("{%")
        })
    }
}

/// All tags and texts in order. `line` is the line of the first character.
pub(super) fn events(text: &str, line: usize) -> Vec<Event> {
    let mut reader = Reader { text, at: 0, line, events: Vec::new() };
    while reader.at < text.len() {
        reader.step();
    }
    reader.events
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    events: Vec<Event>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    /// Skips up to and with `mark`; everything if it does not come.
    fn skip_past(&mut self, mark: &str) {
        let length = self.rest().find(mark).map_or(self.rest().len(), |found| found + mark.len());
        self.skip(length);
    }

    fn step(&mut self) {
        let rest = self.rest();
        if rest.starts_with("<!--") {
            self.skip_past("-->");
        } else if rest.starts_with("<!") {
            self.skip_past(">");
        } else if let Some(after) = rest.strip_prefix("</") {
            let name: String = after.chars().take_while(|c| is_name(*c)).collect();
            self.skip_past(">");
            self.events.push(Event::Close(name));
        } else if rest.starts_with('<') && rest[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.tag();
        } else {
            let length = rest[1..].find('<').map_or(rest.len(), |found| found + 1);
            let length = if rest.is_char_boundary(length) { length } else { rest.len() };
            if !rest[..length].trim_matches(|c: char| c.is_whitespace() || c == '>').is_empty() {
                self.events.push(Event::Text);
            }
            self.skip(length);
        }
    }

    fn tag(&mut self) {
        let name: String = self.rest()[1..].chars().take_while(|c| is_name(*c)).collect();
        let mut tag = Tag { name: name.clone(), line: self.line, ..Tag::default() };
        self.skip(1 + name.len());
        loop {
            let blank = self.rest().len() - self.rest().trim_start().len();
            self.skip(blank);
            let rest = self.rest();
            match rest.chars().next() {
                None => break,
                Some('>') => {
                    self.skip(1);
                    break;
                }
                Some('/') => {
                    tag.closed = rest.starts_with("/>");
                    self.skip(1);
                }
                Some(_) => self.attribute(&mut tag),
            }
        }
        let raw = ["script", "style"].contains(&name.as_str()) && !tag.closed;
        self.events.push(Event::Open(tag));
        if raw {
            self.skip_past(&format!("</{name}"));
            self.skip_past(">");
        }
    }

    fn attribute(&mut self, tag: &mut Tag) {
        let rest = self.rest();
        if rest.starts_with('{') {
            let length = braces(rest);
            let text: String = rest[..length].chars().filter(|c| !c.is_whitespace()).collect();
            tag.attributes.push((text, None));
            return self.skip(length);
        }
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>')).unwrap_or(rest.len());
        let length = if rest[..length].ends_with('/') && rest[length..].starts_with('>') {
            length - 1
        } else {
            length
        };
        let name = rest[..length].to_lowercase();
        self.skip(length.max(1));
        let mut value = None;
        let blank = self.rest().len() - self.rest().trim_start().len();
        if self.rest()[blank..].starts_with('=') {
            self.skip(blank + 1);
            let blank = self.rest().len() - self.rest().trim_start().len();
            self.skip(blank);
            let before = self.at;
            value = self.value();
            let raw: String =
                self.text[before..self.at].chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
            if name == "style" && raw.contains("display:none") {
                tag.attributes.push(("hidden".into(), None));
            }
        }
        tag.attributes.push((name, value));
    }

    fn value(&mut self) -> Option<String> {
        let rest = self.rest();
        match rest.chars().next()? {
            mark @ ('"' | '\'') => {
                let length = rest[1..].find(mark).map_or(rest.len(), |found| found + 2);
                let text = rest[1..length].trim_end_matches(mark).to_string();
                self.skip(length);
                Some(text)
            }
            '{' => {
                let length = braces(rest);
                let inner = rest[..length].trim_matches(['{', '}', ' ']);
                let plain = inner.trim_matches(['"', '\'', '`']);
                let literal = plain.len() < inner.len() || inner.chars().all(|c| c.is_numeric() || c == '-');
                self.skip(length);
                literal.then(|| plain.to_string())
            }
            _ => {
                let length = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(rest.len());
                let text = rest[..length].to_string();
                self.skip(length);
                Some(text)
            }
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')
}

/// The length of `{...}` with all that is inside.
fn braces(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_is_read() {
        for text in [
            "<",
            "<a",
            "<a b",
            "<a b=",
            "<a b='",
            "</",
            "<!--",
            "{",
            "<a {",
            "<é>",
            "a<b",
            "<a b={{c: {}}",
            "<script>",
        ] {
            events(text, 1);
        }
    }

    #[test]
    fn tags_have_names_attributes_and_lines() {
        let found = events("<p>\n<img src={a.b} alt=\"\" {...rest} />x</p>", 4);
        let Event::Open(image) = &found[1] else { panic!("{found:?}") };
        assert_eq!((image.name.as_str(), image.line, image.closed), ("img", 5, true));
        assert!(image.is_open());
        assert_eq!(image.value("alt"), Some(""));
        assert_eq!(found[2..], [Event::Text, Event::Close("p".into())]);
    }
}
