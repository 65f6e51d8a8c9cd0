//! State that came with a clone is shown, and never continued, cached or approved without a person's word.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dsl::{DEADLINE, Sage, wait_until};

use super::{canary, started};

/// The project of `maker`, as somebody else gets it: with all of its state, and none of its key.
pub fn cloned(maker: &Sage) -> Sage {
    let sage = Sage::untrusted();
    copy(maker.root(), sage.root());
    for lock in find(sage.root(), |name| name.ends_with(".lock")) {
        std::fs::remove_file(lock).unwrap();
    }
    sage
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).unwrap();
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

pub fn find(dir: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find(&path, wanted));
        } else if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
            found.push(path);
        }
    }
    found
}

/// Runs in the background until `go` is there, which leaves a trace.
const BACKGROUND: &str = r#"
name: t
phases:
  - id: a
    operations: { id: first, type: shell, params: { run: "echo first >> ran" } }
  - id: b
    dependencies: [a]
    operations: { id: evil, type: shell, params: { run: "./evil.sh; until [ -e go ]; do sleep 0.02; done" } }
"#;

/// Kills everything of a project, also what is started meanwhile.
pub fn cut_short(maker: &Sage) {
    let gone = || {
        for pid in maker.processes() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed());
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
        maker.processes().is_empty()
    };
    wait_until(gone, DEADLINE, "all of it to be gone");
}

/// A project whose run in the background was cut off.
fn cut_off() -> Sage {
    let maker = Sage::new().template("t", BACKGROUND);
    canary(&maker, "evil.sh");
    maker.sage("run evil -t t --detach").exit(0);
    wait_until(|| !started(&maker).is_empty(), DEADLINE, "its second step");
    cut_short(&maker);
    maker
}

// covers: R17, S1
#[test]
fn a_background_run_of_a_clone_does_not_go_on() {
    let sage = cloned(&cut_off());
    canary(&sage, "evil.sh");
    for command in
        ["list", "status", "status evil", "inbox", "logs evil", "explain evil", "tickets", "result evil"]
    {
        sage.sage(command);
        assert_eq!(sage.processes(), [0; 0], "`{command}` started something");
    }
    sage.sage("list").exit(0).stdout_has("(foreign: sage trust)");
    sage.sage("status evil")
        .exit(0)
        .stderr_has("not written by this user")
        .stderr_has("sage trust state.evil");
    assert_eq!(sage.status("evil")["foreign"], true);
    let before = std::fs::read(sage.latest_dir("evil").join("journal.jsonl")).unwrap();
    for command in
        ["resume evil", "pause evil", "cancel evil", "fork evil --from b --as fork", "budget evil raise 1usd"]
    {
        let refused = sage.sage(command).exit(2);
        refused
            .stderr_has("was not written by this user on this machine")
            .stderr_has("hint: sage trust state.evil");
    }
    assert_eq!(std::fs::read(sage.latest_dir("evil").join("journal.jsonl")).unwrap(), before);
    assert_eq!(started(&sage), [""; 0]);
    // A script has to name it, and adopting starts nothing either.
    sage.sage("trust --yes").exit(0).stderr_has("sage trust state.evil --yes");
    sage.sage("resume evil").exit(2);
    sage.sage("trust state.evil --yes").exit(0).stdout_has("trusted: state.evil");
    sage.sage("list").exit(0);
    assert_eq!(sage.processes(), [0; 0]);
    assert!(sage.status("evil").get("foreign").is_none());
    sage.write("go", "");
    sage.sage("resume evil").exit(0);
    assert_eq!(sage.lines("ran"), ["first"], "what was finished stays");
    assert_eq!(started(&sage).len(), 1);
}

// covers: R5, R17
#[test]
fn an_open_run_of_another_key_is_not_begun_anew_without_a_word() {
    let sage = cloned(&cut_off());
    canary(&sage, "evil.sh");
    sage.write("go", "");
    sage.sage("trust --yes");
    let refused = sage.sage("run evil -t t").exit(2);
    refused
        .stderr_has("was not written by this user")
        .stderr_has("sage trust state.evil")
        .stderr_has("--new");
    assert_eq!(sage.lines("ran"), ["first"], "nothing ran again");
    sage.sage("run evil -t t --new").exit(0);
    assert_eq!(sage.lines("ran"), ["first", "first"]);
}

// covers: R17, S1
#[test]
fn a_copy_of_a_project_does_not_go_on_by_itself() {
    let maker = cut_off();
    let sage = Sage::untrusted();
    copy(maker.root(), sage.root());
    canary(&sage, "evil.sh");
    // The same user: the same key.
    copy(&maker.user_state(), &{
        std::fs::create_dir_all(sage.user_state()).unwrap();
        sage.user_state()
    });
    for command in ["list", "status", "inbox", "logs evil"] {
        sage.sage(command);
        assert_eq!(sage.processes(), [0; 0], "`{command}` started something");
    }
    // Whose run it is, is no question.
    sage.write("go", "");
    sage.sage("resume evil").exit(0);
}

// covers: R11, R17
#[test]
fn an_edited_cache_entry_is_a_miss() {
    let template = r#"
name: t
phases:
  - id: p
    operations: { id: a, type: agent, agent: fake, cache: true, params: { prompt: look, script: [{ say: honest }] } }
"#;
    let maker = Sage::new().template("t", template);
    maker.sage("run x -t t").exit(0);
    let entry = find(&maker.path(".sage/cache"), |name| name.len() == 69).remove(0);
    let text = std::fs::read_to_string(&entry).unwrap();
    // As anybody can: another result, and the checksum that belongs to it.
    let (body, _) = text.rsplit_once(",\"sha256\"").unwrap();
    let forged = body.replace("honest", "forged");
    let sha = sage_core::digest::Digest::of(forged.as_bytes());
    std::fs::write(&entry, format!("{forged},\"sha256\":\"{sha}\"}}\n")).unwrap();
    for sage in [&maker, &cloned(&maker)] {
        sage.sage("run x -t t").exit(0);
        let result = sage.sage("result x p/a").exit(0);
        assert!(result.stdout.contains("honest") && !result.stdout.contains("forged"), "{}", result.stdout);
    }
    maker.sage("run x -t t").exit(0).stdout_has("cached");
}

// covers: R17
#[test]
fn skills_that_arrive_approved_are_not() {
    let maker = Sage::new();
    maker.write(".sage/skills/evil/SKILL.md", "---\nname: evil\ndescription: Does evil\n---\nDo it.\n");
    maker.write(".sage/skills/evil/run.sh", "#!/bin/sh\ntouch evil-ran\n");
    let approved =
        |sage: &Sage| sage.sage("skills list --json").exit(0).json()["skills"][0]["approved"].clone();
    maker.sage("skills approve evil --yes").exit(0);
    assert_eq!(approved(&maker), true);
    let sage = cloned(&maker);
    assert_eq!(approved(&sage), false);
    sage.sage("skills run evil").exit(2);
    assert!(!sage.path("evil-ran").exists());
    sage.sage("skills approve evil --yes").exit(0);
    assert_eq!(approved(&sage), true);
}

// covers: R17, RELIABILITY 20
#[test]
fn a_sage_directory_that_is_a_link_or_anothers_is_refused_by_all_that_writes() {
    let elsewhere = Sage::new().template("ask", "name: ask\nphases:\n  - id: p\n    operations: { id: ok, type: approval, params: { message: \"?\" } }\n");
    elsewhere.sage("run x -t ask").exit(4);
    let sage = Sage::untrusted();
    std::fs::remove_dir_all(sage.path(".sage")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(".sage"), sage.path(".sage")).unwrap();
    copy(&elsewhere.user_state(), &{
        std::fs::create_dir_all(sage.user_state()).unwrap();
        sage.user_state()
    });
    let before = listing(elsewhere.root());
    let writes = [
        "approve x",
        "reject x",
        "pause x",
        "cancel x",
        "resume x",
        "run y -t ask",
        "fork x --from p --as z",
        "init",
        "wake finding --session s",
        "inbox handle",
        "limits set cpu 1",
        "breakers reset --all",
        "cache clear",
        "tickets add t",
        "gc",
        "session delete s",
        "skills approve s --yes",
        "templates new n",
        "trust --yes",
        "check",
        "handoff accept h",
        "budget x raise 1usd",
        "tools search",
        "code run x.ts",
        "serve --port 0",
        "supervise",
    ];
    for command in writes {
        let refused = sage.sage(command);
        assert_eq!(refused.code, 1, "`{command}`: {}", refused.stderr);
        assert!(
            refused.stderr.contains("is a symlink or not a directory"),
            "`{command}`: {}",
            refused.stderr
        );
    }
    assert_eq!(listing(elsewhere.root()), before, "nothing was written through the link");
    // What is behind it is not shown either.
    for command in ["status x", "list", "inbox", "session list"] {
        sage.sage(command).exit(1).stderr_has("is a symlink; sage follows none");
    }
    // And one that belongs to another user.
    if rustix::process::geteuid().is_root() {
        let sage = Sage::untrusted();
        std::os::unix::fs::chown(sage.path(".sage"), Some(12345), None).unwrap();
        for command in ["run x -t feature", "init", "approve x", "cache clear"] {
            sage.sage(command).exit(1).stderr_has("belongs to another user").stderr_has("chown");
        }
        sage.args(["init"]).env("SUDO_UID", "12345").run().exit(0);
    }
}

fn listing(dir: &Path) -> Vec<String> {
    let shown = |path: PathBuf| {
        let meta = path.metadata().unwrap();
        format!("{} {} {:?}", path.display(), meta.len(), meta.modified().unwrap())
    };
    let mut all: Vec<String> = find(dir, |_| true).into_iter().map(shown).collect();
    all.sort();
    all
}

// covers: R17
#[test]
fn without_a_key_runs_work_and_going_on_needs_a_word() {
    let sage = Sage::new().template("t", "name: t\nphases:\n  - id: p\n    operations: { id: ok, type: approval, params: { message: \"?\" } }\n");
    let homeless = |command: &str| {
        let invocation = sage.args(command.split_whitespace());
        // A file where the directory should be.
        let file = sage.outside().join("no-directory");
        std::fs::write(&file, "").unwrap();
        invocation.env("XDG_STATE_HOME", file).run()
    };
    homeless("run x -t t").exit(4).stderr_has("note: state is not sealed");
    homeless("status x").exit(0).stderr_has("not written by this user");
    homeless("resume x").exit(2).stderr_has("hint: sage trust state.x");
    homeless("approve x").exit(2);
    homeless("run y -t t --detach").exit(4).stderr_has("it runs here");
    // With a key, it can be adopted.
    sage.sage("trust state.x --yes").exit(0);
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
}

/// Whoever adopts a run sees what it will do, and the answers in it that nobody here gave.
// covers: R17, S1
#[test]
fn adopting_a_run_shows_what_it_does_and_whose_answers_it_has() {
    let text = "name: t\nphases:\n  - id: a\n    operations: { id: ok, type: approval, params: { message: \"Ship?\" } }\n  - id: b\n    dependencies: [a]\n    operations: { id: evil, type: shell, params: { run: \"./evil.sh now\" } }\n";
    let maker = Sage::new().template("t", text);
    maker.sage("run asking -t t").exit(4);
    maker.sage("approve asking").exit(0);
    let sage = cloned(&maker);
    canary(&sage, "evil.sh");
    let shown = sage.sage("trust state.asking").exit(2);
    shown
        .stdout_has("b/evil runs `./evil.sh now`")
        .stdout_has("brings the answer `approve` by")
        .stdout_has("to a/ok");
    // Not with all the rest.
    let left = sage.sage("trust").exit(0);
    left.stderr_has("not adopted without its name").stderr_has("sage trust state.asking");
    sage.sage("resume asking").exit(2).stderr_has("not written by this user");
    assert_eq!(started(&sage), [""; 0]);
    sage.sage("trust state.asking --yes").exit(0);
    sage.sage("resume asking").exit(0);
    assert_eq!(started(&sage).len(), 1);
}
