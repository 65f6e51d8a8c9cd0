//! What resuming and repairing mend: checkpoints, damaged records, lost results; and what they say.

use std::os::unix::fs::symlink;

use sage_engine::checkpoint;
use sage_engine::journal::{Journal, Sealing};
use serde_json::json;

use super::{Asked, flip};
use crate::dsl::Sage;

/// Writes a document with a right seal and checksum, as a newer sage of this user would.
fn seal(asked: &Asked, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) {
    let serde_json::Value::Object(mut doc) = asked.doc() else { panic!("no object") };
    change(&mut doc);
    let key = checkpoint::scoped(asked.sage.key().as_ref(), "x");
    std::fs::write(asked.checkpoint(), checkpoint::seal(doc, key.as_ref()).unwrap()).unwrap();
}

// covers: R4
#[test]
fn fields_of_a_newer_minor_version_survive_a_resume() {
    for with_journal in [true, false] {
        let asked = Asked::new();
        seal(&asked, |doc| {
            doc.insert("version".into(), "1.7".into());
            doc.insert("futureField".into(), json!({"deep": [1, 2]}));
            doc["checkpoints"]["a"]["futureWeight"] = 7.into();
        });
        if !with_journal {
            std::fs::remove_file(asked.journal()).unwrap();
        }
        asked.sage.sage("resume x").exit(4);
        asked.sage.sage("approve x").exit(0);
        asked.sage.sage("resume x").exit(0);
        let doc = asked.doc();
        assert_eq!(doc["version"], "1.7");
        assert_eq!(doc["futureField"], json!({"deep": [1, 2]}));
        assert_eq!(doc["checkpoints"]["a"]["futureWeight"], 7);
        assert_eq!((&doc["status"], &doc["feature"]), (&"completed".into(), &"x".into()));
        // Another run of the feature is not what those fields were about.
        asked.sage.sage("run x -t t").exit(4);
        let doc = asked.doc();
        assert_eq!((&doc["version"], doc.get("futureField")), (&"1.0".into(), None));
    }
}

// covers: R4
#[test]
fn a_damaged_checkpoint_of_a_finished_run_is_mended_by_resume_and_by_repair() {
    for command in ["resume x", "repair x"] {
        for both in [true, false] {
            let asked = Asked::finished();
            flip(&asked.checkpoint(), 60);
            if both {
                flip(&asked.backup(), 60);
            }
            asked.sage.sage("verify").exit(1).stdout_has("checkpoint").stderr_has("hint: sage repair x");
            asked.sage.sage(command).exit(0);
            asked.sage.sage("verify").exit(0);
            assert_eq!(asked.doc()["status"], "completed");
        }
    }
    let asked = Asked::finished();
    for path in [asked.checkpoint(), asked.backup()] {
        std::fs::remove_file(path).unwrap();
    }
    asked.sage.sage("resume x").exit(0).stderr_has("wrote the checkpoint anew");
    assert!(asked.checkpoint().is_file());
    asked.sage.sage("verify").exit(0);
}

/// The loss of a whole run is an error, and said by everything that looks.
// covers: R4, R16
#[test]
fn wholly_garbled_state_is_corruption_and_never_no_run() {
    for journal in ["garbage", "", "garbage\ngarbage\n"] {
        let asked = Asked::finished();
        for path in [asked.journal(), asked.checkpoint(), asked.backup()] {
            std::fs::write(path, if journal.is_empty() { "garbage" } else { journal }).unwrap();
        }
        std::fs::write(asked.journal(), journal).unwrap();
        for command in ["resume x", "status x", "result x", "explain x", "repair x", "repair x --dry-run"] {
            let outcome = asked.sage.sage(command).exit(1);
            outcome.stderr_has("error: ").stderr_has("damaged").stderr_lacks("no run of");
        }
        asked.sage.sage("verify").exit(1).stdout_has(asked.dir.file_name().unwrap().to_str().unwrap());
        asked.sage.sage("verify x").exit(1).stdout_has("checkpoint");
        asked.sage.sage("list").exit(0).stdout_has("damaged");
        // Nobody can say whether it has ended: a new run is the user's decision, and keeps what there was.
        asked.sage.sage("run x -t t").exit(1).stderr_has("hint: sage run x -t t --new");
        assert_eq!(std::fs::read_dir(asked.dir.parent().unwrap()).unwrap().count(), 1, "nothing was started");
        asked.sage.sage("run x -t t --new").exit(4);
        let kept = asked.sage.path(".sage/state/workflow-x.json.damaged-1");
        assert!(std::fs::read_to_string(kept).unwrap().starts_with("garbage"));
        assert!(asked.journal().is_file());
        // What is left of the old run is damaged until it is deleted, as the hint says.
        let dir = asked.dir.display().to_string();
        asked.sage.sage("verify").exit(1).stderr_has(&format!("hint: rm -r {dir} "));
        std::fs::remove_dir_all(dir).unwrap();
        asked.sage.sage("verify").exit(0);
    }
}

// covers: R4, R5
#[test]
fn repair_shows_what_it_would_do_does_it_and_keeps_the_damaged_journal() {
    let asked = Asked::new();
    let text = std::fs::read_to_string(asked.journal()).unwrap();
    // The end of `a/small`.
    let at = text.find("\"kind\":\"step.finished\",\"data\":{\"step\":\"a/small\"").unwrap();
    flip(&asked.journal(), at + 20);
    let damaged = std::fs::read(asked.journal()).unwrap();
    // Without the checkpoint, only the journal tells what is left.
    for path in [asked.checkpoint(), asked.backup()] {
        std::fs::remove_file(path).unwrap();
    }
    asked
        .sage
        .sage("status x")
        .exit(1)
        .stderr_has("damaged at line")
        .stderr_has("hint: sage repair x --dry-run");
    asked.sage.sage("verify").exit(1).stderr_has("hint: sage repair x --dry-run");
    let plan = asked.sage.sage("repair x --dry-run").exit(0);
    plan.stdout_has("kept: 2 finished steps")
        .stdout_has("without a readable end: a/small")
        .stderr_has("hint: sage repair x");
    assert_eq!(std::fs::read(asked.journal()).unwrap(), damaged, "nothing was changed");
    let done = asked.sage.sage("repair x").exit(0).stdout_has("kept: 2 finished steps");
    let kept = asked.dir.join("quarantine/damaged-1.jsonl");
    done.stdout_has(&kept.display().to_string()).stderr_has("hint: sage resume x");
    assert_eq!(std::fs::read(kept).unwrap(), damaged, "the damaged journal is kept");
    asked.sage.sage("verify").exit(0);
    asked.sage.sage("repair x").exit(0).stdout_has("nothing to repair");
    asked.sage.sage("resume x").exit(4);
    asked.sage.sage("approve x").exit(0);
    asked.sage.sage("resume x").exit(0);
    assert_eq!(asked.ran(), ["big", "small", "small", "use"], "only the damaged record's step ran again");
    assert_eq!(asked.sage.latest_dir("x"), asked.dir, "it is still the same run");
}

/// Things in the journal's place that are no journal: no command sends to another that sends back.
// covers: R4
#[test]
fn what_is_no_journal_is_set_aside_and_the_checkpoint_used() {
    for what in ["directory", "fifo", "symlink", "device"] {
        let asked = Asked::new();
        let aside = asked.sage.outside().join("journal");
        std::fs::rename(asked.journal(), &aside).unwrap();
        match what {
            "directory" => std::fs::create_dir(asked.journal()).unwrap(),
            "fifo" => {
                let made = std::process::Command::new("mkfifo").arg(asked.journal()).status().unwrap();
                assert!(made.success());
            }
            "symlink" => symlink(&aside, asked.journal()).unwrap(),
            _ => symlink("/dev/zero", asked.journal()).unwrap(),
        }
        asked.sage.sage("verify").exit(1).stderr_has("hint: sage repair x --dry-run");
        asked.sage.sage("status x").exit(1).stderr_has("hint: sage repair x");
        let told = asked.sage.sage("resume x").exit(4);
        told.stderr_has("not a journal").stderr_has("finished phases: a, b");
        asked.sage.sage("verify").exit(0);
        assert_eq!(asked.ran(), ["big", "small", "use"], "{what}");
    }
}

// covers: R4
#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let asked = Asked::new();
    let line = std::fs::read_to_string(asked.journal()).unwrap().lines().next().unwrap().to_owned();
    let body = line.split(",\"sha\":").next().unwrap().replacen("{\"v\":1", "{\"v\":2", 1);
    let sha = sage_core::digest::Digest::of(body.as_bytes());
    let newer = format!("{body},\"sha\":\"{sha}\"}}\n");
    std::fs::write(asked.journal(), &newer).unwrap();
    for command in ["status x", "resume x", "repair x", "verify"] {
        let outcome = asked.sage.sage(command).exit(1);
        outcome.stderr_has("hint: sage --version").stderr_lacks("sage verify").stderr_lacks("sage repair");
    }
    assert_eq!(std::fs::read_to_string(asked.journal()).unwrap(), newer);
}

// covers: R4, R5
#[test]
fn a_lost_result_names_its_step_and_resume_makes_it_again() {
    for damage in ["removed", "emptied", "flipped", "replaced"] {
        let asked = Asked::new();
        let blob = asked.blob();
        match damage {
            "removed" => std::fs::remove_file(&blob).unwrap(),
            "emptied" => std::fs::write(&blob, "").unwrap(),
            "flipped" => flip(&blob, 5000),
            _ => {
                std::fs::remove_file(&blob).unwrap();
                symlink("/dev/zero", &blob).unwrap();
            }
        }
        let told = asked.sage.sage("verify").exit(1);
        told.stdout_has("result of `a/big`").stderr_has("hint: sage resume x");
        asked
            .sage
            .sage("repair x --dry-run")
            .exit(0)
            .stdout_has("the result of `a/big` is missing or damaged");
        asked.sage.sage("approve x").exit(0);
        asked.sage.sage("resume x").exit(0);
        assert_eq!(asked.ran(), ["big", "big", "small", "use"], "{damage}: only its maker ran again");
        assert_eq!(asked.sage.sage("result x d/end").exit(0).json()["stdout"], "100000\n");
        asked.sage.sage("verify").exit(0);
    }
}

/// A result that nobody needs any more is still somebody's result.
// covers: R4, R5
#[test]
fn a_lost_result_of_a_finished_run_is_made_again_too() {
    let asked = Asked::finished();
    std::fs::remove_file(asked.blob()).unwrap();
    asked.sage.sage("verify").exit(1).stdout_has("result of `a/big`");
    asked.sage.sage("resume x").exit(0).stderr_has("these steps run again: a/big");
    assert_eq!(asked.ran(), ["big", "big", "small", "use"]);
    asked.sage.sage("verify").exit(0);
    asked.sage.sage("resume x").exit(0).stderr_has("nothing left to do");
}

/// A blob whose bytes changed is noticed by a resume, also if no step reads it any more.
// covers: R5
#[test]
fn a_damaged_result_that_no_step_reads_is_made_again() {
    let text = r#"
name: t
phases:
  - id: a
    operations: { id: big, type: shell, params: { run: "echo big >> ran; head -c 100000 /dev/zero | tr '\\0' y" } }
  - id: b
    dependencies: [a]
    operations: { id: ask, type: approval, params: { message: "go on?" } }
"#;
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t").exit(4);
    let asked = Asked { dir: sage.latest_dir("x"), sage };
    flip(&asked.blob(), 5000);
    asked.sage.sage("approve x").exit(0);
    asked.sage.sage("resume x").exit(0).stderr_has("these steps run again: a/big");
    assert_eq!(asked.ran(), ["big", "big"]);
    asked.sage.sage("verify").exit(0);
}

/// Damaged state is never "no runs".
// covers: R4
#[test]
fn lists_show_runs_that_cannot_be_read() {
    let asked = Asked::new();
    std::fs::write(asked.journal(), "").unwrap();
    std::fs::remove_file(asked.checkpoint()).unwrap();
    asked.sage.sage("list").exit(0).stdout_has("damaged");
    let told = asked.sage.sage("status").exit(0);
    told.stderr_has("warning: the state of x cannot be read").stderr_has("hint: sage status x");
}

// covers: R4
#[test]
fn a_directory_in_the_place_of_a_checkpoint_is_set_aside() {
    let asked = Asked::finished();
    std::fs::remove_file(asked.checkpoint()).unwrap();
    std::fs::create_dir(asked.checkpoint()).unwrap();
    asked.sage.sage("verify").exit(1);
    asked.sage.sage("repair x").exit(0).stdout_has("checkpoint");
    asked.sage.sage("verify").exit(0);
    assert!(asked.checkpoint().is_file());
}

/// A record that others appended, and that cannot have happened, is dropped.
// covers: R4
#[test]
fn an_appended_record_that_does_not_fold_is_dropped() {
    let asked = Asked::new();
    let text = std::fs::read_to_string(asked.journal()).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let finished = text.lines().find(|line| line.contains("\"kind\":\"step.finished\"")).unwrap();
    let finished: serde_json::Value = serde_json::from_str(finished).unwrap();
    let (seq, epoch) = (last["seq"].as_u64().unwrap() + 1, last["epoch"].as_u64().unwrap());
    let body = format!(
        "{{\"v\":1,\"seq\":{seq},\"epoch\":{epoch},\"prev\":{},\"ts\":1,\"kind\":\"step.finished\",\"data\":{}",
        last["sha"], finished["data"]
    );
    let sha = sage_core::digest::Digest::of(body.as_bytes());
    std::fs::write(asked.journal(), format!("{text}{body},\"sha\":\"{sha}\"}}\n")).unwrap();
    asked.sage.sage("verify").exit(1).stderr_has("hint: sage repair x --dry-run");
    asked.sage.sage("status x").exit(1).stderr_has("sage repair x --dry-run");
    asked.sage.sage("resume x").exit(4);
    asked.sage.sage("verify").exit(0);
    assert_eq!(asked.ran(), ["big", "small", "use"]);
}

/// The clock was set back between two runs: the newer one is still the newer one.
// covers: R5
#[test]
fn the_last_run_does_not_depend_on_the_clock() {
    let text = "name: t\nphases:\n  - id: a\n    operations: { id: s, type: shell, params: { run: 'echo up >> up; [ -e go ] || sleep 300' } }\n";
    let sage = Sage::new().template("t", text);
    sage.write("go", "");
    sage.sage("run x -t t").exit(0);
    // As if that run had begun tomorrow.
    let old = sage.latest_dir("x");
    let tomorrow = ulid::Ulid::from_parts(sage_engine::clock::Clock::System.now_ms() + 86_400_000, 1);
    let future = sage.run_dir(&format!("run_{tomorrow}"));
    let journal = std::fs::read_to_string(old.join("journal.jsonl")).unwrap();
    rename_run(&sage, &old, &future, &journal);
    std::fs::remove_file(sage.path("go")).unwrap();
    std::fs::remove_file(sage.path("up")).unwrap();
    let mut running = sage.spawn("run x -t t");
    running.until(|| !sage.lines("up").is_empty(), "the second run");
    assert!(running.kill());
    assert_ne!(sage.latest_dir("x"), future, "the crashed run is the newest");
    sage.write("go", "");
    sage.sage("resume x").exit(0).stderr_lacks("nothing left to do");
    assert_eq!(sage.lines("up").len(), 2, "what was cut off ran again");
}

/// Gives a run another id, in its journal as well.
fn rename_run(sage: &Sage, old: &std::path::Path, new: &std::path::Path, journal: &str) {
    let id = |dir: &std::path::Path| dir.file_name().unwrap().to_str().unwrap().to_owned();
    let sealing = Sealing::new(sage.key().as_ref(), &id(new));
    let mut again = Journal::new(&sealing);
    let mut bytes = Vec::new();
    for line in journal.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let data: serde_json::Value =
            serde_json::from_str(&record["data"].to_string().replace(&id(old), &id(new))).unwrap();
        again.append(record["kind"].as_str().unwrap(), record["ts"].as_u64().unwrap(), &data).unwrap();
        bytes.extend(again.take_batch().unwrap().bytes);
    }
    std::fs::rename(old, new).unwrap();
    std::fs::write(new.join("journal.jsonl"), bytes).unwrap();
    for name in ["workflow-x.json", "workflow-x.json.bak"] {
        let _ = std::fs::remove_file(sage.path(".sage/state").join(name));
    }
    sage.sage("resume x").exit(0);
}

/// A second run beside it would do all of its work again.
// covers: R4, R5, R16
#[test]
fn a_new_run_is_not_started_over_an_open_one_that_cannot_be_read() {
    type Damage = fn(&Asked);
    let damages: [(&str, Damage); 4] = [
        ("a flipped bit", |asked| {
            flip(&asked.journal(), asked.journal().metadata().unwrap().len() as usize / 2)
        }),
        ("deleted", |asked| std::fs::remove_file(asked.journal()).unwrap()),
        ("CRLF", |asked| {
            let text = std::fs::read_to_string(asked.journal()).unwrap();
            std::fs::write(asked.journal(), text.replace('\n', "\r\n")).unwrap();
        }),
        ("a directory", |asked| {
            std::fs::remove_file(asked.journal()).unwrap();
            std::fs::create_dir(asked.journal()).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let asked = Asked::new();
        damage(&asked);
        let runs = || std::fs::read_dir(asked.dir.parent().unwrap()).unwrap().count();
        for command in ["run x -t t", "run x -t t --detach"] {
            let refused = asked.sage.sage(command).exit(1).stderr_has("cannot be read");
            refused.stderr_has("hint: sage resume x").stderr_has(&format!("hint: sage {command} --new"));
            assert_eq!((runs(), asked.ran().len()), (1, 3), "{what}: nothing was started");
        }
        asked.sage.sage("verify").exit(1).stderr_lacks("rm -r").stderr_has("hint: sage repair x");
        // The user may give it up; what is left of it stays.
        asked.sage.sage("run x -t t --new").exit(4);
        assert_eq!(runs(), 2, "{what}");
        assert!(asked.dir.is_dir());
    }
    // The checkpoint says that a run has ended: nothing of it is done twice by another one.
    let asked = Asked::finished();
    flip(&asked.journal(), 500);
    asked.sage.sage("run x -t t").exit(4);
}

const FAN: &str = r#"
name: t
phases:
  - id: a
    operations: { id: each, type: shell, foreach: '[range(3)]', params: { run: "echo each >> ran; echo $SAGE_STEP" } }
  - id: b
    dependencies: [a]
    operations: { id: end, type: shell, params: { run: "echo end >> ran" } }
"#;

/// A damaged record costs the step that it tells of, and no other one.
// covers: R4, R5
#[test]
fn a_repair_keeps_the_results_of_each_item_of_a_fan_out() {
    for (record, lost) in [("run.started", None), ("step.expanded", None), ("step.finished", Some(0))] {
        let sage = Sage::new().template("t", FAN);
        sage.sage("run x -t t --parallel 1").exit(0);
        let journal = sage.latest_dir("x").join("journal.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        flip(&journal, text.find(&format!("\"kind\":\"{record}\"")).unwrap() + 12);
        sage.sage("resume x").exit(0);
        for item in (0..3).filter(|item| Some(*item) != lost) {
            let step = format!("a/each[{item}]");
            let result = sage.args(["result", "x", &step]).run().exit(0).json();
            assert_eq!(result["stdout"], format!("{step}\n"), "{record}");
        }
        assert_eq!(sage.lines("ran").len(), 4, "{record}: nothing ran again");
        sage.sage("result x a/each[7]").exit(2);
    }
}
