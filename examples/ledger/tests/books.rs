//! The program as a person uses it, on a copy of the books.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const BOOKS: &str = include_str!("../data/household.ledger");

struct Books(PathBuf);

impl Books {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.ledger"));
        fs::write(&path, BOOKS).unwrap();
        Books(path)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ledger"));
        command.arg(&self.0).args(arguments).output().unwrap()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn stderr(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The last number of the line that begins with `name`.
fn number(table: &str, name: &str) -> String {
    let line = table.lines().find(|line| line.starts_with(name)).expect("a line of that name");
    line.split_whitespace().last().unwrap().to_owned()
}

#[test]
fn the_sample_books_balance() {
    let table = Books::new("balance").stdout(&["balance"]);
    assert_eq!(number(&table, "expenses:food"), "103.80");
    assert_eq!(number(&table, "sum"), "0.00");
}

#[test]
fn totals_are_by_kind() {
    let table = Books::new("totals").stdout(&["totals"]);
    assert_eq!(number(&table, "income"), "-2350.00");
    assert_eq!(number(&table, "expenses"), "1111.25");
}

#[test]
fn an_entry_is_added_and_undone() {
    let books = Books::new("add");
    books.stdout(&["add", "2025-02-01", "Bakery", "assets:cash", "expenses:food", "3.20"]);
    assert_eq!(number(&books.stdout(&["balance"]), "expenses:food"), "107.00");
    let opposite = books.stdout(&["reverse", "9", "2025-02-02"]);
    assert!(opposite.starts_with("2025-02-02 Reversal of 9: Bakery\n"), "{opposite}");
    assert_eq!(number(&books.stdout(&["balance"]), "expenses:food"), "103.80");
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let books = Books::new("refused");
    let error = books.stderr(&["add", "2025-02-01", "Bakery", "cash", "expenses:food", "3.20"]);
    assert_eq!(error, "`cash` is no account (such as assets:cash)\n");
    assert_eq!(books.stderr(&["reverse", "99", "2025-02-02"]), "there is no entry 99\n");
    assert!(books.stderr(&["dance"]).starts_with("usage: ledger FILE COMMAND"));
    assert_eq!(fs::read_to_string(&books.0).unwrap(), BOOKS);
}
