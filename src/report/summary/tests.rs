use std::slice::from_ref;
use std::time::Duration;

use super::*;
use crate::dataset::Owner;
use crate::plan::{Churn, Load, Pipeline, Sockets};
use crate::record::{Class, Recorder, Requests, WrongReading};
use crate::report::document;
use crate::verdict::{ConnectionCounts, Outcome, PhaseOutcome, RunOutcome, fixture, judge};
use crate::wire::fault::{Fault, Kind, Stage};

mod cases;

const NARROW: Look = Look { width: 80, colour: false };

fn printed(outcome: &Outcome, look: Look) -> String {
    let plan = fixture::plan();
    let document = document(from_ref(&plan), outcome, &judge(from_ref(&plan), outcome));
    let files = ["result.json", "timeline.jsonl", "scenario.toml"].map(str::to_owned);
    let kept = Some((Path::new("results/four-clients-20261130T084012Z"), &files[..]));
    let mut out = Vec::new();
    write_summary(&document, kept, look, &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    if !look.colour {
        let longest = text.lines().map(page::columns).max().unwrap_or(0);
        assert!(longest <= look.width, "{longest} columns:\n{text}");
    }
    text
}

fn of_run(run: RunOutcome) -> String {
    printed(&fixture::outcome(run), NARROW)
}

fn wrong(class: Class, index: u64, got: Option<&str>, owner: Option<Owner>) -> WrongReading {
    WrongReading { client: 2, index, version: 1, class, got: got.map(Into::into), owner }
}

/// What held a run back stands below the machines, with the generator's own part.
#[test]
fn what_held_it_back_is_told_with_evidence() {
    use crate::sample::process::ThreadUsage;
    use crate::sample::section::{LocalSection, Section};
    let part = |share: f64| Duration::from_secs_f64(30.0 * share);
    let mut run = fixture::good_run();
    run.phases[1].seconds = 30.0;
    let mut local = LocalSection::default();
    local.main.add(part(0.99), part(1.0));
    let threads = vec![ThreadUsage { busy: part(0.34), waiting: Some(part(0.001)) }];
    run.sections =
        vec![Section { phase: "write".into(), wall: part(1.0), threads, local: Some(local), ..Section::default() }];
    let text = of_run(run);
    let told: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  loader")).collect();
    insta::assert_snapshot!(told[..told.len() - 3].join("\n"), @r"
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores
                not the bottleneck
      bottleneck  server CPU: main thread 0.99 s/s in write, at its end for 30 s of
                  30 s; write achieved 33/s, p50 0.5 ms, p99 0.5 ms; the busiest
                  loading thread was busy for 0.34 s/s
    ");
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(of_run(fixture::good_run()), @r"
    PASS  four-clients: 1,000 keys written, 1,000 read back, every byte right

      load      4 clients × 250 keys   driver socket   seed 42

      phase   seconds   keys     rate     p50     p99     max  timeouts  errors
      write      0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      verify     0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      closed loop, pipeline 64; latency from sending to the reply

      keys      write: 1,000 of 1,000 acknowledged
                verify: 1,000 of 1,000 matched
                0 lost   0 stale   0 foreign   0 corrupt
      requests  2,000 = 2,000 ok + 0 failed + 0 timed out + 0 unsent
                server counted 2,000 and holds 1,000 keys: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn a_wide_terminal_has_all_columns() {
    insta::assert_snapshot!(printed(&fixture::outcome(fixture::good_run()), Look { width: 120, colour: false }), @r"
    PASS  four-clients: 1,000 keys written, 1,000 read back, every byte right

      load      4 clients × 250 keys   driver socket   seed 42

      phase   seconds   keys     rate     p50     p99   p99.9     max  timeouts  errors
      write      0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms  2.0 ms         0       0
      verify     0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms  2.0 ms         0       0
      closed loop, pipeline 64; latency from sending to the reply

      keys      write: 1,000 of 1,000 acknowledged
                verify: 1,000 of 1,000 matched   0 lost   0 stale   0 foreign   0 corrupt
      requests  2,000 = 2,000 ok + 0 failed + 0 timed out + 0 unsent   server counted 2,000 and holds 1,000 keys: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      results   results/four-clients-20261130T084012Z/   result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn timeouts_loss_and_foreign_values() {
    let mut run = fixture::good_run();
    let write = &mut run.phases[1];
    write.load = Some(Load::pass(Pipeline::All));
    let record = &mut write.record;
    record.response.record(Duration::from_millis(900), 990);
    record.response.record_censored(Duration::from_secs(5), 10);
    (record.requests.ok, record.requests.timed_out, record.timeouts.command) = (990, 10, 10);
    (record.keys.acknowledged, record.keys.unknown, record.keys.not_sent) = (990, 6, 4);
    let record = &mut run.phases[2].record;
    let keys = &mut record.keys;
    (keys.matched, keys.lost, keys.foreign, keys.corrupt, keys.absent) = (985, 7, 1, 1, 6);
    let owner = Owner { client: 3, index: Some(9), version: Some(1) };
    record.keep(wrong(Class::Foreign, 9, Some("da8d2d1c-c822-494f-a306-c2a3f43d91c1"), Some(owner)));
    record.keep(wrong(Class::Corrupt, 10, Some(&"x".repeat(150)), None));
    (20..27).for_each(|index| record.keep(wrong(Class::Lost, index, None, None)));
    if let Some(after) = &mut run.server_after {
        after.dbsize = Some(987);
        after.connections_received += 1;
        after.keyspace_misses = 13;
        after.commands.iter_mut().for_each(|commands| commands.others.extend([("del".to_owned(), 7)]));
    }
    insta::assert_snapshot!(of_run(run), @r"
    FAIL  four-clients: 10 command timeouts (limit 0)
          7 keys lost (limit 0)
          2 wrong values (limit 0): 1 foreign, 1 corrupt
          4 keys never sent in write

      load      4 clients × 250 keys   driver socket   seed 42

      phase   seconds   keys     rate     p50     p99     max  timeouts  errors
      write      0.50    990  2.0 k/s  900 ms  900 ms   ≥ 5 s        10       0
      verify     0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      write: open loop, everything due at the start; latency from there to the reply
      verify: closed loop, pipeline 64; latency from sending to the reply
      ≥: requests that never ended count as at least as long as they were waited for

      keys      write: 990 of 1,000 acknowledged   6 unknown   4 not sent
                verify: 985 of 1,000 matched
                7 lost   0 stale   1 foreign   1 corrupt
                6 absent (never acknowledged)
      loss      verify: 13 of 1,000 missing (1.3 %)
                10 × timed out, 4 × not sent, 7 × deleted by others
      requests  2,000 = 1,990 ok + 0 failed + 10 timed out + 0 unsent
                server counted 2,000 and holds 987 keys: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms

      wrong     foreign: e58acbc0-459a-4e0f-bef1-1c2ca0e7f29e of client 2
                  expected 694949e7-ff83-446f-8b84-da474cf75790
                  found    da8d2d1c-c822-494f-a306-c2a3f43d91c1
                  owner    client 3, version 1, 291430ba-f0a9-4186-9d67-cac2c6243708
                corrupt: f6f2f30e-76fb-4d74-a580-a61e74a06bfa of client 2
                  expected 2e66538b-02c3-4959-b4e8-cda7561f7782
                  found    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
                lost: 4545827c-cc36-4c34-96c0-0de842cc1c35 of client 2
                  expected f474545e-7110-4ba7-8651-3bc398207e47
                  found    nothing
                lost: 21173910-d944-479a-9ac9-bf58956dcd5d of client 2
                  expected 23c328a6-9b66-4d44-a730-e6cc4c368ba0
                  found    nothing
                lost: 84d5eaa1-fdac-4131-9f86-a609bf0f99f9 of client 2
                  expected f4b3816c-7b5f-40cc-bf7d-6d8306310340
                  found    nothing
                … and 4 more; result.json has the first 9

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      987 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      warning   Others used the server during the run (1 connection, 7 × DEL). Rates
                and counts include their share; use a server of your own for numbers
                that count.

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn interrupted() {
    let mut run = fixture::good_run();
    run.phases.truncate(2);
    run.server_after = None;
    let record = &mut run.phases[1].record;
    (record.requests.ok, record.requests.failed, record.requests.unsent) = (400, 64, 536);
    (record.keys.acknowledged, record.keys.unknown, record.keys.not_sent) = (400, 64, 536);
    record.errors.count(Fault::new(Stage::Read, Kind::Interrupted), 64, "interrupted");
    let outcome = Outcome { interrupted: true, ..fixture::outcome(run) };
    insta::assert_snapshot!(printed(&outcome, NARROW), @r"
    INTERRUPTED  four-clients: interrupted in write

      load      4 clients × 250 keys   driver socket   seed 42

      phase  seconds  keys   rate     p50     p99   p99.9     max  timeouts  errors
      write     0.50   400  800/s  0.5 ms  0.5 ms  2.0 ms  2.0 ms         0      64
      closed loop, pipeline 64; latency from sending to the reply

      keys      write: 400 of 1,000 acknowledged   64 unknown   536 not sent
      requests  1,000 = 400 ok + 64 failed + 0 timed out + 536 unsent
                not reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms
      errors    write: 64 × interrupted in read

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn nobody_admitted() {
    let mut admission = fixture::connect();
    admission.record = Recorder::default();
    admission.record.connects.refused = 4;
    let fault = Fault::new(Stage::Connect, Kind::Refused);
    admission.record.errors.count(fault, 4, "cannot connect to 127.0.0.1:6379: Connection refused (os error 111)");
    let run = RunOutcome { phases: vec![admission], server_before: None, server_after: None, ..fixture::good_run() };
    let mut outcome = fixture::outcome(run);
    outcome.server = Default::default();
    outcome.server.address = "127.0.0.1:6379".to_owned();
    outcome.generator = Default::default();
    insta::assert_snapshot!(printed(&outcome, NARROW), @r"
    FAIL  four-clients: no client was admitted, refused in connect: cannot connect
          to 127.0.0.1:6379: Connection refused (os error 111)

      load      4 clients × 250 keys   driver socket   seed 42

      connect   0 of 4 admitted
      errors    connect: 4 × refused in connect: cannot connect to 127.0.0.1:6379:
                Connection refused (os error 111)

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn the_headline_counts_keys_and_not_writes() {
    let mut run = fixture::good_run();
    run.phases.push(fixture::write());
    run.server_after = None;
    let twice = of_run(run);
    assert!(
        twice.starts_with("PASS (not reconciled with the server)  four-clients: 1,000 keys written twice,\n      ")
    );
}

#[test]
fn big_numbers_fit_a_narrow_terminal() {
    let mut run = fixture::good_run();
    for phase in &mut run.phases[1..] {
        phase.record.timeouts.command = 1_702_331;
        phase.record.service = fixture::latencies(1000);
        phase.record.service.record_censored(Duration::from_millis(5_120), 900);
        phase.record.errors.count(Fault::new(Stage::Read, Kind::Reset), 1_000_000, "\u{1b}[31mreset\u{7}");
        phase.seconds = 1234.5;
    }
    run.phases[1].record.keys.acknowledged = 100_000_000;
    let text = of_run(run);
    assert!(text.contains("1.7 M") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn colours_only_when_asked() {
    let outcome = fixture::outcome(fixture::good_run());
    assert!(!printed(&outcome, NARROW).contains('\u{1b}'));
    assert!(printed(&outcome, Look { colour: true, ..NARROW }).starts_with("\u{1b}["));
}

/// A pool, and without one.
#[test]
fn connections_that_came_and_went() {
    let connect = |name: &str, sockets, opened: u64| {
        let churn = Churn { times: 1000, warmup: 100, concurrency: 1, sockets };
        let mut phase = PhaseOutcome { name: name.into(), churn: Some(churn), seconds: 0.2, ..fixture::connect() };
        phase.record.requests = Requests { scheduled: 1000, ok: 1000, ..Requests::default() };
        phase.record.service = fixture::latencies(1000);
        let connects = &mut phase.record.connects;
        connects.admitted = opened;
        for stage in [&mut connects.login, &mut connects.first_reply, &mut connects.close] {
            stage.record(Duration::from_micros(30), opened);
        }
        let (connections_received, auth_calls) = (Some(opened), Some(opened));
        phase.evidence = ConnectionCounts { connections_received, auth_calls, hello_calls: Some(0) };
        phase
    };
    let mut run = fixture::good_run();
    let phases = [connect("no-pool", Sockets::Fresh, 1000), connect("pool", Sockets::Pooled, 1)];
    run.phases.splice(1..1, phases);
    let text = of_run(run);
    let shown: String = text.split("\n  server  ").next().expect("the first half").to_owned();
    insta::assert_snapshot!(shown, @r"
    PASS  four-clients: 1,000 keys written, 1,000 read back, every byte right, 1,000
          connections opened, 1,000 borrowed

      load      4 clients × 250 keys   driver socket   seed 42

      phase    seconds   keys     rate     p50     p99     max  timeouts  errors
      no-pool     0.20      –  5.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      pool        0.20      –  5.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      write       0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      verify      0.50  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      no-pool: one at a time; latency of a connection from opening to closing
      pool: a pool of one; latency of a PING on a borrowed connection
      write, verify: closed loop, pipeline 64; latency from sending to the reply

      keys      write: 1,000 of 1,000 acknowledged
                verify: 1,000 of 1,000 matched
                0 lost   0 stale   0 foreign   0 corrupt
      requests  2,000 = 2,000 ok + 0 failed + 0 timed out + 0 unsent
                server counted 2,000 and holds 1,000 keys: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms
      sockets   no-pool: 1,000 of 1,000 opened   tcp p50 0.1 ms p99 0.1 ms
                auth p50 30 µs p99 30 µs   first reply p50 30 µs p99 30 µs
                close p50 30 µs p99 30 µs
                server counted 1,000 connections, 1,000 × AUTH
                pool: 1 of 1 opened   tcp p50 0.1 ms p99 0.1 ms
                auth p50 30 µs p99 30 µs   first reply p50 30 µs p99 30 µs
                close p50 30 µs p99 30 µs   server counted 1 connection, 1 × AUTH
    ");
}
