//! Codex's own file about a thread: `CODEX_HOME/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl`.
//!
//! It grows while the agent works. Read from it are: what was counted after each answer, which model gave it, which
//! kind of error ended a turn, how much of the limits of the account is used, and when a used-up one is full again. Its
//! format is up to codex: a line that is not understood says nothing.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sage_core::port::{Allowance, Usage};
use sage_core::price::{Bill, Of, PriceTable};
use serde::Deserialize;
use serde_json::Value;

use super::PROVIDER;
use super::usage::Counts;
use crate::lines::Lines;

/// How much of the end of a file is read when it is opened: the last answer's line is in it.
const TAIL_BYTES: u64 = 1024 * 1024;
/// Lines about what was counted are short; those that are not hold the output of tools.
const LINE_BYTES: usize = 64 * 1024;
/// Most that is searched for a system prompt.
const SEARCHED_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug)]
pub struct Rollout {
    file: Option<File>,
    place: Option<(PathBuf, String)>,
    lines: Lines,
    seen: Seen,
}

/// One answer of the model.
#[derive(Debug)]
struct Answer {
    /// All of the thread after it.
    total: Counts,
    own: Counts,
    model: Option<String>,
}

#[derive(Debug, Default)]
struct Seen {
    answers: Vec<Answer>,
    model: Option<String>,
    /// All of the thread and the last answer alone, as told when an answer is there.
    answered: Option<(Counts, Counts)>,
    /// The same, told when its tools have run; a thread that was killed before has forgotten that answer.
    counted: Option<(Counts, Counts)>,
    /// Of the turn that ended last.
    error: Option<Value>,
    limits: Option<Value>,
    /// They were told since somebody last asked for them.
    new_limits: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
enum Line {
    TokenUsageRecord {
        usage: Counts,
        thread_token_usage: Counts,
    },
    EventMsg(Told),
    TurnContext {
        model: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told {
    TokenCount {
        info: Option<Info>,
        rate_limits: Option<Value>,
    },
    TaskStarted,
    TaskComplete {
        error: Option<Value>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Info {
    total_token_usage: Counts,
    last_token_usage: Counts,
}

impl Rollout {
    /// Nothing is known until somebody tells the thread.
    pub fn nowhere() -> Rollout {
        Rollout { file: None, place: None, lines: Lines::new(LINE_BYTES), seen: Seen::default() }
    }

    pub fn of(home: &Path, thread: &str) -> Rollout {
        let place = Some((home.to_path_buf(), thread.to_string()));
        let mut rollout = Rollout { place, ..Rollout::nowhere() };
        rollout.catch_up();
        rollout
    }

    /// From its beginning: a thread that nobody watches any more.
    pub fn whole(home: &Path, thread: &str) -> Rollout {
        let mut rollout = Rollout::nowhere();
        rollout.file = find(home, thread).and_then(|path| File::open(path).ok());
        rollout.catch_up();
        rollout
    }

    /// Reads what is new. Errors are passed over: then nothing is new.
    pub fn catch_up(&mut self) {
        if self.file.is_none() {
            self.open();
        }
        let Some(file) = &mut self.file else { return };
        let mut new = Vec::new();
        if file.read_to_end(&mut new).is_ok() {
            let seen = &mut self.seen;
            self.lines.push(&new, &mut |line| seen.take(line));
        }
    }

    fn open(&mut self) {
        let found = self.place.as_ref().and_then(|(home, thread)| find(home, thread));
        let Some(mut file) = found.and_then(|path| File::open(path).ok()) else { return };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        // A line that is cut there is not understood, and that is all.
        if file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).is_ok() {
            self.file = Some(file);
        }
    }

    /// All that the thread has used so far.
    pub fn total(&self) -> Option<Usage> {
        Some(self.seen.counts()?.0.classes())
    }

    /// The model of the thread's last turn.
    pub fn model(&self) -> Option<&str> {
        self.seen.model.as_deref()
    }

    /// What `usage` costs, the part of the thread that came after `before`: answer by answer as far as they are known.
    pub fn priced(
        &self,
        usage: Usage,
        before: Option<&Usage>,
        model: Option<&str>,
        prices: &PriceTable,
    ) -> Usage {
        let counted = before.map_or(0, Usage::total);
        let new = self.seen.answers.iter().filter(|answer| answer.total.classes().total() > counted);
        let (mut bill, mut told) = (Bill::default(), Usage::default());
        for answer in new {
            let own = answer.own.classes();
            let model = answer.model.as_deref().or(model);
            bill.add(prices, model, Some(PROVIDER), &own, Of::Request { cache_write_1h: 0 });
            told.add(&own);
        }
        let rest = usage.tokens_beyond(&told);
        if rest.total() > 0 || usage.total() == 0 {
            bill.add(prices, self.model().or(model), Some(PROVIDER), &rest, Of::Several);
        }
        bill.onto(usage)
    }

    pub fn context_tokens(&self) -> Option<u64> {
        Some(self.seen.counts()?.1.context())
    }

    /// `codex_error_info` of the last turn.
    pub fn error(&self) -> Option<&Value> {
        self.seen.error.as_ref()
    }

    /// How much of the account's limits is used, if that was told since the last call.
    pub fn new_allowances(&mut self) -> Vec<Allowance> {
        let limits = self.seen.limits.as_ref().filter(|_| std::mem::take(&mut self.seen.new_limits));
        let windows =
            limits.into_iter().flat_map(|limits| ["primary", "secondary"].map(|name| &limits[name]));
        windows.filter_map(allowance).collect()
    }

    /// When the windows that are used up are open again, in ms since the epoch.
    pub fn reset_at_ms(&self) -> Option<u64> {
        let limits = self.seen.limits.as_ref()?;
        let windows = ["primary", "secondary"].map(|name| &limits[name]);
        let full =
            windows.iter().filter(|window| window["used_percent"].as_f64().is_some_and(|used| used >= 100.0));
        let resets = full.filter_map(|window| window["resets_at"].as_u64());
        resets.max().map(|seconds| seconds.saturating_mul(1_000))
    }
}

impl Seen {
    fn counts(&self) -> Option<(Counts, Counts)> {
        self.answered.or(self.counted)
    }

    fn answer(&mut self, total: Counts, own: Counts) {
        if self.answers.last().is_none_or(|last| last.total != total) {
            self.answers.push(Answer { total, own, model: self.model.clone() });
        }
    }

    fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(Line::TurnContext { model }) => self.model = model.or(self.model.take()),
            Ok(Line::TokenUsageRecord { usage, thread_token_usage }) => {
                self.answered = Some((thread_token_usage, usage));
                self.answer(thread_token_usage, usage);
            }
            Ok(Line::EventMsg(Told::TokenCount { info, rate_limits })) => {
                let counts = info.map(|info| (info.total_token_usage, info.last_token_usage));
                // Told again after each record, where there are any.
                if let Some((total, own)) = counts.filter(|_| self.answered.is_none()) {
                    self.answer(total, own);
                }
                self.counted = counts.or(self.counted.take());
                self.new_limits |= rate_limits.is_some();
                self.limits = rate_limits.or(self.limits.take());
            }
            Ok(Line::EventMsg(Told::TaskStarted)) => self.error = None,
            Ok(Line::EventMsg(Told::TaskComplete { error })) => {
                let kind = |mut error: Value| error.get_mut("codex_error_info").map(Value::take);
                self.error = error.and_then(kind);
            }
            Ok(Line::EventMsg(Told::Other) | Line::Other) | Err(_) => {}
        }
    }
}

fn allowance(window: &Value) -> Option<Allowance> {
    let minutes = window["window_minutes"].as_u64()?;
    let used = window["used_percent"].as_f64().filter(|used| (0.0..=1_000.0).contains(used))?;
    let name = match minutes {
        _ if minutes == 0 => return None,
        _ if minutes.is_multiple_of(1_440) => format!("{}-day", minutes / 1_440),
        _ if minutes.is_multiple_of(60) => format!("{}-hour", minutes / 60),
        _ => format!("{minutes}-minute"),
    };
    let reset_at_ms = window["resets_at"].as_u64().map(|seconds| seconds.saturating_mul(1_000));
    Some(Allowance { window: name, used_percent: used.round() as u32, reset_at_ms, warning: false })
}

/// The thread's file; newest days are looked at first.
pub fn find(home: &Path, thread: &str) -> Option<PathBuf> {
    if thread.is_empty() {
        return None;
    }
    let mut days = vec![home.join("sessions")];
    // Years, months, days.
    for _ in 0..3 {
        days = days.iter().flat_map(|folder| newest_first(folder)).collect();
    }
    let names_thread = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("rollout-") && name.contains(thread)
    };
    days.iter().find_map(|day| newest_first(day).into_iter().find(names_thread))
}

fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

/// Whether a text was told to the thread.
pub fn mentions(home: &Path, thread: &str, text: &str) -> bool {
    let quoted = Value::from(text).to_string();
    let Some(file) = find(home, thread).and_then(|path| File::open(path).ok()) else { return false };
    let mut content = Vec::new();
    let read = file.take(SEARCHED_BYTES).read_to_end(&mut content);
    read.is_ok() && String::from_utf8_lossy(&content).contains(quoted.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    const THREAD: &str = "01a1e292-a372-71b2-8c7b-5c3e26aa4d28";

    fn thread_file(home: &Path) -> File {
        let day = home.join("sessions/2026/11/16");
        std::fs::create_dir_all(&day).unwrap();
        let path = day.join(format!("rollout-2026-11-16T04-17-03-{THREAD}.jsonl"));
        File::options().create(true).append(true).open(path).unwrap()
    }

    fn counts(n: u64) -> Value {
        json!({"input_tokens": n, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
            "output_tokens": 1, "reasoning_output_tokens": 0, "total_tokens": n + 1})
    }

    /// The two lines about an answer.
    fn answer(file: &mut File, total: u64, last: u64) {
        let usage = json!({"response_id": "r", "usage": counts(last), "thread_token_usage": counts(total)});
        writeln!(file, "{}", json!({"timestamp": "t", "type": "token_usage_record", "payload": usage}))
            .unwrap();
    }

    fn count(file: &mut File, total: u64, last: u64) {
        let full = json!({"used_percent": 100.0, "window_minutes": 300, "resets_at": 7});
        let week = json!({"used_percent": 12.4, "window_minutes": 10_080, "resets_at": 9});
        let limits = json!({"primary": full, "secondary": week});
        let info = json!({"total_token_usage": counts(total), "last_token_usage": counts(last)});
        let told = json!({"type": "token_count", "info": info, "rate_limits": limits});
        writeln!(file, "{}", json!({"timestamp": "t", "type": "event_msg", "payload": told})).unwrap();
    }

    // covers: R18
    #[test]
    fn what_codex_counts_is_seen_as_it_grows() {
        let home = tempfile::tempdir().unwrap();
        let mut rollout = Rollout::of(home.path(), THREAD);
        assert_eq!((rollout.total(), rollout.context_tokens()), (None, None));
        let mut file = thread_file(home.path());
        count(&mut file, 100, 100);
        writeln!(file, "not json").unwrap();
        rollout.catch_up();
        assert_eq!(rollout.total().unwrap().total(), 101);
        answer(&mut file, 300, 200);
        // Killed before its tools had run, codex forgets that answer itself.
        count(&mut file, 150, 50);
        write!(file, "{{\"torn\":").unwrap();
        rollout.catch_up();
        assert_eq!((rollout.total().unwrap().total(), rollout.context_tokens()), (301, Some(201)));
        assert_eq!(rollout.reset_at_ms(), Some(7_000));
        let told = rollout.new_allowances();
        let of = |it: &Allowance| (it.window.clone(), it.used_percent, it.reset_at_ms);
        let expected = [("5-hour".to_string(), 100, Some(7_000)), ("7-day".to_string(), 12, Some(9_000))];
        assert_eq!(told.iter().map(of).collect::<Vec<_>>(), expected);
        assert!(rollout.new_allowances().is_empty(), "told once");
        assert_eq!(Rollout::of(home.path(), THREAD).total(), rollout.total());
        assert!(find(home.path(), "01a1e292-a372-71b2-8c7b-5c3e26aa4d29").is_none());
        assert!(find(home.path(), "").is_none());
    }

    #[test]
    fn the_kind_of_error_is_that_of_the_last_turn() {
        let home = tempfile::tempdir().unwrap();
        let mut file = thread_file(home.path());
        let line = |payload: Value| json!({"type": "event_msg", "payload": payload}).to_string();
        let error = json!({"message": "m", "codex_error_info": "usage_limit_exceeded"});
        writeln!(file, "{}", line(json!({"type": "task_complete", "error": error}))).unwrap();
        let mut rollout = Rollout::of(home.path(), THREAD);
        assert_eq!(rollout.error(), Some(&json!("usage_limit_exceeded")));
        writeln!(file, "{}", line(json!({"type": "task_started", "turn_id": "x"}))).unwrap();
        rollout.catch_up();
        assert_eq!(rollout.error(), None);
        for odd in [json!("text"), json!([1]), json!(7), json!({"message": "m"}), json!({})] {
            writeln!(file, "{}", line(json!({"type": "task_complete", "error": odd}))).unwrap();
            rollout.catch_up();
            assert_eq!(rollout.error(), None, "{odd}");
        }
    }

    #[test]
    fn a_system_prompt_that_was_told_is_found_in_whatever_letters() {
        let home = tempfile::tempdir().unwrap();
        let mut file = thread_file(home.path());
        writeln!(file, "{}", json!({"payload": {"text": "<x>be \"brief\"\nand kind ä</x>"}})).unwrap();
        assert!(mentions(home.path(), THREAD, "be \"brief\"\nand kind ä"));
        assert!(!mentions(home.path(), THREAD, "be long"));
    }
}
