use super::*;
use crate::plan::{Load, Pipeline};
use crate::verdict::fixture::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn causes(limits: Limits, run: &RunOutcome) -> Vec<Cause> {
    broken(&Plan { limits, ..plan() }, run, false)
}

fn run_wide(run: LimitSet) -> Limits {
    Limits { run, phases: Vec::new() }
}

/// A limit on the 99th percentile alone.
fn p99(limit: Duration) -> LimitSet {
    LimitSet { p99: Some(limit), ..LimitSet::default() }
}

/// A good run whose phase was changed.
fn with(phase: usize, change: impl FnOnce(&mut PhaseOutcome)) -> RunOutcome {
    let mut run = good_run();
    change(&mut run.phases[phase]);
    run
}

#[test]
fn a_good_run_breaks_nothing() {
    assert_eq!(causes(run_wide(none_allowed()), &good_run()), []);
    assert_eq!(causes(run_wide(p99(ms(50))), &good_run()), []);
}

#[test]
fn counts_are_summed_over_all_phases_and_may_reach_their_limit() {
    let mut run = good_run();
    run.phases[0].record.timeouts.connect = 1;
    run.phases[1].record.timeouts.command = 2;
    let limited = |timeouts| causes(run_wide(LimitSet { timeouts: Some(timeouts), ..LimitSet::default() }), &run);
    assert_eq!(limited(3), []);
    assert_eq!(limited(2), [Cause::Count { tally: Tally::Timeouts, phase: None, found: 3, limit: 2 }]);
    assert_eq!(causes(Limits::default(), &run), [], "what is absent is not judged");
}

#[test]
fn every_count_has_its_own_limit() {
    let fault = Fault::new(Stage::Reply, Kind::Oom);
    type Change = fn(&mut PhaseOutcome);
    let table: [(Change, Tally, u64); 6] = [
        (|p| p.record.timeouts.command = 3, Tally::CommandTimeouts, 3),
        (|p| p.record.timeouts.setup = 3, Tally::SetupTimeouts, 3),
        (|p| p.record.errors.count(Fault::new(Stage::Reply, Kind::Oom), 7, "OOM"), Tally::Errors, 7),
        (|p| p.record.keys.lost = 12, Tally::Lost, 12),
        (|p| p.record.keys.foreign = 1, Tally::Mismatched, 1),
        (|p| (p.record.keys.stale, p.record.keys.corrupt) = (1, 1), Tally::Mismatched, 2),
    ];
    for (change, tally, found) in table {
        let run = with(2, change);
        assert_eq!(
            causes(run_wide(none_allowed()), &run),
            [Cause::Count { tally, phase: None, found, limit: 0 }],
            "{tally:?}"
        );
        let of_verify = Limits { run: LimitSet::default(), phases: vec![("verify".to_owned(), none_allowed())] };
        let phase = Some("verify".to_owned());
        assert_eq!(causes(of_verify, &run), [Cause::Count { tally, phase, found, limit: 0 }]);
        let of_write = Limits { run: LimitSet::default(), phases: vec![("write".to_owned(), none_allowed())] };
        assert_eq!(causes(of_write, &run), [], "the other phase is not to blame for {fault}");
    }
}

#[test]
fn absent_keys_count_as_lost_only_where_nothing_is_written() {
    let mut run = with(2, |phase| phase.record.keys.absent = 5);
    assert_eq!(causes(run_wide(none_allowed()), &run), []);
    run.phases.remove(1);
    let mut plan = plan();
    plan.phases.remove(0);
    let cause = Cause::Count { tally: Tally::Missing, phase: None, found: 5, limit: 0 };
    assert_eq!(broken(&plan, &run, false), [cause]);
}

#[test]
fn keys_unsent_or_unread_never_pass() {
    let run = with(1, |phase| {
        phase.record.requests.unsent = 3;
        phase.record.keys.not_sent = 3;
    });
    assert_eq!(causes(Limits::default(), &run), [Cause::NeverSent { phase: "write".to_owned(), keys: 3 }]);
    let expired_in_the_queue = with(1, |phase| phase.record.keys.not_sent = 4);
    assert_eq!(
        causes(Limits::default(), &expired_in_the_queue),
        [Cause::NeverSent { phase: "write".to_owned(), keys: 4 }]
    );
    let run = with(2, |phase| phase.record.keys.unread = 2);
    assert_eq!(causes(Limits::default(), &run), [Cause::Unread { phase: "verify".to_owned(), keys: 2 }]);
    assert_eq!(broken(&plan(), &run, true), [], "an interrupted phase is not blamed");
}

#[test]
fn a_phase_that_never_ran_does_not_pass() {
    let mut run = good_run();
    run.phases.pop();
    assert_eq!(causes(Limits::default(), &run), [Cause::NeverRan { phase: "verify".to_owned() }]);
    assert_eq!(broken(&plan(), &run, true), []);
}

#[test]
fn a_latency_limit_is_for_every_load_phase_unless_it_has_its_own() {
    let found = Percentile { us: 500, at_least: false };
    let broke = |phase: &str, limit| Cause::Latency { phase: phase.to_owned(), level: Level::P99, found, limit };
    let limit = Duration::from_micros(400);
    assert_eq!(causes(run_wide(p99(limit)), &good_run()), [broke("write", limit), broke("verify", limit)]);
    let looser = Limits { run: p99(limit), phases: vec![("write".to_owned(), p99(ms(5)))] };
    assert_eq!(causes(looser, &good_run()), [broke("verify", limit)]);
    assert_eq!(causes(run_wide(p99(Duration::from_micros(500))), &good_run()), [], "a limit may be reached");
}

#[test]
fn an_open_loop_is_judged_by_its_response_times() {
    let run = with(1, |phase| {
        phase.load = Some(Load::pass(Pipeline::All));
        phase.record.response.record(ms(80), ALL);
    });
    let found = causes(run_wide(p99(ms(50))), &run);
    assert!(matches!(&found[..], [Cause::Latency { phase, found, .. }] if phase == "write" && found.us >= 80_000));
}

#[test]
fn a_latency_without_samples_is_a_broken_limit() {
    let run = with(2, |phase| phase.record.service = Latency::default());
    let level = Level::P99;
    assert_eq!(causes(run_wide(p99(ms(50))), &run), [Cause::NoSamples { phase: "verify".to_owned(), level }]);
}

#[test]
fn requests_that_never_ended_break_a_limit_that_they_reach() {
    let run = with(1, |phase| phase.record.service.record_censored(ms(5000), 20));
    let found = causes(run_wide(p99(ms(5000))), &run);
    let at_least = |cause: &Cause| matches!(cause, Cause::Latency { found, .. } if found.at_least);
    assert!(found.len() == 1 && at_least(&found[0]), "{found:?}");
    // Above the age at which they were given up, nobody knows.
    let found = causes(run_wide(p99(ms(9000))), &run);
    assert!(matches!(found[..], [Cause::Unprovable { level: Level::P99, endless: 20, .. }]), "{found:?}");
}

#[test]
fn a_few_requests_that_were_cut_off_early_do_not_hide_a_percentile() {
    // A tenth of a percent was cut off after 10 µs: it may belong above the 99th percentile, which then is 2 ms.
    let run = with(1, |phase| phase.record.service.record_censored(Duration::from_micros(10), 1));
    assert_eq!(causes(run_wide(p99(ms(3))), &run), []);
    let max = LimitSet { max: Some(ms(3)), ..LimitSet::default() };
    let found = causes(run_wide(max), &run);
    assert!(matches!(found[..], [Cause::Unprovable { level: Level::Max, endless: 1, .. }]), "{found:?}");
}

#[test]
fn a_server_that_went_away_is_the_first_reason_where_a_limit_is_broken() {
    let gone = |phase: &mut PhaseOutcome| phase.server = Fate::Gone;
    assert_eq!(causes(run_wide(none_allowed()), &with(1, gone)), [], "nothing came of it");
    let run = with(1, |phase| {
        gone(phase);
        phase.record.errors.count(Fault::new(Stage::Reply, Kind::Oom), 9, "OOM");
        phase.record.errors.count(Fault::new(Stage::Read, Kind::Reset), 4, "reset");
    });
    let found = causes(run_wide(none_allowed()), &run);
    let lost = Cause::ServerLost { phase: "write".to_owned(), restarted: false, kind: Some(Kind::Reset) };
    assert_eq!((&found[0], found.len()), (&lost, 2));
}
