//! Calls that do what their argument says, or that no longer protect.

use super::super::facts::{Call, FileFacts};
use super::super::issue::{Issue, Severity};
use super::at;

struct Weak {
    what: &'static str,
    why: &'static str,
    severity: Severity,
    confidence: f64,
}

pub(super) fn issues(file: &FileFacts) -> Vec<Issue> {
    let own = file.calls.iter().filter(|call| !call.in_test);
    let found = own.filter_map(|call| weak(file, call).map(|weak| (call.line as usize, weak)));
    found.map(|(line, weak)| at(file, line, weak.what, weak.why, weak.severity, weak.confidence)).collect()
}

fn weak(file: &FileFacts, call: &Call) -> Option<Weak> {
    let callee: String = file.slice(call.callee).chars().filter(|c| !c.is_whitespace()).collect();
    let arguments = file.slice(call.arguments);
    match file.language {
        "Python" => python(&callee, arguments),
        "TypeScript" | "JavaScript" => script(&callee, arguments),
        "Go" => go(&callee, arguments),
        "Java" => java(&callee, file.slice(call.name), arguments),
        "Rust" => rust(&callee, file.slice(call.name), arguments),
        _ => None,
    }
}

const EVALUATES: &str = "What it is given runs as code.";
const SHELL: &str = "A shell reads the whole line: what is put into it can start anything.";
const UNPICKLES: &str = "Reading such data runs code that is in it; only data of one's own is safe.";
const HASH: &str = "It is broken: use SHA-256, or a password hash for passwords.";
const UNCHECKED: &str = "Anybody between the two can read and change everything.";
const TRAVERSAL: &str = "What a request brings can be `../..`: check that the path stays inside.";
const MARKUP: &str = "What is put in is not escaped, so it can hold a script.";

fn weak_of(what: &'static str, why: &'static str, severity: Severity, confidence: f64) -> Option<Weak> {
    Some(Weak { what, why, severity, confidence })
}

/// Nothing but literals: what it does is known.
fn is_fixed(arguments: &str) -> bool {
    let inner = arguments.trim_start_matches('(').trim_end_matches(')').trim();
    let quoted = inner.starts_with(['"', '\'', '`']) && inner.ends_with(['"', '\'', '`']);
    inner.is_empty() || (quoted && !inner.contains("${") && !inner.contains("\" +") && !inner.contains("' +"))
}

/// A string that is put together from parts.
pub(super) fn is_built(text: &str) -> bool {
    let quoted = text.contains(['"', '\'', '`']);
    let joined = ["\" +", "' +", "+ \"", "+ '", "\"+", "'+", "+\"", "+'", "` +"]
        .iter()
        .any(|part| text.contains(part));
    let python = ["f\"", "f'", ".format(", "\" %", "' %"].iter().any(|part| text.contains(part));
    let filled = text.contains("${")
        || text.contains("Sprintf(")
        || text.contains("format!(")
        || text.contains("String.format(");
    quoted && (joined || python || filled)
}

fn brings_input(arguments: &str) -> bool {
    let sources = [
        "req.params",
        "req.query",
        "req.body",
        "request.args",
        "request.form",
        "request.GET",
        "request.POST",
        "r.URL",
        "r.FormValue",
        "getParameter(",
    ];
    sources.iter().any(|source| arguments.contains(source))
}

fn python(callee: &str, arguments: &str) -> Option<Weak> {
    match callee {
        "eval" | "exec" if !is_fixed(arguments) => weak_of("evaluated text", EVALUATES, Severity::High, 0.8),
        "os.system" | "os.popen" if !is_fixed(arguments) => {
            weak_of("shell command built from parts", SHELL, Severity::High, 0.8)
        }
        "pickle.load" | "pickle.loads" | "cPickle.loads" | "dill.loads" | "marshal.loads" | "shelve.open" => {
            weak_of("unsafe deserialisation", UNPICKLES, Severity::Medium, 0.7)
        }
        "yaml.load" if !arguments.contains("Safe") && !arguments.contains("BaseLoader") => {
            weak_of("unsafe deserialisation", UNPICKLES, Severity::High, 0.8)
        }
        "hashlib.md5" | "hashlib.sha1" if !arguments.contains("usedforsecurity=False") => {
            weak_of("weak hash", HASH, Severity::Medium, 0.5)
        }
        "ssl._create_unverified_context" => {
            weak_of("certificates are not checked", UNCHECKED, Severity::High, 0.9)
        }
        "tempfile.mktemp" => weak_of(
            "predictable temporary file",
            "Another process can take the name first: use `mkstemp`.",
            Severity::Low,
            0.8,
        ),
        "mark_safe" | "Markup" if !is_fixed(arguments) => {
            weak_of("unescaped markup", MARKUP, Severity::Medium, 0.5)
        }
        "os.path.join" | "open" | "send_file" if brings_input(arguments) => {
            weak_of("path from a request", TRAVERSAL, Severity::High, 0.7)
        }
        _ if callee.starts_with("subprocess.") && arguments.contains("shell=True") => {
            let sure = if is_built(arguments) || !arguments.contains(['"', '\'']) { 0.8 } else { 0.4 };
            let severity = if sure > 0.5 { Severity::High } else { Severity::Low };
            weak_of("shell command", SHELL, severity, sure)
        }
        _ if arguments.contains("verify=False")
            && ["requests.", "httpx.", "session."].iter().any(|start| callee.starts_with(start)) =>
        {
            weak_of("certificates are not checked", UNCHECKED, Severity::High, 0.9)
        }
        _ => None,
    }
}

fn script(callee: &str, arguments: &str) -> Option<Weak> {
    match callee {
        "eval" | "Function" | "vm.runInThisContext" if !is_fixed(arguments) => {
            weak_of("evaluated text", EVALUATES, Severity::High, 0.8)
        }
        "exec" | "execSync" | "child_process.exec" | "child_process.execSync" | "cp.exec"
            if is_built(arguments) =>
        {
            weak_of("shell command built from parts", SHELL, Severity::High, 0.8)
        }
        "document.write" | "document.writeln" if !is_fixed(arguments) => {
            weak_of("unescaped markup", MARKUP, Severity::Medium, 0.7)
        }
        "crypto.createHash" | "createHash" if ["md5", "sha1"].iter().any(|weak| arguments.contains(weak)) => {
            weak_of("weak hash", HASH, Severity::Medium, 0.5)
        }
        "path.join" | "path.resolve" | "fs.readFile" | "fs.readFileSync" | "res.sendFile"
            if brings_input(arguments) =>
        {
            weak_of("path from a request", TRAVERSAL, Severity::High, 0.7)
        }
        "res.redirect" if brings_input(arguments) => weak_of(
            "redirect from a request",
            "A link to this site can lead anywhere.",
            Severity::Medium,
            0.7,
        ),
        _ if callee.ends_with(".insertAdjacentHTML") && is_built(arguments) => {
            weak_of("unescaped markup", MARKUP, Severity::Medium, 0.7)
        }
        _ => None,
    }
}

fn go(callee: &str, arguments: &str) -> Option<Weak> {
    match callee {
        "exec.Command" | "exec.CommandContext" => {
            let shell =
                ["\"sh\"", "\"bash\"", "\"/bin/sh\"", "\"cmd\""].iter().any(|name| arguments.contains(name));
            let open = shell
                && arguments.contains("\"-c\"")
                && (is_built(arguments) || !arguments.trim_end_matches(')').ends_with('"'));
            open.then_some(())
                .and_then(|()| weak_of("shell command built from parts", SHELL, Severity::High, 0.7))
        }
        "md5.New" | "md5.Sum" | "sha1.New" | "sha1.Sum" => weak_of("weak hash", HASH, Severity::Medium, 0.5),
        "template.HTML" | "template.JS" if !is_fixed(arguments) => {
            weak_of("unescaped markup", MARKUP, Severity::Medium, 0.6)
        }
        "filepath.Join" | "os.Open" | "os.ReadFile" if brings_input(arguments) => {
            weak_of("path from a request", TRAVERSAL, Severity::High, 0.7)
        }
        _ => None,
    }
}

fn java(callee: &str, name: &str, arguments: &str) -> Option<Weak> {
    match name {
        "exec" if callee.contains("untime") && is_built(arguments) => {
            weak_of("command built from parts", SHELL, Severity::High, 0.7)
        }
        "getInstance"
            if callee.contains("MessageDigest")
                && ["MD5", "SHA-1", "SHA1"].iter().any(|weak| arguments.contains(weak)) =>
        {
            weak_of("weak hash", HASH, Severity::Medium, 0.5)
        }
        "getInstance"
            if callee.contains("Cipher")
                && ["\"DES", "ECB", "RC4"].iter().any(|weak| arguments.contains(weak)) =>
        {
            weak_of(
                "weak cipher",
                "What it hides can be found out: use AES in GCM mode.",
                Severity::High,
                0.8,
            )
        }
        "readObject"
            if callee.to_lowercase().contains("objectinput") || callee.ends_with("ois.readObject") =>
        {
            weak_of("unsafe deserialisation", UNPICKLES, Severity::Medium, 0.6)
        }
        "get" | "File" | "of" if brings_input(arguments) && (callee.contains("Path") || callee == "File") => {
            weak_of("path from a request", TRAVERSAL, Severity::High, 0.7)
        }
        _ => None,
    }
}

fn rust(callee: &str, name: &str, arguments: &str) -> Option<Weak> {
    match name {
        "danger_accept_invalid_certs" | "danger_accept_invalid_hostnames" if arguments.contains("true") => {
            weak_of("certificates are not checked", UNCHECKED, Severity::High, 0.9)
        }
        "transmute" => {
            weak_of("transmute", "The compiler no longer checks what these bytes are.", Severity::Low, 0.6)
        }
        "compute" if callee == "md5::compute" => weak_of("weak hash", HASH, Severity::Medium, 0.5),
        "new" if callee == "Md5::new" || callee == "Sha1::new" => {
            weak_of("weak hash", HASH, Severity::Medium, 0.5)
        }
        "arg" if callee.contains("\"-c\"") && callee.contains("\"sh\"") && arguments.contains("format!(") => {
            weak_of("shell command built from parts", SHELL, Severity::High, 0.7)
        }
        _ => None,
    }
}
