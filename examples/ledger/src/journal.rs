//! The journal: entries in the order in which they were written. Only balanced entries get in.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::account::Account;
use crate::money::Amount;

/// A day of the calendar. Dates sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

impl FromStr for Date {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadDate(text.to_owned());
        let mut parts = text.splitn(3, '-');
        let mut next = |len| parts.next().filter(|part: &&str| part.len() == len).ok_or_else(bad);
        let (year, month, day) = (next(4)?, next(2)?, next(2)?);
        let year = year.parse().map_err(|_| bad())?;
        let month = month.parse().map_err(|_| bad())?;
        let day = day.parse().map_err(|_| bad())?;
        // TODO: February 30 is taken; reports by month would need a real calendar.
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(bad());
        }
        Ok(Date { year, month, day })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    pub amount: Amount,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub date: Date,
    pub text: String,
    pub postings: Vec<Posting>,
}

impl Entry {
    pub fn new(date: Date, text: &str, postings: Vec<Posting>) -> Result<Self, Error> {
        if postings.len() < 2 {
            return Err(Error::TooFewPostings);
        }
        let sum = Amount::sum(postings.iter().map(|posting| posting.amount))?;
        if !sum.is_zero() {
            return Err(Error::Unbalanced(sum));
        }
        Ok(Entry { date, text: text.to_owned(), postings })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.date, self.text)?;
        for posting in &self.postings {
            writeln!(f, "    {:<32}{:>12}", posting.account, posting.amount)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Journal {
    entries: Vec<Entry>,
}

impl Journal {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    // TODO: audit trail. Nothing says who posted an entry, and when.
    pub fn post(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Undo an entry by posting its opposite; what was written stays. Numbers begin at 1.
    pub fn reverse(&mut self, number: usize, date: Date) -> Result<&Entry, Error> {
        let index = number.checked_sub(1).ok_or(Error::UnknownEntry(number))?;
        let entry = self.entries.get(index).ok_or(Error::UnknownEntry(number))?;
        let mut postings = entry.postings.clone();
        for posting in &mut postings {
            posting.amount = posting.amount.negated()?;
        }
        // FIXME: the same entry can be reversed twice.
        let reversal =
            Entry::new(date, &format!("Reversal of {number}: {}", entry.text), postings)?;
        self.entries.push(reversal);
        Ok(&self.entries[self.entries.len() - 1])
    }

    /// Pairs of entries that look like the same payment written twice, as numbers from 1.
    pub fn duplicates(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (i, first) in self.entries.iter().enumerate() {
            for (j, second) in self.entries.iter().enumerate() {
                if i < j && first.date == second.date && first.postings == second.postings {
                    found.push((i + 1, j + 1));
                }
            }
        }
        found
    }
}
