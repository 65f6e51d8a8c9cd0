//! `find`: it looks, unless an action runs a program, removes or writes files.

use super::{Does, Effect};
use crate::shell::Word;

const ACTIONS: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
    "-files0-from",
];

pub fn effect(args: &[Word]) -> Effect {
    if let Some(action) = args.iter().find(|word| ACTIONS.contains(&word.text.as_str())) {
        return Effect::unknown(format!("`find {}` may do more than look", action.text));
    }
    if let Some(word) = args.iter().find(|word| word.leading_pattern) {
        return Effect::unknown(format!(
            "a file name that `{}` matches could be read as an action",
            word.text
        ));
    }
    // Options that come before the places to look at.
    let before =
        |word: &&Word| ["-L", "-P", "-H", "-E", "-X", "-x", "-s", "-d"].contains(&word.text.as_str());
    let expression = |word: &&Word| !word.text.starts_with(['-', '(', ')', '!', ',']);
    let places: Vec<&Word> = args.iter().skip_while(before).take_while(expression).collect();
    // What tests compare with is looked at, not read.
    Effect::new(Does::Looks).reading(places)
}
