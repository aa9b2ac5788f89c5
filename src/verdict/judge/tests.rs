use super::*;
use crate::plan::Limits;
use crate::verdict::fixture::*;
use crate::wire::fault::{Fault, Kind, Stage};

/// What the exit code is chosen by: the verdict, and whether nobody was admitted.
fn ending(judgement: &Judgement) -> (Verdict, bool) {
    (judgement.verdict, judgement.nobody_admitted)
}

fn judged(run: RunOutcome) -> Judgement {
    judge(&[plan()], &outcome(run))
}

#[test]
fn a_good_run_passes_without_a_word() {
    let judgement = judged(good_run());
    assert_eq!(ending(&judgement), (Verdict::Pass, false));
    assert_eq!((judgement.reasons, judgement.warnings), (Vec::new(), Vec::new()));
}

#[test]
fn interrupted_goes_before_fail_and_fail_before_invalid() {
    let mut run = good_run();
    run.server_after = Some(counters(ALL - 1, ALL, ALL));
    let judgement = judged(run.clone());
    assert_eq!((ending(&judgement), judgement.reconciled()), ((Verdict::Invalid, false), Some(false)));
    run.phases[2].record.keys.matched -= 1;
    run.phases[2].record.keys.lost += 1;
    let judgement = judged(run.clone());
    assert_eq!(ending(&judgement), (Verdict::Fail, false));
    assert_eq!(judgement.reasons.len(), 2, "the doubt is still said");
    let judgement = judge(&[plan()], &Outcome { interrupted: true, ..outcome(run) });
    assert_eq!(ending(&judgement), (Verdict::Interrupted, false));
    assert_eq!(judgement.reasons[0].cause, Cause::Interrupted { phase: Some("verify".to_owned()) });
}

#[test]
fn counts_that_do_not_add_up_make_a_run_invalid() {
    let mut run = good_run();
    run.phases[1].record.requests.scheduled += 1;
    let judgement = judged(run);
    assert_eq!(judgement.verdict, Verdict::Invalid);
    assert_eq!(judgement.reasons[0].cause, Cause::NotConserved { phase: "write".to_owned() });
}

#[test]
fn a_rate_falls_short_of_a_server_that_is_there() {
    use crate::plan::{Arrivals, Load, Pipeline, Rate, Until};
    let mut run = good_run();
    let paced = |rate: f64, seconds: Option<u64>| {
        let mut run = good_run();
        let until = seconds.map_or(Until::Pass, |seconds| Until::After(std::time::Duration::from_secs(seconds)));
        let rate = Some(Rate { per_second: rate, arrivals: Arrivals::Uniform });
        let load = Load { rate, until, ..Load::pass(Pipeline::All) };
        (run.phases[1].load, run.phases[1].seconds) = (Some(load), 4.0);
        judged(run).warnings.iter().filter(|warning| matches!(warning, Warning::FellShort { .. })).count()
    };
    // All was answered within four seconds, which should have taken four, or two.
    let all = ALL as f64;
    assert_eq!([paced(all / 4.0, None), paced(all / 2.0, None)], [0, 1]);
    assert_eq!([paced(all, Some(4)), paced(all, Some(2))], [0, 1]);
    for phase in &mut run.phases[1..] {
        let rate = Some(Rate { per_second: 1e9, arrivals: Arrivals::Uniform });
        phase.load = Some(Load { rate, ..Load::pass(Pipeline::All) });
        phase.record.requests.ok -= 100;
        phase.record.requests.timed_out += 100;
    }
    let short = |run: &RunOutcome| -> Vec<String> {
        let warnings = judged(run.clone()).warnings.into_iter();
        warnings
            .filter_map(|warning| match warning {
                Warning::FellShort { phase, .. } => Some(phase),
                _ => None,
            })
            .collect()
    };
    assert_eq!(short(&run), ["write", "verify"]);
    run.phases[2].server = Fate::Restarted;
    assert_eq!(short(&run), ["write"]);
    run.phases[2].server = Fate::There;
    run.phases[1].server = Fate::Gone;
    assert_eq!(short(&run), Vec::<String>::new(), "nor does what came after it was gone");
}

#[test]
fn nobody_admitted_has_a_code_and_a_reason_of_its_own() {
    let mut run = good_run();
    run.phases.truncate(1);
    run.server_after = None;
    let record = &mut run.phases[0].record;
    record.connects = Default::default();
    record.connects.refused = 4;
    record.errors.count(Fault::new(Stage::Connect, Kind::Refused), 4, "Connection refused");
    let judgement = judged(run.clone());
    assert_eq!(ending(&judgement), (Verdict::Fail, true));
    assert_eq!((judgement.reasons.len(), judgement.warnings), (1, Vec::new()));
    let both = outcome(run);
    let both = Outcome { runs: vec![good_run(), both.runs[0].clone()], ..both };
    assert_eq!(ending(&judge(&[plan()], &both)), (Verdict::Fail, false), "some were admitted before");
}

#[test]
fn every_run_has_to_pass_and_is_named() {
    let mut second = good_run();
    second.phases[1].record.timeouts.command = 1;
    let both = outcome(good_run());
    let both = Outcome { runs: vec![good_run(), second], ..both };
    let judgement = judge(&[plan()], &both);
    assert_eq!(judgement.reasons.iter().map(|reason| reason.run).collect::<Vec<_>>(), [Some(1)]);
    assert_eq!(judgement.reconciled(), Some(true));
}

#[test]
fn wrong_keys_that_no_limit_judges_are_not_passed_in_silence() {
    let mut run = good_run();
    run.phases[2].record.keys.matched -= 3;
    (run.phases[2].record.keys.lost, run.phases[2].record.keys.stale) = (2, 1);
    run.server_after = run.server_after.map(|after| crate::verdict::ServerCounters { keyspace_misses: 2, ..after });
    let judgement = judge(&[Plan { limits: Limits::default(), ..plan() }], &outcome(run));
    assert_eq!(judgement.verdict, Verdict::Pass);
    assert_eq!(judgement.warnings, [Warning::Unjudged { lost: 2, mismatched: 1 }]);
}

#[test]
fn each_warning_is_given_once() {
    let mut outcome = outcome(good_run());
    outcome.environment.debug_build = true;
    outcome.notes = vec![Warning::Note("The server was slow.".to_owned()); 2];
    outcome.runs[0].phases[2].record.keys.undecided = 1;
    outcome.runs[0].phases[2].record.keys.matched -= 1;
    let judgement = judge(&[Plan { advice: vec!["Think.".to_owned()], ..plan() }], &outcome);
    assert_eq!(
        judgement.warnings,
        [
            Warning::DebugBuild,
            Warning::Note("The server was slow.".to_owned()),
            Warning::Undecided { phase: "verify".to_owned(), keys: 1 },
            Warning::Advice("Think.".to_owned()),
        ]
    );
}

#[test]
fn no_run_at_all_is_never_a_pass() {
    let nothing = Outcome { runs: Vec::new(), ..outcome(good_run()) };
    assert_eq!(ending(&judge(&[plan()], &nothing)), (Verdict::Fail, false));
    let unreachable = Outcome { unreachable: Some("cannot connect to x".to_owned()), ..nothing };
    let judgement = judge(&[plan()], &unreachable);
    assert_eq!(ending(&judgement), (Verdict::Fail, true));
    assert_eq!(judgement.reasons[0].cause, Cause::Unreachable("cannot connect to x".to_owned()));
    let later = Outcome { runs: vec![good_run()], ..unreachable };
    assert_eq!(ending(&judge(&[plan()], &later)), (Verdict::Fail, false), "an earlier run was admitted");
}
