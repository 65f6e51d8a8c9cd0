//! The figures of each way and size: for people in two tables, for programs one object a line.

use sage_core::price::PriceTable;
use serde_json::json;

use super::frozen::Frozen;
use super::percent_less;
use super::talk::Spent;
use super::ways::Way;
use crate::cli::failure::Failure;
use crate::cli::table::print_table;
use crate::cli::{print, print_json};

/// Whose prices are taken.
const MODEL: &str = "claude-sonnet-5-5";

pub struct Row {
    pub tools: usize,
    pub way: Way,
    /// Without the failed try.
    pub clean: Spent,
    /// With it.
    pub whole: Spent,
}

impl Row {
    /// What the failed try cost: its call, its error, and the request more.
    fn retries(&self) -> u64 {
        self.whole.total() - self.clean.total()
    }
}

pub fn tell(frozen: &Frozen, what: &str, rows: &[Row], json: bool) -> Result<(), Failure> {
    let prices = PriceTable::built_in();
    if json {
        return rows.iter().try_for_each(|row| print_json(&object(what, rows, row, &prices)));
    }
    print(format_args!(
        "{what}, tokens by what they are (cl100k; {} tools of {} servers frozen)\n",
        frozen.tools.len(),
        frozen.servers
    ));
    let head = [
        "tools",
        "way",
        "requests",
        "definitions",
        "question",
        "results",
        "written",
        "retry",
        "total",
        "to naive",
        "to search",
    ];
    let body = rows.iter().map(|row| {
        let (clean, total) = (&row.clean, row.whole.total());
        let less = |way| {
            if row.way == way { String::new() } else { signed(percent_less(total, other(rows, row, way))) }
        };
        [
            row.tools.to_string(),
            row.way.name().into(),
            row.whole.requests.to_string(),
            clean.definitions.to_string(),
            clean.question.to_string(),
            clean.results.to_string(),
            clean.written.to_string(),
            row.retries().to_string(),
            total.to_string(),
            less(Way::Naive),
            less(Way::ToolSearch),
        ]
    });
    print_table(&std::iter::once(head.map(String::from)).chain(body).collect::<Vec<_>>());
    print(format_args!(
        "\n{what}, tokens by what they cost (USD of {MODEL}, prices of {})\n",
        prices.as_of()
    ));
    let head = ["tools", "way", "input", "cacheRead", "output", "USD", "USD without a cache"];
    let body = rows.iter().map(|row| {
        let spent = &row.whole;
        let usd = |usage| {
            prices
                .cost_micro_usd(MODEL, &usage)
                .map_or("?".into(), |micro| format!("{:.4}", micro as f64 / 1e6))
        };
        [
            row.tools.to_string(),
            row.way.name().into(),
            spent.input.to_string(),
            spent.cache_read.to_string(),
            spent.output.to_string(),
            usd(spent.cached()),
            usd(spent.uncached()),
        ]
    });
    print_table(&std::iter::once(head.map(String::from)).chain(body).collect::<Vec<_>>());
    print(format_args!("\n"));
    Ok(())
}

fn object(what: &str, rows: &[Row], row: &Row, prices: &PriceTable) -> serde_json::Value {
    let (clean, whole) = (&row.clean, &row.whole);
    let usd = |usage| prices.cost_micro_usd(MODEL, &usage).map(|micro| micro as f64 / 1e6);
    json!({
        "type": "tokens", "case": what, "tools": row.tools, "way": row.way.name(), "requests": whole.requests,
        "definitions": clean.definitions, "question": clean.question, "results": clean.results,
        "written": clean.written, "retries": row.retries(), "total": whole.total(),
        "input": whole.input, "cacheRead": whole.cache_read, "output": whole.output,
        "model": MODEL, "costUsd": usd(whole.cached()), "costUsdWithoutCache": usd(whole.uncached()),
        "percentLessThanNaive": percent_less(whole.total(), other(rows, row, Way::Naive)),
        "percentLessThanToolSearch": percent_less(whole.total(), other(rows, row, Way::ToolSearch)),
    })
}

/// The total of another way at the same size.
fn other(rows: &[Row], row: &Row, way: Way) -> u64 {
    let same = rows.iter().find(|it| it.tools == row.tools && it.way == way);
    same.map_or(0, |it| it.whole.total())
}

/// `-97.5 %` is what is saved.
fn signed(less: f64) -> String {
    format!("{:+.1} %", -less)
}
