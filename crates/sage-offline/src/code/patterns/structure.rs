//! How the project is laid out: folders, entry points, sizes of files and functions, and what everything imports.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::facts::FileFacts;
use super::super::imports::fan_in;
use super::super::look::{Look, count, percent};
use super::{Pattern, best};

pub(super) fn patterns(look: &Look) -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = layers(look).into_iter().collect();
    patterns.extend(entry_points(look));
    patterns.extend(sizes(look));
    patterns.extend(central(look));
    patterns.extend(asynchronous(look));
    patterns
}

/// Folders with code, deep enough that there are several: `(folder, files, lines)`.
pub(super) fn folders(look: &Look) -> Vec<(String, usize, usize)> {
    let mut best = Vec::new();
    let top = shared_depth(look);
    for depth in top + 1..=top + 4 {
        let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for file in look.products() {
            let parts: Vec<&str> = file.path.split('/').collect();
            let folder = parts[..parts.len() - 1].iter().take(depth).copied().collect::<Vec<_>>().join("/");
            let entry = found.entry(folder).or_default();
            entry.0 += 1;
            entry.1 += file.lines;
        }
        if found.len() > 16 && !best.is_empty() {
            break;
        }
        best = found.into_iter().map(|(folder, (files, lines))| (folder, files, lines)).collect::<Vec<_>>();
        if best.len() >= 6 {
            break;
        }
    }
    best.sort_by_key(|(_, _, lines)| std::cmp::Reverse(*lines));
    best
}

/// How many folders all code has in common: `src/main/java` says nothing about the layout.
fn shared_depth(look: &Look) -> usize {
    let folders = |file: &FileFacts| -> Vec<String> {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        folder.split('/').map(str::to_string).collect()
    };
    let mut files = look.products();
    let Some(mut shared) = files.next().map(folders) else { return 0 };
    for file in files {
        let same = shared.iter().zip(folders(file)).take_while(|(a, b)| **a == *b).count();
        shared.truncate(same);
    }
    shared.len()
}

fn layers(look: &Look) -> Option<Pattern> {
    let folders = folders(look);
    if folders.len() < 2 {
        return None;
    }
    let shown = |folder: &str| if folder.is_empty() { ".".to_string() } else { folder.to_string() };
    let told = folders.iter().take(8).map(|(folder, files, lines)| {
        format!("`{}` {}, {}", shown(folder), count(*files, "file"), count(*lines, "line"))
    });
    let detail = told.collect::<Vec<_>>().join("; ");
    let names: Vec<String> = folders.iter().take(12).map(|(folder, _, _)| shown(folder)).collect();
    Some(Pattern {
        kind: "structure",
        subject: "folders".into(),
        predicate: "are",
        value: json!(names),
        title: format!("Code is split over {}", count(folders.len(), "folder")),
        detail: format!("{detail}."),
        share: 1.0,
        places: look.survey.files.len(),
        examples: best(look, names),
        exceptions: Vec::new(),
    })
}

fn entry_points(look: &Look) -> Option<Pattern> {
    let named = [
        "index.ts",
        "index.js",
        "main.ts",
        "main.tsx",
        "server.ts",
        "server.js",
        "app.ts",
        "app.js",
        "app.py",
        "manage.py",
        "__main__.py",
        "cli.py",
        "wsgi.py",
        "asgi.py",
    ];
    let mut found = Vec::new();
    for file in look.products() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let depth = file.path.matches('/').count();
        let is_main = |f: &&super::super::facts::Function| {
            let program = file.language != "Rust" || name == "main.rs" || file.path.contains("/bin/");
            f.name == "main" && !f.in_test && program && (f.owner.is_none() || file.language == "Java")
        };
        if let Some(main) = file.functions.iter().find(is_main) {
            found.push(file.at(main.line));
        } else if is_script(file) || (named.contains(&name) && depth <= 1) {
            found.push(file.path.clone());
        }
    }
    (!found.is_empty()).then(|| Pattern {
        kind: "structure",
        subject: "entry points".into(),
        predicate: "are",
        value: json!(found.iter().take(12).collect::<Vec<_>>()),
        title: count(found.len(), "entry point"),
        detail: format!(
            "The program starts in {}.",
            found.iter().take(6).map(|at| format!("`{at}`")).collect::<Vec<_>>().join(", ")
        ),
        share: 0.9,
        places: found.len(),
        examples: found.iter().take(5).cloned().collect(),
        exceptions: Vec::new(),
    })
}

fn is_script(file: &FileFacts) -> bool {
    file.language == "Python" && file.text.lines().any(|line| line.starts_with("if __name__ =="))
}

fn sizes(look: &Look) -> Option<Pattern> {
    let mut files: Vec<&FileFacts> = look.products().collect();
    let mut functions: Vec<usize> =
        files.iter().flat_map(|file| &file.functions).filter(|f| !f.in_test).map(|f| f.lines).collect();
    if files.len() < 5 || functions.len() < 5 {
        return None;
    }
    files.sort_by_key(|file| file.lines);
    functions.sort_unstable();
    let at = |part: f64, length: usize| ((length - 1) as f64 * part) as usize;
    let nine_tenths = files[at(0.9, files.len())].lines;
    let typical = nine_tenths.div_ceil(50) * 50;
    let following = files.iter().filter(|file| file.lines <= typical).count();
    let long: Vec<&&FileFacts> = files.iter().rev().take_while(|file| file.lines > typical).collect();
    let median = files[files.len() / 2].lines;
    let (middle, most) = (functions[functions.len() / 2], functions[at(0.9, functions.len())]);
    Some(Pattern {
        kind: "structure",
        subject: "module size".into(),
        predicate: "median lines",
        value: json!(median),
        title: format!("Files have about {median} lines, functions about {middle}"),
        detail: format!(
            "Files: median {median}, nine in ten at most {nine_tenths}; functions: median {middle}, nine in ten at most {most}. {} of files have at most {typical} lines.",
            percent(following, files.len())
        ),
        share: following as f64 / files.len() as f64,
        places: files.len(),
        examples: best(look, vec![files[files.len() / 2].path.clone()]),
        exceptions: long.iter().take(8).map(|file| format!("{} lines {}", file.lines, file.path)).collect(),
    })
}

fn central(look: &Look) -> Option<Pattern> {
    let modules = fan_in(&look.survey);
    let few: Vec<&(String, usize)> = modules.iter().filter(|(_, by)| *by >= 3).take(6).collect();
    if few.is_empty() {
        return None;
    }
    let told = few.iter().map(|(path, by)| format!("`{path}` by {by}"));
    Some(Pattern {
        kind: "structure",
        subject: "central modules".into(),
        predicate: "are",
        value: json!(few.iter().map(|(path, _)| path).collect::<Vec<_>>()),
        title: format!("`{}` is what most of the code builds on", few[0].0),
        detail: format!(
            "Imported the most: {}. A change there is felt everywhere.",
            told.collect::<Vec<_>>().join(", ")
        ),
        share: 0.85,
        places: modules.len(),
        examples: few.iter().take(3).map(|(path, _)| path.clone()).collect(),
        exceptions: Vec::new(),
    })
}

fn asynchronous(look: &Look) -> Option<Pattern> {
    let all: Vec<_> = look
        .products()
        .flat_map(|file| file.functions.iter().filter(|f| !f.in_test).map(move |f| (file, f)))
        .collect();
    let (waiting, rest): (Vec<_>, Vec<_>) = all.iter().partition(|(_, f)| f.is_async);
    if waiting.len() < 3 {
        return None;
    }
    let imports = |name: &str| {
        look.products().any(|file| {
            file.imports.iter().any(|import| import.path.split([':', '.', '/']).next() == Some(name))
        })
    };
    let runtime =
        ["tokio", "async_std", "smol", "asyncio", "trio", "anyio"].into_iter().find(|name| imports(name));
    let chained = look.products().flat_map(|file| {
        file.calls
            .iter()
            .filter(|c| !c.in_test && file.slice(c.name) == "then")
            .map(move |c| format!("`.then` {}", file.at(c.line as usize)))
    });
    let script = look.survey.languages.iter().any(|(language, _)| language.ends_with("Script"));
    let exceptions: Vec<String> = if script { chained.collect() } else { Vec::new() };
    let with = runtime.map(|name| format!(" with {name}")).unwrap_or_default();
    Some(Pattern {
        kind: "structure",
        subject: "concurrency".into(),
        predicate: "style",
        value: json!(format!("async{with}")),
        title: format!("Waiting is `async`{with}"),
        detail: format!(
            "{} of {} are async, {} are not.",
            waiting.len(),
            count(all.len(), "function"),
            rest.len()
        ),
        share: waiting.len() as f64 / (waiting.len() + exceptions.len()) as f64,
        places: all.len(),
        examples: best(look, waiting.iter().map(|(file, f)| file.at(f.line)).collect()),
        exceptions,
    })
}
