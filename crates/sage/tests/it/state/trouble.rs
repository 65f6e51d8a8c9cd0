//! A machine without room, descriptors or processes: nobody's failure.

use std::os::unix::process::CommandExt;

use crate::dsl::{DEADLINE, Sage, wait_until};

const MANY: &str = r#"
name: t
phases:
  - id: a
    operations:
      id: each
      type: shell
      foreach: "[range(12)]"
      tolerate: 11
      retry: 1
      params: { run: "echo $SAGE_STEP >> ran" }
"#;

/// Limits of this process are limits of what it starts.
fn limited(sage: &Sage, args: &[&str], limits: &str) -> std::process::Output {
    let command = sage.args(args).command();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(command.get_program());
    shell.args(command.get_args()).current_dir(sage.root()).env_clear();
    for (key, value) in command.get_envs() {
        shell.env(key, value.unwrap_or_default());
    }
    shell.output().unwrap()
}

/// All that it printed, to people and to pipes.
fn said(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

// covers: R15
#[test]
fn too_few_descriptors_fail_no_step() {
    let sage = Sage::new().template("t", MANY);
    for files in [40, 48, 56] {
        let _ = std::fs::remove_file(sage.path("ran"));
        let feature = format!("n{files}");
        let args = ["run", &feature, "-t", "t", "--parallel", "12", "--no-wait"];
        let output = limited(&sage, &args, &format!("ulimit -n {files}"));
        let (code, told) = (output.status.code(), said(&output));
        assert!(!told.contains("panicked"), "{told}");
        // It did it with what there was, or paused with the cause; it never gave an item up.
        match code {
            Some(0) => {}
            Some(4) => assert!(told.contains("Too many open files"), "{told}"),
            // Too few to even begin: nothing was started.
            Some(1) => assert!(sage.lines("ran").is_empty(), "{told}"),
            _ => panic!("{files}: {code:?} {told}"),
        }
        if code != Some(1) {
            if code == Some(4) {
                sage.args(["resume", &feature]).run().exit(0);
            }
            assert_eq!(sage.lines("ran").len(), 12, "{files}: every item once");
        }
    }
}

/// A small file system of its own, where that is possible.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(sage: &Sage) -> Option<Small> {
        let path = sage.path(".sage");
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=80m,mode=0700", "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Small(path))
    }

    fn fill(&self) {
        // More than there is room for: `dd` takes what it gets.
        let of = format!("of={}", self.0.join("filler").display());
        let mut dd = std::process::Command::new("dd");
        let _ = dd.args(["if=/dev/zero", &of, "bs=4096", "count=100000"]).output().unwrap();
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

const LONG: &str = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "echo one >> ran; until [ -e go ]; do sleep 0.01; done; echo one >> ended" } }
  - id: b
    dependencies: [a]
    operations: { id: two, type: shell, params: { run: "echo two >> ran; head -c 30000 /dev/zero | tr '\\0' x" } }
  - id: c
    dependencies: [b]
    operations: { id: three, type: shell, params: { run: "echo three >> ran" } }
"#;

/// On a real file system that is really full. Machines that let nobody mount one have the simulated disk's tests.
// covers: R15, R5
#[test]
fn a_full_disk_is_waited_for_in_the_foreground_and_in_the_background() {
    for detach in [false, true] {
        let sage = Sage::new();
        let Some(small) = Small::mount(&sage) else {
            assert!(!rustix::process::geteuid().is_root() || cannot_mount(), "root can mount a tmpfs");
            return;
        };
        let sage = sage.template("t", LONG);
        let mut running = (!detach).then(|| sage.spawn("run x -t t"));
        if detach {
            sage.sage("run x -t t --detach").exit(0);
        }
        wait_until(|| !sage.lines("ran").is_empty(), DEADLINE, "the first step");
        small.fill();
        sage.write("go", "");
        wait_until(|| !sage.lines("ended").is_empty(), DEADLINE, "its end");
        // In the background its log is on the full disk, too.
        if let Some(running) = &mut running {
            wait_until(
                || running.stderr().contains("No space left"),
                DEADLINE,
                "the run to say why it waits",
            );
        }
        assert!(!sage.lines("ran").contains(&"three".to_string()));
        small.make_room();
        match running {
            Some(running) => drop(running.end().exit(0)),
            None => wait_until(|| sage.status("x")["status"] == "completed", DEADLINE, "the run to go on"),
        }
        let ran = sage.lines("ran");
        assert_eq!((ran.first(), ran.last()), (Some(&"one".to_string()), Some(&"three".to_string())));
        let failed = sage.journal("x").records.iter().any(|entry| {
            matches!(&entry.event, sage_core::event::Event::StepFinished(finished)
                if matches!(finished.end, sage_core::event::End::Failed { .. }))
        });
        assert!(!failed, "no step failed for it");
        sage.sage("verify").exit(0);
        for pid in sage.processes() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed());
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
    }
}

/// Also root may live where nothing can be mounted.
fn cannot_mount() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut mount = std::process::Command::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "tmpfs"]).arg(dir.path()).output();
    let can = mounted.is_ok_and(|output| output.status.success());
    if can {
        let _ = std::process::Command::new("umount").arg(dir.path()).output();
    }
    !can
}

/// As another user, whose processes can be counted without those of everybody else.
// covers: R15
#[test]
fn too_few_processes_fail_no_step() {
    if !rustix::process::geteuid().is_root() {
        // Without another user the limit would be that of everything that runs here.
        return;
    }
    const USER: u32 = 54_321;
    let sage = Sage::new().template("t", MANY);
    let chowned =
        std::process::Command::new("chown").arg("-R").arg(USER.to_string()).arg(sage.outside()).status();
    assert!(chowned.unwrap().success());
    let as_user = |args: &[&str], limit: &str| {
        let command = sage.args(args).command();
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(sage.root()).env_clear().uid(USER).gid(USER);
        for (key, value) in command.get_envs() {
            shell.env(key, value.unwrap_or_default());
        }
        let output = shell.output().unwrap();
        (output.status.code(), said(&output))
    };
    for processes in [1, 7, 8, 9, 10, 11, 12, 14, 20, 30] {
        let _ = std::fs::remove_file(sage.path("ran"));
        let feature = format!("u{processes}");
        let args = ["run", &feature, "-t", "t", "--parallel", "12", "--no-wait"];
        // The shells do not agree on the letter.
        let limit = format!("ulimit -u {processes} 2>/dev/null || ulimit -p {processes} || exit 99; ");
        let (code, told) = as_user(&args, &limit);
        assert!(!told.contains("panicked"), "{processes}: {told}");
        match code {
            Some(0) => {}
            Some(4) => assert!(told.contains("temporarily unavailable"), "{processes}: {told}"),
            // Too few to even begin: nothing was started.
            Some(1) => {
                assert!(told.contains("error: cannot start threads: "), "{processes}: {told}");
                assert!(sage.lines("ran").is_empty(), "{processes}: {told}");
            }
            _ => panic!("{processes}: {code:?} {told}"),
        }
        if code != Some(0) {
            assert_eq!(as_user(&["resume", &feature], "").0, Some(0), "{processes}: it goes on");
        }
        assert_eq!(sage.lines("ran").len(), 12, "{processes}: every item once");
    }
}

/// The kernel's answer to `ulimit -f` is a signal that ends the process unless it is handled.
// covers: R15
#[test]
fn a_file_size_limit_is_an_error_and_no_death() {
    let text = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "echo one >> ran; head -c 20000 /dev/zero | tr '\\0' x" } }
  - id: b
    dependencies: [a]
    operations: { id: two, type: shell, params: { run: "echo two >> ran; head -c 20000 /dev/zero | tr '\\0' x" } }
"#;
    for blocks in [2, 8, 32, 64] {
        let sage = Sage::new().template("t", text);
        let output = limited(&sage, &["run", "x", "-t", "t", "--no-wait"], &format!("ulimit -f {blocks}"));
        let (code, told) = (output.status.code(), said(&output));
        assert!(code.is_some(), "{blocks}: ended by a signal: {told}");
        assert!(matches!(code, Some(0 | 1 | 4)), "{blocks}: {code:?} {told}");
        if code != Some(0) {
            assert!(told.contains("File too large"), "{blocks}: {told}");
            let resumed = sage.sage("resume x");
            assert!(matches!(resumed.code, 0 | 2), "{blocks}: {}", resumed.stderr);
        }
        sage.sage("verify").exit(0);
    }
    // Programs that it starts get the default again.
    let text = r#"
name: t
phases:
  - id: a
    operations: { id: one, type: shell, params: { run: "sh -c 'head -c 90000 /dev/zero > large'; echo $?" } }
"#;
    let sage = Sage::new().template("t", text);
    let output = limited(&sage, &["run", "x", "-t", "t", "--no-wait"], "ulimit -f 100");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(sage.sage("result x a/one").exit(0).json()["stdout"], "153\n", "128 + SIGXFSZ");
}
