//! `sage fork`: another way from a step on, beside the first one. What really runs appends a line to `ran`.

use sage_agents::fake_llm::FakeLlm;
use sage_agents::session::Store;
use serde_json::{Value, json};

use crate::code;
use crate::dsl::{DEADLINE, Random, Sage, git, long, wait_until};

/// `a -> b -> c`, and `aside`; `b` waits for the file `go` if it is told to.
const CHAIN: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: a, type: shell, params: { run: "echo a >> ran; echo 1" } }
      - { id: aside, type: shell, params: { run: "echo aside >> ran; head -c 80000 /dev/zero | tr '\\0' x" } }
      - { id: b, type: shell, needs: [p/a, p/aside], params: { run: "echo b >> ran; while [ -e wait ]; do sleep 0.01; done" } }
      - { id: c, type: shell, needs: [p/b], params: { run: "echo c >> ran" } }
"#;

fn project() -> Sage {
    Sage::new().template("t", CHAIN)
}

fn ran(sage: &Sage) -> String {
    code::ran(sage).join(" ")
}

fn explained(sage: &Sage, feature: &str, step: &str) -> String {
    let json = sage.args(["explain", feature, step, "--json"]).run().exit(0).json();
    json["why"].as_str().unwrap().to_owned()
}

// covers: R5, R18
#[test]
fn a_fork_goes_its_own_way_and_says_where_it_comes_from() {
    let sage = project();
    sage.sage("run x -t t").exit(0);
    let source = std::fs::read(sage.latest_dir("x").join("journal.jsonl")).unwrap();
    let told = sage.args(["fork", "x", "--from", "p/b", "--as", "Second Try"]).run().exit(0);
    let told =
        told.stderr_has("forked from x: 2 of 4 steps taken over; p/b and what depends on it runs again");
    assert!(told.stdout.contains("2 of 4 steps reused, 2 run"), "{}", told.stdout);
    assert!(!told.stderr.contains("p/a succeeded"), "old news: {}", told.stderr);
    assert_eq!(ran(&sage), "a aside b b c c");
    let status = sage.status("second-try");
    assert_eq!((&status["title"], &status["status"]), (&json!("Second Try"), &json!("completed")));
    assert_eq!((&status["metrics"]["stepsReused"], &status["metrics"]["attempts"]), (&json!(2), &json!(2)));
    assert_eq!(sage.results("second-try"), sage.results("x"));
    let why = explained(&sage, "second-try", "p/aside");
    assert!(why.starts_with("taken over from `x` (run_"), "{why}");
    let why = explained(&sage, "second-try", "p/b");
    assert_eq!(why, "ran again in this fork, which goes on from `p/b`");
    sage.sage("logs second-try").exit(0).stdout_has("forked from x at p/b: 2 of 4 steps taken over");
    sage.sage("list").exit(0).stdout_has("second-try");
    sage.sage("resume second-try").exit(0).stderr_has("nothing left to do");
    sage.sage("verify").exit(0);
    assert_eq!(std::fs::read(sage.latest_dir("x").join("journal.jsonl")).unwrap(), source);
    assert_eq!(ran(&sage), "a aside b b c c");
}

// covers: R5
#[test]
fn a_fork_tries_another_template() {
    let sage = project();
    sage.sage("run x -t t").exit(0);
    sage.write("other.yaml", CHAIN.replace("echo c >> ran", "echo other >> ran"));
    let told = sage.sage("fork x --from p/c --as y -t other.yaml --parallel 1").exit(0);
    told.stderr_has("edited: 4 steps as before");
    assert_eq!(ran(&sage), "a aside b c other");
    let why = explained(&sage, "y", "p/b");
    assert!(why.starts_with("taken over from `x` (run_") && why.contains(": the key "), "{why}");
    let why = "ran again, because this changed: params.run: \"echo c >> ran\" -> \"echo other >> ran\"";
    assert_eq!(explained(&sage, "y", "p/c"), why);
    // The source still has the template that it was started with.
    sage.sage("resume x --from p/c").exit(0);
    assert_eq!(ran(&sage), "a aside b c c other");
}

// covers: R5, R9
#[test]
fn what_cannot_be_forked_is_told_with_what_to_type() {
    let sage = project();
    sage.sage("fork nobody --from p/b --as y").exit(2).stderr_has("no run of `nobody`");
    sage.args(["run", "payment", "-t", "t"]).run().exit(0);
    sage.sage("fork paiment --from p/b --as y").exit(2).stderr_has("did you mean `payment`?");
    sage.sage("fork payment --from p/asid --as y").exit(2).stderr_has("did you mean `p/aside`?");
    sage.sage("fork payment --from p/b --as Payment").exit(5).stderr_has("is the name of a feature already");
    sage.sage("fork payment --as y").exit(2).stderr_has("--from");
    sage.sage("fork payment --from p/b").exit(2).stderr_has("--as");
    sage.sage("fork payment --from p/b --as y -t nowhere.yaml").exit(2).stderr_has("nowhere.yaml");
    assert_eq!(std::fs::read_dir(sage.path(".sage/state/runs")).unwrap().count(), 1);
    assert!(!sage.path(".sage/state/forks").exists());
}

// covers: R5, S1
#[test]
fn a_running_run_is_forked_and_goes_on() {
    let sage = project();
    sage.write("wait", "");
    let source = sage.spawn("run x -t t");
    wait_until(|| sage.lines("ran").len() == 3, DEADLINE, "the step `b`");
    // In the background: it waits for the same file.
    sage.sage("fork x --from p/b --as y --detach").exit(0);
    wait_until(|| sage.lines("ran").len() == 4, DEADLINE, "the fork's `b`");
    std::fs::remove_file(sage.path("wait")).unwrap();
    source.end().exit(0);
    wait_until(|| sage.status("y")["status"] == "completed", DEADLINE, "the fork to end");
    assert_eq!(ran(&sage), "a aside b b c c");
    assert_eq!(sage.status("x")["metrics"]["attempts"], 4);
    assert_eq!(sage.status("y")["metrics"]["attempts"], 2);
    sage.sage("verify").exit(0);
}

// covers: R4, R5
#[test]
fn a_fork_needs_nothing_of_a_source_that_is_removed() {
    let sage = project();
    sage.sage("run x -t t").exit(0);
    sage.sage("fork x --from p/c --as y").exit(0);
    let all = sage.results("y");
    sage.sage("gc --older-than 0s --keep 1").exit(0);
    sage.sage("status x").exit(2);
    assert_eq!(sage.results("y"), all);
    assert!(all.to_string().len() > 80_000, "the large result is there");
    sage.sage("resume y --from p/b").exit(0);
    assert_eq!(ran(&sage), "a aside b b c c c");
    sage.sage("verify").exit(0);
}

// covers: R4
#[test]
fn what_is_left_of_a_fork_that_was_killed_goes_with_its_age() {
    let sage = project();
    sage.sage("run x -t t").exit(0);
    let (old, new) = (sage.path(".sage/state/forks/run_01"), sage.path(".sage/state/forks/run_02"));
    for dir in [&old, &new] {
        std::fs::create_dir_all(dir.join("blobs")).unwrap();
    }
    let days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 86_400);
    std::fs::File::open(&old).unwrap().set_modified(days_ago).unwrap();
    sage.sage("gc").exit(0).stdout_has("leftovers       1");
    assert!(!old.exists() && new.exists());
    assert_eq!(sage.engine().latest("x").iter().count(), 1);
}

// covers: R21, R5
#[test]
fn a_workflow_in_code_is_forked_at_a_call() {
    let sage = code::flow(
        r#"
  const first = await sage.shell("echo first >> ran; echo 1", { label: "first" });
  const second = await sage.shell("echo second >> ran; wc -l < ran", { label: "second" });
  const third = await sage.shell("echo third >> ran; echo " + second.stdout, { label: "third" });
  return { when: Date.now(), first: first.stdout, third: third.stdout };"#,
    );
    sage.sage("run x -t t").exit(0);
    assert_eq!(code::value(&sage)["third"], "2\n");
    sage.sage("fork x --from main/second --as y").exit(0);
    assert_eq!(ran(&sage), "first second second third third");
    let value = sage.sage("result y main/script").exit(0).json();
    assert_eq!((&value["first"], &value["third"]), (&json!("1\n"), &json!("4\n")));
    assert!(explained(&sage, "y", "main/first").starts_with("taken over from `x`"));
    assert_eq!(code::value(&sage)["third"], "2\n", "the source has what it had");
    sage.sage("verify").exit(0);
}

// covers: R21, R5
#[test]
fn a_script_that_runs_is_forked_with_all_that_it_has_seen() {
    let sage = code::flow(
        r#"
  const begun = Date.now();
  const quick = () => sage.shell("echo quick >> ran; echo quick", { label: "quick" });
  const slow = () => sage.shell("echo slow >> ran; sleep 0.2; echo slow", { label: "slow" });
  const won = (await Promise.race([slow(), quick()])).stdout;
  const last = await sage.shell("echo " + begun + " >> times; echo last >> ran; while [ -e wait ]; do sleep 0.01; done", { label: "last" });
  return { won, exit: last.exitCode };"#,
    );
    sage.write("wait", "");
    let source = sage.spawn("run x -t t");
    wait_until(|| sage.lines("ran").iter().any(|line| line == "last"), DEADLINE, "the last step");
    wait_until(|| sage.state_of("x", "main/slow") == "succeeded", DEADLINE, "the slow step");
    let fork = sage.spawn("fork x --from main/last --as y");
    wait_until(|| sage.lines("times").len() == 2, DEADLINE, "the fork's last step");
    std::fs::remove_file(sage.path("wait")).unwrap();
    fork.end().exit(0);
    source.end().exit(0);
    assert_eq!(ran(&sage), "last last quick slow");
    let times = sage.lines("times");
    assert_eq!(times[0], times[1], "both have begun at the same time");
    let value = sage.sage("result y main/script").exit(0).json();
    assert_eq!(value, json!({"won": "quick\n", "exit": 0}));
}

// covers: R5, P8
#[test]
fn forks_that_are_killed_are_whole_or_not_there() {
    let sage = project();
    sage.sage("run x -t t").exit(0);
    let begun = std::time::Instant::now();
    sage.sage("fork x --from p/b --as whole").exit(0);
    let took = begun.elapsed().as_micros() as u64;
    let mut random = Random::new(7);
    let rounds = if long() { 200 } else { 20 };
    for round in 0..rounds {
        let name = format!("y{round}");
        let running = sage.args(["fork", "x", "--from", "p/b", "--as", &name]).spawn();
        std::thread::sleep(std::time::Duration::from_micros(random.below(took)));
        running.kill();
        match sage.engine().latest(&name) {
            Some(_) => sage.args(["resume", &name]).run().exit(0),
            None => sage.args(["fork", "x", "--from", "p/b", "--as", &name]).run().exit(0),
        };
        assert_eq!(sage.results(&name), sage.results("x"), "round {round}");
        assert_eq!(sage.engine().read(&name).unwrap().run.forks.len(), 1, "round {round}");
    }
    let only_once = |step: &str| sage.lines("ran").iter().filter(|line| *line == step).count();
    assert_eq!((only_once("a"), only_once("aside")), (1, 1));
    sage.sage("verify").exit(0);
    sage.assert_nothing_alive();
}

const TALK: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: one, type: agent, agent: chat, session: talk, prompt: "the first question" }
      - { id: check, type: shell, needs: [p/one], params: { run: "test -e go" } }
      - { id: two, type: agent, agent: chat, session: talk, needs: [p/check], prompt: "the second question" }
      - { id: three, type: agent, agent: chat, session: talk, needs: [p/two], prompt: "the third question" }
"#;

fn talk() -> (Sage, FakeLlm) {
    let fake = FakeLlm::start(json!([{"text": "answer {{n}}"}])).unwrap();
    let sage = Sage::new().template("t", TALK);
    let agent = format!(
        "[agents.chat]\nadapter = \"llm\"\napi = \"chat\"\nurl = \"{}\"\nmodel = \"m\"\n",
        fake.url()
    );
    sage.write("sage.toml", agent);
    (sage, fake)
}

/// What each step was told with, in the order of the requests.
fn said(fake: &FakeLlm) -> Vec<String> {
    fake.prompts().iter().map(|prompt| prompt["messages"].to_string()).collect()
}

/// The fork's copy of the session `talk`.
fn copy_of(sage: &Sage) -> sage_agents::session::Record {
    let all = Store::new(sage.path(".sage/sessions"), sage.key()).list().unwrap();
    let mut copies = all.into_iter().map(Result::unwrap).filter(|it| it.id.starts_with("talk-"));
    let copy = copies.next().unwrap();
    assert!(copies.next().is_none());
    copy
}

fn continuity(sage: &Sage, feature: &str, step: &str) -> Value {
    let text = std::fs::read_to_string(sage.latest_dir(feature).join("journal.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut own = records.filter(|it| it["kind"] == "step.session" && it["data"]["step"] == step);
    own.next_back().unwrap()["data"]["continuity"].clone()
}

// covers: S3, R5
#[test]
fn source_and_fork_never_talk_in_one_conversation() {
    let (sage, fake) = talk();
    sage.sage("run x -t t").exit(1);
    sage.write("go", "");
    sage.sage("fork x --from p/check --as y").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(continuity(&sage, "y", "p/two"), "forked");
    let said = said(&fake);
    assert_eq!(said.len(), 5);
    // The fork's second and third, then the source's.
    assert!(said[1].contains("the first question") && said[1].contains("answer 1"), "{}", said[1]);
    assert!(said[2].contains("answer 1") && said[2].contains("answer 2"), "{}", said[2]);
    assert!(said[3].contains("answer 1") && !said[3].contains("answer 2"), "{}", said[3]);
    let copy = copy_of(&sage);
    assert_eq!((copy.turns.len(), copy.parent.unwrap().turns), (2, 1));
    let source = Store::new(sage.path(".sage/sessions"), sage.key()).load("talk").unwrap();
    let run = sage.engine().latest("x").unwrap();
    assert!(source.turns.len() == 3 && source.turns.iter().all(|turn| turn.run == run));
}

// covers: S3, R5
#[test]
fn a_fork_knows_what_was_known_at_its_step_and_no_more() {
    let (sage, fake) = talk();
    sage.write("go", "");
    sage.sage("run x -t t").exit(0);
    sage.sage("fork x --from p/two --as y").exit(0);
    assert_eq!(continuity(&sage, "y", "p/two"), "reloaded");
    let told = &said(&fake)[3];
    assert!(told.contains("the first question") && told.contains("answer 1"), "{told}");
    assert!(!told.contains("answer 2") && !told.contains("the third question"), "{told}");
    // A fork of it, from a step whose turn the fork has had itself.
    sage.sage("fork y --from p/three --as z").exit(0);
    let told = said(&fake);
    let told = &told[5];
    assert!(told.contains("answer 1") && told.contains("answer 4") && !told.contains("answer 5"), "{told}");
    assert!(!told.contains("answer 2") && !told.contains("answer 3"), "{told}");
}

fn commit(sage: &Sage, message: &str) -> String {
    git(sage, &["add", "-A"]);
    git(sage, &["-c", "user.name=u", "-c", "user.email=u@h", "commit", "-q", "-m", message]);
    git(sage, &["rev-parse", "HEAD"])
}

const TREES: &str = r#"
name: t
phases:
  - id: p
    operations:
      - { id: one, type: shell, isolation: worktree, params: { run: "echo one > one.txt; cat base.txt" } }
      - { id: two, type: shell, isolation: worktree, needs: [p/one], params: { run: "echo two >> two.txt; cat base.txt two.txt" } }
"#;

// covers: R5
#[test]
fn a_forked_step_begins_at_the_commit_that_it_began_at() {
    let sage = Sage::new().template("t", TREES);
    git(&sage, &["init", "-q", "-b", "main"]);
    sage.write(".gitignore", ".sage\n");
    sage.write("base.txt", "old\n");
    let base = commit(&sage, "first");
    sage.sage("run x -t t").exit(0);
    sage.write("base.txt", "new\n");
    commit(&sage, "second");
    sage.write("base.txt", "not committed\n");
    let before = git(&sage, &["status", "--porcelain"]);
    sage.sage("fork x --from p/two --as y").exit(0);
    let result = sage.sage("result y p/two").exit(0).json();
    assert_eq!(result["stdout"], "old\ntwo\n", "{result}");
    let branches = git(&sage, &["branch", "--list", "sage/*", "--format=%(refname:short)"]);
    let branches: Vec<&str> = branches.lines().collect();
    assert_eq!(branches.iter().filter(|name| name.starts_with("sage/x/")).count(), 2, "{branches:?}");
    let own: Vec<&&str> = branches.iter().filter(|name| name.starts_with("sage/y/")).collect();
    assert_eq!(own.len(), 1, "{branches:?}");
    assert_eq!(git(&sage, &["rev-parse", &format!("{}~1", own[0])]), base);
    assert_eq!(git(&sage, &["status", "--porcelain"]), before);
    assert_eq!(git(&sage, &["symbolic-ref", "HEAD"]), "refs/heads/main");
}

// covers: R5, R21
#[test]
fn chance_and_data_that_looks_like_blobs_are_taken_over_too() {
    let sage = code::flow(
        r#"
  await sage.shell(`echo ${Math.random()} >> ran`, { label: "dice" });
  const file = { bytes: 3, sha: "a".repeat(64) };
  await sage.shell(`echo '${JSON.stringify(file)}'`, { label: "manifest", params: { json: true } });
  await sage.shell("echo last >> ran", { label: "last" });
  return 1;"#,
    );
    sage.sage("run x -t t").exit(0);
    sage.sage("fork x --from main/last --as y").exit(0);
    sage.sage("fork y --from main/last --as z").exit(0);
    let (dice, last): (Vec<String>, Vec<String>) = sage.lines("ran").into_iter().partition(|it| it != "last");
    assert_eq!((dice.len(), last.len()), (1, 3), "{dice:?}");
}

// covers: S3, R5
#[test]
fn a_session_that_is_named_after_its_feature_is_forked() {
    let (sage, fake) = talk();
    let sage = sage.template("t", &TALK.replace("session: talk", "session: '{{ feature }}-talk'"));
    sage.sage("run x -t t").exit(1);
    sage.write("go", "");
    sage.sage("fork x --from p/check --as y").exit(0);
    assert_eq!(continuity(&sage, "y", "p/two"), "forked");
    assert!(said(&fake)[1].contains("answer 1"), "{}", said(&fake)[1]);
}

// covers: S3, R5
#[test]
fn a_fork_whose_journal_is_lost_still_talks_for_itself() {
    let (sage, _fake) = talk();
    sage.sage("run x -t t").exit(1);
    sage.sage("fork x --from p/check --as y").exit(1);
    std::fs::remove_file(sage.latest_dir("y").join("journal.jsonl")).unwrap();
    sage.write("go", "");
    sage.sage("resume y").exit(0);
    let source = Store::new(sage.path(".sage/sessions"), sage.key()).load("talk").unwrap();
    assert_eq!(source.turns.len(), 1, "the source's alone");
}
