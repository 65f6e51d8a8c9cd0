//! `filter`: what of a result reaches the next prompt (DESIGN §6). First the jq program, then the limit in tokens.
//! The whole result is kept beside it, and how much was taken away is counted.

use sage_core::event::{Filtered, Payload};
use sage_core::expr::Order;
use sage_core::port::Evaluator;
use sage_core::template::Operation;
use serde_json::Value;

use crate::blobs::Blobs;
use crate::evaluate::evaluate;
use crate::results::{ResultError, pack};
use crate::tokens;
use crate::trim::trim;
use crate::trouble::Refused;

/// Below this nothing worth counting can be saved, and the tokenizer need not be loaded for it.
const COUNTED_BYTES: u64 = 4 * 1024;

#[derive(Debug, Clone, Default)]
pub struct Filter {
    jq: Option<String>,
    max_tokens: Option<u64>,
}

/// A result in its two faces.
#[derive(Debug)]
pub struct Sieved {
    pub result: Payload,
    /// Only where something was taken away.
    pub full: Option<Payload>,
    pub filtered: Option<Filtered>,
}

impl Filter {
    pub fn of(operation: &Operation) -> Filter {
        Filter {
            jq: operation.filter.as_ref().map(|source| source.text.clone()),
            max_tokens: operation.max_tokens.map(u64::from),
        }
    }

    pub fn is_none(&self) -> bool {
        self.jq.is_none() && self.max_tokens.is_none()
    }

    pub fn counts(&self) -> bool {
        self.max_tokens.is_some()
    }

    /// `context` is what the jq program sees as variables; only asked for where there is one.
    pub fn sieve(
        &self,
        full: &Value,
        context: impl FnOnce() -> Result<Value, ResultError>,
        blobs: &Blobs,
        evaluator: &dyn Evaluator,
    ) -> Result<Sieved, Refused> {
        let mut value = match &self.jq {
            Some(jq) => evaluate(&Order::filter(jq, full, &context()?), evaluator)?,
            None => full.clone(),
        };
        if let Some(most) = self.max_tokens {
            value = trim(value, most, &tokens::of_json);
        }
        let result = pack(&value, blobs)?;
        if value == *full {
            return Ok(Sieved { result, full: None, filtered: None });
        }
        let packed = pack(full, blobs)?;
        Ok(Sieved { result, full: Some(packed), filtered: Some(counted(full, &value)) })
    }
}

fn counted(full: &Value, left: &Value) -> Filtered {
    let (before, after) = (tokens::text_of(full), tokens::text_of(left));
    let (bytes_before, bytes_after) = (before.len() as u64, after.len() as u64);
    let worth = bytes_before >= COUNTED_BYTES;
    let count = |text: &str| worth.then(|| tokens::count(text));
    Filtered { bytes_before, bytes_after, tokens_before: count(&before), tokens_after: count(&after) }
}
