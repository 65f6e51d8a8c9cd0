//! Hostile names and numbers through the command line: a clear error or it works, and nothing is ever written
//! outside of `.sage` (RELIABILITY 41, 44).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::dsl::Sage;

const NOOP: &str = "
name: t
phases:
  - id: p
    operations: { id: s, type: sleep, params: { ms: 0 } }
";

/// The slug it gets, or none if it is refused.
const NAMES: [(&str, Option<&str>); 38] = [
    ("../../x", None),
    ("/etc/x", None),
    ("..", None),
    (".", None),
    ("", None),
    ("   ", None),
    ("a/../../b", None),
    ("~/x", None),
    ("..\\x", None),
    ("C:\\x", None),
    ("a\nb", None),
    ("a\tb", None),
    ("a\u{1b}[2Jb", None),
    ("a\u{202E}b", None),
    ("a\u{200B}b", None),
    ("\u{FEFF}a", None),
    ("a\u{2066}b", None),
    ("!!!", None),
    ("\u{44d}\u{442}\u{43e}", None),
    ("\u{1f4a3}", None),
    ("CON", Some("con")),
    ("aux.txt", Some("aux-txt")),
    ("nul", Some("nul")),
    ("trailing dot.", Some("trailing-dot")),
    ("trailing space ", Some("trailing-space")),
    ("%2e%2e%2fetc", Some("2e-2e-2fetc")),
    ("%00", Some("00")),
    ("caf\u{e9}", Some("caf")),
    ("cafe\u{301}", Some("cafe")),
    ("p\u{430}yment", Some("p-yment")),
    ("payment", Some("payment")),
    ("Payment", Some("payment")),
    ("PAYMENT", Some("payment")),
    ("$(touch pwned)", Some("touch-pwned")),
    ("`touch pwned`", Some("touch-pwned")),
    ("a;b|c&d>e", Some("a-b-c-d-e")),
    ("client/server sync", Some("client-server-sync")),
    ("{{ 7 * 7 }}", Some("7-7")),
];

// covers: R17, RELIABILITY 41
#[test]
fn every_feature_name_is_refused_clearly_or_works() {
    let sage = Sage::new().template("t", NOOP);
    let before = sage.listing();
    for (name, slug) in NAMES {
        let outcome = sage.args(["run", name, "-t", "t", "--quiet"]).run();
        match slug {
            None => {
                let outcome = outcome.exit(2).stderr_has("error: ").stderr_has("hint: ");
                assert!(
                    !outcome.stderr.contains(['\u{1b}', '\u{202E}']),
                    "{name:?} reaches the terminal raw"
                );
            }
            Some(slug) => {
                outcome.exit(0);
                let checkpoint = sage.path(&format!(".sage/state/workflow-{slug}.json"));
                assert!(checkpoint.is_file(), "{name:?} -> {slug}");
                sage.args(["status", name, "--json"]).run().exit(0);
            }
        }
    }
    assert_eq!(sage.listing(), before, "nothing is written outside of .sage");
}

// covers: R17, RELIABILITY 41
#[test]
fn every_command_refuses_hostile_feature_names() {
    let sage = Sage::new().template("t", NOOP);
    sage.sage("run x -t t").exit(0);
    let before = sage.listing();
    let state = std::fs::read_dir(sage.path(".sage/state")).unwrap().count();
    for command in
        ["resume", "status", "result", "logs", "explain", "pause", "cancel", "approve", "reject", "verify"]
    {
        for name in ["../../x", "/etc/passwd", "..", "", "a\nb", "\u{44d}"] {
            sage.args([command, name]).run().exit(2).stderr_has("error: ");
        }
    }
    assert_eq!(sage.listing(), before);
    assert_eq!(std::fs::read_dir(sage.path(".sage/state")).unwrap().count(), state, "not even a lock file");
}

// covers: R17, RELIABILITY 41
#[test]
fn long_names_option_like_names_and_bytes_that_are_no_text() {
    let sage = Sage::new().template("t", NOOP);
    let before = sage.listing();
    sage.args(["run", &"x".repeat(256), "-t", "t"]).run().exit(2).stderr_has("256 bytes");
    sage.args(["run", &"x".repeat(100_000), "-t", "t"]).run().exit(2);
    sage.args(["run", &"x".repeat(255), "-t", "t"]).run().exit(0);
    sage.args(["run", &"\u{1f4a3}".repeat(60), "-t", "t"]).run().exit(2);
    sage.args(["run", "-rf", "-t", "t"]).run().exit(2);
    sage.args(["run", "-t", "t", "--", "-rf"]).run().exit(0);
    sage.args([OsStr::new("run"), OsStr::from_bytes(b"a\xff\xfeb"), OsStr::new("-t"), OsStr::new("t")])
        .run()
        .exit(2);
    assert_eq!(sage.listing(), before);
}

// covers: R17, RELIABILITY 41
#[test]
fn step_paths_and_template_names_lead_nowhere_else() {
    let sage = Sage::new().template("t", NOOP);
    sage.write("secret.yaml", "password: hunter2\n");
    sage.sage("run x -t t").exit(0);
    let before = sage.listing();
    for step in ["../../../secret.yaml", "/etc/passwd", "p/../s", "", "p/s/../../.."] {
        for command in ["result", "logs", "explain"] {
            let outcome = sage.args([command, "x", step]).run().exit(2);
            assert!(!outcome.stdout.contains("hunter2") && !outcome.stdout.contains("root:"));
        }
        sage.args(["resume", "x", "--from", step]).run().exit(2);
    }
    for name in ["../evil", "/tmp/evil", "..", "", "a b", "a/b", "a.yaml", "UPPER", "a\nb", &"x".repeat(101)]
    {
        sage.args(["templates", "new", name]).run().exit(2);
    }
    for name in ["nobody", "../../nobody.yaml", "", "/etc/passwd", "/dev/zero", "."] {
        sage.args(["run", "y", "-t", name]).run().exit(2);
        sage.args(["validate", name]).run().exit(2);
    }
    assert_eq!(sage.listing(), before);
}

// covers: R17
#[test]
fn outputs_stay_inside_the_project() {
    let text = r#"
name: t
phases:
  - id: p
    operations: { id: s, type: shell, output: "{{ inputs.to }}", params: { run: "echo text" } }
"#;
    let sage = Sage::new().template("t", text);
    let before = sage.listing();
    let absolute = sage.outside().join("escaped").display().to_string();
    for (n, to) in
        ["../escaped", "a/../../escaped", "..", "", "./../escaped", &absolute].into_iter().enumerate()
    {
        let input = format!("to={to}");
        sage.args(["run", &format!("f{n}"), "-t", "t", "-i", &input])
            .run()
            .exit(1)
            .stdout_has("inside the project");
    }
    assert_eq!(sage.listing(), before);
    sage.args(["run", "good", "-t", "t", "-i", "to=docs/out.md"]).run().exit(0);
    assert_eq!(sage.lines("docs/out.md"), ["text"]);
}

/// Many steps write beside each other, with names that differ only in their last part.
// covers: R1
#[test]
fn outputs_of_parallel_steps_do_not_mix() {
    let text = r#"
name: t
phases:
  - id: p
    operations:
      id: s
      type: shell
      foreach: "[range(40)]"
      output: "out/report.{{ item }}"
      params: { argv: [echo, "{{ item }}"] }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t --parallel 40").exit(0);
    for n in 0..40 {
        assert_eq!(sage.lines(&format!("out/report.{n}")), [n.to_string()], "report.{n}");
    }
    assert_eq!(std::fs::read_dir(sage.path("out")).unwrap().count(), 40, "no temporary file is left");
}

// covers: RELIABILITY 44
#[test]
fn numbers_out_of_range_are_refused() {
    let sage = Sage::new().template("t", NOOP);
    for flags in [
        ["--parallel", "0"],
        ["--parallel", "-1"],
        ["--parallel", "99999999999999999999"],
        ["--parallel", "1.5"],
        ["--parallel", "NaN"],
        ["--timeout", "-5s"],
        ["--timeout", "1e999"],
        ["--timeout", "99999999999999999999999"],
        ["--timeout", "999999999999d"],
        ["--timeout", "soon"],
        ["-i", "novalue"],
        ["-i", "=x"],
    ] {
        sage.args(["run", "x", "-t", "t"].into_iter().chain(flags)).run().exit(2).stderr_has("error: ");
    }
    for (name, value) in [
        ("SAGE_PARALLEL_LIMIT", "0"),
        ("SAGE_PARALLEL_LIMIT", "-3"),
        ("SAGE_PARALLEL_LIMIT", "many"),
        ("SAGE_PARALLEL_LIMIT", "4294967296"),
        ("SAGE_WORKFLOW_TIMEOUT", "-1"),
        ("SAGE_WORKFLOW_TIMEOUT", "never"),
        ("SAGE_PARALLEL", "perhaps"),
    ] {
        sage.args(["run", "x", "-t", "t"]).env(name, value).run().exit(2).stderr_has("error: ");
    }
    assert!(!sage.path(".sage/state").exists(), "nothing was started");
    sage.args(["run", "x", "-t", "t", "--parallel", "4294967295"]).run().exit(0);
}

// covers: R17
#[test]
fn broken_configuration_is_told_with_its_place() {
    for (text, told) in [
        ("parallel = \"x\"", "sage.toml"),
        ("paralel = 3", "paralel"),
        ("parallel = 0", "whole number"),
        ("parallel = -1", "sage.toml"),
        ("[agents.x]\ncommand = \"text\"", "sage.toml"),
        ("[", "sage.toml"),
        ("timeout = \"soon\"", "soon"),
        ("\0", "sage.toml"),
    ] {
        let sage = Sage::new().template("t", NOOP);
        sage.write("sage.toml", text);
        sage.sage("run x -t t").exit(2).stderr_has(told);
        assert!(!sage.path(".sage/state").exists(), "{text:?}");
    }
}
