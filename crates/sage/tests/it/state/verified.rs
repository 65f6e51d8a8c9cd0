//! `sage verify` is right both ways.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

use sage_engine::journal::{Journal, Sealing};

use super::Asked;
use crate::dsl::{Random, Sage, long};

// covers: R4
#[test]
fn whatever_the_damage_looks_like_it_is_found_and_resume_mends_it() {
    type Damage = fn(&Asked);
    let damages: [(&str, Damage); 9] = [
        ("an empty journal", |asked| std::fs::write(asked.journal(), "").unwrap()),
        ("CRLF", |asked| {
            let text = std::fs::read_to_string(asked.journal()).unwrap();
            std::fs::write(asked.journal(), text.replace('\n', "\r\n")).unwrap();
        }),
        ("the run's directory gone", |asked| std::fs::remove_dir_all(&asked.dir).unwrap()),
        ("all runs gone", |asked| std::fs::remove_dir_all(asked.dir.parent().unwrap()).unwrap()),
        ("zeros", |asked| {
            let len = asked.journal().metadata().unwrap().len();
            std::fs::write(asked.journal(), vec![0; len as usize]).unwrap();
        }),
        ("garbage", |asked| std::fs::write(asked.journal(), "garbage").unwrap()),
        ("half of it", |asked| {
            let bytes = std::fs::read(asked.journal()).unwrap();
            std::fs::write(asked.journal(), &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("an older copy", |asked| {
            let text = std::fs::read_to_string(asked.journal()).unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            std::fs::write(asked.journal(), lines[..lines.len() - 2].concat()).unwrap();
        }),
        ("no checkpoint but its backup", |asked| std::fs::remove_file(asked.checkpoint()).unwrap()),
    ];
    for (what, damage) in damages {
        let asked = Asked::new();
        asked.sage.sage("verify").exit(0);
        damage(&asked);
        let verified = asked.sage.sage("verify");
        assert_eq!(verified.code, 1, "{what}: {}", verified.stdout);
        assert!(verified.stderr.contains("hint: sage repair x"), "{what}: {}", verified.stderr);
        asked.sage.sage("resume x").exit(4);
        asked.sage.sage("verify").exit(0);
        asked.sage.sage("approve x").exit(0);
        asked.sage.sage("resume x").exit(0);
        assert_eq!(asked.sage.sage("result x d/end").exit(0).json()["stdout"], "100000\n", "{what}");
        asked.sage.sage("verify").exit(0);
    }
}

/// The journal was written again with another result in it, every hash and link in order.
// covers: R4
#[test]
fn a_chain_that_was_forged_is_damage() {
    let asked = Asked::new();
    let text = std::fs::read_to_string(asked.journal()).unwrap();
    let mut forged = Journal::new(&Sealing::new(None, "x"));
    let mut bytes = Vec::new();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let data = record["data"].to_string().replace("small\\n", "forged\\n");
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        forged.append(record["kind"].as_str().unwrap(), record["ts"].as_u64().unwrap(), &data).unwrap();
        bytes.extend(forged.take_batch().unwrap().bytes);
    }
    std::fs::write(asked.journal(), bytes).unwrap();
    asked.sage.sage("verify").exit(1);
    asked.sage.sage("status x").exit(1);
    asked.sage.sage("resume x").exit(4);
    assert_eq!(asked.sage.sage("result x a/small").exit(0).json()["stdout"], "small\n");
    assert_eq!(asked.ran(), ["big", "small", "use"], "the checkpoint had all of it");
    asked.sage.sage("verify").exit(0);
}

/// A directory that may not be read tells nothing, and that is not "no runs".
// covers: R4, R15
#[test]
fn state_that_cannot_be_read_is_an_error() {
    let asked = Asked::new();
    let user = User::of(&asked);
    for dir in [".sage", ".sage/state", ".sage/state/runs"] {
        let path = asked.sage.path(dir);
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o000);
        for command in [&["verify"][..], &["list"], &["status", "x"], &["resume", "x"]] {
            let (code, stderr) = user.types(command);
            assert_eq!(code, Some(1), "{dir} {command:?}: {stderr}");
            assert!(
                stderr.contains("cannot read") || stderr.contains("Permission denied"),
                "{dir}: {stderr}"
            );
        }
        mode(0o700);
    }
}

/// It is as good as ever once it can be read: making it again would cost what it has cost before.
// covers: R4, R5, R15
#[test]
fn a_result_that_may_not_be_read_is_not_made_again() {
    let asked = Asked::new();
    let (user, blob) = (User::of(&asked), asked.blob());
    let mode = |mode| std::fs::set_permissions(&blob, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o000);
    for command in [&["resume", "x"][..], &["repair", "x"]] {
        let (code, stderr) = user.types(command);
        assert_eq!(code, Some(1), "{command:?}: {stderr}");
        assert!(stderr.contains("cannot read the result of `a/big`"), "{command:?}: {stderr}");
    }
    let (code, stderr) = user.types(&["verify"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("hint: sage doctor") && !stderr.contains("sage resume"), "{stderr}");
    mode(0o600);
    assert_eq!(user.types(&["resume", "x"]).0, Some(4));
    assert_eq!(asked.ran(), ["big", "small", "use"], "nothing ran again");
}

/// A user who is refused what may not be read: root reads everything, so that all is somebody else's until the end.
struct User<'a> {
    asked: &'a Asked,
    is_root: bool,
}

impl User<'_> {
    const NOBODY: u32 = 65_534;

    fn of(asked: &Asked) -> User<'_> {
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            let mut all = std::process::Command::new("chown");
            let all = all.arg("-R").arg(Self::NOBODY.to_string()).arg(asked.sage.outside()).status();
            assert!(all.unwrap().success());
        }
        User { asked, is_root }
    }

    fn types(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = self.asked.sage.args(args).command();
        if self.is_root {
            command.uid(Self::NOBODY).gid(Self::NOBODY);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        if self.is_root {
            let _ = chown(self.asked.sage.outside(), Some(0), Some(0));
        }
    }
}

const STEPS: &str = r#"
name: t
phases:
  - id: a
    operations: { id: each, type: shell, foreach: "[range(6)]", params: { run: "true" } }
"#;

/// Starting, killed at any moment, and collected: none of it is damage.
// covers: R4
#[test]
fn healthy_runs_are_never_called_damaged() {
    let (kills, checks) = if long() { (60, 400) } else { (10, 25) };
    let sage = Sage::new().template("t", STEPS);
    let mut random = Random::new(14);
    for round in 0..kills {
        let feature = format!("k{round}");
        let mut running = sage.args(["run", &feature, "-t", "t", "-q"]).spawn();
        let at = std::time::Instant::now() + std::time::Duration::from_millis(random.below(60));
        while std::time::Instant::now() < at && !running.ended() {
            std::hint::spin_loop();
        }
        running.kill();
        sage.sage("verify").exit(0);
    }
    // While others start, run and are removed.
    let busy: Vec<_> = (0..3)
        .map(|n| {
            let script = format!(
                "for i in 1 2 3 4 5 6 7 8; do \"$0\" -C \"$1\" run b{n}-$i -t t -q; \"$0\" -C \"$1\" gc --older-than 0s --keep 0; done"
            );
            let mut command = sage.args(["--version"]).command();
            let binary = command.get_program().to_owned();
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", &script]).arg(&binary).arg(sage.root());
            for (key, value) in command.get_envs() {
                shell.env(key, value.unwrap_or_default());
            }
            command.stdin(std::process::Stdio::null());
            shell.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for _ in 0..checks {
        sage.sage("verify").exit(0);
    }
    for mut child in busy {
        child.wait().unwrap();
    }
    sage.sage("verify").exit(0);
}
