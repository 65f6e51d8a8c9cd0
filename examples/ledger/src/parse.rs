//! The text format:
//!
//! ```text
//! # a comment
//! 2025-01-31 Groceries at the market
//!     expenses:food    42.50
//!     assets:cash               (no amount: what is left)
//! ```

use crate::Error;
use crate::account::Account;
use crate::journal::{Date, Entry, Journal, Posting};
use crate::money::Amount;

/// Read a whole file. The first mistake is reported with its line.
pub fn parse(text: &str) -> Result<Journal, Error> {
    let mut journal = Journal::default();
    let mut date: Option<Date> = None;
    let mut title = String::new();
    let mut start = 0;
    let mut postings: Vec<Posting> = Vec::new();
    let mut open: Option<Account> = None;

    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let content = match line.find('#') {
            Some(at) => &line[..at],
            None => line,
        };
        if content.trim().is_empty() {
            continue;
        }
        if !content.starts_with([' ', '\t']) {
            // A new entry begins, so the one before is complete.
            if let Some(day) = date.take() {
                if let Some(account) = open.take() {
                    let sum = Amount::sum(postings.iter().map(|posting| posting.amount))
                        .map_err(|error| error.at(start))?;
                    let amount = sum.negated().map_err(|error| error.at(start))?;
                    postings.push(Posting { account, amount });
                }
                let entry = Entry::new(day, &title, std::mem::take(&mut postings))
                    .map_err(|error| error.at(start))?;
                journal.post(entry);
            }
            let (day, what) = match content.trim_end().split_once(' ') {
                Some((day, what)) => (day, what.trim()),
                None => {
                    let missing = Error::Syntax("an entry needs a date and a text".to_owned());
                    return Err(missing.at(number));
                }
            };
            date = Some(day.parse().map_err(|error: Error| error.at(number))?);
            title = what.to_owned();
            start = number;
        } else {
            if date.is_none() {
                let alone = Error::Syntax("a posting without an entry above it".to_owned());
                return Err(alone.at(number));
            }
            let mut words = content.split_whitespace();
            let name = words.next().unwrap_or_default();
            let account: Account = name.parse().map_err(|error: Error| error.at(number))?;
            match words.next() {
                Some(amount) => {
                    let amount = amount.parse().map_err(|error: Error| error.at(number))?;
                    postings.push(Posting { account, amount });
                }
                None if open.is_some() => {
                    let twice = Error::Syntax("only one posting can be without an amount".into());
                    return Err(twice.at(number));
                }
                None => open = Some(account),
            }
            if let Some(extra) = words.next() {
                return Err(Error::Syntax(format!("`{extra}` is too much here")).at(number));
            }
        }
    }

    if let Some(day) = date.take() {
        if let Some(account) = open.take() {
            let sum = Amount::sum(postings.iter().map(|posting| posting.amount))
                .map_err(|error| error.at(start))?;
            let amount = sum.negated().map_err(|error| error.at(start))?;
            postings.push(Posting { account, amount });
        }
        let entry = Entry::new(day, &title, postings).map_err(|error| error.at(start))?;
        journal.post(entry);
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_posting_takes_what_is_left() {
        let text = "2025-01-31 Market\n  expenses:food 42.50\n  assets:cash\n";
        let journal = parse(text).unwrap();
        assert_eq!(journal.entries()[0].postings[1].amount, Amount::from_cents(-4250));
    }

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        let text = "# books\n\n2025-01-31 Pay # net\n  assets:bank 10\n\n  income:job -10\n";
        assert_eq!(parse(text).unwrap().entries()[0].text, "Pay");
    }

    #[test]
    fn mistakes_say_their_line() {
        for (text, line) in [
            ("  assets:cash 1\n", 1),
            ("2025-13-01 x\n", 1),
            ("2025-01-01\n", 1),
            ("2025-01-01 x\n  assets:cash 1\n", 1),
            ("2025-01-01 x\n  assets:cash 1\n  income:job -2\n", 1),
            ("2025-01-01 x\n  assets:cash 1\n  cash -1\n", 3),
            ("2025-01-01 x\n  assets:cash one\n", 2),
            ("2025-01-01 x\n  assets:cash 1 EUR\n", 2),
            ("2025-01-01 x\n  assets:cash\n  assets:bank\n", 3),
        ] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, Error::Line(at, _) if at == line), "{text}: {error}");
        }
    }
}
