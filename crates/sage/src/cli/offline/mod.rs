//! Operations that need no model but sage's own stores.

pub mod skills;
