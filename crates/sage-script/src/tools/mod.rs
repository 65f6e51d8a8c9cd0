//! The tools of all servers, found step by step: names first, then signatures, then whole definitions.
//!
//! A model pays for what it reads. A list of names costs about 20 tokens a tool, a definition often 500.

mod def;
mod search;
mod words;

pub use def::ToolDef;
pub use search::{Detail, Found, Hit, search};
