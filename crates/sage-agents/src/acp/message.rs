//! The messages of a turn, joined from their chunks.
//!
//! A message ends where another id begins. Without ids it ends where the agent does something else in between.

/// Longest answer that is taken.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct Messages {
    last: Message,
    /// Of the last message, what nobody has been shown yet.
    unsaid: String,
    paused: bool,
    /// Some message of this turn had an id.
    ids: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub id: Option<String>,
    pub text: String,
    /// It was longer than anything that is kept.
    pub cut: bool,
}

impl Messages {
    /// Takes a chunk in; gives what has been said by the message that it ends.
    pub fn push(&mut self, id: Option<&str>, text: &str) -> Option<String> {
        let same = self.last.id.as_deref() == id && (id.is_some() || !self.paused);
        let said = if same { None } else { self.pause() };
        if !same {
            self.last = Message { id: id.map(str::to_string), ..Message::default() };
        }
        self.paused = false;
        self.ids |= id.is_some();
        if self.last.text.len() + text.len() > ANSWER_BYTES {
            self.last.cut = true;
        } else {
            self.last.text.push_str(text);
            self.unsaid.push_str(text);
        }
        said
    }

    /// The agent does something else, or is done.
    pub fn pause(&mut self) -> Option<String> {
        self.paused = true;
        Some(std::mem::take(&mut self.unsaid)).filter(|text| !text.trim().is_empty())
    }

    pub fn last(&self) -> &Message {
        &self.last
    }

    /// Agents that give ids to what the model says give none to what they say themselves.
    pub fn ends_with_own_words(&self) -> bool {
        self.ids && self.last.id.is_none() && !self.last.text.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_by_id_or_until_something_else_happens() {
        let mut messages = Messages::default();
        assert_eq!(messages.push(Some("a"), "let "), None);
        assert_eq!(messages.push(Some("a"), "me"), None);
        assert_eq!(messages.pause().as_deref(), Some("let me"));
        assert_eq!(messages.push(Some("a"), " see"), None);
        assert_eq!(messages.last().text, "let me see");
        assert_eq!(messages.push(Some("b"), "done").as_deref(), Some(" see"));
        assert_eq!((messages.last().text.as_str(), messages.ends_with_own_words()), ("done", false));
        assert_eq!(messages.push(None, "error 500").as_deref(), Some("done"));
        assert!(messages.ends_with_own_words());

        let mut plain = Messages::default();
        plain.push(None, "one");
        plain.pause();
        plain.push(None, "two");
        plain.push(None, " three");
        assert_eq!((plain.last().text.as_str(), plain.ends_with_own_words()), ("two three", false));
    }

    #[test]
    fn an_endless_message_is_cut_and_says_so() {
        let mut messages = Messages::default();
        let chunk = "x".repeat(1024 * 1024);
        (0..17).for_each(|_| drop(messages.push(None, &chunk)));
        assert!(messages.last().cut && messages.last().text.len() <= ANSWER_BYTES);
    }
}
