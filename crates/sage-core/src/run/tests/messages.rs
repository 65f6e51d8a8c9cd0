use super::*;

const ONE: &str =
    "name: t\nphases:\n  - id: p\n    operations: { id: a, type: agent, prompt: x, agent: fake }\n";

// covers: S4, R5
#[test]
fn what_people_say_belongs_to_the_work_and_counts_in_nothing() {
    let mut story = Story::new(ONE);
    story.begin("p/a");
    let before = (story.run.tally.clone(), story.run.usage());
    let told = |id: &str| StepMessaged {
        step: "p/a".into(),
        attempt: 1,
        by: "ada via terminal".into(),
        text: format!("mind the {id}"),
        signal: id.into(),
    };
    story.tell(told("gap")).tell(told("door"));
    let (step, key) = (story.run.find("p/a").unwrap(), Digest::of(b"p/a"));
    let texts: Vec<String> = story.run.messages_to(step, key).into_iter().map(|it| it.text).collect();
    assert_eq!(texts, ["mind the gap", "mind the door"]);
    assert!(story.run.messages_to(step, Digest::of(b"another prompt")).is_empty());
    assert!(story.run.signals.contains("gap"), "delivered twice, it has one effect");
    assert_eq!(format!("{:?}", (story.run.tally.clone(), story.run.usage())), format!("{before:?}"));
    let unknown = StepMessaged { step: "p/z".into(), ..told("x") };
    assert!(story.run.apply(&unknown.into(), 9).is_err());
}
