//! Kill -9 of sage while children run: after a resume there are never two copies of one step alive.
//!
//! Every copy of a step enters its pid and start time in a directory, and before that looks at all that were
//! entered: one that still lives is written to `overlap`. Daemons and processes without environment enter
//! themselves too. In the end nothing of the run is left.

use std::time::Duration;

use crate::dsl::{DEADLINE, Random, Sage, is_alive, long, wait_until};

/// `enter` is for `sh`; the copy that finds a living older one says so, and goes on to be found itself.
const ENTER: &str = r#"
enter() { # directory, own pid
  for file in "$1"/copy-*; do
    [ -e "$file" ] || continue
    read -r pid start < "$file"
    if [ "$(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null)" = "$start" ] &&
       [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] && [ "${3:-}" != "$pid" ]; then
      echo "attempt $SAGE_ATTEMPT found $file alive: $(tr '\0' ' ' < /proc/$pid/cmdline)" >> "$1/overlap"
    fi
  done
  echo "$2 $(cut -d' ' -f22 "/proc/$2/stat")" > "$1/.copy-$2"
  mv "$1/.copy-$2" "$1/copy-$2"
}
"#;

/// Step scripts by kind: each enters `copies` processes and then sleeps, until `$DIR/enough` exists.
struct Kind {
    name: &'static str,
    copies: usize,
    script: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind { name: "plain", copies: 1, script: r#"enter "$DIR" $$; sleep 300"# },
    Kind {
        name: "ignores-term",
        copies: 1,
        script: r#"trap '' TERM INT HUP; enter "$DIR" $$; sleep 300; sleep 300"#,
    },
    Kind {
        name: "daemon",
        copies: 2,
        // Two forks and a session of its own: nobody's child, in nobody's group.
        script: r#"enter "$DIR" $$
(setsid sh -c '. "$DIR/enter.sh"; trap "" TERM HUP; enter "$DIR" $$ '$$'; sleep 300; sleep 300' >/dev/null 2>&1 </dev/null &)
sleep 300"#,
    },
    Kind {
        name: "no-environment",
        copies: 2,
        // Nothing in it names the run any more, and it has closed what it inherited.
        script: r#"enter "$DIR" $$
(env -i PATH="$PATH" DIR="$DIR" setsid sh -c '. "$DIR/enter.sh"; exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; enter "$DIR" $$ '$$'; sleep 300; sleep 300' >/dev/null 2>&1 </dev/null &)
sleep 300"#,
    },
];

fn template(script: &str) -> String {
    let script: String = script.lines().map(|line| format!("            {line}\n")).collect();
    format!(
        r#"
name: t
phases:
  - id: work
    operations:
      - id: hold
        type: shell
        params:
          env: {{ DIR: "{{{{ inputs.dir }}}}" }}
          run: |
            [ -e "$DIR/enough" ] && exit 0
            . "$DIR/enter.sh"
{script}"#
    )
}

struct Copies {
    sage: Sage,
    kind: &'static Kind,
}

impl Copies {
    fn new(kind: &'static Kind) -> Copies {
        let sage = Sage::new().template("t", &template(kind.script));
        sage.write("copies/enter.sh", ENTER);
        Copies { sage, kind }
    }

    fn entered(&self) -> Vec<u32> {
        let files = std::fs::read_dir(self.sage.path("copies")).unwrap().flatten();
        let pid = |file: std::fs::DirEntry| file.file_name().to_str()?.strip_prefix("copy-")?.parse().ok();
        files.filter_map(pid).collect()
    }

    /// Starts or resumes, waits until a new copy is there (not always: a kill may come before), kills.
    fn cycle(&self, args: &[String], random: &mut Random) -> bool {
        let before = self.entered().len();
        let mut running = self.sage.args(args).spawn();
        let sage_only = random.below(5) == 0;
        if sage_only {
            // Before, in the middle of or after the start of a child.
            let wait = std::time::Instant::now() + Duration::from_millis(random.below(60));
            wait_until(|| std::time::Instant::now() >= wait, DEADLINE, "the moment");
        } else {
            let copies = self.kind.copies;
            running.until(|| self.entered().len() >= before + copies, "the new copy to enter itself");
        }
        running.kill() && !sage_only
    }

    fn storm(self, kills: u32) {
        let dir = format!("dir={}", self.sage.path("copies").display());
        let start = ["run", "x", "-t", "t", "-i", &dir].map(str::to_owned);
        let go_on = ["resume".to_owned(), "x".to_owned()];
        let mut random = Random::new(kills.into());
        let (mut with_children, mut all) = (0, 0);
        while with_children < kills {
            let known = self.sage.engine().latest("x").is_some();
            let args: &[String] = if known { &go_on } else { &start };
            with_children += u32::from(self.cycle(args, &mut random));
            all += 1;
        }
        self.sage.write("copies/enough", "");
        self.sage.args(&go_on).run().exit(0);
        let overlap = self.sage.lines("copies/overlap");
        assert!(overlap.is_empty(), "two copies at once: {overlap:#?}");
        self.sage.assert_nothing_alive();
        let left: Vec<u32> = self.entered().into_iter().filter(|&pid| is_ours(pid)).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        self.sage.sage("verify").exit(0);
        let name = self.kind.name;
        println!(
            "children ({name}): {all} kills, {with_children} with a child at work, {} copies, 0 overlaps",
            self.entered().len()
        );
    }
}

/// Still one of the test's sleepers, and not somebody who got the number later.
fn is_ours(pid: u32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    is_alive(pid) && String::from_utf8_lossy(&command).contains("enter")
}

fn share() -> u32 {
    if long() { 100 } else { 25 }
}

// covers: R5, RELIABILITY 32
#[test]
fn plain_children_never_run_twice_at_once() {
    Copies::new(&KINDS[0]).storm(share());
}

// covers: R5, RELIABILITY 28, 32
#[test]
fn children_that_ignore_term_never_run_twice_at_once() {
    Copies::new(&KINDS[1]).storm(share());
}

// covers: R5, RELIABILITY 29, 32
#[test]
fn daemons_never_run_twice_at_once() {
    Copies::new(&KINDS[2]).storm(share());
}

// covers: R5, RELIABILITY 29, 32
#[test]
fn children_without_environment_never_run_twice_at_once() {
    Copies::new(&KINDS[3]).storm(share());
}

/// `killall -9`: the keepers die with sage, so their orphans are found by their environment.
// covers: R5, RELIABILITY 32
#[test]
fn children_whose_keeper_was_killed_too_are_ended_by_the_resume() {
    let copies = Copies::new(&KINDS[1]);
    let dir = format!("dir={}", copies.sage.path("copies").display());
    let mut running = copies.sage.args(["run", "x", "-t", "t", "-i", &dir]).spawn();
    running.until(|| !copies.entered().is_empty(), "the child");
    let child = copies.entered()[0];
    let keeper = parent(child).unwrap();
    running.signal(rustix::process::Signal::STOP);
    for pid in [keeper, running.pid()] {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    assert!(running.kill());
    assert!(is_alive(child), "the child is an orphan now");
    copies.sage.write("copies/enough", "");
    copies.sage.sage("resume x").exit(0).stderr_has("processes of the earlier owner");
    assert!(!is_ours(child));
    assert_eq!(copies.sage.lines("copies/overlap"), [""; 0]);
    copies.sage.assert_nothing_alive();
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// A step that succeeds leaves nothing behind either.
// covers: R5, RELIABILITY 29, 34
#[test]
fn daemons_of_a_finished_step_are_gone() {
    let text = r#"
name: t
phases:
  - id: p
    operations:
      id: start
      type: shell
      params: { run: "(setsid sleep 300 >/dev/null 2>&1 &) ; (env -i setsid sleep 301 & ) ; echo started" }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(0);
    assert_eq!(sage.alive(), [0u32; 0]);
}
