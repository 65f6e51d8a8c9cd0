//! Tools that wait until the engine has counted the response that wants them.
//!
//! Without it a budget could be overdrawn twice: the program uses a quick tool and asks the model again before a stop
//! reaches it. It may ask for its tool before the response has ended; what that one used is known only then.

use sage_core::expr::ResultSchema;

use super::event::Block;
use super::shape::Shape;

/// The program's own tool for an answer by a schema: used well, it ends the turn.
const ANSWER: &str = "StructuredOutput";

#[derive(Debug, Default)]
pub struct Gate {
    schema: Option<ResultSchema>,
    /// A response has begun and not ended.
    answering: bool,
    /// It has brought the answer.
    last: bool,
    held: Vec<String>,
}

impl Gate {
    pub fn new(shape: Option<Shape>) -> Gate {
        let schema = shape.and_then(|shape| ResultSchema::compile(&shape.schema).ok());
        Gate { schema, ..Gate::default() }
    }

    pub fn begins(&mut self) {
        (self.answering, self.last) = (true, false);
    }

    pub fn said(&mut self, blocks: &[Block]) {
        self.last |= blocks.iter().any(|block| match (block, &self.schema) {
            (Block::Tool { name, input, .. }, Some(schema)) if name == ANSWER => schema.check(input).is_ok(),
            _ => false,
        });
    }

    /// The response has ended; whether it was the turn's last one although it wants a tool.
    pub fn answered(&mut self) -> bool {
        self.answering = false;
        self.last
    }

    pub fn hold(&mut self, id: String) {
        self.held.push(id);
    }

    pub fn withdraw(&mut self, id: &str) {
        self.held.retain(|held| held != id);
    }

    /// Those whose response has ended.
    pub fn release(&mut self) -> Vec<String> {
        if self.answering { Vec::new() } else { std::mem::take(&mut self.held) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(name: &str, input: &Value) -> Vec<Block> {
        vec![Block::Tool { id: "t1".into(), name: name.into(), input: input.clone() }]
    }

    // covers: R18
    #[test]
    fn a_tool_waits_for_the_end_of_its_response() {
        let mut gate = Gate::default();
        gate.begins();
        gate.hold("a".into());
        gate.hold("b".into());
        assert!(gate.release().is_empty());
        gate.withdraw("b");
        assert!(!gate.answered());
        assert_eq!(gate.release(), ["a"]);
        // Of a subagent, whose responses are not seen.
        gate.hold("c".into());
        assert_eq!(gate.release(), ["c"]);
    }

    // covers: R18
    #[test]
    fn an_answer_that_fits_is_the_last_response() {
        let mut gate = Gate::new(Some(Shape::of(&json!({"type": "object", "required": ["n"]}))));
        let mut last = |name: &str, input: Value| {
            gate.begins();
            gate.said(&tool(name, &input));
            gate.answered()
        };
        assert!(last(ANSWER, json!({"n": 1})));
        assert!(!last(ANSWER, json!({})));
        assert!(!last("Bash", json!({"n": 1})));
    }
}
