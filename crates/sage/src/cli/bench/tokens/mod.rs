//! `sage bench tokens`: what the same question costs with all definitions in every request, with tool search, and in
//! code mode.
//!
//! ```text
//!  frozen definitions and results -> chain -> ways (naive | tool search | code mode -> sandbox) -> talk -> table
//! ```
//! Definitions and results are recorded from real servers, tokens are counted by a real tokenizer, and the code
//! really runs. What is modelled is the model: what it writes is fixed. The answers of all ways must be equal.

mod chain;
mod frozen;
mod sandbox;
mod scan;
mod table;
mod talk;
mod ways;

use serde_json::Value;

use super::Figure;
use crate::cli::failure::Failure;
use chain::Chain;
use frozen::Frozen;
use sandbox::{Isolated, Sandbox};
use scan::BreakEven;
use table::Row;
use talk::Spent;
use ways::{Played, Stage, Way};

type Tell<'a> = &'a mut dyn FnMut(Figure) -> Result<(), Failure>;

const SIZES: [usize; 3] = [10, 50, 200];
/// Tools of the case in which code mode loses.
const FEW: usize = 3;

pub fn measure(json: bool, tell: Tell) -> Result<(), Failure> {
    let frozen = Frozen::read()?;
    let sandbox = Isolated::new(&frozen)?;
    let chain = chain::reference(&frozen)?;
    let mut answers = Vec::new();
    let mut rows = Vec::new();
    for size in SIZES {
        rows.extend(sized(&frozen, &sandbox, &chain, size, &mut answers)?);
    }
    let tiny = chain::tiny(&frozen)?;
    let mut lost = Vec::new();
    let losing = sized(&frozen, &sandbox, &tiny, FEW, &mut lost)?;
    table::tell(&frozen, "the reference chain", &rows, json)?;
    table::tell(&frozen, "one tiny call: code mode loses", &losing, json)?;
    retained(&answers, tell)?;
    retained(&lost, tell)?;
    savings(&rows, tell)?;
    limits(&frozen, &sandbox, &losing, tell)
}

/// All ways at one size, with and without the failed try.
fn sized(
    frozen: &Frozen,
    sandbox: &dyn Sandbox,
    chain: &Chain,
    tools: usize,
    answers: &mut Vec<Value>,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for way in Way::ALL {
        let play = |retry| Stage { chain, set: frozen.set(tools), sandbox, retry }.play(way);
        let (clean, whole): (Played, Played) = (play(false)?, play(true)?);
        answers.extend([clean.answer, whole.answer]);
        rows.push(Row { tools, way, clean: clean.spent, whole: whole.spent });
    }
    Ok(rows)
}

/// Fewer tokens are worth nothing if the answer went with them.
fn retained(answers: &[Value], tell: Tell) -> Result<(), Failure> {
    let first = answers.first().unwrap_or(&Value::Null);
    let equal = answers.iter().filter(|answer| *answer == first).count();
    let share = equal as f64 / answers.len().max(1) as f64;
    let text = format!("{equal} of {} conversations end with {first}", answers.len());
    tell(Figure::new("answer retained", share, text).at_least(1.0))
}

fn savings(rows: &[Row], tell: Tell) -> Result<(), Failure> {
    let names = [
        ["less than naive, 10 tools", "less than search, 10 tools"],
        ["less than naive, 50 tools", "less than search, 50 tools"],
        ["less than naive, 200 tools", "less than search, 200 tools"],
    ];
    for (size, [naive, tool_search]) in SIZES.into_iter().zip(names) {
        let total = |way| spent(rows, size, way).total();
        let code = total(Way::CodeMode);
        let mut figure = |name, other: u64, goal| {
            let less = percent_less(code, other);
            let figure = Figure::new(name, less, format!("{less:.1} % ({code} instead of {other} tokens)"));
            tell(if size == 200 || goal < 90.0 { figure.at_least(goal) } else { figure })
        };
        figure(naive, total(Way::Naive), 90.0)?;
        figure(tool_search, total(Way::ToolSearch), 40.0)?;
    }
    Ok(())
}

/// Where code mode loses, and the proof of it.
fn limits(frozen: &Frozen, sandbox: &dyn Sandbox, losing: &[Row], tell: Tell) -> Result<(), Failure> {
    let most = SIZES[2];
    let tools = scan::by_tools(frozen, sandbox, most)?;
    let text = told(tools, "tools", &format!("one call with a short result, up to {most} tools"));
    tell(Figure::new("break-even by tools", tools.naive.unwrap_or(most) as f64, text))?;
    let result = scan::by_result(frozen, sandbox, FEW)?;
    let text = told(result, "tokens", &format!("one call, {FEW} tools, by the size of its result"));
    tell(Figure::new("break-even by result", result.naive.unwrap_or_default() as f64, text))?;
    let [naive, code] = [Way::Naive, Way::CodeMode].map(|way| spent(losing, FEW, way).total());
    let times = code as f64 / naive.max(1) as f64;
    let text =
        format!("{times:.1} x naive for one tiny call with {FEW} tools ({code} against {naive} tokens)");
    tell(Figure::new("a losing case", times, text))
}

fn told(found: BreakEven, unit: &str, what: &str) -> String {
    let from = |size: Option<usize>| size.map_or("never".into(), |size| format!("from {size} {unit} on"));
    format!("{what}: cheaper than naive {}, than tool search {}", from(found.naive), from(found.tool_search))
}

fn spent(rows: &[Row], tools: usize, way: Way) -> Spent {
    let row = rows.iter().find(|row| row.tools == tools && row.way == way);
    row.map(|row| row.whole).unwrap_or_default()
}

pub(super) fn percent_less(ours: u64, other: u64) -> f64 {
    100.0 * (1.0 - ours as f64 / other.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::sandbox::Ran;
    use super::*;

    /// Gives an answer in which one number is wrong.
    struct Forgetful;

    impl Sandbox for Forgetful {
        fn run(&self, code: &str) -> Ran {
            let fails = code.contains("{ gitLog, show }");
            let value = json!({"code": "E4127", "failures": 30});
            Ran { told: value.to_string(), value: (!fails).then_some(value) }
        }
    }

    // covers: R19
    #[test]
    fn an_answer_that_got_lost_is_a_missed_goal() {
        let frozen = Frozen::read().unwrap();
        let chain = chain::reference(&frozen).unwrap();
        let mut answers = Vec::new();
        sized(&frozen, &Forgetful, &chain, 10, &mut answers).unwrap();
        assert_eq!(answers[0], answers[3], "without code the answer is in what was read");
        assert_eq!(answers[0]["cents"], 3_937_151);
        let mut met = Vec::new();
        let mut tell = |figure: Figure| {
            met.push(figure.met());
            Ok(())
        };
        retained(&answers[..4], &mut tell).unwrap();
        retained(&answers, &mut tell).unwrap();
        assert_eq!(met, [Some(true), Some(false)]);
    }
}
