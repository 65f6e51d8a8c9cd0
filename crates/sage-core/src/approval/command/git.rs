//! `git`: looking at the repository, recording changes in it, restoring files. What talks to other repositories, changes
//! settings, rewrites commits or runs programs is not known here.

use super::args::{Args, Options};
use super::{Does, Effect};
use crate::shell::Word;

/// Subcommands that print. `--output` and its short forms write files, `--ext-diff` runs programs.
const LOOKS: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "shortlog",
    "blame",
    "annotate",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "cat-file",
    "describe",
    "name-rev",
    "merge-base",
    "cherry",
    "count-objects",
    "whatchanged",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "show-branch",
    "grep",
    "check-ignore",
    "check-attr",
    "range-diff",
];
const PRINTS: Options =
    Options::all_but("", &["output", "output-directory", "ext-diff", "open-files-in-pager", "exec"]);
const GREP: Options = Options::all_but("O", &["open-files-in-pager", "output", "ext-diff"])
    .values("ABCmef", &["max-depth", "threads"]);

const ADD: Options = Options::only(
    "AuvnN",
    &["all", "update", "verbose", "dry-run", "intent-to-add", "no-all", "ignore-removal"],
);
const COMMIT: Options = Options::only(
    "amqvsFoi",
    &[
        "message",
        "all",
        "quiet",
        "verbose",
        "signoff",
        "file",
        "author",
        "date",
        "allow-empty",
        "no-edit",
        "only",
        "include",
        "dry-run",
        "trailer",
        "no-gpg-sign",
        "no-status",
    ],
)
.values("mF", &["message", "file", "author", "date", "trailer"]);
const BRANCH: Options = Options::only(
    "avrlq",
    &[
        "all",
        "list",
        "remotes",
        "verbose",
        "show-current",
        "contains",
        "no-contains",
        "merged",
        "no-merged",
        "points-at",
        "sort",
        "format",
        "color",
        "no-color",
        "column",
        "no-column",
    ],
)
.values("", &["contains", "no-contains", "merged", "no-merged", "points-at", "sort", "format"]);

pub fn effect(args: &[Word]) -> Effect {
    let (mut folder, mut args) = (None, args);
    loop {
        args = match args {
            [option, rest @ ..]
                if ["--no-pager", "-P", "--no-optional-locks"].contains(&option.text.as_str()) =>
            {
                rest
            }
            [option, dir, rest @ ..] if option.text == "-C" && folder.is_none() => {
                folder = Some(dir);
                rest
            }
            _ => break,
        };
    }
    let Some((command, args)) = args.split_first() else { return Effect::unknown("`git` has no subcommand") };
    let effect = subcommand(command, args).unwrap_or_else(|why| Effect::unknown(format!("{why} of `git`")));
    match folder {
        None => effect,
        Some(dir) if effect.does == Does::Looks && dir.is_literal() => {
            Effect { within: Some(dir.clone()), ..effect }
        }
        // Files that it changes would be named as seen from there.
        Some(_) => Effect::unknown("`git -C` changes another folder"),
    }
}

fn subcommand(command: &Word, args: &[Word]) -> Result<Effect, String> {
    let name = command.text.as_str();
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    Ok(match (name, texts.as_slice()) {
        _ if !command.is_literal() => Effect::unknown("the subcommand of `git` is not known"),
        ("grep", _) => {
            let mut args = Args::split(args, &GREP)?;
            let pattern = usize::from(!args.has(&["e", "f"]) && !args.operands.is_empty());
            args.operands.drain(..pattern);
            looks(&args)
        }
        (name, _) if LOOKS.contains(&name) => looks(&Args::split(args, &PRINTS)?),
        ("reflog", [] | ["show", ..]) | ("stash" | "worktree", ["list", ..]) | ("stash", ["show", ..]) => {
            looks(&Args::split(args, &PRINTS)?)
        }
        ("remote", [] | ["-v" | "--verbose"] | ["get-url", _]) => Effect::new(Does::Looks),
        ("tag", [] | ["-l" | "--list" | "-n", ..]) => {
            looks(&Args::split(args, &Options::only("ln", &["list", "sort", "format"]))?)
        }
        ("branch", _) => branch(&Args::split(args, &BRANCH)?),
        ("add", _) => records(&Args::split(args, &ADD)?),
        ("commit", _) => {
            let args = Args::split(args, &COMMIT)?;
            records(&args).reading(args.given(&["F", "file"]).filter(|file| file.text != "-"))
        }
        ("mv", _) => moves(&Args::split(args, &Options::only("kvn", &["verbose", "dry-run"]))?),
        ("rm", _) => {
            let options = Options::only("qn", &["cached", "quiet", "dry-run", "ignore-unmatch"]);
            removes(&Args::split(args, &options)?)
        }
        ("reset", ["--", ..]) => records(&Args::split(args, &Options::only("", &[]))?),
        ("reset", _) => unstages(&Args::split(args, &Options::only("q", &["quiet", "mixed"]))?),
        ("restore", _) => {
            restores(&Args::split(args, &Options::only("SWq", &["staged", "worktree", "quiet"]))?)
        }
        ("checkout", ["--", ..]) => rewrites(args[1..].iter().collect()),
        _ => Effect::unknown(format!("`git {name}` is not known to be harmless")),
    })
}

/// Names may be revisions, or files; those of files that lie elsewhere are seen.
fn looks(args: &Args<'_>) -> Effect {
    let files = args.given(&["contents", "pathspec-from-file", "f", "file", "exclude-from"]);
    Effect::new(Does::Looks).reading(args.operands.iter().copied()).reading(files)
}

/// The index and the history of the repository grow; its files stay as they are.
fn records(args: &Args<'_>) -> Effect {
    let outside = |word: &&&Word| word.home || word.text.starts_with('/');
    Effect::new(Does::Records).reading(args.operands.iter().filter(outside).copied())
}

/// Lists them, or makes a new one.
fn branch(args: &Args<'_>) -> Effect {
    let lists = ["l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"];
    match args.operands.is_empty() || args.has(&lists) {
        true => Effect::new(Does::Looks),
        false => records(args),
    }
}

fn moves(args: &Args<'_>) -> Effect {
    match args.operands.as_slice() {
        [from, to] if from.is_literal() && to.is_literal() => {
            let name = from.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let inside = Word { text: format!("{}/{name}", to.text), ..(*to).clone() };
            Effect::new(Does::Changes).writing([*from, *to, &inside])
        }
        _ => Effect::unknown("`git mv` does not name one file"),
    }
}

fn removes(args: &Args<'_>) -> Effect {
    match args.operands.iter().all(|word| word.is_literal()) {
        true => Effect::new(Does::Changes).writing(args.operands.iter().copied()),
        false => Effect::unknown("`git rm` removes whatever a pattern matches"),
    }
}

/// From where the branch is, only the index changes.
fn unstages(args: &Args<'_>) -> Effect {
    match args.operands.first().is_none_or(|first| first.text == "HEAD") {
        true => records(args),
        false => Effect::unknown("`git reset` may move the branch"),
    }
}

fn restores(args: &Args<'_>) -> Effect {
    match args.has(&["S", "staged"]) && !args.has(&["W", "worktree"]) {
        true => records(args),
        false => rewrites(args.operands.clone()),
    }
}

/// Changes of these files are lost.
fn rewrites(files: Vec<&Word>) -> Effect {
    let named = |word: &&&Word| word.is_literal() && !matches!(word.text.as_str(), "." | "./" | ":/" | "*");
    match !files.is_empty() && files.iter().all(|word| named(&word)) {
        true => Effect::new(Does::Rearranges).writing(files),
        false => Effect::unknown("`git` would undo changes of all files"),
    }
}
