//! The command line: `ledger FILE COMMAND`. Data goes to stdout, everything else to stderr.

use std::fs;
use std::process::ExitCode;

use ledger::account::Account;
use ledger::journal::{Date, Entry, Journal, Posting};
use ledger::money::Amount;
use ledger::{Error, parse, report};

const USAGE: &str = "\
usage: ledger FILE COMMAND
  balance                           the balance of each account
  totals                            the sum of each kind of account
  register ACCOUNT                  the postings of an account
  duplicates                        entries that may be there twice
  add DATE TEXT FROM TO AMOUNT      write an entry
  reverse NUMBER DATE               undo an entry by its opposite
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(output) => {
            print!("{output}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<String, String> {
    let [path, command, rest @ ..] = arguments else {
        return Err(USAGE.to_owned());
    };
    let mut journal = read(path)?;
    let plain = |error: Error| error.to_string();
    match (*command, rest) {
        ("balance", []) => report::balance_table(&journal).map_err(plain),
        ("totals", []) => {
            let totals = report::totals(&journal).map_err(plain)?;
            Ok(totals
                .iter()
                .map(|(kind, sum)| format!("{:<28} {sum:>14}\n", kind.name()))
                .collect())
        }
        ("register", [account]) => report::register(&journal, account).map_err(plain),
        ("duplicates", []) => {
            let pairs = journal.duplicates();
            Ok(pairs.iter().map(|(first, second)| format!("{first} {second}\n")).collect())
        }
        ("add", [date, text, from, to, amount]) => {
            let entry = transfer(date, text, from, to, amount).map_err(plain)?;
            append(path, &entry)?;
            Ok(entry.to_string())
        }
        ("reverse", [number, date]) => {
            let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
            let date: Date = date.parse().map_err(plain)?;
            let entry = journal.reverse(number, date).map_err(plain)?;
            append(path, entry)?;
            Ok(entry.to_string())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn read(path: &str) -> Result<Journal, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    parse::parse(&text).map_err(|error| format!("{path}: {error}"))
}

/// Money goes from one account to another.
// TODO: payment processing. An entry says that money moved; nothing here moves it.
fn transfer(date: &str, text: &str, from: &str, to: &str, amount: &str) -> Result<Entry, Error> {
    let amount: Amount = amount.parse()?;
    let to = Posting { account: to.parse::<Account>()?, amount };
    let from = Posting { account: from.parse::<Account>()?, amount: amount.negated()? };
    // FIXME: a text with `#` or a line break is written as it is, and read back as something else.
    Entry::new(date.parse()?, text, vec![to, from])
}

/// Add an entry at the end of the file, and keep the file as it was beside it.
fn append(path: &str, entry: &Entry) -> Result<(), String> {
    let _ = fs::copy(path, format!("{path}.bak"));
    let mut text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("\n{entry}"));
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
