//! What a clean-up removed, what it left and why, and what it could not remove.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Category {
    Runs,
    Worktrees,
    Sessions,
    Blobs,
    Cache,
    Logs,
    Inbox,
    Handoffs,
    /// What a crash left behind.
    Leftovers,
}

impl Category {
    pub const ALL: [Category; 9] = [
        Category::Runs,
        Category::Worktrees,
        Category::Sessions,
        Category::Blobs,
        Category::Cache,
        Category::Logs,
        Category::Inbox,
        Category::Handoffs,
        Category::Leftovers,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::Runs => "runs",
            Category::Worktrees => "worktrees",
            Category::Sessions => "sessions",
            Category::Blobs => "blobs",
            Category::Cache => "cache",
            Category::Logs => "logs",
            Category::Inbox => "inbox",
            Category::Handoffs => "handoffs",
            Category::Leftovers => "leftovers",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    pub category: Category,
    pub name: String,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
}

/// Something that stays although it is old, or that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stays {
    pub category: Category,
    pub name: String,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub removed: Vec<Item>,
    pub kept: Vec<Stays>,
    pub failed: Vec<Stays>,
}

impl Report {
    pub fn removed(&mut self, item: Item) {
        self.removed.push(item);
    }

    pub fn kept(&mut self, category: Category, name: impl Into<String>, why: impl Into<String>) {
        self.kept.push(Stays { category, name: name.into(), why: why.into() });
    }

    pub fn failed(&mut self, category: Category, name: impl Into<String>, why: impl ToString) {
        self.failed.push(Stays { category, name: name.into(), why: why.to_string() });
    }

    /// How many of a category, and their bytes.
    pub fn of(&self, category: Category) -> (usize, u64) {
        let items = self.removed.iter().filter(|item| item.category == category);
        items.fold((0, 0), |(count, bytes), item| (count + 1, bytes + item.bytes))
    }

    pub fn bytes(&self) -> u64 {
        self.removed.iter().map(|item| item.bytes).sum()
    }
}
