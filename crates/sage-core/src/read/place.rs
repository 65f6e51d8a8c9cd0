//! Where a value stands in the document, as a chain on the stack: it costs nothing until an error prints it.

use std::fmt;

#[derive(Clone, Copy, Debug)]
pub enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub fn field(&'p self, name: &'p str) -> Place<'p> {
        Place::Field(self, name)
    }

    pub fn index(&'p self, index: usize) -> Place<'p> {
        Place::Index(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
