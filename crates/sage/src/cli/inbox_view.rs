//! What `sage inbox` shows.

use sage_engine::inbox::{Handled, Inbox, Letter, Pressure};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::inbox::dead_json;
use super::inquire;
use super::questions::{self, Question};
use super::{print, print_json};
use crate::command_line;
use crate::display::text::{clean, first_line, shorten};

/// Newest handled wakes that are shown.
const HANDLED: usize = 50;
const SUMMARY_COLUMNS: usize = 70;

/// What waits, as programs see it; with `all` also what was handled last.
pub fn json(context: &Context, inbox: &Inbox, all: bool) -> std::io::Result<Value> {
    let dead: Vec<Value> = inbox.dead()?.iter().map(dead_json).collect();
    let waiting: Vec<Value> = inbox.unhandled()?.iter().map(letter_json).collect();
    let questions = questions::all(&context.engine());
    let mut shown = json!({"type": "inbox", "questions": questions, "wakes": waiting, "dead": dead});
    if all {
        shown["handled"] = last_handled(inbox)?.iter().map(handled_json).collect();
    }
    Ok(shown)
}

fn last_handled(inbox: &Inbox) -> std::io::Result<Vec<Handled>> {
    let mut handled = inbox.handled()?;
    handled.drain(..handled.len().saturating_sub(HANDLED));
    Ok(handled)
}

pub fn show(context: &Context, inbox: &Inbox, all: bool, json: bool) -> Result<(), Failure> {
    let failed = |error| Failure::failed(format!("cannot read `{}`: {error}", inbox.dir().display()));
    if json {
        return print_json(&self::json(context, inbox, all).map_err(failed)?);
    }
    let questions = questions::all(&context.engine());
    let (waiting, dead) = (inbox.unhandled().map_err(failed)?, inbox.dead().map_err(failed)?);
    let handled = if all { last_handled(inbox).map_err(failed)? } else { Vec::new() };
    let empty = questions.is_empty() && waiting.is_empty() && dead.is_empty();
    tell_questions(&questions, context.config.approvals.allows_by_default());
    table("WAKE", waiting.iter().map(letter_row).collect());
    let reason = |text: &str| shorten(&clean(first_line(text)), SUMMARY_COLUMNS);
    table(
        "DEAD",
        dead.iter()
            .map(|letter| {
                [clean(&letter.id), format!("{} tries", letter.reason.tries), reason(&letter.reason.reason)]
            })
            .collect(),
    );
    table("HANDLED", handled.iter().map(handled_row).collect());
    if empty {
        eprintln!("nothing waits");
    }
    if !dead.is_empty() {
        command_line::tell("sage inbox show ID    # then sage inbox retry ID");
    }
    match inbox.pressure() {
        Pressure::Full(count) => {
            eprintln!("warning: {count} wakes are unhandled: no new agent starts");
            command_line::tell("sage inbox handle");
        }
        Pressure::Warn(count) => {
            eprintln!("note: {count} wakes are unhandled");
            command_line::tell("sage inbox handle");
        }
        Pressure::Calm(_) => {}
    }
    Ok(())
}

fn tell_questions(questions: &[Question], allows: bool) {
    for question in questions {
        let until = question.deadline.as_ref().map_or(String::new(), |deadline| {
            format!("  (until {deadline}, then: {})", clean(at_deadline(question, allows)))
        });
        print(format_args!(
            "{} {}: {}{until}\n",
            question.feature,
            question.step,
            clean(&question.headline())
        ));
        let asked = question.inquiry().map(|inquiry| inquire::lines(&inquiry)).unwrap_or_default();
        asked.iter().for_each(|line| print(format_args!("{line}\n")));
        let notes = [("asked because", &question.why), ("a rule for sage.toml:", &question.rule)];
        for (what, text) in notes.iter().filter_map(|(what, text)| Some((what, text.as_ref()?))) {
            print(format_args!("  {what} {}\n", clean(text)));
        }
        question.commands.iter().for_each(|command| print(format_args!("  {}\n", clean(command))));
    }
}

/// What happens if nobody answers. `allows`: agents are then allowed what they asked for.
fn at_deadline(question: &Question, allows: bool) -> &str {
    match (question.default.as_deref(), question.kind) {
        (Some(default), _) => default,
        (None, "permission" | "plan") if allows => "allowed",
        (None, "permission" | "plan") => "denied",
        (None, _) => "rejected",
    }
}

/// Three columns and what they are about.
fn table(title: &str, rows: Vec<[String; 3]>) {
    if rows.is_empty() {
        return;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0).max(title.len()), width(1));
    print(format_args!("{title}\n"));
    for [id, state, text] in &rows {
        print(format_args!("{}\n", format!("{id:first$}  {state:second$}  {text}").trim_end()));
    }
}

fn letter_row(letter: &Letter) -> [String; 3] {
    let state = match &letter.wake {
        Ok(wake) if letter.tries > 0 => format!("{}, {} of 5 tries", wake.kind.name(), letter.tries),
        Ok(wake) => wake.kind.name().to_string(),
        Err(_) => "unreadable".to_string(),
    };
    let text = match &letter.wake {
        Ok(wake) => format!("{}: {}", wake.session_id, first_line(&wake.summary)),
        Err(why) => why.clone(),
    };
    [clean(&letter.id), state, shorten(&clean(&text), SUMMARY_COLUMNS)]
}

fn handled_row(handled: &Handled) -> [String; 3] {
    let wake = handled.wake.as_ref();
    let text =
        wake.map_or(String::new(), |wake| format!("{}: {}", wake.session_id, first_line(&wake.summary)));
    let kind = wake.map_or("", |wake| wake.kind.name()).to_string();
    [clean(&handled.wake_id), kind, shorten(&clean(&text), SUMMARY_COLUMNS)]
}

fn letter_json(letter: &Letter) -> Value {
    json!({
        "wakeId": letter.id, "state": letter.place.name(), "tries": letter.tries, "file": letter.path,
        "wake": letter.wake.as_ref().ok(), "unreadable": letter.wake.as_ref().err(),
    })
}

fn handled_json(handled: &Handled) -> Value {
    json!({"wakeId": handled.wake_id, "at": handled.at, "wake": handled.wake})
}
