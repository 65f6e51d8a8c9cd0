//! The core's SHA-256 values, under the engine's name.

pub use sage_core::digest::{Digest, HEX_LEN, NotADigest};
