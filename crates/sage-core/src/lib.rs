//! The pure core of Sage: templates, plans, events, the fold and the decisions.
//!
//! Nothing in here does I/O, reads a clock, draws random numbers or looks at the environment; time and
//! randomness arrive as data. Two functions are the heart: `Run::apply` folds an event into the run, and
//! `Run::decide` says what is wanted next. Live running and recovery are the same two calls.

pub mod alert;
pub mod approval;
pub mod budget;
pub mod canonical;
pub mod check;
pub mod diagnostic;
pub mod digest;
pub mod duration;
pub mod event;
pub mod expr;
pub mod fence;
pub mod graph;
pub mod handoff;
pub mod headline;
pub mod inputs;
pub mod inquiry;
pub mod key;
pub mod load;
pub mod plan;
pub mod policy;
pub mod port;
pub mod price;
pub mod read;
pub mod role;
pub mod roster;
pub mod run;
pub mod schema;
pub mod seal;
pub mod secret;
pub mod shell;
pub mod skill;
pub mod slug;
pub mod source;
pub mod synthesis;
pub mod target;
pub mod template;
pub mod text;
pub mod ticket;
pub mod verdict;
pub mod wire;
