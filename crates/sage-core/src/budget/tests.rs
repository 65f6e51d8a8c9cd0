//! Budgets: what people write, what fits, and the ledger against a model that adds up every charge anew.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::port::Usage;

const fn tokens(tokens: u64) -> Amount {
    Amount { tokens, micro_usd: 0 }
}

const fn both(tokens: u64, micro_usd: u64) -> Amount {
    Amount { tokens, micro_usd }
}

const fn cap(tokens: Option<u64>, micro_usd: Option<u64>) -> Cap {
    Cap { tokens, micro_usd }
}

// covers: R18
#[test]
fn caps_are_read_as_people_write_them() {
    let usd = |micro_usd| cap(None, Some(micro_usd));
    let tokens = |tokens| cap(Some(tokens), None);
    let table = [
        ("5usd", usd(5_000_000)),
        ("$5", usd(5_000_000)),
        ("$ 5", usd(5_000_000)),
        ("$5usd", usd(5_000_000)),
        ("2.50 usd", usd(2_500_000)),
        ("2.50 USD", usd(2_500_000)),
        ("$.50", usd(500_000)),
        ("$0.000001", usd(1)),
        ("200k", tokens(200_000)),
        ("200K", tokens(200_000)),
        ("1.5M", tokens(1_500_000)),
        ("1.5m tokens", tokens(1_500_000)),
        ("0.001k", tokens(1)),
        ("200000", tokens(200_000)),
        ("200.000k", tokens(200_000)),
        ("  200k   tokens ", tokens(200_000)),
        ("1 token", tokens(1)),
        ("18446744073709551615", tokens(u64::MAX)),
        ("5usd+200k", cap(Some(200_000), Some(5_000_000))),
        ("200k + 5usd", cap(Some(200_000), Some(5_000_000))),
        ("$5, 200k tokens", cap(Some(200_000), Some(5_000_000))),
        ("200000, $5", cap(Some(200_000), Some(5_000_000))),
        ("5usd,200k", cap(Some(200_000), Some(5_000_000))),
        ("5 usd AND 200k", cap(Some(200_000), Some(5_000_000))),
    ];
    for (text, expected) in table {
        assert_eq!(Cap::parse(text), Ok(expected), "{text}");
    }
}

// covers: R18
#[test]
fn what_is_no_cap_is_refused_with_a_reason() {
    let table = [
        ("", "write tokens such as"),
        ("  ", "write tokens such as"),
        ("plenty", "write tokens such as"),
        ("5eur", "write tokens such as"),
        ("$", "write tokens such as"),
        ("usd", "write tokens such as"),
        ("5.usd", "write tokens such as"),
        ("1e6", "write tokens such as"),
        ("NaN", "write tokens such as"),
        ("inf", "write tokens such as"),
        ("5k usd", "write tokens such as"),
        ("5 000", "write tokens such as"),
        ("٥usd", "write tokens such as"),
        ("5usd and", "write tokens such as"),
        ("0", "zero"),
        ("$0.00", "zero"),
        ("0k+5usd", "zero"),
        ("-5usd", "negative"),
        ("$-5", "negative"),
        ("1.5", "part of a token"),
        ("0.0001k", "part of a token"),
        ("$1.0000001", "more than 6 decimals"),
        ("1.1234567M", "more than 6 decimals"),
        ("18446744073709551616", "too large"),
        ("99999999999999999999usd", "too large"),
        ("18446744073709552k", "too large"),
        ("200,000", "without commas"),
        ("5usd+", "nothing stands"),
        ("+5usd", "nothing stands"),
        ("5usd++200k", "nothing stands"),
        ("5usd+$6", "twice"),
        ("1k 2k", "write tokens such as"),
        ("1k+2k", "twice"),
    ];
    for (text, why) in table {
        let error = Cap::parse(text).unwrap_err();
        assert!(error.why.contains(why), "{text}: {error}");
    }
    let escaped = Cap::parse(&format!("\u{1b}[31m{}", "x".repeat(500))).unwrap_err().to_string();
    assert!(!escaped.contains('\u{1b}') && escaped.len() < 400, "{escaped}");
}

// covers: R18
#[test]
fn caps_are_written_as_they_are_read() {
    let table = [
        (cap(None, Some(5_000_000)), "5usd"),
        (cap(None, Some(2_500_000)), "2.50usd"),
        (cap(None, Some(1)), "0.000001usd"),
        (cap(Some(200_000), None), "200k"),
        (cap(Some(1_500_000), None), "1.5M"),
        (cap(Some(1_250_000), None), "1.25M"),
        (cap(Some(1_234_000), None), "1234k"),
        (cap(Some(1_234_567), None), "1234567"),
        (cap(Some(999), None), "999"),
        (cap(Some(200_000), Some(5_000_000)), "5usd+200k"),
        (cap(None, None), "no limit"),
    ];
    for (cap, expected) in table {
        assert_eq!(cap.to_string(), expected);
    }
}

// covers: R18
#[test]
fn amounts_are_rounded_for_people() {
    let table = [
        (both(0, 0), "0 tokens"),
        (both(1, 0), "1 token"),
        (both(999, 0), "999 tokens"),
        (both(1_000, 0), "1k tokens"),
        (both(12_345, 0), "12.3k tokens"),
        (both(12_350, 0), "12.4k tokens"),
        (both(999_949, 0), "999.9k tokens"),
        (both(999_950, 0), "1M tokens"),
        (both(1_500_000_000, 0), "1.5B tokens"),
        (both(u64::MAX, 0), "18446744073.7B tokens"),
        (both(0, 1_250_000), "$1.25"),
        (both(0, 5_000_000), "$5"),
        (both(0, 1_254_999), "$1.25"),
        (both(0, 1_255_000), "$1.26"),
        (both(0, 4_999_999), "$5.00"),
        (both(0, 9_999), "$0.01"),
        (both(0, 1_649), "$0.0016"),
        (both(0, 50), "$0.0001"),
        (both(0, 49), "<$0.0001"),
        (both(0, u64::MAX), "$18446744073709.55"),
        (both(12_345, 1_250_000), "12.3k tokens and $1.25"),
    ];
    for (amount, expected) in table {
        assert_eq!(amount.to_string(), expected);
    }
    assert_eq!(both(12_345, 1_250_000).about(), "12.3k tokens and ~$1.25");
    assert_eq!((both(1, 0).about(), both(0, 1_250_000).about()), ("1 token".into(), "~$1.25".into()));
}

// covers: R18
#[test]
fn amounts_saturate_and_count_all_classes() {
    let most = both(u64::MAX, u64::MAX);
    assert_eq!(most.saturating_add(both(1, 1)), most);
    assert_eq!(both(3, 4).saturating_sub(both(5, 1)), both(0, 3));
    assert_eq!(both(3, 4).max(both(5, 1)), both(5, 4));
    assert!(both(0, 0).is_zero() && !both(0, 1).is_zero());

    let usage = Usage {
        input: Some(1),
        cache_read: Some(20),
        cache_write: None,
        output: Some(300),
        reasoning: Some(4_000),
        ..Usage::default()
    };
    assert_eq!(Amount::of(&usage, Some(7)), both(4_321, 7));
    assert_eq!(Amount::of(&usage, None), both(4_321, 0));
    assert_eq!(serde_json::to_value(both(1, 0)).unwrap(), json!({"tokens": 1}));
    assert_eq!(serde_json::to_value(cap(None, Some(1))).unwrap(), json!({"microUsd": 1}));
}

// covers: R18
#[test]
fn a_cap_is_reached_but_not_passed() {
    let limit = cap(Some(100), None);
    assert!(limit.allows(tokens(50), tokens(30), tokens(20)));
    assert!(!limit.allows(tokens(50), tokens(30), tokens(21)));
    assert!(limit.allows(both(50, u64::MAX), both(30, u64::MAX), both(20, u64::MAX)), "money has no cap");
    assert!(!limit.allows(tokens(u64::MAX), tokens(u64::MAX), tokens(1)), "sums do not wrap");
    assert_eq!(limit.left(tokens(50), tokens(30)), cap(Some(20), None));
    assert_eq!(limit.left(tokens(90), tokens(30)), cap(Some(0), None));
    assert!(Cap::default().is_empty() && !limit.is_empty());
}

// covers: R18
#[test]
fn the_first_node_without_room_is_told() {
    let mut ledger = Ledger::default();
    assert!(!ledger.has_caps());
    ledger.set_cap("run", Some(cap(Some(200_000), Some(5_000_000))));
    ledger.set_cap("phase:research", Some(cap(Some(10_000), None)));
    ledger.set_cap("agent:claude", Some(Cap::default()));
    assert!(ledger.has_caps());
    assert_eq!(ledger.cap("agent:claude"), None, "an empty cap is none");
    assert_eq!(ledger.nodes().count(), 2, "and makes no node");

    let build = ["step:build/x", "phase:build", "run"];
    ledger.reserve(&build, tokens(160_000));
    ledger.settle(&build, tokens(160_000), tokens(150_000));
    ledger.reserve(&build, tokens(60_000));
    let short = ledger.fits(&build, tokens(20_000)).unwrap_err();
    assert_eq!(
        short.to_string(),
        "the budget of the run is 200k tokens; 150k are spent, 60k are reserved, and this step needs 20k"
    );
    let research = ["phase:research", "run"];
    let short = ledger.fits(&research, tokens(20_000)).unwrap_err();
    assert_eq!(
        short.to_string(),
        "the budget of phase `research` is 10k tokens; this step needs 20k",
        "the order of the way decides, and zeros are left out"
    );
    let short = ledger.fits(&["run"], both(0, 5_000_001)).unwrap_err();
    let text = short.to_string();
    assert!(text.ends_with("this step needs 0; it is also $5; this step needs $5.00"), "{text}");
    assert_eq!(ledger.left(&research), cap(Some(0), Some(5_000_000)));
    assert_eq!(ledger.left(&["phase:build"]), cap(Some(0), Some(5_000_000)), "the run is on every way");
    assert_eq!(ledger.node("phase:build").unwrap().settled, tokens(150_000), "also without a cap");

    ledger.set_cap("run", None);
    ledger.set_cap("phase:research", None);
    ledger.set_cap("phase:unknown", None);
    assert!(!ledger.has_caps());
    assert_eq!(ledger.fits(&build, tokens(u64::MAX)), Ok(()));
    assert_eq!(ledger.left(&build), Cap::default());
}

// covers: R18
#[test]
fn money_is_told_as_money() {
    let short = |node: &str, settled, reserved| Short {
        node: node.to_owned(),
        cap: cap(Some(1_000_000), Some(5_000_000)),
        settled: both(10, settled),
        reserved: both(10, reserved),
        want: both(10, 2_500_000),
    };
    let table = [
        (
            short("step:research/market", 3_000_000, 1_000_000),
            "the budget of step `research/market` is $5; $3 is spent, $1 is reserved, and this step needs $2.50",
        ),
        (
            short("agent:claude", 3_000_000, 0),
            "the budget of agent `claude` is $5; $3 is spent, and this step needs $2.50",
        ),
        (short("x", 0, 3_000_000), "the budget of `x` is $5; $3 is reserved, and this step needs $2.50"),
    ];
    for (short, expected) in table {
        assert_eq!(short.to_string(), expected);
    }
}

// covers: R18
#[test]
fn a_charge_counts_once_in_each_node_and_always_in_the_run() {
    let mut ledger = Ledger::default();
    let way = ["agent:claude", "agent:claude", "phase:a"];
    ledger.reserve(&way, tokens(10));
    for node in ["agent:claude", "phase:a", "run"] {
        assert_eq!(ledger.node(node).unwrap().reserved, tokens(10), "{node}");
    }
    // Giving back what was never reserved does not wrap, nor does spending all there is twice.
    for _ in 0..2 {
        ledger.settle(&way, tokens(u64::MAX), tokens(u64::MAX));
    }
    ledger.set_cap("run", Some(cap(Some(100), None)));
    assert_eq!(ledger.overshoot("run"), tokens(u64::MAX - 100));
    assert_eq!(ledger.overshoot("phase:a"), Amount::default());
    assert_eq!(ledger.overshoot("nobody"), Amount::default());
}

// covers: R18
#[test]
fn a_step_reserves_its_own_else_its_history_else_a_share() {
    let limited = cap(Some(1), Some(1));
    let left = cap(Some(90_000), Some(9_000_000));
    let none = Cap::default();
    let table = [
        // own, history, left, steps left, capped, expected
        (Some(cap(Some(500), Some(70))), Some(both(8, 8)), left, 3, limited, both(500, 70)),
        (Some(cap(Some(500), None)), Some(both(8, 8)), left, 3, limited, both(500, 10)),
        (Some(cap(Some(500), None)), None, left, 3, limited, both(500, 3_000_000)),
        (Some(cap(Some(0), None)), None, none, 3, cap(Some(1), None), both(1, 0)),
        (None, Some(both(1_000, 100)), left, 3, limited, both(1_250, 125)),
        (None, Some(both(1, 1)), left, 3, limited, both(2, 2)),
        (None, Some(both(1_000, 0)), left, 3, limited, both(1_250, 3_000_000)),
        (None, Some(both(u64::MAX, 1)), left, 3, limited, both(u64::MAX, 2)),
        (None, None, left, 3, limited, both(30_000, 3_000_000)),
        (None, None, left, 0, limited, both(90_000, 9_000_000)),
        (None, None, left, u32::MAX, limited, both(MIN_TOKENS, MIN_MICRO_USD)),
        (None, None, cap(Some(0), Some(0)), 1, limited, both(MIN_TOKENS, MIN_MICRO_USD)),
        (None, Some(both(1_000, 100)), left, 3, cap(Some(1), None), both(1_250, 0)),
        (None, None, left, 3, cap(None, Some(1)), both(0, 3_000_000)),
        (None, Some(both(9, 9)), none, 3, none, both(0, 0)),
    ];
    for (own, history, left, steps_left, capped, expected) in table {
        let reserved = reservation(own, history, left, steps_left, capped);
        assert_eq!(reserved, expected, "{own:?} {history:?} {left:?} {steps_left} {capped:?}");
    }
}

// covers: R18
#[test]
fn history_is_a_mean_of_what_was_reported() {
    let mut history = History::default();
    let key = History::key("review", "check/files[12]");
    assert_eq!(key, "review/check/files");
    assert_eq!(History::key("t", "a[0]/b[1]"), "t/a/b");
    history.learn(&key, Amount::default());
    assert_eq!((history.mean(&key), history.is_empty()), (None, true));
    history.learn(&key, both(100, 0));
    history.learn(&key, both(201, 30));
    assert_eq!(history.mean(&key), Some(both(151, 30)), "a cost that is unknown is not 0");

    let written = serde_json::to_value(&history).unwrap();
    let expected = json!({"tokens": {"count": 2, "mean": 151}, "microUsd": {"count": 1, "mean": 30}});
    assert_eq!(written, json!({ "review/check/files": expected }));
    assert_eq!(serde_json::from_value::<History>(written).unwrap(), history);

    let worst = json!({"k": {"tokens": {"count": u64::MAX, "mean": u64::MAX}}});
    let mut worst: History = serde_json::from_value(worst).unwrap();
    worst.learn("k", tokens(u64::MAX));
    assert_eq!(worst.mean("k"), Some(tokens(u64::MAX)));
}

// covers: R18
#[test]
fn history_forgets_what_is_used_least() {
    let mut history = History::default();
    for n in 0..History::MAX_KEYS {
        history.learn(&format!("k{n}"), tokens(1));
        history.learn(&format!("k{n}"), tokens(1));
    }
    history.learn("new", tokens(7));
    assert_eq!(history.len(), History::MAX_KEYS);
    assert_eq!(history.mean("new"), Some(tokens(7)), "the newcomer stays");
    history.learn("newer", tokens(8));
    assert_eq!((history.mean("new"), history.mean("newer")), (None, Some(tokens(8))));
    assert_eq!(history.len(), History::MAX_KEYS);
}

fn any_cap() -> impl Strategy<Value = Cap> {
    // Round numbers are written with a unit, others are not: both kinds must come up.
    let number =
        || (1..u64::MAX, 0..7_u32).prop_map(|(n, zeros)| (n >> (n % 60)).saturating_mul(10_u64.pow(zeros)));
    let number = move || number().prop_map(|n| n.max(1));
    prop_oneof![
        number().prop_map(|n| cap(Some(n), None)),
        number().prop_map(|n| cap(None, Some(n))),
        (number(), number()).prop_map(|(tokens, micro_usd)| cap(Some(tokens), Some(micro_usd))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // covers: R18
    #[test]
    fn a_written_cap_is_read_back(cap in any_cap()) {
        prop_assert_eq!(Cap::parse(&cap.to_string()), Ok(cap), "{}", cap);
    }

    // covers: R18
    #[test]
    fn reading_a_cap_never_panics(text in "[0-9.,+$ kKmMusdan-]{0,24}|\\PC{0,12}") {
        if let Ok(cap) = Cap::parse(&text) {
            prop_assert!(!cap.is_empty() && cap.tokens != Some(0) && cap.micro_usd != Some(0));
            prop_assert_eq!(Cap::parse(&cap.to_string()), Ok(cap));
        }
    }
}

mod against_a_model {
    use std::collections::BTreeMap;

    use super::*;

    const NODES: [&str; 8] =
        ["run", "phase:a", "phase:b", "step:a/x", "step:a/y", "step:b/z", "agent:claude", "agent:codex"];

    #[derive(Clone, Debug)]
    enum Op {
        /// On a way: reserve if it fits.
        Start(usize, Amount),
        /// One of the open charges, with what it really spent: less, as much, or more than reserved.
        Settle(usize, Spent),
        Raise(usize, Amount),
    }

    #[derive(Clone, Copy, Debug)]
    enum Spent {
        Less,
        Equal,
        More(Amount),
    }

    struct Charge {
        way: Vec<&'static str>,
        reserved: Amount,
        spent: Option<Amount>,
    }

    /// Remembers every charge, and adds up all of them whenever it is asked.
    #[derive(Default)]
    struct Model {
        caps: BTreeMap<&'static str, Cap>,
        charges: Vec<Charge>,
    }

    impl Model {
        fn sum(&self, node: &str, of: impl Fn(&Charge) -> Amount) -> Amount {
            let on_way = self.charges.iter().filter(|charge| charge.way.contains(&node));
            on_way.map(of).fold(Amount::default(), Amount::saturating_add)
        }

        fn settled(&self, node: &str) -> Amount {
            self.sum(node, |charge| charge.spent.unwrap_or_default())
        }

        fn reserved(&self, node: &str) -> Amount {
            self.sum(node, |charge| if charge.spent.is_none() { charge.reserved } else { Amount::default() })
        }

        /// What settles took beyond what they had reserved.
        fn excess(&self, node: &str) -> Amount {
            self.sum(node, |charge| charge.spent.unwrap_or_default().saturating_sub(charge.reserved))
        }

        fn cap(&self, node: &str) -> (u64, u64) {
            let cap = self.caps.get(node).copied().unwrap_or_default();
            (cap.tokens.unwrap_or(u64::MAX), cap.micro_usd.unwrap_or(u64::MAX))
        }

        fn has_room(&self, node: &str, want: Amount) -> bool {
            let (settled, reserved, (tokens, micro_usd)) =
                (self.settled(node), self.reserved(node), self.cap(node));
            settled.tokens + reserved.tokens + want.tokens <= tokens
                && settled.micro_usd + reserved.micro_usd + want.micro_usd <= micro_usd
        }

        fn left(&self, way: &[&str]) -> Cap {
            let limits = way.iter().filter_map(|node| Some((node, self.caps.get(node)?)));
            let lefts: Vec<Cap> =
                limits.map(|(node, cap)| cap.left(self.settled(node), self.reserved(node))).collect();
            cap(
                lefts.iter().filter_map(|left| left.tokens).min(),
                lefts.iter().filter_map(|left| left.micro_usd).min(),
            )
        }

        fn open(&self) -> Vec<usize> {
            (0..self.charges.len()).filter(|at| self.charges[*at].spent.is_none()).collect()
        }
    }

    fn small() -> impl Strategy<Value = Amount> {
        (0..60_u64, 0..60_u64).prop_map(|(tokens, micro_usd)| both(tokens, micro_usd))
    }

    fn some_cap() -> impl Strategy<Value = Option<Cap>> {
        let unit = || prop::option::of(0..200_u64);
        prop::option::of((unit(), unit()).prop_map(|(tokens, micro_usd)| cap(tokens, micro_usd)))
    }

    /// The run and up to three more, in any order.
    fn way() -> impl Strategy<Value = Vec<&'static str>> {
        let others = prop::sample::subsequence(NODES[1..].to_vec(), 0..=3);
        others.prop_flat_map(|mut way| {
            way.push("run");
            Just(way).prop_shuffle()
        })
    }

    fn op() -> impl Strategy<Value = Op> {
        let more = small().prop_map(Spent::More);
        let spent = prop_oneof![Just(Spent::Less), Just(Spent::Equal), more];
        prop_oneof![
            4 => (any::<usize>(), small()).prop_map(|(way, want)| Op::Start(way, want)),
            3 => (any::<usize>(), spent).prop_map(|(which, spent)| Op::Settle(which, spent)),
            1 => (any::<usize>(), small()).prop_map(|(node, by)| Op::Raise(node, by)),
        ]
    }

    fn start(ledger: &mut Ledger, model: &mut Model, way: &[&'static str], want: Amount) {
        let full = way.iter().find(|node| !model.has_room(node, want));
        let fits = ledger.fits(way, want);
        assert_eq!(fits.as_ref().err().map(|short| short.node.as_str()), full.copied());
        if let Err(short) = fits {
            let known = (short.cap, short.settled, short.reserved, short.want);
            let node = short.node.as_str();
            assert_eq!(known, (model.caps[node], model.settled(node), model.reserved(node), want));
            assert!(short.to_string().contains("this step needs"), "{short}");
            return;
        }
        ledger.reserve(way, want);
        model.charges.push(Charge { way: way.to_vec(), reserved: want, spent: None });
        for node in way {
            let Some(Node { cap: Some(cap), settled, reserved }) = ledger.node(node) else {
                continue;
            };
            assert!(cap.allows(*settled, *reserved, Amount::default()), "{node} is over its cap at a start");
        }
    }

    fn settle(ledger: &mut Ledger, model: &mut Model, which: usize, spent: Spent) {
        let charge = &mut model.charges[which];
        let spent = match spent {
            Spent::Less => both(charge.reserved.tokens / 2, charge.reserved.micro_usd / 3),
            Spent::Equal => charge.reserved,
            Spent::More(by) => charge.reserved.saturating_add(by),
        };
        ledger.settle(&charge.way, charge.reserved, spent);
        charge.spent = Some(spent);
    }

    fn raise(ledger: &mut Ledger, model: &mut Model, node: &'static str, by: Amount) {
        if let Some(old) = model.caps.get_mut(node) {
            *old = cap(old.tokens.map(|cap| cap + by.tokens), old.micro_usd.map(|cap| cap + by.micro_usd));
            ledger.set_cap(node, Some(*old));
        }
    }

    fn compare(ledger: &Ledger, model: &Model, ways: &[Vec<&'static str>]) {
        for node in NODES {
            let here = ledger.node(node).cloned().unwrap_or_default();
            assert_eq!((here.settled, here.reserved), (model.settled(node), model.reserved(node)), "{node}");
            assert_eq!(here.cap, model.caps.get(node).copied(), "{node}");
            let (tokens, micro_usd) = model.cap(node);
            let overshoot = ledger.overshoot(node);
            assert_eq!(overshoot, here.settled.saturating_sub(both(tokens, micro_usd)), "{node}");
            assert!(overshoot.saturating_sub(model.excess(node)).is_zero(), "{node}: only settles overshoot");
        }
        for way in ways {
            assert_eq!(ledger.left(way), model.left(way), "{way:?}");
        }
        assert_eq!(ledger.has_caps(), !model.caps.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        // covers: R18
        #[test]
        fn the_ledger_adds_up(
            caps in prop::collection::vec(some_cap(), NODES.len()),
            ways in prop::collection::vec(way(), 1..5),
            ops in prop::collection::vec(op(), 1..32),
        ) {
            let (mut ledger, mut model) = (Ledger::default(), Model::default());
            for (node, cap) in NODES.into_iter().zip(caps) {
                ledger.set_cap(node, cap);
                model.caps.extend(cap.filter(|cap| !cap.is_empty()).map(|cap| (node, cap)));
            }
            for op in ops {
                let open = model.open();
                match op {
                    Op::Start(way, want) => start(&mut ledger, &mut model, &ways[way % ways.len()], want),
                    Op::Settle(which, spent) if !open.is_empty() => {
                        settle(&mut ledger, &mut model, open[which % open.len()], spent);
                    }
                    Op::Settle(..) => {}
                    Op::Raise(node, by) => raise(&mut ledger, &mut model, NODES[node % NODES.len()], by),
                }
                compare(&ledger, &model, &ways);
            }
            for which in model.open() {
                settle(&mut ledger, &mut model, which, Spent::Equal);
            }
            compare(&ledger, &model, &ways);
            for (name, node) in ledger.nodes() {
                prop_assert!(node.reserved.is_zero(), "{}", name);
            }
        }
    }
}
