//! Places in the project that programs print, and the form `path:line:column: error` that compilers share.

use std::path::Path;

use super::Failure;

/// Turns what was printed into paths of the project.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub project: &'a Path,
    /// Where the command ran, relative to the project: printed paths are relative to it.
    pub dir: &'a str,
}

impl Places<'_> {
    /// `src/x.rs:10` for a file of the project; nothing for other people's files.
    pub fn of(&self, path: &str, line: &str) -> Option<String> {
        let path = path.trim().trim_start_matches("file://");
        let line: usize = line.trim().parse().ok()?;
        let absolute = Path::new(path);
        let relative = match absolute.is_absolute() {
            true => self.within(absolute)?,
            false if self.dir.is_empty() => path.trim_start_matches("./").to_string(),
            false => format!("{}/{}", self.dir, path.trim_start_matches("./")),
        };
        let foreign = relative.contains("node_modules/") || relative.contains("site-packages/");
        let exists = !foreign && self.project.join(&relative).is_file();
        // A Cargo workspace prints paths from its root, wherever the command ran.
        let from_root = || self.project.join(path).is_file().then(|| path.to_string());
        let relative = if exists { Some(relative) } else { from_root().filter(|_| !foreign) };
        relative.map(|relative| format!("{relative}:{line}"))
    }

    fn within(&self, path: &Path) -> Option<String> {
        let project = std::fs::canonicalize(self.project).ok();
        let inside = path.strip_prefix(self.project).ok();
        let inside =
            inside.or_else(|| project.as_deref().and_then(|project| path.strip_prefix(project).ok()));
        inside.and_then(Path::to_str).map(str::to_string)
    }

    /// The first `path:line` in a text.
    pub fn first_in(&self, text: &str) -> Option<String> {
        let parts = text.split(|c: char| c.is_whitespace() || "()'\"[],".contains(c));
        parts.filter(|part| part.contains(':')).find_map(|part| {
            let mut cut = part.trim_start_matches("file://").splitn(3, ':');
            self.of(cut.next()?, cut.next()?)
        })
    }
}

/// `src/a.c:3:5: error: ...`, `x.go:3:5: undefined: y`, and `src/a.ts(3,5): error TS2322: ...`.
pub fn compiler_errors(lines: &[&str], places: &Places) -> Vec<Failure> {
    let found = lines.iter().filter_map(|line| {
        let (place, message) = typescript(line, places).or_else(|| colons(line, places))?;
        let name = format!("{place}: {message}");
        Some(Failure { name, detail: line.trim().to_string(), evidence: vec![place] })
    });
    found.collect()
}

fn typescript<'a>(line: &'a str, places: &Places) -> Option<(String, &'a str)> {
    let (path, rest) = line.trim().split_once('(')?;
    let (at, message) = rest.split_once("): error ")?;
    Some((places.of(path, at.split(',').next()?)?, message))
}

fn colons<'a>(line: &'a str, places: &Places) -> Option<(String, &'a str)> {
    let mut parts = line.trim().splitn(4, ':');
    let (path, number, column, message) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?.trim());
    column.parse::<usize>().ok()?;
    let harmless = ["warning", "note", "info", "help"].iter().any(|word| message.starts_with(word));
    (!harmless && !message.is_empty()).then_some(())?;
    Some((places.of(path, number)?, message.trim_start_matches("error:").trim()))
}
