//! The ten scripts, killed at random and resumed: what an agent has answered is never asked again.

use super::project;
use super::ten::with_git;
use crate::dsl::long;
use crate::killing::Killing;

fn kills() -> u32 {
    if long() { 60 } else { 6 }
}

#[track_caller]
fn kill(name: &str, more: &[&str], exit: i32) {
    let sage = project();
    if name == "worktrees" {
        with_git(&sage);
    }
    let args: Vec<&str> = ["-t", name, "--parallel", "4"].into_iter().chain(more.iter().copied()).collect();
    let seed = name.bytes().map(u64::from).sum();
    let mut killing = Killing::new(sage, &args, exit, seed);
    killing.rage(kills());
    killing.tell(name);
}

macro_rules! killed {
    ($($test:ident: $name:literal, $more:expr, $exit:literal;)*) => {
        $(
            // covers: R21, R5, P8; CLAUDE_WORKFLOWS "Resume is by path and key"
            #[test]
            fn $test() {
                kill($name, &$more, $exit);
            }
        )*
    };
}

killed! {
    fan_out: "fan-out", [], 0;
    pipeline: "pipeline", [], 0;
    skeptics: "skeptics", [], 0;
    until_dry: "until-dry", [], 0;
    nested: "nested", [], 0;
    worktrees: "worktrees", [], 0;
    losses: "losses", [], 3;
    judges: "judges", [], 0;
    map_reduce: "map-reduce", ["-i", r#"files=["a","bb","ccc","dddd","e","f","g"]"#], 0;
}

/// What a killed agent has used is used, so where the budget ends is another place: only what was done counts.
// covers: R21, R5, R18
#[test]
fn budget() {
    let sage = project();
    let mut killing = Killing::new(sage, &["-t", "budget", "--parallel", "4"], 0, 5);
    killing.rage(kills());
    killing.tell("budget");
}
