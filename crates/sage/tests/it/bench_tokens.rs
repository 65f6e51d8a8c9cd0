//! `sage bench tokens`: the goals hold, every token is accounted for, and where code mode loses is told.

use serde_json::Value;

use crate::dsl::Sage;

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn figure<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    of_type(lines, "figure").into_iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

// covers: R19, R21
#[test]
fn code_mode_saves_what_is_asked_for_and_keeps_the_answer() {
    let sage = Sage::bare();
    let before = sage.listing();
    let told = sage.sage("bench tokens --json").exit(0);
    assert_eq!(sage.listing(), before, "a bench leaves nothing behind");
    let lines: Vec<Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = of_type(&lines, "tokens");
    assert_eq!(rows.len(), 12, "three ways at three sizes, and one losing case");
    for row in &rows {
        let total = number(row, "total");
        let parts = ["definitions", "question", "results", "written", "retries"];
        assert_eq!(parts.iter().map(|part| number(row, part)).sum::<u64>(), total, "{row}");
        let classes = ["input", "cacheRead", "output"];
        assert_eq!(classes.iter().map(|class| number(row, class)).sum::<u64>(), total, "{row}");
        let reference = row["case"] == "the reference chain";
        assert_eq!(number(row, "retries") > 0, reference, "{row}");
        assert!(row["costUsd"].as_f64().unwrap() > 0.0, "{row}");
        if reference && row["way"] == "code mode" {
            assert!(row["percentLessThanNaive"].as_f64().unwrap() >= 60.0, "{row}");
            assert!(row["percentLessThanToolSearch"].as_f64().unwrap() >= 40.0, "{row}");
        }
    }
    assert!(figure(&lines, "less than naive, 200 tools")["value"].as_f64().unwrap() >= 90.0);
    let kept = of_type(&lines, "figure").into_iter().filter(|it| it["name"] == "answer retained");
    assert!(kept.into_iter().all(|it| it["value"] == 1.0 && it["met"] == true));
    assert!(figure(&lines, "answer retained")["text"].as_str().unwrap().contains("3937151"));
    assert!(figure(&lines, "a losing case")["value"].as_f64().unwrap() > 1.0);
    for name in ["break-even by tools", "break-even by result"] {
        let value = figure(&lines, name)["value"].as_f64().unwrap();
        assert!((1.0..5_000.0).contains(&value), "{name}: {value}");
    }
    assert_eq!(lines.last().unwrap()["type"], "summary");
}
