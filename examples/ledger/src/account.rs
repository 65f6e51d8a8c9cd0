//! Accounts: a path of names such as `expenses:food:market`. The first one says what kind it is.

use std::fmt;
use std::str::FromStr;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Assets,
    Liabilities,
    Equity,
    Income,
    Expenses,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Assets, Kind::Liabilities, Kind::Equity, Kind::Income, Kind::Expenses];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Assets => "assets",
            Kind::Liabilities => "liabilities",
            Kind::Equity => "equity",
            Kind::Income => "income",
            Kind::Expenses => "expenses",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(String);

impl Account {
    pub fn name(&self) -> &str {
        &self.0
    }

    pub fn kind(&self) -> Kind {
        let first = self.0.split(':').next().unwrap_or_default();
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == first);
        known.expect("`from_str` takes no account of another kind")
    }

    /// Whether this is `parent` or below it: `expenses:food` is under `expenses`.
    pub fn is_under(&self, parent: &str) -> bool {
        match self.0.strip_prefix(parent) {
            Some(rest) => rest.is_empty() || rest.starts_with(':'),
            None => false,
        }
    }
}

impl FromStr for Account {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let first = text.split(':').next().unwrap_or_default();
        let known = Kind::ALL.iter().any(|kind| kind.name() == first);
        let fits = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        };
        if !known || !text.split(':').all(fits) {
            return Err(Error::BadAccount(text.to_owned()));
        }
        Ok(Account(text.to_owned()))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_says_the_kind() {
        let account: Account = "expenses:food".parse().unwrap();
        assert_eq!(account.kind(), Kind::Expenses);
        for text in ["", "food", "expenses:", "expenses::food", "assets:my bank"] {
            assert!(text.parse::<Account>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_account_is_under_whole_names_only() {
        let account: Account = "expenses:foodstuff".parse().unwrap();
        assert!(account.is_under("expenses"));
        assert!(!account.is_under("expenses:food"));
    }
}
