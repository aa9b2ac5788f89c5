use super::*;
use crate::record::{Recorder, Requests};
use crate::sample::section::{Busy, LocalSection};

const SECOND: Duration = Duration::from_secs(1);

/// A phase of ten seconds with 100,000 requests.
fn phase() -> PhaseOutcome {
    let requests = Requests { scheduled: 100_000, ok: 100_000, ..Requests::default() };
    PhaseOutcome {
        name: "write".into(),
        run: "write",
        seconds: 10.0,
        record: Recorder { requests, ..Recorder::default() },
        ..PhaseOutcome::default()
    }
}

/// Ten seconds in which the server's main thread and each loading thread (busy, waiting) had such shares of them.
fn section(server: Option<f64>, threads: &[(f64, f64)]) -> Section {
    let part = |share: f64| SECOND.mul_f64(10.0 * share);
    let local = server.map(|share| {
        let mut main = Busy::default();
        main.add(part(share), part(1.0));
        LocalSection { main, ..LocalSection::default() }
    });
    let threads = threads.iter().map(|&(busy, waiting)| ThreadUsage { busy: part(busy), waiting: Some(part(waiting)) });
    Section {
        wall: part(1.0),
        threads: threads.collect(),
        throttled: Some(Duration::ZERO),
        local,
        ..Section::default()
    }
}

fn bound(section: &Section, known: Known) -> Option<bool> {
    judge_phase(&phase(), Some(section), known).bound
}

#[test]
fn rule_1_10() {
    /// What it is, the server's share, those of the loading threads, and the verdict.
    type Row = (&'static str, Option<f64>, &'static [(f64, f64)], Option<bool>);
    let cases: [Row; 9] = [
        ("nobody has much to do", Some(0.5), &[(0.4, 0.05)], Some(false)),
        ("fred at its end, the server idle", Some(0.6), &[(0.97, 0.01)], Some(true)),
        ("a neighbour has the loader's core", Some(0.1), &[(0.1, 0.85)], Some(true)),
        ("one of two threads", Some(0.6), &[(0.3, 0.0), (0.95, 0.0)], Some(true)),
        ("both at their end: the server is it", Some(0.97), &[(0.99, 0.01)], Some(false)),
        ("the loader at 81 %, the server saturated", Some(0.99), &[(0.81, 0.0)], Some(false)),
        ("the server does not tell, the loader rests", None, &[(0.4, 0.0)], Some(false)),
        ("the server does not tell, the loader is at its end", None, &[(0.97, 0.0)], None),
        ("nothing was seen of the loader", Some(0.5), &[], None),
    ];
    for (what, server, threads, expected) in cases {
        assert_eq!(bound(&section(server, threads), Known::default()), expected, "{what}");
    }
    assert_eq!(judge_phase(&phase(), None, Known::default()).bound, None, "nothing was seen");
}

#[test]
fn a_quota_counts_like_waiting_and_is_not_counted_twice() {
    let mut section = section(Some(0.4), &[(0.1, 0.02)]);
    section.throttled = Some(SECOND * 9);
    assert_eq!(bound(&section, Known::default()), Some(true));
    // An older kernel counts the same time as waiting, too; and the quota's time is that of all cores.
    section.threads[0].waiting = Some(SECOND * 9);
    section.throttled = Some(SECOND * 30);
    let pressure = judge_phase(&phase(), Some(&section), Known::default()).pressure.expect("a thread");
    assert!((pressure.share() - 1.0).abs() < 1e-9, "{pressure:?}");
}

/// A lag that is half of what requests took.
fn lag(lag: Duration, limit: Duration) -> SendLag {
    SendLag { lag, limit, response: 2 * lag }
}

#[test]
fn a_lag_that_is_little_of_the_latency_did_not_break_its_limit() {
    let idle = section(Some(0.5), &[(0.5, 0.0)]);
    let little = SendLag { lag: SECOND / 20, limit: SECOND / 200, response: SECOND };
    assert_eq!(bound(&idle, Known { send_lag: Some(little), ..Known::default() }), Some(false));
    let much = SendLag { response: SECOND / 6, ..little };
    assert_eq!(bound(&idle, Known { send_lag: Some(much), ..Known::default() }), Some(true));
}

#[test]
fn the_own_ceiling_and_the_send_lag_count_while_the_server_has_room() {
    let idle = section(Some(0.5), &[(0.5, 0.0)]);
    let near = Known { ceiling: Some(11_000.0), ..Known::default() };
    let lagging = Known { send_lag: Some(lag(SECOND, SECOND / 10)), ..Known::default() };
    assert_eq!((bound(&idle, near), bound(&idle, lagging)), (Some(true), Some(true)));
    let busy = section(Some(0.95), &[(0.5, 0.0)]);
    assert_eq!((bound(&busy, near), bound(&busy, lagging)), (Some(false), Some(false)));
    let far = Known { ceiling: Some(12_000.0), send_lag: Some(lag(SECOND / 20, SECOND / 10)) };
    assert_eq!(bound(&idle, far), Some(false));
}

#[test]
fn a_server_that_was_saturated_most_of_the_time_did_not_stay_below() {
    let mut section = section(Some(0.0), &[(0.95, 0.0)]);
    let local = section.local.as_mut().expect("a server");
    local.main = Busy::default();
    local.main.add(SECOND * 6, SECOND * 6);
    local.main.add(Duration::ZERO, SECOND * 4);
    assert_eq!(bound(&section, Known::default()), Some(false));
}

#[test]
fn a_run_is_cleared_by_most_of_its_time() {
    let part = |seconds, bound| PhaseBound { seconds, bound, ..PhaseBound::default() };
    assert_eq!(overall(&[part(9.0, Some(false)), part(1.0, None)]), Some(false));
    assert_eq!(overall(&[part(1.0, Some(false)), part(9.0, None)]), None);
    assert_eq!(overall(&[part(9.0, Some(false)), part(1.0, Some(true))]), Some(true));
    assert_eq!(overall(&[]), None);
}
