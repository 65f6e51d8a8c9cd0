//! The same error many times is one finding: messages are compared without numbers, addresses and ids.

use std::collections::BTreeMap;

use super::masked;
use super::trace::{Frame, Trace};
use crate::walk::Tree;

/// Errors with one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The last one of them, whole.
    pub trace: Trace,
    pub normal: String,
    pub count: usize,
    /// `logs/app.log:17`
    pub first: String,
    pub last: String,
    /// The top frame that is a file of the project.
    pub place: Option<Frame>,
    /// Given by the user, not found.
    pub given: bool,
}

/// Groups in the order in which they were first seen.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    tree: &'a Tree,
    /// Paths by their last part.
    names: BTreeMap<&'a str, Vec<&'a str>>,
    order: Vec<Group>,
    known: BTreeMap<String, usize>,
}

impl<'a> Groups<'a> {
    pub fn new(tree: &'a Tree) -> Groups<'a> {
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for file in &tree.files {
            names.entry(file.name()).or_default().push(&file.path);
        }
        Groups { tree, names, order: Vec::new(), known: BTreeMap::new() }
    }

    pub fn add(&mut self, trace: Trace, seen: String, given: bool) {
        // Tokens differ from one time to the next as numbers do.
        let normal = normal(&masked(&trace.message));
        let place = trace.frames.iter().find_map(|frame| self.own(frame));
        match self.known.get(&normal) {
            Some(at) => {
                let group = &mut self.order[*at];
                group.count += 1;
                group.last = seen;
                group.given |= given;
                // One with a place says more than one without.
                if place.is_some() || group.place.is_none() {
                    (group.place, group.trace) = (place.or(group.place.take()), trace);
                }
            }
            None => {
                self.known.insert(normal.clone(), self.order.len());
                self.order.push(Group {
                    trace,
                    normal,
                    count: 1,
                    first: seen.clone(),
                    last: seen,
                    place,
                    given,
                });
            }
        }
    }

    pub fn into_groups(self) -> Vec<Group> {
        self.order
    }

    /// The frame with the project's own path, if it is one of its files: the same path, or the one that ends alike.
    pub fn own(&self, frame: &Frame) -> Option<Frame> {
        let path = frame.path.replace('\\', "/");
        let foreign = ["/node_modules/", "/site-packages/", "/.cargo/", "/rustc/", "/dist-packages/"];
        if foreign.iter().any(|part| path.contains(part)) {
            return None;
        }
        let inside = self.tree.root.to_str().and_then(|root| path.strip_prefix(root));
        let path = inside.unwrap_or(&path).trim_start_matches("./").trim_start_matches('/');
        let name = path.rsplit('/').next()?;
        let candidates = self.names.get(name)?;
        let alike = |own: &&&str| ends_alike(own, path);
        let best = candidates.iter().max_by_key(|own| alike(own))?;
        let parts = alike(&best);
        let only = candidates.iter().filter(|own| alike(own) == parts).count() == 1;
        let whole = parts == best.split('/').count() || parts == path.split('/').count();
        // Two that end alike, or one that shares only a name with a longer path, would be a guess.
        (only && whole).then(|| Frame { path: best.to_string(), ..frame.clone() })
    }
}

/// How many parts from the end are the same.
fn ends_alike(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

/// A message without what differs from one time to the next.
pub(super) fn normal(message: &str) -> String {
    let mut out = String::new();
    for word in message.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let digits = bare.chars().filter(char::is_ascii_digit).count();
        let hex = bare.trim_start_matches("0x");
        let id = digits > 0
            && (hex.len() >= 6 || bare.starts_with("0x"))
            && hex.chars().all(|c| c.is_ascii_hexdigit());
        if id {
            out.push('#');
        } else {
            let mut number = false;
            for c in bare.chars() {
                if !c.is_ascii_digit() {
                    out.push(c);
                } else if !number {
                    out.push('#');
                }
                number = c.is_ascii_digit();
            }
        }
        out.push_str(&word[bare.len()..]);
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::research::tests::project;

    // covers: R6
    #[test]
    fn messages_meet_without_their_numbers() {
        assert_eq!(normal("order 17 at 0x7ffe12 of a1b2c3d4e5 failed"), "order # at # of # failed");
        assert_eq!(
            normal("index out of bounds: the len is 3 but the index is 99"),
            "index out of bounds: the len is # but the index is #"
        );
        assert_eq!(normal("utf8 added"), "utf# added");
    }

    // covers: R6
    #[test]
    fn frames_are_the_projects_only_without_a_guess() {
        let dir = project(&[
            ("src/a/mod.rs", ""),
            ("src/b/mod.rs", ""),
            ("src/pay.rs", ""),
            ("java/com/shop/Pay.java", ""),
        ]);
        let tree = Tree::read(dir.path()).unwrap();
        let groups = Groups::new(&tree);
        let own = |path: &str| groups.own(&Frame::new(path, 1, "")).map(|frame| frame.path);
        assert_eq!(own("/app/src/pay.rs"), Some("src/pay.rs".into()));
        assert_eq!(own("./src/a/mod.rs"), Some("src/a/mod.rs".into()));
        assert_eq!(own("mod.rs"), None);
        assert_eq!(own("com/shop/Pay.java"), Some("java/com/shop/Pay.java".into()));
        assert_eq!(own("/x/.cargo/registry/src/pay.rs"), None);
        assert_eq!(own("/usr/lib/other/pay.rs"), None);
        assert_eq!(own(&format!("{}/src/pay.rs", dir.path().display())), Some("src/pay.rs".into()));
    }
}
