//! Texts of people and of Sage at the same place, and what a kill leaves.

use serde_json::json;

use super::*;

struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { dir: tempfile::tempdir().unwrap() }
    }

    fn outputs(&self, fork: Option<&str>) -> Outputs {
        Outputs::new(self.dir.path(), &self.dir.path().join(".sage/state"), fork.map(str::to_string))
    }

    fn write(&self, path: &str, text: &str) -> Written {
        self.outputs(None).write(&target(path), &Content::Text(text.into())).unwrap()
    }

    fn edit(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(path)).unwrap_or_default()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != ".sage").collect();
        names.sort();
        names
    }
}

fn aside(wanted: &str, written: &str, why: AsideReason) -> Written {
    let aside = Aside { wanted: wanted.into(), written: written.into(), why };
    Written { path: written.into(), aside: Some(aside) }
}

fn target(path: &str) -> Target {
    Target { path: path.into(), of_feature: false }
}

fn plain(path: &str) -> Written {
    Written { path: path.into(), aside: None }
}

// covers: R6, R22
#[test]
fn a_text_of_ours_is_replaced_and_a_persons_gets_a_neighbour() {
    let desk = Desk::new();
    assert_eq!(desk.write("spec.md", "one"), plain("spec.md"));
    assert_eq!(desk.write("spec.md", "two"), plain("spec.md"));
    desk.edit("spec.md", "two, and an answer");
    assert_eq!(desk.write("spec.md", "three"), aside("spec.md", "spec.new.md", AsideReason::Changed));
    assert_eq!(
        (desk.read("spec.md"), desk.read("spec.new.md")),
        ("two, and an answer".into(), "three".into())
    );
    // The neighbour is ours until a person edits it, too.
    assert_eq!(desk.write("spec.md", "four"), aside("spec.md", "spec.new.md", AsideReason::Changed));
    desk.edit("spec.new.md", "four, edited");
    assert_eq!(desk.write("spec.md", "five"), aside("spec.md", "spec.new-2.md", AsideReason::Changed));
    assert_eq!(desk.read("spec.new.md"), "four, edited");
    // Never ours: the same.
    desk.edit("README.md", "a person's");
    assert_eq!(desk.write("README.md", "x"), aside("README.md", "README.new.md", AsideReason::Foreign));
    assert_eq!(desk.read("README.md"), "a person's");
}

// covers: R6
#[test]
fn equal_texts_are_not_written_and_what_a_person_takes_over_is_ours_again() {
    let desk = Desk::new();
    desk.write("spec.md", "one");
    let before = std::fs::metadata(desk.dir.path().join("spec.md")).unwrap().modified().unwrap();
    assert_eq!(desk.write("spec.md", "one"), plain("spec.md"));
    let after = std::fs::metadata(desk.dir.path().join("spec.md")).unwrap().modified().unwrap();
    assert_eq!(before, after, "it was written again");
    // Never ours, but the same text: nothing to say.
    desk.edit("other.md", "same");
    assert_eq!(desk.write("other.md", "same"), plain("other.md"));
    assert_eq!(desk.files(), ["other.md", "spec.md"]);
    // A neighbour that is moved to its place is ours.
    desk.edit("spec.md", "edited");
    desk.write("spec.md", "two");
    std::fs::rename(desk.dir.path().join("spec.new.md"), desk.dir.path().join("spec.md")).unwrap();
    assert_eq!(desk.write("spec.md", "three"), plain("spec.md"));
    // A file that is gone is made again.
    std::fs::remove_file(desk.dir.path().join("spec.md")).unwrap();
    assert_eq!(desk.write("spec.md", "four"), plain("spec.md"));
}

// covers: R6
#[test]
fn names_without_an_ending_and_hidden_ones_have_neighbours_too() {
    let desk = Desk::new();
    for (name, neighbour) in [
        ("report", "report.new"),
        (".rc", ".rc.new"),
        ("a.tar.gz", "a.tar.new.gz"),
        ("docs/deep/x.md", "docs/deep/x.new.md"),
        ("v1.2/notes", "v1.2/notes.new"),
    ] {
        desk.edit(name, "a person's");
        assert_eq!(desk.write(name, "x"), aside(name, neighbour, AsideReason::Foreign));
        assert_eq!(desk.read(name), "a person's");
    }
}

// covers: R5, R6
#[test]
fn a_kill_between_the_memory_and_the_file_or_after_it_costs_nothing() {
    let desk = Desk::new();
    desk.write("spec.md", "one");
    // Killed before the file was replaced, then after it: in both cases it is ours.
    for left in ["one", "two"] {
        let sha = Digest::of(b"two");
        desk.outputs(None).memory.remember("spec.md", &sha).unwrap();
        desk.edit("spec.md", left);
        assert_eq!(desk.write("spec.md", "three"), plain("spec.md"), "{left}");
        desk.write("spec.md", "one");
    }
    // A memory that is lost or damaged makes a text look like a person's, never the other way round.
    let memory = desk.dir.path().join(".sage/state/outputs");
    for entry in std::fs::read_dir(&memory).unwrap().flatten().filter(|entry| entry.file_name() != "lock") {
        std::fs::write(entry.path(), "{").unwrap();
    }
    assert_eq!(desk.write("spec.md", "four"), aside("spec.md", "spec.new.md", AsideReason::Foreign));
}

// covers: R6
#[test]
fn a_fork_has_files_of_its_own() {
    let desk = Desk::new();
    desk.write("hello.md", "first");
    let fork = desk.outputs(Some("second-look"));
    let content = Content::Text("second".into());
    let expected = aside("hello.md", "hello.second-look.md", AsideReason::Fork);
    assert_eq!(fork.write(&target("hello.md"), &content).unwrap(), expected);
    // The fork's name in a path of its source does not make it the fork's.
    let named = "second-look/spec.md";
    let expected = aside(named, "second-look/spec.second-look.md", AsideReason::Fork);
    assert_eq!(fork.write(&target(named), &content).unwrap(), expected);
    let own = Target { of_feature: true, ..target(named) };
    assert_eq!(fork.write(&own, &content).unwrap(), plain(named));
    assert_eq!((desk.read("hello.md"), desk.read("hello.second-look.md")), ("first".into(), "second".into()));
}

// covers: R6, R10
#[test]
fn a_reused_result_is_put_back_where_it_is_missing_and_leaves_edits_alone() {
    let desk = Desk::new();
    let restore = |text: &str| {
        desk.outputs(None)
            .restore(&target("spec.md"), &["spec.md".to_string()], &json!({"stdout": text}))
            .unwrap()
    };
    desk.write("spec.md", "one");
    assert_eq!(restore("one"), None);
    desk.write("spec.md", "two");
    assert_eq!(restore("one"), Some(plain("spec.md")));
    assert_eq!(desk.read("spec.md"), "one");
    std::fs::remove_file(desk.dir.path().join("spec.md")).unwrap();
    assert_eq!(restore("one"), Some(plain("spec.md")));
    desk.edit("spec.md", "one, and an answer");
    assert_eq!(restore("one"), None);
    assert_eq!(
        (desk.read("spec.md"), desk.files()),
        ("one, and an answer".into(), vec!["spec.md".to_string()])
    );
    // Of a result that was cut only the file itself is whole.
    let cut = json!({"stdout": "on", "truncated": true, "stdoutBytes": 3});
    let outputs = desk.outputs(None);
    assert!(outputs.restore(&target("spec.md"), &["spec.md".to_string()], &cut).is_err());
    desk.edit("spec.md", "one");
    assert_eq!(outputs.restore(&target("spec.md"), &["spec.md".to_string()], &cut).unwrap(), None);
}

// covers: R6
#[test]
fn a_long_output_is_written_whole_or_not_at_all() {
    let desk = Desk::new();
    let log = desk.dir.path().join(".log");
    let long = "0123456789".repeat(300_000);
    std::fs::write(&log, &long).unwrap();
    let result = json!({"stdout": "0123", "exitCode": 0, "truncated": true, "stdoutBytes": long.len()});
    let content = Content::of(&result, Some(&log)).unwrap();
    assert_eq!(desk.outputs(None).write(&target("long.txt"), &content).unwrap(), plain("long.txt"));
    assert_eq!(desk.read("long.txt"), long);
    // A log that lost something, or none at all: no file rather than half of one.
    std::fs::write(&log, "0123").unwrap();
    let error = desk.outputs(None).write(&target("half.txt"), &content).unwrap_err();
    assert!(error.to_string().contains("only 4 of 3000000 bytes"), "{error}");
    assert!(Content::of(&result, None).is_err());
    assert!(!desk.dir.path().join("half.txt").exists());
    // A document of an answer counts, whatever else was printed.
    let document = json!({"document": "# D", "stdout": "x", "stdoutBytes": 9});
    assert!(matches!(Content::of(&document, None), Ok(Content::Text(text)) if text == "# D"));
}

// covers: R5
#[test]
fn a_file_and_its_folders_are_durable_when_it_is_named_also_if_an_agent_wrote_it() {
    let desk = Desk::new();
    let syncs = |path: &str, text: &str| {
        let before = sage_fence::syncs();
        desk.write(path, text);
        sage_fence::syncs() - before
    };
    // The file, its folder, and the two folders that have a new one.
    assert_eq!(syncs("docs/new/spec.md", "one"), 4);
    assert_eq!(syncs("docs/new/spec.md", "two"), 2);
    // Written by an agent a moment ago, for all we know.
    desk.edit("docs/new/spec.md", "three");
    assert_eq!(syncs("docs/new/spec.md", "three"), 2);
}

// covers: R17
#[test]
fn protected_and_outside_paths_are_refused_and_folders_are_not_replaced() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.dir.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("/tmp", desk.dir.path().join("out")).unwrap();
    let write = |path: &str| desk.outputs(None).write(&target(path), &Content::Text("x".into()));
    for path in
        ["", "/etc/x", "../x", "out/x", "folder", ".mcp.json", "sage.toml", ".sage/state/x", ".GIT/x", "."]
    {
        assert!(write(path).is_err(), "{path}");
    }
    assert_eq!(desk.files(), ["folder", "out"]);
}
