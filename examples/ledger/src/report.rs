//! What the books say: balances, the register of an account, the sums of each kind.

use std::collections::BTreeMap;

use crate::Error;
use crate::account::{Account, Kind};
use crate::journal::Journal;
use crate::money::Amount;

const NAME_WIDTH: usize = 28;

/// The balance of every account that was used, sorted by name.
pub fn balances(journal: &Journal) -> Result<BTreeMap<Account, Amount>, Error> {
    let mut balances: BTreeMap<Account, Amount> = BTreeMap::new();
    for posting in journal.entries().iter().flat_map(|entry| &entry.postings) {
        let balance = balances.entry(posting.account.clone()).or_default();
        *balance = balance.plus(posting.amount)?;
    }
    Ok(balances)
}

/// What is there at the end of the day: the sum of each kind of account.
pub fn totals(journal: &Journal) -> Result<Vec<(Kind, Amount)>, Error> {
    let balances = balances(journal)?;
    let of_kind = |kind: Kind| {
        let fitting = balances.iter().filter(move |(account, _)| account.kind() == kind);
        Amount::sum(fitting.map(|(_, amount)| *amount))
    };
    Kind::ALL.into_iter().map(|kind| Ok((kind, of_kind(kind)?))).collect()
}

/// Names that are too long for the column are cut.
fn short(name: &str) -> &str {
    if name.len() <= NAME_WIDTH {
        return name;
    }
    &name[..NAME_WIDTH]
}

/// One line for each account, and the sum, which is zero.
pub fn balance_table(journal: &Journal) -> Result<String, Error> {
    let mut table = String::new();
    let mut sum = Amount::ZERO;
    for (account, amount) in balances(journal)? {
        if amount.is_zero() {
            continue;
        }
        sum = sum.plus(amount)?;
        let name = short(account.name());
        table.push_str(&format!("{name:<NAME_WIDTH$} {amount:>14}\n"));
    }
    table.push_str(&format!("{:-<1$}\n", "", NAME_WIDTH + 15));
    table.push_str(&format!("{:<NAME_WIDTH$} {sum:>14}\n", "sum"));
    Ok(table)
}

/// Each posting of an account and of those below it, with the balance after it.
pub fn register(journal: &Journal, account: &str) -> Result<String, Error> {
    let mut table = String::new();
    let mut balance = Amount::ZERO;
    for entry in journal.entries() {
        for posting in entry.postings.iter().filter(|p| p.account.is_under(account)) {
            balance = balance.plus(posting.amount)?;
            let text = short(&entry.text);
            let (date, amount) = (entry.date, posting.amount);
            table.push_str(&format!("{date} {text:<NAME_WIDTH$} {amount:>14} {balance:>14}\n"));
        }
    }
    Ok(table)
}

// TODO: no report by month, and no budget to compare it with.

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    const BOOKS: &str = "\
2025-01-01 Opening
    assets:bank 1000
    equity:opening
2025-01-02 Market
    expenses:food 42.50
    assets:bank
2025-01-03 Bakery
    expenses:food:bread 3.20
    assets:bank
";

    #[test]
    fn all_balances_sum_to_zero() {
        let journal = parse(BOOKS).unwrap();
        assert_eq!(Amount::sum(balances(&journal).unwrap().into_values()), Ok(Amount::ZERO));
        let expenses = totals(&journal).unwrap()[4];
        assert_eq!(expenses, (Kind::Expenses, Amount::from_cents(4570)));
    }

    #[test]
    fn the_register_has_a_running_balance() {
        let table = register(&parse(BOOKS).unwrap(), "expenses:food").unwrap();
        let last: Vec<&str> = table.lines().map(|l| l.split_whitespace().last().unwrap()).collect();
        assert_eq!(last, ["42.50", "45.70"]);
    }

    #[test]
    #[ignore = "panics: see logs/test-output.log"]
    fn long_texts_in_any_language_are_cut() {
        let text =
            "2025-01-04 Frühstück und Brötchen für zwei\n  expenses:food 12\n  assets:bank\n";
        let table = register(&parse(text).unwrap(), "expenses").unwrap();
        assert!(table.starts_with("2025-01-04 Frühstück und Brötchen für z "), "{table}");
    }
}
