use super::*;
use sage_core::target::HoldReason;

// covers: R13
#[test]
fn who_wants_nothing_gets_it_without_a_file() {
    let world = World::on_disk();
    let member = world.limits.join("r").unwrap();
    let permit = member.asks(&[], 0, NOW).unwrap();
    assert!(permit.report(&failure(), NOW).is_empty());
    drop(member.asks(&[pool("p", 0, 0)], 0, NOW).unwrap());
    member.withdraw();
    drop((permit, member));
    assert_eq!((world.limits.board(), world.limits.targets()), (vec![], vec![]));
    assert_eq!(std::fs::read_dir(world.dir()).unwrap().count(), 0, "no I/O");
}

// covers: R13
#[test]
fn a_pool_is_shared_and_given_back() {
    for world in World::both() {
        let (a, b) = (world.member("a"), world.member("b"));
        let first = a.asks(&[pool("p", 2, 3)], 1, NOW).unwrap();
        assert_eq!(b.asks(&[pool("p", 2, 3)], 1, NOW).unwrap_err(), full("p"));
        let entry = |run: &str, held, waiting| Entry { pool: "p".into(), run: run.into(), held, waiting };
        let waiting = Waiting { priority: 1, since_ms: NOW, asked_ms: NOW };
        assert_eq!(world.limits.board(), [entry("a", 2, None), entry("b", 0, Some(waiting))]);
        drop(first);
        let second = b.asks(&[pool("p", 2, 3)], 1, NOW + 1).unwrap();
        assert_eq!(world.limits.board(), [entry("b", 2, None)]);
        drop((second, a, b));
        assert!(world.limits.board().is_empty());
    }
}

// covers: R13
#[test]
fn all_or_nothing_over_pools_places_and_targets() {
    for world in World::both() {
        world.limits.set("target:provider:x", Some(1)).unwrap();
        let (a, b) = (world.member("a"), world.member("b"));
        let call = a.calls("provider:x", NOW).unwrap();
        let both = ["provider:x".to_owned()];
        let pools = [pool("p", 1, 1)];
        let refused = b.ask(&want(&pools, &both, 1), NOW).result().unwrap_err();
        assert_eq!(refused, full("target:provider:x"));
        assert_eq!(held(&world.limits, "p"), 0, "nothing is held while waiting");
        let other = a.asks(&pools, 1, NOW).unwrap();
        drop(call);
        assert_eq!(b.ask(&want(&pools, &both, 1), NOW).result().unwrap_err(), full("p"));
        assert_eq!(held(&world.limits, "target:provider:x"), 0);
        drop(other);
        let granted = b.ask(&want(&pools, &both, 1), NOW).result().unwrap();
        assert_eq!((held(&world.limits, "p"), held(&world.limits, "target:provider:x")), (1, 1));
        drop(granted);
        assert_eq!((held(&world.limits, "p"), held(&world.limits, "target:provider:x")), (0, 0));
    }
}

// covers: R13
#[test]
fn a_target_that_refuses_late_leaves_nothing_taken() {
    for world in World::both_with(&per_minute("a", 5)) {
        let (member, other) = (world.member("r"), world.member("other"));
        let later = break_target(&other, "b", NOW).until.unwrap();
        let probe = other.calls("b", later).unwrap();
        let targets = ["a".to_owned(), "b".to_owned()];
        let refused = member.ask(&want(&[pool("p", 1, 1)], &targets, 1), later).result().unwrap_err();
        assert!(matches!(refused, Refused::Target { ref target, .. } if target == "b"), "{refused:?}");
        assert!(world.limits.board().is_empty());
        assert!(world.limits.targets().iter().all(|(name, _)| name == "b"), "a's call was not counted");
        drop(probe);
        let both = member.ask(&want(&[pool("p", 1, 1)], &targets, 1), later).result().unwrap();
        assert!(both.is_probe());
        assert_eq!(held(&world.limits, "p"), 1);
    }
}

// covers: R13
#[test]
fn two_greedy_runs_take_turns() {
    for world in World::both() {
        for limit in [1, 3] {
            let members = [world.member("a"), world.member("b")];
            let mut grants = Vec::new();
            let mut permits = std::collections::VecDeque::new();
            for step in 0..200 {
                for (index, member) in members.iter().enumerate() {
                    // Each asks for as much as it can get.
                    while let Ok(permit) = member.asks(&[pool("p", 1, limit)], 1, NOW + step) {
                        grants.push(index);
                        permits.push_back(permit);
                    }
                }
                assert_eq!(permits.len(), limit as usize, "all of it is used");
                permits.pop_front();
            }
            // What the first run got before the second had to wait is not made up for; then it is one each.
            let start = grants.iter().position(|index| *index == 1).unwrap();
            assert!(start <= limit as usize + 1, "{grants:?}");
            assert!(grants[start..].windows(2).all(|pair| pair[0] != pair[1]), "{grants:?}");
        }
    }
}

// covers: R13
#[test]
fn priority_goes_first_and_ageing_lets_everybody_through() {
    for world in World::both() {
        let (high, low) = (world.member("high"), world.member("low"));
        let p = [pool("p", 1, 1)];
        let mut permit = Some(high.asks(&p, 1, NOW).unwrap());
        let mut through = None;
        let mut highs = 0;
        for step in 0..400u64 {
            let now_ms = NOW + step * 500;
            // The high run always has one more step waiting; the low one asks first, and still waits.
            assert!(permit.is_some());
            let _ = high.asks(&p, 1, now_ms).unwrap_err();
            let _ = low.asks(&p, 3, now_ms).unwrap_err();
            drop(permit.take());
            match low.asks(&p, 3, now_ms) {
                Ok(granted) => {
                    through.get_or_insert(step * 500);
                    permit = Some(granted);
                }
                Err(_) => {
                    permit = Some(high.asks(&p, 1, now_ms).unwrap());
                    highs += 1;
                }
            }
        }
        let through = through.expect("P3 gets through");
        assert!((120_000..=121_000).contains(&through), "two steps of 60 s: {through}");
        assert!(highs > 300);
    }
}

// covers: R13
#[test]
fn a_want_of_two_pools_is_not_overtaken_for_ever() {
    for world in World::both() {
        let (a, b, both) = (world.member("a"), world.member("b"), world.member("both"));
        let (pa, pb) = ([pool("pa", 1, 1)], [pool("pb", 1, 1)]);
        let two = [pa[0], pb[0]];
        // Long steps that never end at the same time: without a kept place, one pool is always taken.
        let mut in_a = a.asks(&pa, 1, NOW).ok();
        let mut in_b = b.asks(&pb, 1, NOW).ok();
        let mut granted = None;
        for second in 1..400u64 {
            let now_ms = NOW + second * 1_000;
            match second % 20 {
                0 => in_a = None,
                10 => in_b = None,
                _ => {}
            }
            if let Ok(permit) = both.asks(&two, 1, now_ms) {
                granted = Some((second, permit));
                break;
            }
            in_a = in_a.or_else(|| a.asks(&pa, 1, now_ms).ok());
            in_b = in_b.or_else(|| b.asks(&pb, 1, now_ms).ok());
        }
        let (second, _permit) = granted.expect("it gets both in the end");
        assert!(second <= 120, "{second}");
    }
}

// covers: R13
#[test]
fn crossed_wants_never_block_each_other() {
    for world in World::both() {
        let members: Vec<Member> = (0..4).map(|run| world.member(&format!("r{run}"))).collect();
        let wants =
            [["a", "b"], ["b", "c"], ["c", "a"], ["c", "b"]].map(|pools| pools.map(|name| pool(name, 1, 1)));
        let mut grants = [0u64; 4];
        let mut running: Vec<(u64, Permit)> = Vec::new();
        let steps = if world.home.is_some() { 300 } else { 1_000 };
        for step in 0..steps {
            let now_ms = NOW + step * 1_000;
            running.retain(|(until, _)| *until > step);
            for (index, member) in members.iter().enumerate() {
                if let Ok(permit) = member.asks(&wants[index], 1, now_ms) {
                    grants[index] += 1;
                    running.push((step + 3, permit));
                }
            }
        }
        // One at a time can run. Those who wait in two pools are passed by, but not longer than they age.
        assert!(grants.iter().all(|grants| *grants >= steps / 90), "{grants:?}");
        assert!(grants.iter().sum::<u64>() >= steps * 3 / 10, "{grants:?}");
    }
}

// covers: R13
#[test]
fn who_withdraws_or_stops_asking_does_not_block() {
    for world in World::both() {
        let (a, b, c) = (world.member("a"), world.member("b"), world.member("c"));
        let p = [pool("p", 1, 1)];
        let permit = a.asks(&p, 1, NOW).unwrap();
        let _ = b.asks(&p, 0, NOW).unwrap_err();
        drop(permit);
        assert_eq!(c.asks(&p, 1, NOW + 1_999).unwrap_err(), full("p"), "b comes first");
        let permit = c.asks(&p, 1, NOW + 2_000).expect("b has not asked again");
        let _ = b.asks(&p, 0, NOW + 2_000).unwrap_err();
        drop(permit);
        let _ = c.asks(&p, 1, NOW + 2_000).unwrap_err();
        b.withdraw();
        let permit = c.asks(&p, 1, NOW + 2_000).expect("b has withdrawn");
        let _ = b.asks(&p, 0, NOW + 2_000).unwrap_err();
        drop(permit);
        let _ = c.asks(&p, 1, NOW + 2_000).unwrap_err();
        drop(b);
        drop(c.asks(&p, 1, NOW + 2_000).expect("b has left"));
        let _ = a.asks(&[pool("p", 1, 0)], 0, NOW + 2_000).unwrap_err();
        drop(c.asks(&p, 1, NOW + 2_000).expect("who can never be let in is no queue"));
    }
}

// covers: R13
#[test]
fn a_limit_that_a_person_sets_counts_at_once() {
    for world in World::both() {
        let (a, b) = (world.member("a"), world.member("b"));
        let p = [pool("p", 1, 1)];
        let _first = a.asks(&p, 1, NOW).unwrap();
        assert_eq!(b.asks(&p, 1, NOW).unwrap_err(), full("p"));
        world.other().set("p", Some(2)).unwrap();
        let second = b.asks(&p, 1, NOW).unwrap();
        assert_eq!(world.limits.overrides(), BTreeMap::from([("p".to_owned(), 2)]));
        drop(second);
        world.other().set("p", None).unwrap();
        assert_eq!(b.asks(&p, 1, NOW).unwrap_err(), full("p"));
        assert!(world.limits.overrides().is_empty());

        let _call = a.calls("provider:x", NOW).unwrap();
        world.limits.set("target:provider:x", Some(1)).unwrap();
        let counted = b.calls("provider:x", NOW).unwrap();
        assert_eq!(a.calls("provider:x", NOW).unwrap_err(), full("target:provider:x"));
        world.limits.set("target:provider:x", Some(0)).unwrap();
        drop(counted);
        assert_eq!(b.calls("provider:x", NOW).unwrap_err(), full("target:provider:x"), "0 lets nobody in");
    }
}

// covers: R7, R13
#[test]
fn a_breaker_is_shared_and_one_probe_closes_it() {
    for world in World::both() {
        let (a, b) = (world.member("a"), world.member("b"));
        let later = break_target(&a, "x", NOW).until.unwrap();
        let Err(Refused::Target { hold, .. }) = b.calls("x", NOW + 1) else { panic!("open for all") };
        assert_eq!((hold.reason, hold.until), (HoldReason::Breaker, Some(later)));
        let probe = a.calls("x", later).unwrap();
        assert!(probe.is_probe());
        let Err(Refused::Target { hold, .. }) = b.calls("x", later) else { panic!("one probe at a time") };
        assert_eq!(hold.reason, HoldReason::Breaker);
        drop(probe);
        let mut told = Vec::new();
        for _ in 0..10 {
            let probe = b.calls("x", later).expect("a probe that is over is free again");
            told.extend(probe.report(&CallReport::default(), later));
        }
        assert!(told.iter().any(|(name, _)| name == "x"), "it was told that it is well again");
        let calls = [a.calls("x", later).unwrap(), b.calls("x", later).unwrap()];
        assert!(!calls[0].is_probe() && !calls[1].is_probe());
        drop(calls);
        let isolated = world.other().change("x", |target| target.breaker.isolate(later, "off")).unwrap();
        assert_eq!(world.limits.targets(), [("x".to_owned(), isolated)]);
        let Err(Refused::Target { hold, .. }) = a.calls("x", later) else { panic!("isolated") };
        assert_eq!(hold.reason, HoldReason::Isolated);
        world.limits.change("x", |target| target.breaker.reset(later, "on")).unwrap();
        drop(b.calls("x", later).unwrap());
    }
}

// covers: R13
#[test]
fn a_report_says_how_many_calls_were_under_way() {
    for world in World::both() {
        let (a, b) = (world.member("a"), world.member("b"));
        let flying = |member: &Member, counted| {
            member.limits().place(Scope::User).enter().in_flight("provider:x", counted)
        };
        let uncounted = [a.calls("provider:x", NOW).unwrap(), a.calls("provider:x", NOW).unwrap()];
        assert_eq!(flying(&a, false), 2, "without a width, those of this process");
        drop(uncounted);
        world.limits.set("target:provider:x", Some(9)).unwrap();
        let _calls = [&a, &a, &b].map(|member| member.calls("provider:x", NOW).unwrap());
        assert_eq!(flying(&b, true), 3, "with one, those of all runs");
        let dead = world.member("dead");
        let permit = dead.calls("provider:x", NOW).unwrap();
        assert_eq!(flying(&b, true), 4);
        dead.die(vec![permit]);
        if world.home.is_some() {
            assert_eq!(flying(&b, true), 3, "the dead don't count");
        }
    }
}

// covers: R13
#[test]
fn calls_per_minute_are_counted_by_all_runs() {
    for world in World::both_with(&per_minute("provider:x", 3)) {
        let members = [world.member("a"), world.member("b")];
        let granted = (0..10).filter(|index| members[index % 2].calls("provider:x", NOW).is_ok()).count();
        assert_eq!(granted, 3);
        assert!(members[0].calls("provider:x", NOW + 60_000).is_ok());
    }
}

// covers: R13
#[test]
fn permits_outlive_their_member() {
    for world in World::both() {
        let a = world.member("a");
        let permit = a.asks(&[pool("p", 1, 1)], 1, NOW).unwrap();
        drop(a);
        let b = world.member("b");
        assert_eq!(b.asks(&[pool("p", 1, 1)], 1, NOW).unwrap_err(), full("p"), "the attempt still runs");
        let sent = std::thread::spawn(move || drop(permit));
        sent.join().unwrap();
        drop(b.asks(&[pool("p", 1, 1)], 1, NOW).unwrap());
    }
}

// covers: R13
#[test]
fn the_same_pool_twice_is_one_want() {
    for world in World::both() {
        let (a, b) = (world.member("a"), world.member("b"));
        let permit = a.asks(&[pool("p", 1, 3), pool("p", 1, 4)], 1, NOW).unwrap();
        assert_eq!(held(&world.limits, "p"), 2);
        assert!(b.asks(&[pool("p", 2, 3)], 1, NOW).is_err());
        drop(permit);
        assert_eq!(held(&world.limits, "p"), 0);
    }
}
