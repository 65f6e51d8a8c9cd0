use std::path::Path;

use sage_agents::activity::{What, Writer};
use sage_core::port::Usage;
use sage_engine::project::Project;

use super::Canned;
use crate::display::frame::{Purpose, frame};
use crate::display::text::Style;
use crate::display::{Doing, Size};

const TEAM: &str = "
name: team
phases:
  - id: work
    operations:
      - { id: write, type: agent, prompt: look, agent: fake }
      - { id: build, type: shell, params: { run: 'true' } }
      - { id: nap, type: sleep, params: { for: 1h } }
";

fn team() -> Canned {
    let used = Usage { input: Some(12_000), cost_usd: Some(0.04), cost_estimated: true, ..Usage::default() };
    let used = sage_core::event::StepUsed { step: "work/write".into(), attempt: 1, usage: used };
    Canned::new(TEAM)
        .start("work/write")
        .start("work/build")
        .sleep("work/nap", 3_600_000)
        .at(4_000)
        .event(used)
}

/// The run's picture, with what its attempts have left in `dir`.
fn picture(dir: &Path, width: usize, purpose: Purpose) -> String {
    let (canned, mut doing) = (team(), Doing::of_run(dir));
    let lines = frame(&canned.run, canned.now(), Size { width, height: 50 }, purpose, &mut doing);
    lines.iter().skip(2).map(|line| line.render(Style { color: false, width }) + "\n").collect()
}

// covers: R8, R17
#[test]
fn running_rows_show_what_their_steps_do_where_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = |step: &str| {
        let scratch = Project::scratch(dir.path(), step, 1);
        std::fs::create_dir_all(&scratch).unwrap();
        scratch
    };
    let (write, build) = (scratch("work/write"), scratch("work/build"));
    let tool = What::Tool { tool: "Bash".into(), input: "cargo test --workspace \u{1b}[2J--quiet".into() };
    Writer::open(&write).write(tool);
    std::fs::write(build.join("stdout.log"), "one\n\u{1b}[32mcompiling 3 of 7\u{1b}[0m\n").unwrap();
    insta::assert_snapshot!(picture(dir.path(), 80, Purpose::Live), @"
      ⠋ write  4s · 12.0k tokens · ~$0.04 · Bash cargo test --workspace --quiet
      ⠋ build  4s · compiling 3 of 7
      ⠋ nap    4s · 59m 56s left
    ");
    insta::assert_snapshot!(picture(dir.path(), 40, Purpose::Live), @"
      ⠋ write  4s · Bash cargo test --works…
      ⠋ build  4s · compiling 3 of 7
      ⠋ nap    4s · 59m 56s left
    ");
    insta::assert_snapshot!(picture(dir.path(), 24, Purpose::Live), @"
      ⠋ write  4s
      ⠋ build  4s
      ⠋ nap    4s · 59m 56s…
    ");
    let dead = picture(dir.path(), 80, Purpose::Status { owned: false });
    assert!(!dead.contains("Bash") && dead.contains("interrupted"), "{dead}");
}
