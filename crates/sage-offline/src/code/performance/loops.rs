//! What is done again in each round of a loop.

use super::super::facts::{Assign, Call, FileFacts, MarkKind};
use super::super::issue::Severity;
use super::Slow;

const AWAITS: (&str, &str) = (
    "one await after the other in a loop",
    "Each round waits for the one before. If they do not depend on each other, start them together.",
);

pub(super) fn slow(file: &FileFacts) -> Vec<Slow> {
    let mut found = marks(file);
    let calls = file.calls.iter().filter(|call| call.loops > 0 && !call.in_test);
    found.extend(calls.filter_map(|call| repeated(file, call)));
    let assigns = file.assigns.iter().filter(|assign| assign.loops > 0 && !assign.in_test);
    found.extend(assigns.filter_map(|assign| concatenated(file, assign)));
    found
}

fn marks(file: &FileFacts) -> Vec<Slow> {
    let told = |kind| match kind {
        MarkKind::EveryPair => Some((
            "nested loops over independent data",
            "Every item of one meets every item of the other: twice the data is four times the work. A map from key to item makes it linear.",
            Severity::Medium,
            0.5,
        )),
        MarkKind::DeepLoop => Some((
            "three loops in each other",
            "The work grows with the product of three sizes.",
            Severity::High,
            0.5,
        )),
        MarkKind::AwaitInLoop => Some((AWAITS.0, AWAITS.1, Severity::Medium, 0.45)),
        _ => None,
    };
    let mut found = Vec::new();
    for mark in file.marks.iter().filter(|mark| !mark.in_test) {
        if mark.kind == MarkKind::AwaitInLoop && !file.language.ends_with("Script") {
            // Outside of scripts, waiting in order is mostly meant.
            found.push(Slow {
                line: mark.line as usize,
                what: AWAITS.0,
                why: AWAITS.1,
                severity: Severity::Low,
                confidence: 0.35,
            });
        } else if mark.kind == MarkKind::LookupInLoop && is_list(file, mark.function, &mark.note) {
            found.push(lookup(file, mark.function, &mark.note, mark.line as usize));
        } else if let Some((what, why, severity, confidence)) = told(mark.kind) {
            found.push(Slow { line: mark.line as usize, what, why, severity, confidence });
        }
    }
    found
}

/// A list that grows in the function is as long as the data; another one may be short.
fn lookup(file: &FileFacts, function: Option<u32>, list: &str, line: usize) -> Slow {
    let grows = file.calls.iter().any(|call| {
        let adds = matches!(file.slice(call.name), "push" | "append" | "add" | "extend");
        adds && call.function == function
            && call.loops > 0
            && file.slice(call.callee).starts_with(&format!("{list}."))
    });
    Slow {
        line,
        what: "search through a list in a loop",
        why: "Each round looks through the list from its start. If it may be long, a set answers at once.",
        severity: if grows { Severity::Medium } else { Severity::Low },
        confidence: if grows { 0.75 } else { 0.45 },
    }
}

/// Calls that cost more than they look like, made again and again.
fn repeated(file: &FileFacts, call: &Call) -> Option<Slow> {
    let line = call.line as usize;
    let callee: String = file.slice(call.callee).chars().filter(|c| !c.is_whitespace()).collect();
    let name = file.slice(call.name);
    let arguments = file.slice(call.arguments);
    let slow = |what, why, severity, confidence| Some(Slow { line, what, why, severity, confidence });
    if compiles_pattern(file.language, &callee) {
        let fixed = arguments.contains(['"', '\'', '`']) && !arguments.contains(['{', '+']);
        let sure = if fixed { 0.9 } else { 0.5 };
        return slow(
            "pattern compiled in a loop",
            "Compiling costs far more than matching. Compile once, before the loop.",
            Severity::Medium,
            sure,
        );
    }
    if call.each && is_query(&callee, name) {
        return slow(
            "query in a loop",
            "One query for each item (N+1). One query for all items is usually possible.",
            Severity::High,
            0.6,
        );
    }
    if call.each && is_network(file.language, &callee) && !is_literal(arguments) {
        return slow(
            "request in a loop",
            "One request for each item, one after the other. Send them together, or ask for all at once.",
            Severity::Medium,
            0.5,
        );
    }
    let receiver = callee.rsplit_once(['.', ':']).map_or("", |(receiver, _)| receiver.trim_end_matches(':'));
    if is_sort(&callee, name) && !call.own && is_kept(file, call, receiver, arguments) {
        return slow(
            "sort in a loop",
            "The same data is sorted in each round. Sort once, after the loop, or keep it in an ordered collection.",
            Severity::Medium,
            0.5,
        );
    }
    if shifts_all(name, arguments) && !call.own {
        return slow(
            "insert or remove at the front in a loop",
            "Everything behind moves each time. A queue does this at once.",
            Severity::Medium,
            0.7,
        );
    }
    if looks_up(file.language, name) && !call.own && is_list(file, call.function, receiver) {
        return Some(lookup(file, call.function, receiver, line));
    }
    if copies_all(&callee) {
        return slow("deep copy in a loop", "Everything is copied in each round.", Severity::Medium, 0.6);
    }
    None
}

/// The same request each time is a question whether something is there yet.
fn is_literal(arguments: &str) -> bool {
    let inner = arguments.trim_matches(['(', ')']);
    inner.starts_with(['"', '\'']) && !inner.contains(['{', '+', ','])
}

fn compiles_pattern(language: &str, callee: &str) -> bool {
    match language {
        "Rust" => ["Regex::new", "RegexBuilder::new", "Glob::new", "RegexSet::new"]
            .iter()
            .any(|end| callee.ends_with(end)),
        "Python" => callee == "re.compile",
        "Go" => matches!(callee, "regexp.MustCompile" | "regexp.Compile"),
        "Java" => callee.ends_with("Pattern.compile"),
        _ => callee == "RegExp",
    }
}

fn is_query(callee: &str, name: &str) -> bool {
    let certain = [
        "executeQuery",
        "executeUpdate",
        "QueryRow",
        "QueryContext",
        "QueryRowContext",
        "ExecContext",
        "query_row",
        "fetch_one",
        "fetch_optional",
        "fetchone",
        "findOne",
        "findById",
        "findByPk",
        "findUnique",
        "findFirst",
        "find_by_id",
        "get_object_or_404",
        "findOneBy",
    ];
    let doubtful = [
        "query",
        "execute",
        "exec",
        "raw",
        "Query",
        "Exec",
        "fetch_all",
        "first",
        "filter",
        "get",
        "save",
        "insert",
        "update",
    ];
    let lower = callee.to_lowercase();
    let stores = [
        "db",
        "conn",
        "connection",
        "cursor",
        "session",
        "repo",
        "repository",
        "prisma",
        "pool",
        "tx",
        "knex",
        "objects",
        "entitymanager",
        "database",
    ];
    let receiver: Vec<&str> = lower.split(['.', ':', '(', ')']).filter(|part| !part.is_empty()).collect();
    let from_store = receiver.iter().rev().skip(1).any(|part| {
        let part = part.trim_start_matches('_');
        stores.contains(&part)
            || part.ends_with("repository")
            || part.ends_with("_repo")
            || part.ends_with("_db")
    });
    certain.contains(&name) || (doubtful.contains(&name) && from_store)
}

fn is_network(language: &str, callee: &str) -> bool {
    let starts: &[&str] = match language {
        "Python" => &[
            "requests.get",
            "requests.post",
            "requests.put",
            "requests.delete",
            "urlopen",
            "urllib.request.urlopen",
            "httpx.get",
            "httpx.post",
        ],
        "Rust" => &["reqwest::get", "reqwest::blocking::get", "ureq::get", "ureq::post"],
        "Go" => &["http.Get", "http.Post", "http.Head"],
        "Java" => &["restTemplate.getForObject", "restTemplate.exchange", "httpClient.send"],
        _ => &["fetch", "axios", "axios.get", "axios.post", "got", "got.get"],
    };
    starts.contains(&callee)
}

fn is_sort(callee: &str, name: &str) -> bool {
    matches!(name, "sort" | "sort_by" | "sort_by_key" | "sort_unstable" | "sorted")
        || matches!(
            callee,
            "sort.Slice" | "sort.Strings" | "sort.Ints" | "sort.Sort" | "Collections.sort" | "Arrays.sort"
        )
}

/// What is sorted was made before the loop.
fn is_kept(file: &FileFacts, call: &Call, receiver: &str, arguments: &str) -> bool {
    let inner = arguments.trim_start_matches('(').split([',', ')']).next().unwrap_or_default().trim();
    let receivers = ["sort", "Collections", "Arrays"];
    let subject = if receiver.is_empty() || receivers.contains(&receiver) { inner } else { receiver };
    let plain = !subject.is_empty() && subject.chars().all(|c| c.is_alphanumeric() || c == '_');
    let made =
        |assign: &Assign| assign.function == call.function && file.slice(assign.name).ends_with(subject);
    plain
        && file.assigns.iter().any(|assign| made(assign) && assign.loops < call.loops)
        && !file.assigns.iter().any(|assign| made(assign) && assign.loops >= call.loops)
}

fn shifts_all(name: &str, arguments: &str) -> bool {
    let first = arguments.trim_start_matches('(').trim_start();
    match name {
        "insert" => first.starts_with("0,"),
        "pop" | "remove" => first.starts_with("0)"),
        "unshift" => true,
        _ => false,
    }
}

fn looks_up(language: &str, name: &str) -> bool {
    match language {
        "Rust" | "Java" => name == "contains" || name == "indexOf",
        "TypeScript" | "JavaScript" => matches!(name, "includes" | "indexOf"),
        "Python" => matches!(name, "index" | "count"),
        _ => false,
    }
}

/// Whether a name of a function is a list for certain: made as one, or a parameter that is one.
fn is_list(file: &FileFacts, function: Option<u32>, name: &str) -> bool {
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return false;
    }
    let plain = |text: &str| text.trim_start_matches("mut ").to_string();
    let made = file
        .assigns
        .iter()
        .rev()
        .find(|a| a.declares && a.function == function && plain(file.slice(a.name)) == name);
    if let Some(assign) = made {
        let (value, kind) =
            (file.slice(assign.value), file.slice(assign.kind).trim_start_matches([':', ' ']));
        let values = [
            "vec![",
            "Vec::new",
            "Vec::with_capacity",
            "[]",
            "list(",
            "new ArrayList",
            "new LinkedList",
            "new Array",
        ];
        let kinds = ["Vec<", "List<", "ArrayList<", "Array<", "list[", "List["];
        // A short list that is written out is quicker than a set.
        return values.iter().any(|start| value.starts_with(start))
            || kinds.iter().any(|start| kind.starts_with(start))
            || kind.ends_with("[]");
    }
    let Some(function) = file.function(function) else { return false };
    let after = function.signature.split_once(&format!("{name}:")).map_or("", |(_, rest)| rest.trim_start());
    let declared = after.split([',', ')']).next().unwrap_or_default();
    ["&[", "Vec<", "&Vec<", "&mut Vec<", "list", "List["].iter().any(|start| declared.starts_with(start))
        || declared.ends_with("[]")
}

fn copies_all(callee: &str) -> bool {
    matches!(callee, "copy.deepcopy" | "deepcopy" | "structuredClone" | "_.cloneDeep" | "cloneDeep")
}

/// A string that gets longer by making a new one each time.
fn concatenated(file: &FileFacts, assign: &Assign) -> Option<Slow> {
    let name = file.slice(assign.name);
    let value = file.slice(assign.value);
    let again = match file.language {
        "Java" | "Go" | "Python" => assign.adds && !assign.own && is_string(file, assign, name),
        "Rust" => {
            !assign.declares
                && !assign.adds
                && !assign.own
                && value.starts_with("format!(")
                && value.contains(&format!("{{{name}}}"))
        }
        _ => false,
    };
    again.then_some(Slow {
        line: assign.line as usize,
        what: "string built by joining in a loop",
        why: "Each round copies what is there so far. Collect the parts and join them once.",
        severity: if file.language == "Python" { Severity::Low } else { Severity::Medium },
        confidence: 0.7,
    })
}

fn is_string(file: &FileFacts, assign: &Assign, name: &str) -> bool {
    let made = file
        .assigns
        .iter()
        .find(|a| a.declares && a.function == assign.function && file.slice(a.name) == name);
    made.is_some_and(|made| {
        let (value, kind) = (file.slice(made.value), file.slice(made.kind));
        value.starts_with(['"', '\''])
            || value.starts_with("f\"")
            || value.starts_with("str(")
            || matches!(kind, "String" | "string" | "str")
    })
}
