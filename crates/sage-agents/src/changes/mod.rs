//! What a step changed, as git sees it.
//!
//! ```text
//! isolated step   its branch against the commit that it began at; while it works, its files
//! other agents    the project before the first attempt and after the last one (trees.json), as git trees
//! ```
//! What must stay true: the user's index, refs, stash and object database are only read. Trees are made with an index
//! and an object database of their own, in the directory of the step, and disappear with its run.

mod aside;
mod diff;
mod trees;

pub use diff::{Change, FileChange, of_lease, of_outputs, of_step};
pub use trees::{after, before};
