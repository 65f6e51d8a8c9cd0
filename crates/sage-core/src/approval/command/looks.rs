//! Programs that only look: they read files and print, whatever they are told, but for the options named here.

use super::args::{Args, Options};
use super::{Does, Effect};
use crate::shell::Word;

/// What the operands of a program are.
#[derive(Clone, Copy)]
enum Operands {
    /// No files.
    Text,
    Files,
    /// A pattern, unless an option gives it; then files.
    Pattern,
    /// A file; a second one would be written.
    OneFile,
}

use Operands::{Files, OneFile, Pattern, Text};

const GREP: Options = Options::ANY.values(
    "ABCmefdD",
    &[
        "after-context",
        "before-context",
        "context",
        "max-count",
        "regexp",
        "file",
        "include",
        "exclude",
        "exclude-dir",
        "exclude-from",
    ],
);
const RIPGREP: Options = Options::all_but("z", &["pre", "pre-glob", "hostname-bin", "search-zip"]).values(
    "ABCmefgtTMjrEd",
    &[
        "after-context",
        "before-context",
        "context",
        "max-count",
        "regexp",
        "file",
        "glob",
        "iglob",
        "type",
        "type-not",
        "max-depth",
        "max-columns",
        "replace",
        "threads",
        "sort",
        "sortr",
        "color",
        "colors",
        "encoding",
        "max-filesize",
    ],
);

/// What a program is, if it is one of these.
fn known(name: &str) -> Option<(Operands, Options)> {
    const ANY: Options = Options::ANY;
    Some(match name {
        "echo" | "printf" | "true" | "false" | ":" | "pwd" | "basename" | "dirname" | "seq" | "sleep"
        | "uname" | "whoami" | "id" | "groups" | "nproc" | "arch" | "tr" | "test" | "[" | "which"
        | "type" | "whereis" | "exit" | "expr" | "uptime" | "tty" => (Text, ANY),
        "date" => (Text, Options::all_but("sf", &["set", "file"]).values("d", &["date"])),
        "cat" | "tac" | "rev" | "wc" | "md5sum" | "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum"
        | "sha512sum" | "b2sum" | "cksum" | "realpath" | "readlink" | "comm" | "expand" | "unexpand"
        | "df" => (Files, ANY),
        "ls" | "dir" => (Files, ANY.values("ITw", &[])),
        "head" | "tail" => (Files, ANY.values("ncs", &["lines", "bytes", "pid"])),
        "cut" => {
            (Files, ANY.values("dfcb", &["delimiter", "fields", "characters", "bytes", "output-delimiter"]))
        }
        "paste" => (Files, ANY.values("d", &["delimiters"])),
        "nl" => (Files, ANY.values("bdfhilnsvw", &[])),
        "fold" | "fmt" => (Files, ANY.values("w", &["width"])),
        "column" => (Files, ANY.values("sto", &["separator", "output-separator", "table-columns"])),
        "join" => (Files, ANY.values("t12joave", &[])),
        "diff" => (Files, ANY.values("UCxIFL", &["exclude", "label", "unified", "context"])),
        "cmp" => (Files, ANY.values("in", &[])),
        "stat" => (Files, ANY.values("cf", &["format", "printf"])),
        "du" => (Files, ANY.values("d", &["max-depth", "exclude"])),
        "od" => (Files, ANY.values("ANtjw", &[])),
        "hexdump" => (Files, Options::all_but("f", &["format-file"]).values("ens", &[])),
        "file" => (Files, Options::all_but("Cfm", &["compile", "files-from", "magic-file"])),
        "tree" => (Files, Options::all_but("oR", &["output"]).values("LIP", &["filelimit"])),
        "sort" => {
            let danger = &["output", "temporary-directory", "compress-program"];
            (Files, Options::all_but("oT", danger).values("kt", &["key", "field-separator"]))
        }
        "uniq" => (OneFile, ANY.values("fsw", &[])),
        "xxd" => (OneFile, Options::all_but("r", &["revert"]).values("lsgco", &[])),
        "grep" | "egrep" | "fgrep" => (Pattern, GREP),
        "rg" => (Pattern, RIPGREP),
        "fd" | "fdfind" => {
            let danger = &["exec", "exec-batch"];
            let values = &["type", "extension", "max-depth", "exclude", "glob", "size"];
            (Pattern, Options::all_but("xX", danger).values("tedES", values))
        }
        _ => return None,
    })
}

pub fn effect(name: &str, args: &[Word]) -> Option<Effect> {
    if let Some(effect) = shell_settings(name, args).or_else(|| versions(name, args)) {
        return Some(effect);
    }
    let (operands, options) = known(name)?;
    if matches!(operands, Text) && name != "date" {
        return Some(text(name, args));
    }
    let args = match Args::split(args, &options) {
        Ok(args) => args,
        Err(why) => return Some(Effect::unknown(format!("{why} of `{name}` may do more than read"))),
    };
    // Names of files in options, as in `--files0-from=...`.
    let named = |word: &&Word| word.text.starts_with(['/', '~']) || word.text.contains("../");
    let options: Vec<Word> = args.given_long().filter(named).cloned().collect();
    let effect = match operands {
        // A time to set the clock to.
        Text if !args.operands.iter().all(|word| word.text.starts_with('+')) => {
            Effect::unknown("`date` may set the clock")
        }
        Text => Effect::new(Does::Looks),
        Files => Effect::new(Does::Looks).reading(args.operands.iter().copied()),
        OneFile if args.operands.len() > 1 => Effect::unknown(format!("`{name}` writes its second file")),
        OneFile => Effect::new(Does::Looks).reading(args.operands.iter().copied()),
        Pattern => {
            let named = args.has(&["e", "f", "regexp", "file", "files"]);
            let files = args.operands.iter().skip(usize::from(!named)).copied();
            Effect::new(Does::Looks).reading(files).reading(args.given(&["f", "file", "exclude-from"]))
        }
    };
    Some(effect.reading(&options))
}

/// Programs that print or compare their arguments. As builtins, some of them evaluate what they are given: a
/// subscript in `test -v 'a[$(x)]'`, a number in `printf %d` and `exit` of zsh.
fn text(name: &str, args: &[Word]) -> Effect {
    let evaluates = |word: &Word| word.text.replace("$?", "").contains(['$', '`']);
    let sets = |word: &Word| word.text.starts_with("-v") || word.text == "-R";
    match name {
        "printf" | "test" | "[" | "exit" if args.iter().any(evaluates) => {
            Effect::unknown(format!("`{name}` may evaluate its arguments"))
        }
        "printf" | "test" | "[" if args.iter().any(sets) => {
            Effect::unknown(format!("an option of `{name}` may do more than read"))
        }
        _ => Effect::new(Does::Looks),
    }
}

/// Builtins that change how the shell works, in ways that only make it stricter.
fn shell_settings(name: &str, args: &[Word]) -> Option<Effect> {
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    match (name, texts.as_slice()) {
        ("set", ["-o", "pipefail"] | [_, "pipefail"] | [_]) => {
            let first = texts[0].strip_prefix('-').unwrap_or("?");
            let harmless = first.chars().all(|c| "euxo".contains(c));
            harmless.then(|| Effect::new(Does::Looks))
        }
        ("export", _) if !args.is_empty() => {
            let set = |word: &Word| {
                let (name, value) = word.text.split_once('=')?;
                super::walk::is_harmless(name, &Word { text: value.into(), ..word.clone() }).then_some(())
            };
            args.iter().all(|word| set(word).is_some()).then(|| Effect::new(Does::Looks))
        }
        ("command", ["-v" | "-V", ..]) => Some(Effect::new(Does::Looks)),
        _ => None,
    }
}

/// Tools that people have, which tell their version.
const TOOLS: &[&str] = &[
    "node", "npm", "npx", "pnpm", "yarn", "bun", "deno", "tsc", "python", "python3", "pip", "pip3", "uv",
    "poetry", "pytest", "cargo", "rustc", "rustup", "rustfmt", "go", "java", "javac", "mvn", "gradle",
    "kotlin", "ruby", "bundle", "rake", "php", "composer", "dotnet", "swift", "gcc", "g++", "clang", "cmake",
    "make", "just", "git", "docker", "bash", "zsh", "jq", "rg", "fd", "gh",
];

/// `-v` makes some interpreters run what they read from their input, and `version` is a file to others.
fn versions(name: &str, args: &[Word]) -> Option<Effect> {
    let [one] = args else { return None };
    let tells = match one.text.as_str() {
        "--version" => TOOLS.contains(&name),
        "-v" => ["node", "npm", "npx", "pnpm", "yarn"].contains(&name),
        "-V" => ["python", "python3", "cargo", "rustc", "rg"].contains(&name),
        "version" => ["go", "git", "cargo", "docker"].contains(&name),
        "-version" => ["java", "javac"].contains(&name),
        _ => false,
    };
    tells.then(|| Effect::new(Does::Looks))
}
