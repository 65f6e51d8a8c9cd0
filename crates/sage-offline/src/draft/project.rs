//! The project as a draft needs it: its sources, its documents, its commands.

use crate::code::{self, FileFacts, Function};
use crate::request::{Request, Trouble};
use crate::research::{self, Commands};
use crate::walk::Tree;

/// Documents are read up to this many bytes in all; what is beyond is counted.
const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub struct Project {
    pub tree: Tree,
    pub sources: Vec<FileFacts>,
    pub documents: Vec<Document>,
    pub commands: Commands,
    pub left_out: usize,
}

/// Prose: Markdown and its relatives.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub path: String,
    pub text: String,
}

impl Project {
    pub fn read(request: &Request) -> Result<Project, Trouble> {
        let tree = Tree::read(&request.project)?;
        let survey = code::survey(&tree);
        let (documents, skipped) = documents(&tree);
        Ok(Project {
            commands: research::commands(&tree),
            left_out: tree.left_out + survey.left_out + skipped,
            sources: survey.files,
            documents,
            tree,
        })
    }

    /// What tests are not: the product.
    pub fn products(&self) -> impl Iterator<Item = (usize, &FileFacts)> {
        self.sources.iter().enumerate().filter(|(_, file)| !file.is_test)
    }

    pub fn source(&self, path: &str) -> Option<(usize, &FileFacts)> {
        self.sources.iter().enumerate().find(|(_, file)| file.path == path)
    }
}

fn documents(tree: &Tree) -> (Vec<Document>, usize) {
    let (mut found, mut bytes, mut skipped) = (Vec::new(), 0, 0);
    for file in &tree.files {
        let prose =
            ["md", "markdown", "rst", "adoc", "txt"].contains(&file.extension().to_lowercase().as_str());
        if !prose {
            continue;
        }
        bytes += file.bytes;
        match tree.text(file).filter(|_| bytes <= MAX_DOCUMENT_BYTES) {
            Some(text) => found.push(Document { path: file.path.clone(), text }),
            None => skipped += 1,
        }
    }
    (found, skipped)
}

/// `payments` of `shop/payments.py`; the folder's name where the file's says nothing.
pub fn module_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let stem = parts.next().unwrap_or(path).split('.').next().unwrap_or(path);
    let empty = ["mod", "lib", "main", "index", "__init__", "__main__"].contains(&stem);
    match parts.next() {
        Some("src") if empty => parts.next().unwrap_or(stem),
        Some(folder) if empty => folder,
        _ => stem,
    }
}

/// The function whose lines hold `line`; the innermost.
pub fn function_at(file: &FileFacts, line: usize) -> Option<&Function> {
    let holds = |function: &&Function| function.line <= line && line <= function.end();
    file.functions.iter().filter(holds).min_by_key(|function| function.lines)
}

/// The same as an index.
pub fn function_index(file: &FileFacts, line: usize) -> Option<usize> {
    let inner = function_at(file, line)?;
    file.functions.iter().position(|function| std::ptr::eq(function, inner))
}

/// The lines of a function.
pub fn body<'a>(file: &'a FileFacts, function: &Function) -> Vec<(usize, &'a str)> {
    let lines = file.text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.skip(function.line.saturating_sub(1)).take(function.lines.max(1)).collect()
}

/// What a file says it is: the comment or docstring that it begins with, and its line.
pub fn about(file: &FileFacts) -> Option<(usize, String)> {
    let mut said = Vec::new();
    let mut first = 0;
    let mut block = "";
    for (at, line) in file.text.lines().enumerate().take(60) {
        let line = line.trim();
        if block.is_empty() {
            let opened = ["\"\"\"", "'''", "/**", "/*"].into_iter().find(|open| line.starts_with(open));
            let comment = ["//!", "//", "# "].into_iter().find(|open| line.starts_with(open));
            let (text, open) = match (opened, comment) {
                (Some(open), _) => (&line[open.len()..], if open.starts_with('/') { "*/" } else { open }),
                (_, Some(open)) => (&line[open.len()..], ""),
                _ if line.is_empty() && said.is_empty() => continue,
                _ if line.starts_with("#!") || line.starts_with("'use ") || line.starts_with("\"use ") => {
                    continue;
                }
                _ => break,
            };
            first = if said.is_empty() { at + 1 } else { first };
            let closed = (!open.is_empty()).then(|| text.find(open)).flatten();
            said.push(text[..closed.unwrap_or(text.len())].trim().to_string());
            if closed.is_some() {
                break;
            }
            block = open;
        } else {
            let end = line.find(block);
            said.push(line[..end.unwrap_or(line.len())].trim_start_matches('*').trim().to_string());
            if end.is_some() {
                break;
            }
        }
    }
    let paragraph: Vec<String> =
        said.into_iter().skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let licence = ["copyright", "license", "spdx", "eslint", "@ts-", "pylint", "coding:"];
    let says = text.len() > 3 && !licence.iter().any(|word| text.to_lowercase().contains(word));
    says.then_some((first, text))
}
