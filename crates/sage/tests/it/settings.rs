//! Settings of the environment and of `sage.toml`: each has an effect, or is refused by its name.

use crate::dsl::Sage;

/// Templates that come with Sage, on a project with a file to look at.
fn shipped(settings: &str) -> Sage {
    let sage = Sage::new();
    sage.write("README.md", "# Shop\n\nA small shop.\n");
    sage.write("shop.py", "def total(prices):\n    return sum(prices)\n");
    sage.write("sage.toml", settings);
    sage
}

fn slow(timeout: &str) -> String {
    format!(
        "name: slow\n{timeout}phases:\n  - id: p\n    operations:\n      - {{ id: a, type: shell, params: {{ run: sleep 60 }} }}\n"
    )
}

// covers: R11
#[test]
fn the_time_that_results_are_kept_is_the_projects_for_operations_that_come_with_sage() {
    let sage = shipped("");
    sage.sage("run audit-it -t audit --quiet");
    let again = |sage: &Sage| sage.sage("run audit-it -t audit --quiet").stdout;
    assert!(again(&sage).contains("cache 100%"), "by default they are kept for a month");
    let short = sage.args(["run", "audit-it", "-t", "audit", "--quiet"]).env("SAGE_CACHE_TTL", "1ms").run();
    assert!(short.stdout.contains("cache 0%"), "{}", short.stdout);
    sage.write("sage.toml", "[cache]\nttl = \"1ms\"\n");
    assert!(again(&sage).contains("cache 0%"), "and so says sage.toml");
}

// covers: R11
#[test]
fn an_operations_own_time_wins_over_the_projects() {
    let sage = shipped("[cache]\nttl = \"1ms\"\n");
    let text = "
name: own
phases:
  - id: p
    operations:
      - { id: kept, type: shell, cache: { ttl: 1h }, params: { run: echo kept } }
      - { id: gone, type: shell, cache: true, params: { run: echo gone } }
";
    sage.write(".sage/templates/own.yaml", text);
    sage.sage("run x -t own --quiet").exit(0);
    sage.sage("run x -t own --quiet").exit(0).stdout_has("cache 50% (1 of 2 hits)");
}

// covers: R11
#[test]
fn the_size_of_the_cache_and_its_switch_have_an_effect() {
    let text = "
name: own
phases:
  - id: p
    operations: { id: big, type: shell, cache: true, params: { run: 'printf %04000d 1' } }
";
    let hits = |settings: &str| {
        let sage = shipped(settings);
        sage.write(".sage/templates/own.yaml", text);
        sage.sage("run x -t own --quiet").exit(0);
        sage.sage("run x -t own --quiet").exit(0).stdout.contains("1 of 1 hit")
    };
    assert!(hits(""));
    assert!(hits("[cache]\nmaxSize = \"1MB\"\n"));
    assert!(!hits("[cache]\nmaxSize = \"2KB\"\n"), "what is larger than the cache is not kept");
    assert!(!hits("[cache]\nenabled = false\n"));
}

// covers: R14
#[test]
fn the_users_time_limit_wins_over_that_of_a_template_that_comes_with_sage() {
    // A copy of a shipped template with a step that takes long would be the project's own: so the operation is.
    let sage = shipped("");
    sage.write(".sage/operations/audit.security.md", "---\nkind: shell\nparams: { run: sleep 60 }\n---\n");
    let run = |variable: &str, value: &str| {
        sage.args(["run", "late", "-t", "audit", "--new", "--quiet"]).env(variable, value).run()
    };
    run("SAGE_WORKFLOW_TIMEOUT", "1500").exit(4).stdout_has("--timeout");
    sage.write("sage.toml", "timeout = \"1s\"\n");
    run("NO_SUCH_SETTING", "1").exit(4).stdout_has("--timeout");
}

// covers: R14
#[test]
fn a_projects_own_template_wins_over_the_users_time_limit() {
    let sage = shipped("timeout = \"1h\"\n");
    sage.write(".sage/templates/slow.yaml", slow("timeout: 1s\n"));
    sage.sage("run x -t slow --quiet").exit(4).stdout_has("--timeout");
    // And where it says nothing, the user's is taken.
    sage.write(".sage/templates/slow.yaml", slow(""));
    let run = sage.args(["run", "y", "-t", "slow", "--quiet"]).env("SAGE_WORKFLOW_TIMEOUT", "1s").run();
    run.exit(4).stdout_has("--timeout");
}

// covers: R4, R17
#[test]
fn encryption_that_is_not_there_is_refused() {
    let sage = shipped("");
    sage.write(".sage/templates/t.yaml", slow("").replace("sleep 60", "exit 0"));
    let before = sage.listing();
    for (name, value) in [("SAGE_STATE_ENCRYPTION", "true"), ("SAGE_STATE_KEY", "secret")] {
        for command in
            ["run x -t t", "resume x", "approve x", "wake complete --session s", "gc", "mcp", "cache clear"]
        {
            let refused = sage.args(command.split(' ')).env(name, value).run().exit(2);
            let refused = refused.stderr_has(&format!("`{name}` asks for encrypted state"));
            refused.stderr_has(&format!("hint: unset {name}")).stderr_lacks("secret");
        }
        sage.args(["config"]).env(name, value).run().exit(0).stderr_has("asks for encrypted state");
        sage.args(["doctor"]).env(name, value).run().exit(1).stdout_has("FAIL  encryption");
        sage.args(["templates"]).env(name, value).run().exit(0);
    }
    assert_eq!(sage.listing(), before, "nothing was written");
    for value in ["false", "0", ""] {
        sage.args(["run", "x", "-t", "t", "--quiet"]).env("SAGE_STATE_ENCRYPTION", value).run().exit(0);
    }
    let off = sage.args(["run", "x", "-t", "t", "--quiet"]).env("SAGE_STATE_ENCRYPTION", "off");
    off.env("SAGE_STATE_KEY", "secret").run().exit(0);
}

// covers: S9, R14
#[test]
fn a_wrong_value_is_told_with_the_variable_that_was_set() {
    let sage = shipped("");
    let table = [
        ("ENABLE_WAKE_MESSAGING", "maybe", "ENABLE_WAKE_MESSAGING=false"),
        ("SAGE_WAKES", "maybe", "SAGE_WAKES=false"),
        ("ENABLE_PARALLEL_EXECUTION", "maybe", "ENABLE_PARALLEL_EXECUTION=false"),
        ("ENABLE_BACKGROUND_AGENTS", "2", "ENABLE_BACKGROUND_AGENTS=false"),
        ("ENABLE_SESSION_PERSISTENCE", "x", "ENABLE_SESSION_PERSISTENCE=false"),
        ("SAGE_PARALLEL", "3", "SAGE_PARALLEL_LIMIT=3"),
        ("SAGE_PARALLEL_LIMIT", "many", "SAGE_PARALLEL_LIMIT=4"),
        ("SAGE_PARALLEL_LIMIT", "0", "SAGE_PARALLEL_LIMIT=4"),
        ("SAGE_WORKFLOW_TIMEOUT", "5", "SAGE_WORKFLOW_TIMEOUT=5s"),
        ("SAGE_WORKFLOW_TIMEOUT", "soon", "SAGE_WORKFLOW_TIMEOUT=10m"),
        ("SAGE_CACHE_TTL", "30", "SAGE_CACHE_TTL=30s"),
        ("SAGE_STATE_ENCRYPTION", "aes", "SAGE_STATE_ENCRYPTION=false"),
    ];
    for (name, value, hint) in table {
        let refused = sage.args(["list"]).env(name, value).run().exit(2);
        refused.stderr_has(&format!("error: `{name}`: ")).stderr_has(&format!("hint: {hint}"));
    }
    sage.write("sage.toml", "[switches]\nwakes = \"maybe\"\n");
    sage.sage("list").exit(2).stderr_has("sage.toml");
}
