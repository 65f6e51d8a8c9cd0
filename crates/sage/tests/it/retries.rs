//! How often a step is tried: by the effects it had, not by what is told.

use crate::dsl::Sage;

/// One step that leaves a line each time it runs and always fails.
fn project(retry: &str) -> Sage {
    let text = format!(
        "
name: t
retryBudget: 1
phases:
  - id: p
    operations:
      - {{ id: steady, type: shell, params: {{ run: echo steady >> ran }} }}
      - {{ id: x, type: shell, retry: {retry}, params: {{ run: echo x >> ran; exit 1 }} }}
"
    );
    Sage::new().template("t", &text)
}

fn count(sage: &Sage, line: &str) -> usize {
    sage.lines("ran").iter().filter(|found| *found == line).count()
}

// covers: R7
#[test]
fn attempts_are_all_tries_together_in_every_form_of_retry() {
    let table = [
        ("3", 3, 1),
        ("{ attempts: 5, delay: 1ms }", 5, 1),
        ("{ attempts: 5, delay: 1ms, progressive: true }", 5, 2),
        ("{ attempts: 3, delay: 1ms, progressive: true }", 3, 2),
        ("{ attempts: 2, delay: 1ms, progressive: true }", 2, 1),
        ("{ attempts: 1, progressive: true }", 1, 1),
    ];
    for (retry, tries, rounds) in table {
        let sage = project(retry);
        sage.sage("run x -t t --quiet").exit(1);
        assert_eq!((count(&sage, "x"), count(&sage, "steady")), (tries, rounds), "{retry}");
    }
}

// covers: R7
#[test]
fn a_phase_that_begins_again_does_not_give_its_items_new_tries() {
    let text = "
name: t
retryBudget: 1
phases:
  - id: p
    operations:
      - id: each
        type: shell
        foreach: '[1, 2]'
        retry: { attempts: 4, delay: 1ms, progressive: true }
        params: { run: 'echo $ITEM >> ran; exit 1', env: { ITEM: 'item {{ item }}' } }
";
    let sage = Sage::new().template("t", text);
    sage.sage("run x -t t --quiet").exit(1);
    // Whichever item is the first to use up its tries takes the phase with it.
    let (one, two) = (count(&sage, "item 1"), count(&sage, "item 2"));
    assert!((one, two) == (4, 4), "{one} and {two} tries");
}

/// Agents whose answer never fits, with the number of times that each was asked.
fn agent(fields: &str, settings: &str) -> Sage {
    let text = format!(
        "
name: t
phases:
  - id: p
    operations:
      - {{ id: x, type: agent, schema: {{ type: object }}, prompt: an object please, {fields} }}
"
    );
    let sage = Sage::new().template("t", &text);
    sage.write("sage.toml", settings);
    sage.write("mumble.sh", "cat >> asked; echo one >> ran; echo no object\n");
    sage
}

// covers: R7
#[test]
fn an_answer_that_does_not_fit_is_asked_for_once_more_and_no_more() {
    let own = "[agents.mine]\ncommand = [\"sh\", \"mumble.sh\"]\n";
    let fake = "agent: fake, params: { script: [ { run: echo one >> ran, result: text } ] }";
    let table = [
        (fake.to_string(), "", 2),
        (format!("{fake}, retry: 1"), "", 1),
        (format!("{fake}, retry: {{ attempts: 1 }}"), "", 1),
        (format!("{fake}, retry: 5"), "", 2),
        ("agent: mine".to_string(), own, 2),
        ("agent: mine, retry: 1".to_string(), own, 1),
        ("agent: mine, retry: { attempts: 4, delay: 1ms }".to_string(), own, 2),
        ("agent: command, params: { command: [sh, mumble.sh] }".to_string(), "", 2),
    ];
    for (fields, settings, asked) in table {
        let sage = agent(&fields, settings);
        sage.sage("run x -t t --quiet").exit(1).stdout_has("does not fit its schema");
        assert_eq!(count(&sage, "one"), asked, "{fields}");
        if asked > 1 && !fields.contains("fake") {
            let asked = sage.lines("asked").join("\n");
            assert!(asked.contains("An earlier try was not accepted"), "{fields}: {asked}");
        }
    }
}

// covers: R7
#[test]
fn being_asked_once_more_is_no_try() {
    let script = "[ { run: echo one >> ran, fault: crash }, { run: echo one >> ran, fault: crash }, \
                  { run: echo one >> ran, result: text }, { run: echo one >> ran, result: {} } ]";
    let retry = "retry: { attempts: 3, delay: 1ms, on: [lost] }";
    let sage = agent(&format!("agent: fake, {retry}, params: {{ script: {script} }}"), "");
    sage.sage("run x -t t --quiet").exit(0);
    assert_eq!(count(&sage, "one"), 4);
    // Who names the class gets tries of it.
    let sage = agent(
        "agent: fake, retry: { attempts: 4, delay: 1ms, on: [invalid] }, \
         params: { script: [ { run: echo one >> ran, result: text } ] }",
        "",
    );
    sage.sage("run x -t t --quiet").exit(1);
    assert_eq!(count(&sage, "one"), 4);
}
