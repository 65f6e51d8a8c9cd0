//! Tests that ran before the change and do not run now.

use super::*;

const CART: &str = "import unittest\n\n\nclass CartTest(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(3, 4)\n";
const OTHER: &str =
    "import unittest\n\n\nclass OtherTest(unittest.TestCase):\n    def test_o(self):\n        pass\n";

fn write(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The tests as `test.baseline` finds them.
fn measured(dir: &TempDir) -> Baseline {
    let told = ask("test.baseline", dir, json!({}), json!({})).unwrap();
    let ran: Vec<Executed> = serde_json::from_value(told["tests"].clone()).unwrap();
    Baseline { ran, ..Baseline::take(dir.path(), &[]).unwrap() }
}

fn check(dir: &TempDir, baseline: &Baseline) -> Result<Value, Trouble> {
    let before = Before::Known(Box::new(baseline.clone()));
    crate::perform(&Request { before, ..request("test.run", dir, json!({}), json!({})) })
}

/// The check of a project with a red and a green test, after the red one became `text`.
fn after(edits: &[(&str, &str)]) -> Result<Value, Trouble> {
    let dir = project(&[("test_cart.py", CART), ("test_other.py", OTHER)]);
    let baseline = measured(&dir);
    edits.iter().for_each(|(path, text)| write(&dir, path, text));
    check(&dir, &baseline)
}

// covers: P4, R6
#[test]
fn a_test_that_does_not_run_any_more_is_not_a_pass() {
    let skips =
        CART.replace("    def test_total", "    def setUp(self): self.skipTest('x')\n    def test_total");
    let hidden = CART.replace("class CartTest", "if False:\n  class CartTest").replace("\n    ", "\n      ");
    let alias = CART
        .replace("import unittest\n", "import unittest\nfrom unittest import skip as later\n")
        .replace("    def test_total", "    @later('x')\n    def test_total");
    let expected = CART
        .replace("import unittest\n", "import unittest\nknown = unittest.expectedFailure\n")
        .replace("    def test_total", "    @known\n    def test_total");
    let loads = format!("{CART}\n\nload_tests = lambda *given: unittest.TestSuite()\n");
    for text in [&format!("{CART}\n\ndel CartTest\n"), &skips, &hidden, &alias, &expected, &loads] {
        let told = unknown(after(&[("test_cart.py", text)]));
        let why = ["2 tests ran before the change, 1 now", "1 test is skipped, none before the change"];
        assert!(why.iter().any(|why| told.contains(why)), "{text}: {told}");
    }
    // As many run as before, and the one that failed is not among them.
    let another = OTHER.replace("test_o", "test_p").replace("OtherTest", "AnotherTest");
    let told =
        unknown(after(&[("test_cart.py", &format!("{CART}\n\ndel CartTest\n")), ("test_p.py", &another)]));
    assert!(told.contains("Tests that failed before the change do not run now: `test_total`."), "{told}");
    let replaced = CART.replace("def test_total", "def test_sum").replace("3, 4", "3, 3");
    let told = unknown(after(&[("test_cart.py", &replaced)]));
    assert!(told.contains("`test_total`"), "{told}");
}

// covers: P4, R6
#[test]
fn tests_that_were_mended_added_renamed_or_moved_are_a_pass() {
    let mended = CART.replace("3, 4", "3, 3");
    let more = format!("{mended}\n    def test_more(self):\n        pass\n");
    let renamed = OTHER.replace("test_o", "test_another");
    let cases: [&[(&str, &str)]; 4] = [
        &[("test_cart.py", &mended)],
        &[("test_cart.py", &more)],
        &[("test_cart.py", &mended), ("test_other.py", &renamed)],
        &[("test_cart.py", &mended), ("test_other.py", "import unittest\n"), ("test_split.py", OTHER)],
    ];
    for edits in cases {
        passed(after(edits));
    }
    // A runner that counts nothing says nothing about how many there were.
    let dir = project(&[
        ("test.sh", "#!/bin/sh\n./inner.sh && echo PASS: all\n"),
        ("inner.sh", "#!/bin/sh\nexec ./app\n"),
        ("app", "#!/bin/sh\nexit 1\n"),
    ]);
    for path in ["test.sh", "inner.sh", "app"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path().join(path), mode).unwrap();
    }
    let baseline = measured(&dir);
    write(&dir, "app", "#!/bin/sh\nexit 0\n");
    let told = check(&dir, &baseline).unwrap();
    assert!(!told["summary"].as_str().unwrap().contains("before the change"), "{told}");
}

// covers: P4, R6
#[test]
fn tests_that_a_person_removed_are_not_missed() {
    let dir = project(&[("test_cart.py", CART), ("test_other.py", OTHER)]);
    let mut baseline = measured(&dir);
    let left = Baseline::take(dir.path(), &[]).unwrap();
    write(&dir, "test_cart.py", "");
    baseline.follow(&left, &Baseline::take(dir.path(), &[]).unwrap(), &[]);
    passed(check(&dir, &baseline));
    // What the run removes after that is.
    write(&dir, "test_more.py", OTHER);
    write(&dir, "test_other.py", "");
    write(&dir, "test_more.py", "import unittest\n");
    unknown(check(&dir, &baseline));
}

// covers: P4, R6
#[test]
fn a_test_that_a_person_adds_does_not_stand_for_one_that_the_run_removed() {
    let dir = project(&[("test_cart.py", &CART.replace("3, 4", "3, 3")), ("test_other.py", OTHER)]);
    let mut baseline = measured(&dir);
    write(&dir, "test_other.py", "import unittest\n");
    let left = Baseline::take(dir.path(), &[]).unwrap();
    write(&dir, "test_more.py", &OTHER.replace("test_o", "test_more"));
    baseline.follow(&left, &Baseline::take(dir.path(), &[]).unwrap(), &[]);
    let told = unknown(check(&dir, &baseline));
    assert!(told.contains("`test_o` in `test_other.py`"), "{told}");
}

// covers: P4, R6
#[test]
fn a_worktree_is_compared_with_what_ran_at_its_commit() {
    let dir = project(&[("test_cart.py", CART), ("test_other.py", OTHER)]);
    git(&dir, 1_700_000_000, &["init", "-q"]);
    git(&dir, 1_700_000_000, &["add", "-A"]);
    git(&dir, 1_700_000_000, &["commit", "-q", "-m", "start"]);
    let commit = crate::git::git(dir.path(), &["rev-parse", "HEAD"]).unwrap().trim().to_string();
    let mut ran = measured(&dir).ran;
    write(&dir, "test_cart.py", &format!("{CART}\n\ndel CartTest\n"));
    let ask = |ran: Vec<Executed>| {
        let before = Before::Commit(commit.clone());
        crate::perform(&Request { before, ran, ..request("test.run", &dir, json!({}), json!({})) })
    };
    let told = unknown(ask(ran.clone()));
    assert!(told.contains("2 tests ran before the change, 1 now: `test_total`."), "{told}");
    ran.iter_mut().for_each(|ran| ran.commit.clear());
    passed(ask(ran));
}
