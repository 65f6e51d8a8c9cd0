//! Statements for a database that are put together from parts.

use super::super::facts::FileFacts;
use super::super::issue::{Issue, Severity};
use super::at;
use super::calls::is_built;

const WHY: &str = "What is put into the text becomes part of the statement: pass values as parameters.";

pub(super) fn issues(file: &FileFacts) -> Vec<Issue> {
    let mut lines = Vec::new();
    for call in file.calls.iter().filter(|call| !call.in_test) {
        let runs = [
            "execute",
            "executemany",
            "query",
            "raw",
            "exec",
            "executeQuery",
            "executeUpdate",
            "prepareStatement",
            "createQuery",
            "createNativeQuery",
            "Query",
            "QueryRow",
            "Exec",
            "QueryContext",
            "ExecContext",
            "sql_query",
            "fetch_all",
            "$queryRawUnsafe",
        ];
        let arguments = file.slice(call.arguments);
        if runs.contains(&file.slice(call.name)) && is_statement(arguments) && is_open(arguments) {
            lines.push((call.line as usize, 0.8));
        }
    }
    for assign in file.assigns.iter().filter(|assign| !assign.in_test) {
        let value = file.slice(assign.value);
        let name = file.slice(assign.name).to_lowercase();
        let named = ["sql", "query", "stmt", "statement"].iter().any(|part| name.contains(part));
        if named && value.len() < 2000 && is_statement(value) && is_open(value) {
            lines.push((assign.line as usize, 0.6));
        }
    }
    lines.sort_by_key(|(line, _)| *line);
    lines.dedup_by_key(|(line, _)| *line);
    lines
        .into_iter()
        .map(|(line, sure)| at(file, line, "SQL built from parts", WHY, Severity::High, sure))
        .collect()
}

fn is_statement(text: &str) -> bool {
    let lower = text.to_lowercase();
    let pairs = [
        ("select ", " from "),
        ("insert ", "into "),
        ("update ", " set "),
        ("delete ", "from "),
        ("drop ", "table "),
    ];
    pairs.iter().any(|(first, then)| {
        lower.match_indices(first).any(|(at, _)| {
            let starts =
                lower[..at].trim_end().ends_with(['"', '\'', '`', '(']) || lower[..at].trim().is_empty();
            starts && lower[at..].contains(then)
        })
    })
}

/// Something that is no constant of the program is put in.
fn is_open(text: &str) -> bool {
    if !is_built(text) {
        return false;
    }
    // `{TABLE}` and `${columns.join()}` of constants are the programmer's own.
    let holes: Vec<&str> = text.split(['{', '+', '%']).skip(1).collect();
    holes.is_empty()
        || holes.iter().any(|hole| {
            let name: String =
                hole.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            !name.is_empty() && !name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric())
                || hole.starts_with('}')
                || hole.starts_with('s')
        })
}
