//! `sage run hello` where `hello` is a template: a title that was meant as `-t`.

use std::io::{IsTerminal, Write};
use std::path::Path;

use super::catalog::Catalog;
use super::context::Context;
use super::failure::Failure;
use super::run::Args;
use crate::command_line::sage;

/// The template that a title names, if a person says that it is meant; an error where nobody can be asked.
/// `None`: the title is a title.
pub fn template(context: &Context, title: &str, args: &Args) -> Result<Option<String>, Failure> {
    let usual = context.config.file.template.as_deref().unwrap_or("feature");
    if title == usual || !names_template(context, title) {
        return Ok(None);
    }
    if asks(args) {
        eprint!(
            "`{title}` is a template. Run it? [y]es, or [n]o: run `{usual}` for a feature of this name: "
        );
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        return match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(Some(title.to_string())),
            "n" | "no" => Ok(None),
            _ => Err(refusal(title, usual)),
        };
    }
    Err(refusal(title, usual))
}

fn refusal(title: &str, usual: &str) -> Failure {
    let as_title = format!("works on a feature called {title}");
    Failure::usage(format!("`{title}` is a template: did you mean `-t {title}`?"))
        .hint(sage("run").option("-t", title))
        .hint(sage("run").arg(title).option("-t", usual).comment(as_title))
}

fn asks(args: &Args) -> bool {
    let silent = args.yes || args.show.json || args.show.quiet;
    !silent && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A name that `sage templates` lists, or a file that is there and looks like a template.
fn names_template(context: &Context, title: &str) -> bool {
    Catalog::of(context).find(title).is_ok()
}

/// The title of a run that was given none: the name of its template.
pub fn title(template: &str) -> String {
    let stem = Path::new(template).file_stem().and_then(|stem| stem.to_str());
    let is_file = template.contains('/') || Path::new(template).extension().is_some();
    stem.filter(|_| is_file).unwrap_or(template).to_string()
}
