//! Money: random runs under random caps, with failures, refusals, hedges and crashes. Every promise in the
//! journal is counted here a second time, from the events alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use sage_core::budget::{Amount, Cap};
use sage_core::event::{Event, PauseReason, Settings};
use sage_core::policy::FailureClass;
use sage_core::port::Usage;
use sage_core::run::{Run, Status};
use sage_core::verdict::Verdict;
use sage_engine::control::Signal;
use sage_engine::sim::SimFs;

use crate::world::{Random, World};

fn world(seed: u64) -> World {
    World::new(Arc::new(SimFs::new(seed)))
}

/// A random template and what is known of it without reading it.
struct Case {
    text: String,
    settings: Settings,
    caps: BTreeMap<String, u64>,
    /// Step without its index -> agent, most that one response uses.
    steps: BTreeMap<String, (&'static str, u64)>,
}

fn operation(random: &mut Random, case: &mut Case, phase: usize, number: usize) -> String {
    let agent = if random.chance(50) { "a" } else { "b" };
    let path = format!("p{phase}/o{number}");
    let usages: Vec<u64> = (0..random.below(4)).map(|_| 100 + random.below(3_000)).collect();
    let bill = usages.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    // Slower than the moment that an agent over its budget has for its last word: no agent answers in less.
    let mut prompt = format!("ms={} usage={bill}", 101 + random.below(400));
    let late = random.chance(20);
    let most = if late { usages.iter().sum() } else { usages.iter().copied().max().unwrap_or(0) };
    let extra =
        ["", "", "", "fail<2", "fail@1 class=transient", "refuse<2 retry=700", "grace=300", "ms1=5000"];
    prompt =
        format!("{prompt} {} {}", extra[random.below(8) as usize], if late { "silent-bill" } else { "" });
    let mut fields = String::new();
    if random.chance(40) {
        fields += "hedge: 500, ";
    }
    if random.chance(40) {
        fields += &format!("foreach: '[range({})]', ", 1 + random.below(5));
    }
    if random.chance(30) {
        let cap = 1_000 + random.below(20_000);
        fields += &format!("budget: {cap}, ");
        case.caps.insert(format!("step:{path}"), cap);
    }
    case.steps.insert(path, (agent, most));
    format!(
        "      - {{ id: o{number}, type: agent, agent: {agent}, {fields}retry: {{ attempts: 3, delay: 50 }}, prompt: '{prompt}' }}\n"
    )
}

fn case(random: &mut Random) -> Case {
    let mut case = Case {
        text: "name: m\nretryBudget: 1\n".into(),
        settings: Settings { parallel: 1 + random.below(8) as u32, ..Settings::default() },
        caps: BTreeMap::new(),
        steps: BTreeMap::new(),
    };
    if random.chance(60) {
        let cap = 2_000 + random.below(60_000);
        case.text += &format!("budget: {cap}\n");
        case.caps.insert("run".into(), cap);
    }
    if random.chance(40) {
        let cap = 1_000 + random.below(30_000);
        case.settings.agent_budgets.insert("a".into(), tokens(cap));
        case.caps.insert("agent:a".into(), cap);
    }
    case.text += "phases:\n";
    for phase in 0..1 + random.below(3) as usize {
        let after = if phase > 0 && random.chance(50) {
            format!("    dependencies: [p{}]\n", phase - 1)
        } else {
            String::new()
        };
        case.text += &format!("  - id: p{phase}\n{after}");
        if random.chance(40) {
            let cap = 1_000 + random.below(40_000);
            case.text += &format!("    budget: {cap}\n");
            case.caps.insert(format!("phase:p{phase}"), cap);
        }
        case.text += "    operations:\n";
        for number in 0..1 + random.below(3) as usize {
            let operation = operation(random, &mut case, phase, number);
            case.text += &operation;
        }
    }
    case
}

fn tokens(tokens: u64) -> Cap {
    Cap { tokens: Some(tokens), micro_usd: None }
}

/// The books, kept from events alone.
#[derive(Default)]
struct Books {
    reserved: BTreeMap<(String, u32), u64>,
    /// What running attempts have told.
    used: BTreeMap<(String, u32), Usage>,
    settled: BTreeMap<String, u64>,
    caps: BTreeMap<String, u64>,
    checks: u32,
    overshoots: u32,
}

impl Books {
    fn way(case: &Case, path: &str) -> Vec<String> {
        let step = Run::path_without_index(path);
        let phase = step.split('/').next().unwrap();
        let (agent, _) = case.steps[&step];
        ["run".into(), format!("phase:{phase}"), format!("step:{step}"), format!("agent:{agent}")].to_vec()
    }

    fn reserves(&mut self, case: &Case, path: &str, attempt: u32, amount: Option<Amount>, what: &str) {
        self.reserved.insert((path.into(), attempt), amount.unwrap_or_default().tokens);
        for node in Self::way(case, path) {
            let Some(&cap) = self.caps.get(&node) else { continue };
            let on = |p: &str| Self::way(case, p).contains(&node);
            let reserved: u64 = self.reserved.iter().filter(|((p, _), _)| on(p)).map(|(_, r)| r).sum();
            let settled = self.settled.get(&node).copied().unwrap_or(0);
            assert!(
                settled + reserved <= cap,
                "{what}: `{path}` starts with {settled} + {reserved} of {cap} at {node}"
            );
            self.checks += 1;
        }
    }

    fn settles(&mut self, case: &Case, path: &str, attempt: u32, usage: &Usage, refused: bool, what: &str) {
        self.used.remove(&(path.to_string(), attempt));
        let Some(reserved) = self.reserved.remove(&(path.to_string(), attempt)) else { return };
        let spent = match (usage.is_empty(), refused) {
            (false, _) => usage.total(),
            (true, true) => 0,
            (true, false) => reserved,
        };
        let (_, response) = case.steps[&Run::path_without_index(path)];
        let capped = Self::way(case, path).iter().any(|node| self.caps.contains_key(node));
        if capped && spent > reserved {
            self.overshoots += 1;
            let more = spent - reserved;
            assert!(
                more <= response,
                "{what}: `{path}` used {more} more than it had, a response is {response}"
            );
        }
        for node in Self::way(case, path) {
            *self.settled.entry(node).or_default() += spent;
        }
    }

    fn take(&mut self, case: &Case, event: &Event, what: &str) {
        match event {
            Event::StepStarted(e) => self.reserves(case, &e.step, e.attempt, e.reserve, what),
            Event::StepHedged(e) => self.reserves(case, &e.step, e.attempt, e.reserve, what),
            Event::StepReserved(e) => self.reserves(case, &e.step, e.attempt, Some(e.reserve), what),
            Event::StepFinished(e) => self.settles(case, &e.step, e.attempt, &e.usage, false, what),
            Event::StepRetried(e) => self.settles(case, &e.step, e.attempt, &e.usage, false, what),
            Event::StepParked(e) => self.settles(case, &e.step, e.attempt, &e.usage, true, what),
            Event::StepCharged(e) => {
                let refused = e.class.is_some_and(FailureClass::refused);
                self.settles(case, &e.step, e.attempt, &e.usage, refused, what);
            }
            Event::BudgetRaised(e) => drop(self.caps.insert(e.node.clone(), e.cap.tokens.unwrap())),
            Event::StepUsed(e) => drop(self.used.insert((e.step.to_string(), e.attempt), e.usage.clone())),
            // Whatever was under way is lost: it has used what it had told, or all that it had reserved.
            Event::RunOpened(_) => {
                let lost: Vec<(String, u32)> = self.reserved.keys().cloned().collect();
                for (path, attempt) in lost {
                    let used = self.used.get(&(path.clone(), attempt)).cloned().unwrap_or_default();
                    self.settles(case, &path, attempt, &used, false, what);
                }
            }
            _ => {}
        }
    }

    fn agree(&self, case: &Case, run: &Run, what: &str) {
        for (name, node) in run.ledger.nodes() {
            let on = |p: &str| Self::way(case, p).contains(&name.to_string());
            let reserved: u64 = self.reserved.iter().filter(|((p, _), _)| on(p)).map(|(_, r)| r).sum();
            let settled = self.settled.get(name).copied().unwrap_or(0);
            assert_eq!((node.settled.tokens, node.reserved.tokens), (settled, reserved), "{what}: {name}");
        }
    }
}

/// One life: until the end, a pause, or a random death.
fn life(world: &World, case: &Case, random: &mut Random, first: bool) -> Option<Run> {
    let ms = if random.chance(35) { random.below(4_000) } else { 100_000_000 };
    world.live(async || {
        let owned = if first {
            let mut request = world.request(&case.text);
            request.settings = case.settings.clone();
            world.engine().start(request).unwrap()
        } else {
            match world.resume().unwrap() {
                Ok(owned) => owned,
                Err(run) => return Some(*run),
            }
        };
        world.kill_after(owned, ms).await
    })
}

fn raise(world: &World, books: &Books, run: &Run, random: &mut Random) {
    for (node, cap) in books.caps.clone() {
        if run.ledger.node(&node).is_none() {
            continue;
        }
        let cap = tokens(cap + 20_000 + random.below(20_000));
        let signal = Signal::Raise { node, cap };
        world.live(async || world.engine().deliver("f", signal).await.unwrap());
    }
}

fn history(seed: u64) -> (u32, u32, u32) {
    let mut random = Random(seed);
    let case = case(&mut random);
    let world = world(seed);
    let mut pauses = 0;
    for round in 0.. {
        let run = life(&world, &case, &mut random, round == 0);
        let mut books = Books { caps: case.caps.clone(), ..Books::default() };
        let what = format!("seed {seed}, round {round}\n{}", case.text);
        assert!(round < 60, "{what} does not come to an end: {:?}", run.map(|run| run.status));
        for (_, event) in world.events() {
            books.take(&case, &event, &what);
        }
        let Some(run) = run else { continue };
        books.agree(&case, &run, &what);
        match run.status {
            Status::Paused { reason: PauseReason::Budget, .. } => {
                pauses += 1;
                raise(&world, &books, &run, &mut random);
            }
            Status::Finished(Verdict::Succeeded) => return (books.checks, books.overshoots, pauses),
            // Its tries are used up: resuming gives it new ones.
            Status::Finished(Verdict::Failed) => {}
            status => panic!("{what} {status:?} {:?}", sage_core::wire::errors(&run)),
        }
    }
    unreachable!()
}

// covers: R18, P6
#[test]
fn nothing_starts_that_does_not_fit_under_every_cap_above_it() {
    let sums = (0..300).map(history).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
    println!(
        "300 runs: {} promises checked, {} overshoots of one response, {} pauses",
        sums.0, sums.1, sums.2
    );
    assert!(sums.0 > 5_000 && sums.1 > 50 && sums.2 > 100, "{sums:?}");
}

// covers: R18, P7
#[test]
fn at_the_cap_a_run_pauses_and_goes_on_when_it_is_raised() {
    let world = world(1);
    let text = "name: m\nbudget: 10000\nphases:\n  - id: p\n    operations: { id: x, type: agent, agent: fake, foreach: '[range(10)]', prompt: 'ms=10 usage=2000' }\n";
    let run = world.run(text);
    assert_eq!(run.status, Status::Paused { reason: PauseReason::Budget, until: None });
    let done = run.steps.iter().filter(|step| step.state.name() == "succeeded").count();
    let settled = run.ledger.node("run").unwrap().settled.tokens;
    println!("cap of 10k, steps of 2k: {done} finished, {settled} spent");
    assert!(settled <= 12_000 && done >= 4);
    let signal = Signal::Raise { node: "run".into(), cap: tokens(100_000) };
    world.live(async || world.engine().deliver("f", signal).await.unwrap());
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert!(run.tally.usage.total() <= 24_000);
}

// covers: R18, P5
#[test]
fn whoever_says_so_gets_a_failed_step_instead_of_a_pause() {
    let world = world(1);
    let text = "name: m\nbudget: 10000\nonBudget: fail\nphases:\n  - id: p\n    operations:\n      - { id: x, type: agent, agent: fake, prompt: 'ms=500 usage=4000,4000,4000,4000' }\n      - { id: y, type: agent, agent: fake, needs: [x], prompt: 'ms=10 usage=1' }\n";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Failed));
    let failure = run.step(run.find("p/x").unwrap()).failure.clone().unwrap();
    assert_eq!(failure.class, FailureClass::Budget);
    assert_eq!(run.ledger.node("run").unwrap().settled.tokens, 12_000, "one response too many");
}

// covers: R18, R5
#[test]
fn an_edit_keeps_what_was_spent_and_neither_promises_nor_old_caps() {
    let world = world(1);
    let text = |budget: &str, prompt: &str| {
        format!(
            "name: m\nphases:\n  - id: p\n{budget}    operations: {{ id: x, type: agent, agent: fake, prompt: '{prompt}' }}\n"
        )
    };
    let cut = world.live(async || {
        let owned = world.start(&text("    budget: 5000\n", "hang")).unwrap();
        world.kill_after(owned, 1_000).await
    });
    assert!(cut.is_none());
    let edit = world.edit(&text("", "ms=10 usage=70000"));
    let run = world.live(async || world.resume_with(edit).unwrap().unwrap().drive().await.unwrap());
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "{:?}", run.status);
    let node = run.ledger.node("phase:p").unwrap();
    assert_eq!((node.cap, node.settled.tokens, node.reserved.tokens), (None, 75_000, 0));
}

// covers: R18
#[test]
fn the_result_that_follows_the_response_over_the_budget_is_kept() {
    let world = world(1);
    let text = "name: m\nbudget: 10000\nphases:\n  - id: p\n    operations: { id: x, type: agent, agent: fake, prompt: 'ms=500 usage=4000,4000,4000' }\n";
    let run = world.run(text);
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded), "it was paid for");
    let node = run.ledger.node("run").unwrap();
    assert_eq!((node.settled.tokens, node.overshoot().tokens), (12_000, 2_000));
}

// covers: R18
#[test]
fn a_budget_in_dollars_holds_for_models_that_nobody_knows() {
    let world = world(1);
    // Counted as the dearest model of all, $30 for a million: $0.03 a response.
    let text = "name: m\nbudget: 0.05usd\nphases:\n  - id: p\n    operations: { id: x, type: agent, agent: fake, model: house, prompt: 'ms=500 usage=1000,1000,1000,1000' }\n";
    let run = world.run(text);
    assert_eq!(run.status, Status::Paused { reason: PauseReason::Budget, until: None });
    let node = run.ledger.node("run").unwrap();
    assert_eq!((node.settled.tokens, node.settled.micro_usd), (2_000, 60_000), "one response too many");
    let usage = run.usage();
    assert_eq!((usage.cost_usd, usage.cost_estimated), (Some(0.06), true));
    assert!(sage_core::wire::notices(&run)[0].contains("`house`"), "{:?}", sage_core::wire::notices(&run));
    // Without such a budget nobody guesses.
    let run = self::world(2).run(&text.replace("budget: 0.05usd\n", ""));
    assert_eq!((run.status, run.usage().cost_usd), (Status::Finished(Verdict::Succeeded), None));
    assert!(sage_core::wire::notices(&run).is_empty());
}

// covers: R18, R5
#[test]
fn what_an_attempt_had_told_before_its_owner_was_killed_counts() {
    let world = world(1);
    let text = "name: m\nphases:\n  - id: p\n    operations: { id: x, type: agent, agent: fake, prompt: 'ms=1000 usage=700,700' }\n";
    let cut = world.live(async || {
        let owned = world.start(text).unwrap();
        world.kill_after(owned, 1_600).await
    });
    assert!(cut.is_none());
    let run = world.go_on();
    assert_eq!(run.status, Status::Finished(Verdict::Succeeded));
    assert_eq!((run.usage().total(), run.tally.unattributed), (700 + 1_400, 0));
    // Killed before it had told anything: unknown, and not nothing.
    let world = self::world(2);
    let cut = world.live(async || {
        let owned = world.start(text).unwrap();
        world.kill_after(owned, 600).await
    });
    assert!(cut.is_none());
    let run = world.go_on();
    assert_eq!((run.usage().total(), run.tally.unattributed), (1_400, 1));
}
