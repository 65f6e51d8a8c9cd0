//! Shell steps: results, exit codes, parameters, environment.

use sage_core::policy::FailureClass;
use sage_core::template::Kind;
use serde_json::json;

use crate::bench::{Bench, mode};

#[tokio::test]
async fn the_result_is_what_was_printed_and_the_exit_code() {
    let result = Bench::shell("echo out; echo err >&2").run().await.succeeded();
    assert_eq!(result, json!({"stdout": "out\n", "stderr": "err\n", "exitCode": 0}));
}

// covers: R7
#[tokio::test]
async fn a_non_zero_exit_fails_with_the_last_words_and_the_output() {
    let bench = Bench::shell("echo half; echo one >&2; echo 'disk is full' >&2; exit 3");
    let failure = bench.run().await.failed(FailureClass::Failed);
    assert_eq!(failure.message, "exit code 3: disk is full\none\ndisk is full");
    assert_eq!(failure.partial, json!({"stdout": "half\n", "stderr": "one\ndisk is full\n", "exitCode": 3}));
}

#[tokio::test]
async fn all_exit_codes_are_told_apart_from_signals() {
    for code in [1, 2, 125, 126, 127, 137, 255] {
        let failure = Bench::shell(&format!("exit {code}")).run().await.failed(FailureClass::Failed);
        assert_eq!(failure.message, format!("exit code {code}"));
    }
    for (signal, name) in [("KILL", "SIGKILL"), ("SEGV", "SIGSEGV"), ("TERM", "SIGTERM")] {
        let script = format!("ulimit -c 0; echo before; kill -{signal} $$");
        let failure = Bench::shell(&script).run().await.failed(FailureClass::Lost);
        assert_eq!(failure.message, format!("killed by {name}"));
        assert_eq!(failure.partial, json!({"stdout": "before\n", "stderr": "", "exitCode": null}));
    }
}

#[tokio::test]
async fn a_script_goes_on_after_an_error_as_in_a_terminal() {
    assert_eq!(Bench::shell("false; echo on").run().await.succeeded()["stdout"], "on\n");
}

#[tokio::test]
async fn a_program_that_cannot_start_is_named() {
    let missing = Bench::new(Kind::Shell, json!({"argv": ["no-such-program", "x"]}));
    missing.run().await.failed(FailureClass::Invalid).says("program `no-such-program` was not found");
    let plain = Bench::new(Kind::Shell, json!({"argv": ["./plain"]}));
    std::fs::write(plain.path("plain"), "text").unwrap();
    plain.run().await.failed(FailureClass::Invalid).says("program `./plain` is not executable");
    let mut keeper = Bench::shell("true");
    keeper.config.keeper = "/no/such/sage".into();
    keeper.run().await.failed(FailureClass::Invalid).says("could not be started");
}

#[tokio::test]
async fn arguments_are_passed_as_they_are() {
    let argv = json!(["printf", "%s|", "a b", "$HOME", "*", "", 7, true, "ä\n"]);
    let result = Bench::new(Kind::Shell, json!({ "argv": argv })).run().await.succeeded();
    assert_eq!(result["stdout"], "a b|$HOME|*||7|true|ä\n|");
}

#[tokio::test]
async fn wrong_parameters_are_named_before_anything_runs() {
    for (params, hint) in [
        (json!({}), "`run` or `argv`"),
        (json!({"run": "true", "argv": ["true"]}), "`run` or `argv`"),
        (json!({"run": 3}), "`run` must be text"),
        (json!({"run": "a\u{0}b"}), "NUL"),
        (json!({"argv": []}), "`argv`"),
        (json!({"argv": "true"}), "`argv`"),
        (json!({"argv": [""]}), "`argv`"),
        (json!({"argv": ["echo", {}]}), "`argv`"),
        (json!({"argv": ["echo", "a\u{0}b"]}), "`argv`"),
        (json!({"run": "true", "json": "yes"}), "`json`"),
        (json!({"run": "true", "env": ["A"]}), "`env`"),
        (json!({"run": "true", "env": {"A=B": "c"}}), "`A=B`"),
        (json!({"run": "true", "env": {"A": "\u{0}"}}), "`env.A`"),
        (json!({"run": "true", "cwd": 1}), "`cwd`"),
    ] {
        let bench = Bench::new(Kind::Shell, params);
        bench.run().await.failed(FailureClass::Invalid).says(hint);
        assert!(bench.spawned_pid().is_none());
    }
}

#[tokio::test]
async fn json_output_is_parsed_or_refused_with_an_excerpt() {
    let good = Bench::shell(r#"echo '{"b":1,"a":[true]}'"#).param("json", json!(true));
    assert_eq!(good.run().await.succeeded(), json!({"b": 1, "a": [true]}));
    let bad = Bench::shell("echo 'here you are: {'").param("json", json!(true));
    let failure = bad.run().await.failed(FailureClass::Invalid).says("`here you are: {`");
    assert_eq!(failure.partial["exitCode"], 0);
    let failed = Bench::shell("echo '{}'; exit 1").param("json", json!(true));
    failed.run().await.failed(FailureClass::Failed);
    let cut = Bench::shell("echo 12345678").param("json", json!(true)).output_cap(4);
    cut.run().await.failed(FailureClass::Invalid).says("too long");
}

// covers: R17
#[tokio::test]
async fn the_working_directory_stays_in_the_project() {
    let outside = tempfile::tempdir().unwrap();
    let bench = |cwd: &str| {
        let bench = Bench::shell("pwd -P").param("cwd", json!(cwd));
        std::fs::create_dir_all(bench.path("sub/deep")).unwrap();
        std::os::unix::fs::symlink(outside.path(), bench.path("link")).unwrap();
        bench
    };
    for (cwd, end) in [("sub", "/sub\n"), ("sub/../sub/deep", "/sub/deep\n"), ("./sub", "/sub\n")] {
        let stdout = bench(cwd).run().await.succeeded()["stdout"].clone();
        assert!(stdout.as_str().unwrap().ends_with(end), "{stdout}");
    }
    for cwd in ["..", "sub/../..", "link", "../../../../../../etc"] {
        bench(cwd).run().await.failed(FailureClass::Invalid).says("is outside the project");
    }
    bench("nowhere").run().await.failed(FailureClass::Invalid).says("`nowhere`");
    let absolute = outside.path().canonicalize().unwrap();
    let stdout = bench(absolute.to_str().unwrap()).run().await.succeeded()["stdout"].clone();
    assert_eq!(stdout, format!("{}\n", absolute.display()));
}

// covers: R17
#[tokio::test]
async fn the_environment_names_the_step_and_nobody_can_forge_it() {
    let script = r#"echo "$SAGE_RUN,$SAGE_FEATURE,$SAGE_STEP,$SAGE_ATTEMPT,$SAGE_KEY,$MINE,${PATH:+path}"
        cat "$SAGE_INPUT""#;
    let env = json!({"MINE": "a b", "SAGE_RUN": "run_forged", "SAGE_STEP": "x"});
    let bench = Bench::shell(script).param("env", env).attempt(2);
    let stdout = bench.run().await.succeeded()["stdout"].clone();
    let run = &bench.call.run;
    let expected = format!("{run},login-page,build/step[2],2,c0ffee,a b,path\n");
    assert_eq!(stdout, expected + r#"{"params":{},"inputs":{"who":"you"}}"#);
    assert_eq!(mode(&bench.path(".scratch/input.json")), 0o600);
}

#[tokio::test]
async fn a_script_may_be_longer_than_an_argument() {
    let script = format!("# {}\necho end", "x".repeat(300_000));
    assert_eq!(Bench::shell(&script).run().await.succeeded()["stdout"], "end\n");
}

#[tokio::test]
async fn other_kinds_are_not_for_us() {
    for kind in [Kind::Sleep, Kind::Script, Kind::Approval, Kind::Workflow, Kind::Verify] {
        let outcome = Bench::new(kind, json!({})).run().await;
        outcome.failed(FailureClass::Invalid).says(kind.name());
    }
}

#[tokio::test]
async fn a_step_has_a_session_of_its_own_and_no_terminal() {
    let bench = Bench::shell("cut -d' ' -f6 /proc/$$/stat; (: </dev/tty) 2>/dev/null || echo none");
    let stdout = bench.run().await.succeeded()["stdout"].clone();
    assert_eq!(stdout, format!("{}\nnone\n", bench.spawned_pid().unwrap()));
}

#[tokio::test]
async fn programs_are_found_in_the_path_of_the_step() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Kind::Shell, json!({"argv": ["my-tool"]}));
    let path = format!("{}:/usr/bin:/bin", bench.dir.path().display());
    let bench = bench.param("env", json!({ "PATH": path }));
    std::fs::write(bench.path("my-tool"), "#!/bin/sh\necho mine").unwrap();
    std::fs::set_permissions(bench.path("my-tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(bench.run().await.succeeded()["stdout"], "mine\n");
}
