use sage_core::event::Frozen;
use sage_core::plan::Plan;
use sage_core::policy::FailureClass;
use sage_core::source::Format;

use super::*;
use crate::display::tests::Canned;

const FEATURE: &str = "
name: 'feature \"one\"'
phases:
  - id: research
    join: { atLeast: 0.75 }
    onJoin: pause
    operations:
      - { id: market, type: agent, agent: fake, prompt: look }
      - { id: each, type: shell, foreach: '.inputs.x', maxParallel: 3, params: { run: 'true' } }
      - { id: notes, type: shell, needs: [market], when: '.inputs.y', params: { run: 'true' } }
  - id: gate
    dependencies: [research]
    operations: { id: sign-off, type: approval, params: { message: Ok? } }
  - id: docs
    dependencies: [research]
    operations: { id: write, type: shell, params: { run: 'true' } }
  - id: build
    dependencies: [gate, docs]
    onFailure: failFast
    operations:
      - { id: code, type: shell, params: { run: 'true' } }
      - { id: sub, type: workflow, params: { template: inner } }
";
const INNER: &str =
    "{name: inner, phases: [{id: p, operations: {id: a, type: shell, params: {run: 'true'}}}]}";

fn plan(yaml: &str) -> Plan {
    let frozen = Frozen::new("t", Format::Yaml, yaml);
    Plan::new(sage_core::load::reload(&frozen).unwrap()).unwrap()
}

fn run() -> Canned {
    Canned::titled("Feature", FEATURE, &[("inner", INNER)])
        .start("research/market")
        .fan("research/each", 4)
        .start("research/each[0]")
        .at(1_500)
        .done("research/each[0]", 1_500)
        .start("research/each[1]")
        .fail("research/market", 1_500, FailureClass::Failed, "exit \x1b[31mcode\x1b[0m 1\nmore")
}

fn drawn(canned: &Canned) -> Drawn<'_> {
    Drawn { run: &canned.run, clock_ms: canned.now(), driven: true }
}

// covers: R1
#[test]
fn a_plan_is_readable_at_80_columns() {
    insta::assert_snapshot!(text(&plan(FEATURE)), @r#"
    feature "one" · 7 steps in 4 phases

    research  (join: at least 75 %, else pause)
      ├─ market  agent
      ├─ each    shell, fan-out (3 at once)
      └─ notes   shell, conditional  needs market
      │
      ▼
    gate  after research
      └─ sign-off  approval

    docs  after research
      └─ write  shell
      │
      ▼
    build  after gate, docs  (fail fast)
      ├─ code  shell
      └─ sub   workflow

    batches
      1  research/market  research/each
      2  research/notes
      3  gate/sign-off  docs/write
      4  build/code  build/sub

    depth 4 · width 2 · longest path:
      research/market → research/notes → gate/sign-off → build/code
    "#);
}

// covers: R1, R8
#[test]
fn a_run_is_marked_by_its_states() {
    insta::assert_snapshot!(text_run(drawn(&run())), @r#"
    feature "one" · 7 steps in 4 phases · running · 1/10

    research  (join: at least 75 %, else pause)
      ├─ ✗ market  agent  exit code 1
      ├─ ▶ each    shell, fan-out (3 at once)  1/4 · running
      └─ - notes   shell, conditional  needs market  blocked
      │
      ▼
    gate  after research
      └─ ○ sign-off  approval  pending

    docs  after research
      └─ ○ write  shell  pending
      │
      ▼
    build  after gate, docs  (fail fast)
      ├─ ○ code  shell  pending
      └─ ○ sub   workflow  pending

    batches
      1  research/market  research/each
      2  research/notes
      3  gate/sign-off  docs/write
      4  build/code  build/sub

    depth 4 · width 2 · longest path:
      research/market → research/notes → gate/sign-off → build/code
    "#);
}

// covers: R1
#[test]
fn a_wide_plan_stays_readable() {
    let mut yaml = String::from("name: wide\nphases:\n  - id: p\n    operations:\n");
    for n in 0..400 {
        yaml.push_str(&format!("      - {{ id: step-{n}, type: shell, params: {{ run: 'true' }} }}\n"));
    }
    let shown = text(&plan(&yaml));
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    let end: Vec<&str> = shown.lines().skip(404).collect();
    insta::assert_snapshot!(end.join("\n"), @"
    batches
      1  p/step-0  p/step-1  p/step-2  p/step-3  p/step-4  p/step-5  p/step-6
         p/step-7  p/step-8  p/step-9  p/step-10  p/step-11  p/step-12  p/step-13
         p/step-14  p/step-15  p/step-16  p/step-17  p/step-18  p/step-19  p/step-20
         … 379 more

    depth 1 · width 400 · longest path:
      p/step-0
    ");
}

// covers: R1
#[test]
fn mermaid_has_a_subgraph_per_phase_and_a_class_per_state() {
    insta::assert_snapshot!(mermaid_run(drawn(&run())), @r#"
    flowchart TD
      subgraph p0["research #40;join: at least 75 #37;, else pause#41;"]
        s0("market<br/>agent")
        s1[["each<br/>shell, fan-out #40;3 at once#41;"]]
        s2["notes<br/>shell, conditional"]
      end
      subgraph p1["gate"]
        s3{{"sign-off<br/>approval"}}
      end
      subgraph p2["docs"]
        s4["write<br/>shell"]
      end
      subgraph p3["build #40;fail fast#41;"]
        s5["code<br/>shell"]
        s6[["sub<br/>workflow"]]
      end
      p0 --> p1
      p0 --> p2
      p1 --> p3
      p2 --> p3
      s0 --> s2
      classDef pending fill:#ffffff,stroke:#9ca3af,color:#111827
      class s3,s4,s5,s6 pending
      classDef running fill:#cffafe,stroke:#0891b2,color:#111827
      class s1 running
      classDef failed fill:#fee2e2,stroke:#dc2626,color:#111827
      class s0 failed
      classDef notrun fill:#e5e7eb,stroke:#9ca3af,color:#111827
      class s2 notrun
    "#);
    let plain = mermaid(&plan(FEATURE));
    assert!(mermaid_run(drawn(&run())).starts_with(&plain), "the same, without classes");
}

// covers: R1
#[test]
fn dot_has_a_cluster_per_phase_and_a_colour_per_state() {
    insta::assert_snapshot!(dot(&plan(FEATURE)), @r##"
    digraph "feature \"one\"" {
      rankdir=TB;
      compound=true;
      fontname="sans-serif";
      node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif"];
      subgraph cluster_0 {
        label="research\njoin: at least 75 %, else pause";
        s0 [label="market\nagent"];
        s1 [label="each\nshell, fan-out (3 at once)", peripheries=2];
        s2 [label="notes\nshell, conditional"];
      }
      subgraph cluster_1 {
        label="gate";
        s3 [label="sign-off\napproval", shape=hexagon];
      }
      subgraph cluster_2 {
        label="docs";
        s4 [label="write\nshell"];
      }
      subgraph cluster_3 {
        label="build\nfail fast";
        s5 [label="code\nshell"];
        s6 [label="sub\nworkflow", shape=folder];
      }
      s2 -> s3 [ltail=cluster_0, lhead=cluster_1];
      s2 -> s4 [ltail=cluster_0, lhead=cluster_2];
      s3 -> s5 [ltail=cluster_1, lhead=cluster_3];
      s4 -> s5 [ltail=cluster_2, lhead=cluster_3];
      s0 -> s2;
    }
    "##);
    let states = dot_run(drawn(&run()));
    assert!(states.contains(r##"class="failed", fillcolor="#fee2e2", color="#dc2626"];"##), "{states}");
    assert!(states.contains(r#"class="running""#), "{states}");
}
