use std::slice;

use std::time::Duration;

use super::*;
use crate::plan::Plan;
use crate::record::{Percentile, Timeouts};
use crate::report::{Look, document, write_limit_summary};
use crate::search::{Doubt, End, Levels, Search, Spec, Step, Width};
use crate::verdict::Culprit;
use crate::verdict::{fixture, judge};

fn plan() -> (Plan, SearchPlan) {
    let search = SearchPlan { vary: Vary::Clients, from: 1, to: 64, trial: None, confirm: 3, width_percent: 2.0 };
    (Plan { name: "limit-clients".to_owned(), ..fixture::plan() }, search)
}

/// A search on a server that breaks above `most`, by command timeouts.
fn searched(most: u64) -> (Vec<Made>, Answer) {
    let spec = Spec { levels: Levels::new(1, 64), width: Width::percent(2.0), confirm: 3, seed: 42 };
    let mut search = Search::new(spec);
    let mut made: Vec<Made> = Vec::new();
    while let Step::Trial(trial) = search.step() {
        let holds = trial.level <= most;
        let n = trial.level as f64;
        let timeouts = if holds { 0 } else { 198_404 };
        let ending = if holds { Ending::Pass } else { Ending::Fail };
        let us = 500_000 * trial.level.min(10);
        made.push(Made {
            trial,
            ending,
            signs: Signs { command: !holds, ..Signs::default() },
            reasons: if holds { Vec::new() } else { vec!["198,404 command timeouts (limit 0)".to_owned()] },
            culprit: Some(if holds { Culprit::None } else { Culprit::ServerCpu }),
            began: Duration::from_secs(made.len() as u64),
            took: Duration::from_millis(900),
            figures: Figures {
                keys_per_second: Some(300_000.0 * n / (1.0 + 0.5 * (n - 1.0) + 0.001 * n * (n - 1.0))),
                p99: Some(Percentile { us, at_least: !holds }),
                timeouts: Timeouts { command: timeouts, ..Timeouts::default() },
                server_cpu_percent: Some(99.7),
                loader_cpu_percent: Some(23.4),
                admitted: trial.level,
                ..Figures::default()
            },
        });
        search.record(ending);
    }
    (made, search.answer())
}

fn told(made: &[Made], answer: Answer) -> Document {
    let (plan, search) = plan();
    let outcome = fixture::outcome(fixture::good_run());
    let document = document(slice::from_ref(&plan), &outcome, &judge(slice::from_ref(&plan), &outcome));
    let preflight = [("maxclients", Some(63), "the server's maxclients is 64: room for 63 clients".to_owned())];
    let story = Story { search: &search, preflight: &preflight, trials: made, answer, own_connections: 1 };
    limit_document(document, &story)
}

fn shown(document: &Document) -> String {
    let mut out = Vec::new();
    write_limit_summary(document, None, Look { width: 80, colour: false }, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

#[test]
fn the_bounds_and_everything_behind_them() {
    let (made, answer) = searched(9);
    let document = told(&made, answer);
    assert_eq!((document.verdict.as_str(), document.reasons.len()), ("pass", 0));
    let limit = document.limit.as_ref().expect("a search");
    assert_eq!((limit.holds, limit.breaks, limit.end.as_str()), (Some(9), Some(10), "bounds"));
    assert_eq!((limit.first.command, limit.first.connection, limit.first.data), (Some(10), None, None));
    assert_eq!(limit.first_failure.as_ref().map(|failure| failure.level), Some(10));
    assert_eq!(limit.recovery.as_deref(), Some("recovered"));
    let text = serde_json::to_string(&document).expect("serialisable");
    assert_eq!(serde_json::from_str::<Document>(&text).expect("readable again"), document);
    let shown = shown(&document);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    insta::assert_snapshot!(shown, @r"
    limit-clients: 9 clients hold, 10 break: 198,404 command timeouts (limit 0) (12
    trials)
                connections: no connect or setup timeout, no refusal up to 16
                clients
                commands: timeouts, errors or too long latencies first met at 10
                clients
                after the break it took its load again at once
                beside these, keyswarm keeps 1 connection of its own

          count trial   keys/s      p99 timeouts/err server loader
              1     1  300 k/s   500 ms            0  100 %   23 %  held
              2     1  399 k/s   1.00 s            0  100 %   23 %  held
              4     1  478 k/s   2.00 s            0  100 %   23 %  held
              8     1  527 k/s   4.00 s            0  100 %   23 %  held
             16     1  549 k/s    ≥ 5 s    198 k cmd  100 %   23 %  broke
             12     1  543 k/s    ≥ 5 s    198 k cmd  100 %   23 %  broke
             10     1  537 k/s    ≥ 5 s    198 k cmd  100 %   23 %  broke
              9     1  532 k/s   4.50 s            0  100 %   23 %  held
             10     2  537 k/s    ≥ 5 s    198 k cmd  100 %   23 %  broke
              9     2  532 k/s   4.50 s            0  100 %   23 %  held
             10     3  537 k/s    ≥ 5 s    198 k cmd  100 %   23 %  broke
              9     3  532 k/s   4.50 s            0  100 %   23 %  recovered

      curve           1   300 k/s ███████████          p99 500 ms  law 300 k/s
                      2   399 k/s ███████████████      p99 1.00 s  law 399 k/s
                      4   478 k/s █████████████████    p99 2.00 s  law 478 k/s
                      8   527 k/s ███████████████████  p99 4.00 s  law 527 k/s
                      9   532 k/s ███████████████████  p99 4.50 s  law 532 k/s
                     10   537 k/s ████████████████████ p99 ≥ 5 s  law 537 k/s
                     12   543 k/s ████████████████████ p99 ≥ 5 s  law 543 k/s
                     16   549 k/s ████████████████████ p99 ≥ 5 s  law 549 k/s
                scalability law: λ 300 k/s   contention σ 0.5000
                coherency κ 0.001000   error 0 %

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 23 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      foreseen  maxclients: the server's maxclients is 64: room for 63 clients
    ");
}

#[test]
fn every_end_has_its_words() {
    let (made, answer) = searched(9);
    let sentences: Vec<String> = [
        End::NotReached { holds: answer.holds.expect("one") },
        End::NothingHolds { breaks: answer.breaks.expect("one") },
        End::Irregular { fails: 4, holds: 9 },
        End::Unstable,
        End::Inconclusive { level: 16, doubt: Doubt::GeneratorBound },
        End::Inconclusive { level: 1, doubt: Doubt::Measurement },
        End::Interrupted,
        End::Aborted,
    ]
    .into_iter()
    .map(|end| {
        let document = told(&made, Answer { end, ..answer });
        format!("{}: {}", document.verdict, document.limit.expect("a search").answer)
    })
    .collect();
    insta::assert_snapshot!(sentences.join("\n"), @r"
    pass: not reached at 9 clients (12 trials)
    fail: nothing holds: 10 clients already break: 198,404 command timeouts (limit 0) (12 trials)
    invalid: irregular, so no limit is claimed: 4 clients break, but 9 hold (12 trials)
    invalid: no limit is claimed: whenever the bounds were confirmed, one of them had moved; so far 9 clients held and 10 broke (12 trials)
    invalid: generator-bound at 16 clients, so no limit of the server is claimed; so far 9 clients held and 10 broke (12 trials)
    invalid: no limit is claimed: three trials of 1 client could not be trusted; so far 9 clients held and 10 broke (12 trials)
    interrupted: interrupted after 12 trials; so far 9 clients held and 10 broke
    invalid: the server is gone after 12 trials; so far 9 clients held and 10 broke
    ");
}

#[test]
fn no_limit_is_claimed_where_there_is_none() {
    let (made, answer) = searched(9);
    let limit = told(&made, Answer { end: End::Irregular { fails: 4, holds: 9 }, ..answer }).limit.expect("a search");
    assert_eq!((limit.holds, limit.breaks), (None, None));
}

#[test]
fn wrong_data_fails_a_search_that_found_its_bounds() {
    let (made, answer) = searched(9);
    let document = told(&made, Answer { wrong_data: Some(10), ..answer });
    assert_eq!(document.verdict, "fail");
    let limit = document.limit.expect("a search");
    assert_eq!((limit.holds, limit.breaks), (Some(9), Some(10)));
    assert!(limit.notes.iter().any(|note| note.contains("lost or wrong at 10 clients")), "{:?}", limit.notes);
}
