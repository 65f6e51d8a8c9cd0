//! Deliverers that die over a wake, as processes of their own.

use std::process::{Command, Stdio};

use super::*;

/// Counts its calls in a file and dies.
struct Deadly(PathBuf);

impl Handler for Deadly {
    fn handle(&self, wake: &Wake) -> Result<(), HandleError> {
        if wake.summary.contains("deadly") {
            use std::io::Write;
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.0).unwrap();
            file.write_all(b"x").unwrap();
            std::process::abort();
        }
        Ok(())
    }
}

#[test]
#[ignore = "run by the other test here"]
fn as_another_process() {
    let home = PathBuf::from(std::env::var_os("SAGE_TEST_HOME").unwrap());
    let handler = Arc::new(Deadly(home.join("calls")));
    Delivery::new(Inbox::open(home.join("inbox")), handler).until_quiet(DEADLINE).unwrap();
}

// covers: S2
#[test]
fn a_wake_that_kills_its_handler_is_dead_after_five_deaths_and_the_others_are_not() {
    let place = Place::new();
    (0..3).for_each(|number| drop(place.post("innocent", &number.to_string())));
    place.post("guilty", "deadly");
    place.post("innocent", "3");
    let deliver = || {
        let name = "inbox::tests::dying::as_another_process";
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", name])
            .env("SAGE_TEST_HOME", place.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap().success()
    };
    let deaths = (0..10).take_while(|_| !deliver()).count();
    assert_eq!(deaths, 5);
    assert_eq!(std::fs::read_to_string(place.dir.path().join("calls")).unwrap(), "xxxxx");
    let dead = place.inbox.dead().unwrap();
    assert_eq!((dead.len(), dead[0].reason.reason.as_str()), (1, "whoever handled it died over it"));
    let mut handled = place.handled();
    handled.sort();
    assert_eq!(handled, ["0", "1", "2", "3"], "those that were handled before it in each life, once");
}
