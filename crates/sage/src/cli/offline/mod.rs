//! Named operations that need sage's own stores, for the agent that works without a model.

pub mod tickets;
