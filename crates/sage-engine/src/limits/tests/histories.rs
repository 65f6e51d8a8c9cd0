use super::*;
use proptest::prelude::*;

/// What may happen to one of a few runs.
#[derive(Clone, Debug)]
enum Deed {
    Ask {
        run: usize,
        pools: [u32; 3],
        call: bool,
        priority: u8,
    },
    /// Ends an attempt: cancelled, or reported.
    End {
        run: usize,
        which: usize,
        fails: Option<bool>,
    },
    Withdraw(usize),
    Leave(usize),
    Die(usize),
    Wait(u64),
    Set(Option<u32>),
}

const RUNS: usize = 4;
const POOLS: [(&str, u32); 3] = [("p0", 1), ("p1", 3), ("p2", 8)];
const TARGETS: [&str; 2] = ["x", "provider:y"];

fn deed() -> impl Strategy<Value = Deed> {
    let run = 0..RUNS;
    prop_oneof![
        8 => (run.clone(), [0u32..2, 0u32..3, 0u32..10], any::<bool>(), 0u8..4)
            .prop_map(|(run, pools, call, priority)| Deed::Ask { run, pools, call, priority }),
        6 => (run.clone(), any::<usize>(), any::<Option<bool>>())
            .prop_map(|(run, which, fails)| Deed::End { run, which, fails }),
        1 => run.clone().prop_map(Deed::Withdraw),
        1 => run.clone().prop_map(Deed::Leave),
        1 => run.prop_map(Deed::Die),
        2 => (1u64..70_000).prop_map(Deed::Wait),
        1 => any::<Option<bool>>().prop_map(|set| Deed::Set(set.map(|wide| if wide { 5 } else { 1 }))),
    ]
}

struct Story {
    world: World,
    members: Vec<Option<(Member, Vec<Permit>)>>,
    now_ms: u64,
    deeds: usize,
}

impl Story {
    fn new(disk: bool) -> Self {
        let config = per_minute("provider:y", 50);
        let world = if disk { World::on_disk_with(config) } else { World::alone_with(config) };
        world.limits.set("target:x", Some(2)).unwrap();
        world.limits.set("target:provider:y", Some(4)).unwrap();
        Self { world, members: (0..RUNS).map(|_| None).collect(), now_ms: NOW, deeds: 0 }
    }

    fn run(&mut self, run: usize) -> &mut (Member, Vec<Permit>) {
        let world = &self.world;
        self.members[run].get_or_insert_with(|| (world.member(&format!("r{run}")), Vec::new()))
    }

    fn perform(&mut self, deed: &Deed) {
        self.deeds += 1;
        let now_ms = self.now_ms;
        match deed.clone() {
            Deed::Ask { run, pools, call, priority } => {
                let pools: Vec<PoolWant<'_>> =
                    pools.iter().zip(POOLS).map(|(units, (name, limit))| pool(name, *units, limit)).collect();
                let targets: &[&str] = if call { &TARGETS } else { &[] };
                let targets: Vec<String> = targets.iter().map(|&name| name.to_owned()).collect();
                let (member, permits) = self.run(run);
                permits.extend(member.ask(&want(&pools, &targets, priority), now_ms).result().ok());
            }
            Deed::End { run, which, fails } => {
                let (_, permits) = self.run(run);
                if !permits.is_empty() {
                    let permit = permits.swap_remove(which % permits.len());
                    if let Some(fails) = fails {
                        permit.report(&if fails { failure() } else { CallReport::default() }, now_ms);
                    }
                }
            }
            Deed::Withdraw(run) => self.run(run).0.withdraw(),
            Deed::Leave(run) => self.members[run] = None,
            Deed::Die(run) => {
                if let Some((member, permits)) = self.members[run].take() {
                    member.die(permits);
                }
            }
            Deed::Wait(ms) => self.now_ms += ms,
            Deed::Set(limit) => self.world.limits.set("p1", limit).unwrap(),
        }
    }

    /// No more than the limit is ever held. One that was lowered is exceeded only by what was granted before.
    fn check(&self, highest: u32) {
        let most = [("p0", 1), ("p1", highest), ("p2", 8), ("target:x", 2), ("target:provider:y", 4)];
        let board = self.world.limits.board();
        for (name, limit) in most {
            let held: u32 = board.iter().filter(|entry| entry.pool == name).map(|entry| entry.held).sum();
            assert!(held <= limit, "{held} of {limit} in {name}");
        }
    }

    /// Everybody is gone: all of everything is to be had.
    fn end(mut self) {
        self.members.clear();
        for name in ["p1", "target:x", "target:provider:y"] {
            self.world.limits.set(name, None).unwrap();
        }
        for name in TARGETS {
            self.world.limits.change(name, |target| target.clear(NOW, "end")).unwrap();
        }
        let last = self.world.member("last");
        let all = POOLS.map(|(name, limit)| pool(name, limit, limit));
        let targets = TARGETS.map(str::to_owned);
        let widths = [pool("target:x", 2, 2), pool("target:provider:y", 4, 4)];
        let all = [&all[..], &widths[..]].concat();
        let permit = last.ask(&want(&all, &targets, 3), self.now_ms).result().unwrap();
        assert_eq!(held(&self.world.limits, "p2"), 8);
        drop((permit, last));
        assert!(self.world.limits.board().is_empty(), "{:?}", self.world.limits.board());
        if let Some(home) = &self.world.home {
            drop(self.world.member("sweeper"));
            for place in ["project", "user"] {
                assert_eq!(std::fs::read_dir(home.path().join(place).join("live")).unwrap().count(), 0);
                let board = std::fs::read_to_string(home.path().join(place).join("board")).unwrap();
                assert_eq!(board, "sage-board 1\n");
            }
        }
    }

    fn tell(mut self, deeds: &[Deed]) {
        for deed in deeds {
            self.perform(deed);
            self.check(5);
        }
        self.end();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // About 30,000 deeds, of which 10,000 cancel, fail, leave or kill.
    // covers: R13, P6
    #[test]
    fn nothing_is_ever_overdrawn_or_left_behind(deeds in prop::collection::vec(deed(), 1..200)) {
        Story::new(false).tell(&deeds);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    // covers: R13, P6
    #[test]
    fn nor_on_files(deeds in prop::collection::vec(deed(), 1..80)) {
        Story::new(true).tell(&deeds);
    }
}

// covers: R13
#[test]
fn threads_that_ask_at_once_never_overdraw() {
    let world = World::on_disk();
    let now_held = std::sync::atomic::AtomicI32::new(0);
    let granted = std::sync::atomic::AtomicI32::new(0);
    std::thread::scope(|scope| {
        for run in 0..4 {
            let (world, now_held, granted) = (&world, &now_held, &granted);
            scope.spawn(move || {
                let member = world.member(&format!("r{run}"));
                for step in 0..150 {
                    if let Ok(permit) = member.asks(&[pool("p", 1, 2)], 1, NOW + step) {
                        assert!(now_held.fetch_add(1, Ordering::SeqCst) < 2, "more than the limit");
                        granted.fetch_add(1, Ordering::SeqCst);
                        now_held.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                }
            });
        }
    });
    assert!(granted.into_inner() > 0);
    assert!(world.limits.board().is_empty());
    drop(world.member("last").asks(&[pool("p", 2, 2)], 9, NOW).unwrap());
}
