//! The scripted model endpoint: real HTTP and real event streams without a model, a key or a network.
//!
//! ```text
//! script (JSON) --turn--> wire (anthropic | responses | chat | gemini) --pieces--> reply --> agent
//!                            ^ conversation                                  |
//!        server: route, log, n-th call --------------------------------------+--> log, usage sent
//! ```
//! Tests start it in their own process with `FakeLlm::start`; people with `sage debug fake-llm`. It listens on
//! loopback only, answers all four protocols from one script, and can refuse, stall, lie and hang up.

mod anthropic;
mod body;
mod chat;
mod command;
mod conversation;
mod endpoint;
mod gemini;
mod log;
mod number;
mod piece;
mod placeholder;
mod responses;
mod script;
mod server;
mod stop_reason;
mod turn;
mod wire;

pub use command::fake_llm_main;
pub use endpoint::FakeLlm;
pub use script::Script;
