//! Searches on simulated servers.

use proptest::prelude::*;

use super::*;

/// A server in few words: how a trial of a level ends, given all that came before.
struct Simulated<F> {
    answers: F,
    trials: Vec<(Trial, Ending)>,
}

impl<F: FnMut(Trial, &[(Trial, Ending)]) -> Ending> Simulated<F> {
    fn new(answers: F) -> Self {
        Self { answers, trials: Vec::new() }
    }

    /// Searches to the end, which must come.
    fn search(&mut self, spec: Spec) -> Answer {
        let mut search = Search::new(spec);
        while let Step::Trial(trial) = search.step() {
            assert!(self.trials.len() < 500, "no end: {:?}", self.trials);
            let ending = (self.answers)(trial, &self.trials);
            search.record(ending);
            self.trials.push((trial, ending));
        }
        search.answer()
    }

    fn tried(&self, purpose: Purpose) -> Vec<u64> {
        self.trials.iter().filter(|(trial, _)| trial.purpose == purpose).map(|(trial, _)| trial.level).collect()
    }
}

fn spec(to: u64) -> Spec {
    Spec { levels: Levels::new(1, to), width: Width::percent(2.0), confirm: 3, seed: 42 }
}

fn ending(passes: bool) -> Ending {
    if passes { Ending::Pass } else { Ending::Fail }
}

/// The bounds, if that is how it ended.
fn bounds(answer: &Answer) -> Option<(u64, u64)> {
    match answer.end {
        End::Bounds { holds, breaks } => Some((holds.level, breaks.level)),
        _ => None,
    }
}

#[test]
fn a_cliff_is_found_exactly() {
    let mut server = Simulated::new(|trial, _| ending(trial.level <= 41));
    let answer = server.search(spec(256));
    assert_eq!(bounds(&answer), Some((41, 42)));
    assert_eq!(answer.recovery, Recovery::Recovered { trials: 1 });
    assert_eq!(server.tried(Purpose::Climb), [1, 2, 4, 8, 16, 24, 36, 54]);
    assert_eq!(server.tried(Purpose::Bisect), [45, 40, 42, 41]);
    let mut confirmed = server.tried(Purpose::Confirm);
    confirmed.sort_unstable();
    assert_eq!(confirmed, [41, 42]);
    assert_eq!(server.tried(Purpose::Recover), [41]);
    // 54 failed, so nothing above needs to be looked at.
    assert!(server.tried(Purpose::Above).is_empty());
    let (holds, breaks) = (answer.holds.expect("one"), answer.breaks.expect("one"));
    assert_eq!((holds.passed, holds.failed, breaks.passed, breaks.failed), (2, 0, 0, 2));
}

#[test]
fn a_wide_range_ends_within_its_width() {
    let wide = Spec { levels: Levels::new(1_000, 10_000_000), ..spec(1) };
    let answer = Simulated::new(|trial, _| ending(trial.level <= 654_321)).search(wide);
    let (holds, breaks) = bounds(&answer).expect("bounds");
    assert!(holds <= 654_321 && 654_321 < breaks && breaks - holds <= holds / 50, "{answer:?}");
}

/// Around the knee a level holds the less often the higher it is.
#[test]
fn a_knee_gives_a_bound_within_it() {
    for seed in 0..200u64 {
        let mut random = seed;
        let mut server = Simulated::new(move |trial: Trial, _: &[_]| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let share = (random >> 33) as f64 / f64::from(1u32 << 31);
            ending(share > (trial.level as f64 - 40.0) / 20.0)
        });
        let answer = server.search(Spec { seed, ..spec(256) });
        match answer.end {
            End::Bounds { holds, breaks } => {
                assert!((38..=60).contains(&holds.level) && breaks.level > 40, "{answer:?}");
            }
            // Within the knee bounds may contradict each other: then none are claimed.
            End::Irregular { fails, holds } => assert!(fails > 40 && holds <= 60, "{answer:?}"),
            End::Unstable => {}
            other => panic!("{other:?}"),
        }
    }
}

/// One trial in twenty fails by chance, wherever it is: the answer is still the cliff.
#[test]
fn noise_moves_no_bound_for_good() {
    let mut exact = 0;
    for seed in 0..400u64 {
        let mut random = seed;
        let mut server = Simulated::new(move |trial: Trial, _: &[_]| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ending(trial.level <= 100 && (random >> 33) % 20 != 0)
        });
        let answer = server.search(Spec { seed, ..spec(256) });
        if let Some((holds, breaks)) = bounds(&answer) {
            exact += u32::from((99..=100).contains(&holds) && (100..=102).contains(&breaks));
        }
    }
    assert!(exact > 340, "{exact} of 400");
}

#[test]
fn a_flaky_point_is_marked() {
    // 16 fails once and holds twice, in whatever order it is asked.
    let mut server = Simulated::new(|trial, _| ending(trial.level < 16 || trial.level == 16 && trial.number != 2));
    let answer = server.search(spec(64));
    let End::Bounds { holds, breaks } = answer.end else { panic!("{answer:?}") };
    assert_eq!((holds.level, holds.passed, holds.failed, holds.is_flaky()), (16, 2, 1, true));
    assert_eq!((breaks.level, breaks.is_flaky()), (17, false));
}

#[test]
fn a_bound_that_is_overturned_is_sought_again() {
    // 16 fails when it is tried first and holds ever after.
    let mut server = Simulated::new(|trial, _| ending(trial.level < 30 && !(trial.level == 16 && trial.number == 1)));
    let answer = server.search(spec(256));
    assert_eq!(bounds(&answer), Some((29, 30)));
    // 8 holds once, and never again.
    let mut server = Simulated::new(|trial, _| ending(trial.level < 8 || trial.level == 8 && trial.number == 1));
    assert_eq!(bounds(&server.search(spec(256))), Some((7, 8)));
}

#[test]
fn bounds_that_move_whenever_they_are_confirmed_are_none() {
    // Whatever is confirmed turns out otherwise, until the patience is over.
    let mut server = Simulated::new(|trial, _| ending(trial.level < 4 || trial.number > 1));
    let answer = server.search(spec(256));
    assert_eq!(answer.end, End::Unstable, "{:?}", server.trials);
}

#[test]
fn a_server_that_holds_more_than_it_fails_at_is_irregular() {
    // A quirk at 16 alone: the level above shows it.
    let mut server = Simulated::new(|trial, _| ending(trial.level != 16));
    let answer = server.search(spec(256));
    assert_eq!(answer.end, End::Irregular { fails: 16, holds: 24 });
    assert_eq!(server.tried(Purpose::Above), [24, 24]);
    // The bounds contradict each other.
    let mut server = Simulated::new(|trial, _| {
        let first = trial.number == 1;
        ending(match trial.level {
            15 => first,
            16 => !first,
            level => level < 15,
        })
    });
    assert_eq!(server.search(spec(256)).end, End::Irregular { fails: 15, holds: 16 });
}

#[test]
fn a_level_that_passes_once_above_the_bounds_is_no_contradiction() {
    let mut server = Simulated::new(|trial, _| ending(trial.level < 16 || trial.level == 24 && trial.number == 1));
    assert_eq!(bounds(&server.search(spec(256))), Some((15, 16)));
    assert_eq!(server.tried(Purpose::Above), [24, 24, 24]);
}

#[test]
fn a_server_that_stays_down_after_a_break_is_metastable() {
    let mut server = Simulated::new(|trial, before: &[(Trial, Ending)]| {
        let broken = before.last().is_some_and(|(_, ending)| *ending == Ending::Fail);
        ending(trial.level <= 20 && !(trial.purpose == Purpose::Recover && broken))
    });
    let answer = server.search(spec(64));
    assert_eq!((bounds(&answer), answer.recovery), (Some((20, 21)), Recovery::Metastable { level: 20 }));
    // Slow to recover is not the same.
    let mut server = Simulated::new(|trial, before: &[(Trial, Ending)]| {
        let again = before.last().is_some_and(|(last, _)| last.purpose == Purpose::Recover);
        ending(trial.level <= 20 && (trial.purpose != Purpose::Recover || again))
    });
    assert_eq!(server.search(spec(64)).recovery, Recovery::Recovered { trials: 2 });
}

/// The server is always broken right before it has to recover.
#[test]
fn recovery_follows_a_break() {
    for seed in 0..20 {
        let mut server = Simulated::new(|trial, _| ending(trial.level <= 20));
        server.search(Spec { seed, ..spec(64) });
        let at = server.trials.iter().position(|(trial, _)| trial.purpose == Purpose::Recover).expect("tested");
        let (before, how) = server.trials[at - 1];
        assert!(before.level >= 21 && how == Ending::Fail, "{:?}", server.trials);
    }
}

#[test]
fn nothing_holds_or_the_limit_is_not_reached() {
    let answer = Simulated::new(|_, _| Ending::Fail).search(spec(64));
    assert!(matches!(answer.end, End::NothingHolds { breaks: Bound { level: 1, passed: 0, failed: 2 } }), "{answer:?}");
    let mut server = Simulated::new(|_, _| Ending::Pass);
    let answer = server.search(spec(64));
    assert!(matches!(answer.end, End::NotReached { holds: Bound { level: 64, passed: 2, failed: 0 } }), "{answer:?}");
    assert_eq!((answer.breaks, answer.recovery), (None, Recovery::Untested));
}

#[test]
fn the_edge_of_the_range_can_be_a_bound_that_breaks() {
    assert_eq!(bounds(&Simulated::new(|trial, _| ending(trial.level < 64)).search(spec(64))), Some((63, 64)));
    assert_eq!(bounds(&Simulated::new(|trial, _| ending(trial.level < 2)).search(spec(64))), Some((1, 2)));
}

#[test]
fn wrong_data_breaks_at_once() {
    let mut server = Simulated::new(|trial, _| if trial.level < 12 { Ending::Pass } else { Ending::WrongData });
    let answer = server.search(spec(64));
    assert_eq!((bounds(&answer), answer.wrong_data), (Some((11, 12)), Some(12)));
    assert_eq!(answer.breaks.map(|breaks| breaks.failed), Some(1), "one trial is enough");
    // Below what holds otherwise, too.
    let mut server = Simulated::new(|trial, _| match trial.level {
        4 if trial.number == 2 => Ending::WrongData,
        level => ending(level <= 4),
    });
    assert_eq!(server.search(spec(64)).wrong_data, Some(4));
}

#[test]
fn what_stays_invalid_ends_the_search() {
    let doubt = Doubt::GeneratorBound;
    let mut server = Simulated::new(|trial, _| if trial.level < 16 { Ending::Pass } else { Ending::Invalid(doubt) });
    let answer = server.search(spec(64));
    assert_eq!(answer.end, End::Inconclusive { level: 16, doubt });
    assert_eq!((answer.holds.map(|holds| holds.level), answer.breaks), (Some(8), None));
    assert_eq!(server.tried(Purpose::Climb), [1, 2, 4, 8, 16, 16, 16]);
    // What passes once in a while is repeated, and nothing is lost.
    let mut server = Simulated::new(|trial, before: &[(Trial, Ending)]| match before.len() % 3 {
        2 => ending(trial.level <= 20),
        _ => Ending::Invalid(Doubt::Measurement),
    });
    assert_eq!(bounds(&server.search(spec(64))), Some((20, 21)));
}

#[test]
fn what_is_confirmed_stands_although_recovery_cannot_be_seen() {
    let mut server = Simulated::new(|trial, _| match trial.purpose {
        Purpose::Recover => Ending::Invalid(Doubt::Measurement),
        _ => ending(trial.level <= 20),
    });
    let answer = server.search(spec(64));
    assert_eq!((bounds(&answer), answer.recovery), (Some((20, 21)), Recovery::Untested));
}

#[test]
fn a_search_that_is_stopped_tells_what_it_knows() {
    let mut search = Search::new(spec(64));
    for passes in [true, true, true, true, false] {
        search.record(ending(passes));
    }
    search.interrupt();
    search.abort();
    search.record(Ending::Pass);
    assert_eq!(search.step(), Step::Over);
    let answer = search.answer();
    assert_eq!(answer.end, End::Interrupted);
    assert_eq!((answer.holds.map(|b| b.level), answer.breaks.map(|b| b.level)), (Some(8), Some(16)));
}

#[test]
fn the_order_of_confirming_follows_the_seed() {
    let order = |seed| {
        let mut server = Simulated::new(|trial, _| ending(trial.level <= 20));
        server.search(Spec { seed, confirm: 5, ..spec(64) });
        server.tried(Purpose::Confirm)
    };
    let orders: std::collections::BTreeSet<_> = (0..50).map(order).collect();
    assert!(orders.len() > 3, "{orders:?}");
    assert_eq!(order(7), order(7));
}

proptest! {
    /// However servers behave, a search ends, and soon.
    #[test]
    fn it_always_ends(
        from in 1u64..1000, span in 1u64..1_000_000, confirm in 1u32..8, percent in 0.0f64..20.0, seed: u64,
        script in prop::collection::vec(0u8..10, 500),
    ) {
        let levels = Levels::new(from, from + span);
        let spec = Spec { levels, width: Width::percent(percent), confirm, seed };
        let mut server = Simulated::new(|_, before: &[_]| match script[before.len()] {
            0..=4 => Ending::Pass,
            5..=7 => Ending::Fail,
            8 => Ending::WrongData,
            _ => Ending::Invalid(Doubt::Measurement),
        });
        let answer = server.search(spec);
        // Valid trials: thrice a climb and a bisection and both bounds, then a look above, an overload, two recoveries.
        let valid = server.trials.iter().filter(|(_, ending)| !matches!(ending, Ending::Invalid(_))).count();
        let climb = 5 + (levels.to() as f64).log(1.5) as usize;
        prop_assert!(valid <= 3 * (climb + 64 + 2 * confirm as usize) + confirm as usize + 3, "{valid}");
        if let End::Bounds { holds, breaks } = answer.end {
            prop_assert!(holds.level < breaks.level && spec.width.is_met(holds.level, breaks.level));
            prop_assert!(holds.passed > 0 && breaks.failed > 0);
        }
        let in_range = server.trials.iter().all(|(trial, _)| (levels.from()..=levels.to()).contains(&trial.level));
        prop_assert!(in_range);
    }

    /// A cliff is bracketed wherever it is, and the edge of the range is never a limit.
    #[test]
    fn bounds_bracket_a_cliff(
        from in 1u64..1000, span in 1u64..1_000_000, cliff in 0u64..1_100_000, confirm in 1u32..6,
        percent in 0.0f64..10.0, seed: u64,
    ) {
        let levels = Levels::new(from, from + span);
        let spec = Spec { levels, width: Width::percent(percent), confirm, seed };
        let mut server = Simulated::new(|trial, _| ending(trial.level <= cliff));
        match server.search(spec).end {
            End::Bounds { holds, breaks } => {
                prop_assert!(holds.level <= cliff && cliff < breaks.level);
                prop_assert!(!holds.is_flaky() && !breaks.is_flaky());
            }
            End::NotReached { holds } => prop_assert!(holds.level == levels.to() && cliff >= levels.to()),
            End::NothingHolds { breaks } => prop_assert!(breaks.level == from && cliff < from),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
