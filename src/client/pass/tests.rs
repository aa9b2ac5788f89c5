mod ways;

use super::super::agenda::Turn;
use super::*;
use crate::dataset::{KeyPattern, Order, Pick, ValuePattern};
use crate::driver::Op;
use crate::driver::scripted::{Fate as Script, ScriptedDriver};
use crate::plan::{Arrivals, Mix, Pipeline, Rate, Until};
use crate::record::{Base, Keys, Recorder};

const MS: Duration = Duration::from_millis(1);

/// A connection with 1,000 keys, its clock paused.
struct Bench {
    dataset: Dataset,
    ledger: Ledger,
    flight: Flight,
    stop: Stop,
    driver: ScriptedDriver,
}

impl Bench {
    fn new(room: usize, script: impl Fn(u64) -> Script + 'static) -> Self {
        let dataset = Dataset::new(1, 1, 1000, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Shuffled);
        let ledger = Ledger::new(1000, Base::Empty);
        let flight = Flight::new(Instant::now());
        Self { dataset, ledger, flight, stop: Stop::default(), driver: ScriptedDriver::new(room, script) }
    }

    async fn pass(&mut self, op: Op, version: Version, pipeline: Pipeline) -> (Recorder, Result<(), Broken>) {
        let work = if op == Op::Write { Work::Write } else { Work::Read };
        let (recorder, result) = self.phase(work, version, Load::pass(pipeline)).await;
        assert_eq!(recorder.requests.scheduled, 1000);
        (recorder, result)
    }

    async fn phase(&mut self, work: Work, version: Version, load: Load) -> (Recorder, Result<(), Broken>) {
        let (recorder, result) = self.ended(work, version, load).await;
        (recorder, result.map(|ending| assert_eq!(ending, Ending::Open)))
    }

    /// The same, with what is left of the connection.
    async fn ended(&mut self, work: Work, version: Version, load: Load) -> (Recorder, Result<Ending, Broken>) {
        let share = Share::new(0, 0, 1, 1000, self.dataset.order(), self.dataset.seed());
        let spec = PassSpec {
            work,
            version,
            load,
            connections: 1,
            start: Instant::now(),
            command: MS * 100,
            silence: MS * 300,
        };
        let tally = RefCell::new(Tally::new(load.is_open_loop(), [0]));
        let turn = Turn { number: 0, of: 1 };
        let agenda = Agenda::new(work, &load, turn, share, &self.dataset, spec.start);
        count_scheduled(agenda.scheduled(), 0, &mut tally.borrow_mut());
        match (work, load.until) {
            (Work::Read, _) => {}
            (Work::Write, Until::Pass) => self.ledger.begin(version),
            (Work::Write | Work::Mix(_), _) => self.ledger.begin_versions(),
        }
        let done = RefCell::default();
        let around = Around { dataset: &self.dataset, tally: &tally, done: &done, stop: &self.stop, alarms: None };
        let pass = Pass::new(spec, share, agenda, &mut self.ledger, &mut self.flight, around);
        let result = pass.run(&mut self.driver).await;
        let (recorder, clients) = tally.into_inner().finish();
        assert!(recorder.conserved(), "{:?} {:?}", recorder.requests, recorder.keys);
        assert_eq!(clients[0].1.requests, recorder.requests);
        (recorder, result)
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_server_keeps_every_key_and_the_window_is_never_exceeded() {
    for window in [1, 7, 64, 5000] {
        let mut bench = Bench::new(10_000, |_| Script::Answer(MS));
        let (written, result) = bench.pass(Op::Write, 1, Pipeline::Window(window)).await;
        assert_eq!(result, Ok(()));
        assert_eq!((written.requests.ok, written.keys.acknowledged), (1000, 1000));
        let (read, _) = bench.pass(Op::Read, 1, Pipeline::Window(window)).await;
        assert_eq!(read.keys.matched, 1000);
        assert_eq!(bench.driver.deepest, (window as usize).min(1000));
        assert_eq!(written.service.count(), 1000);
    }
}

/// Replies come one by one, a millisecond apart.
#[tokio::test(start_paused = true)]
async fn a_deep_window_is_refilled_by_halves_and_a_shallow_one_at_once() {
    for (window, at) in [(1, 0), (8, 7), (15, 14), (16, 8), (64, 32)] {
        let mut bench = Bench::new(10_000, |n| Script::Answer(MS * (n as u32 % 50 + 1)));
        let (written, result) = bench.pass(Op::Write, 1, Pipeline::Window(window)).await;
        assert_eq!((result, written.requests.ok), (Ok(()), 1000));
        let refilled = &bench.driver.refilled_at;
        assert!(refilled.iter().all(|&unanswered| unanswered <= at), "{window}: {refilled:?}");
        assert!(refilled.contains(&at), "{window}: {refilled:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stall_is_counted_and_late_replies_are_dropped() {
    // Request 100 is answered after 250 ms, so it and those behind it in the window are late.
    let mut bench = Bench::new(10_000, |n| Script::Answer(if n == 100 { MS * 250 } else { MS }));
    let (written, result) = bench.pass(Op::Write, 1, Pipeline::Window(10)).await;
    assert_eq!(result, Ok(()));
    assert!(written.requests.timed_out >= 10, "{:?}", written.requests);
    assert_eq!(written.keys.unknown, written.requests.timed_out);
    assert_eq!(written.timeouts.command, written.requests.timed_out);
    assert_eq!(written.service.censored(), written.requests.timed_out);
    assert!(bench.driver.deepest <= 40, "at most four windows unanswered, not {}", bench.driver.deepest);
    let (read, _) = bench.pass(Op::Read, 1, Pipeline::Window(10)).await;
    assert_eq!(read.keys.matched, 1000, "late writes were executed all the same");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_given_up() {
    for pipeline in [Pipeline::Window(10), Pipeline::All] {
        let mut bench = Bench::new(100, |n| if n < 500 { Script::Answer(MS) } else { Script::Silence });
        let start = Instant::now();
        let (written, result) = bench.pass(Op::Write, 1, pipeline).await;
        assert_eq!(result.map_err(|b| b.fault.kind), Err(Kind::Silent));
        assert!(start.elapsed() < MS * 1000, "{:?}", start.elapsed());
        assert!(written.requests.timed_out >= 10, "{:?}", written.requests);
        assert!(written.keys.unknown > 0 && written.keys.not_sent > 0, "{:?}", written.keys);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_leaves_unknown_and_unsent_keys() {
    let mut bench = Bench::new(10_000, |n| if n < 500 { Script::Answer(MS) } else { Script::Break });
    let (written, result) = bench.pass(Op::Write, 1, Pipeline::Window(10)).await;
    assert_eq!(result.map_err(|b| b.fault.kind), Err(Kind::Reset));
    let Keys { acknowledged, unknown, not_sent, .. } = written.keys;
    assert_eq!(acknowledged + unknown + not_sent, 1000);
    assert!((1..=10).contains(&unknown), "{unknown}");
    assert_eq!(written.errors.rows()[0].count, unknown);
    assert_eq!(written.requests.failed, unknown);
}

#[tokio::test(start_paused = true)]
async fn everything_due_at_once_expires_in_the_queue_too() {
    // One answer a millisecond, 100 ms to live: about a hundred are in time.
    let mut bench = Bench::new(50, |n| Script::Answer(MS * (n as u32 % 50 + 1)));
    let (written, result) = bench.pass(Op::Write, 1, Pipeline::All).await;
    assert_eq!(result, Ok(()));
    assert!(written.requests.ok > 0 && written.requests.timed_out > 0, "{:?}", written.requests);
    assert!(written.keys.not_sent > 0, "{:?}", written.keys);
    assert_eq!(written.response.count(), 1000, "each has a response time, sent or not");
    assert_eq!(written.response.censored(), written.requests.timed_out);
    assert_eq!(written.service.count(), 1000 - written.keys.not_sent);
    let (read, _) = bench.pass(Op::Read, 1, Pipeline::Window(10)).await;
    assert_eq!(read.keys.absent, written.keys.not_sent);
    assert_eq!(read.keys.matched, written.keys.acknowledged + written.keys.unknown);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_failures_by_kind_and_old_values_stay_right() {
    let mut bench = Bench::new(10_000, |n| match n {
        1000..2000 if n % 2 == 0 => Script::Refuse(Kind::Oom, MS),
        _ => Script::Answer(MS),
    });
    let (_, first) = bench.pass(Op::Write, 1, Pipeline::Window(10)).await;
    assert_eq!(first, Ok(()));
    let (second, _) = bench.pass(Op::Write, 2, Pipeline::Window(10)).await;
    assert_eq!((second.keys.acknowledged, second.keys.refused, second.requests.failed), (500, 500, 500));
    assert_eq!(second.service.count(), 500, "an error reply is not a completed request");
    let (read, _) = bench.pass(Op::Read, 0, Pipeline::Window(10)).await;
    assert_eq!(read.keys.matched, 1000);
}

#[tokio::test(start_paused = true)]
async fn a_stop_drains_what_is_in_flight_and_leaves_the_rest_unsent() {
    let mut bench = Bench::new(10_000, |_| Script::Answer(MS * 50));
    let stop = bench.stop.clone();
    let asker = tokio::spawn(async move {
        tokio::time::sleep(MS * 120).await;
        stop.ask();
    });
    let (written, result) = bench.pass(Op::Write, 1, Pipeline::Window(10)).await;
    asker.await.expect("asked");
    assert_eq!(result, Ok(()));
    assert_eq!((written.requests.ok, written.requests.unsent), (30, 970));
    let (read, _) = bench.pass(Op::Read, 1, Pipeline::Window(10)).await;
    assert_eq!(read.requests.unsent, 1000, "nothing is begun after a stop");
}

fn rate(per_second: f64, pipeline: Pipeline, until: Until) -> Load {
    Load { rate: Some(Rate { per_second, arrivals: Arrivals::Uniform }), until, ..Load::pass(pipeline) }
}

#[tokio::test(start_paused = true)]
async fn a_rate_sends_at_its_moments_and_a_stall_shows_in_the_response_alone() {
    // 200 requests, one every 10 ms; the 50th is answered after 60 ms, those behind it at once, but not before it.
    let mut bench = Bench::new(10_000, |n| Script::Answer(if n == 50 { MS * 60 } else { MS }));
    let load = rate(100.0, Pipeline::Window(1), Until::After(MS * 2000));
    let start = Instant::now();
    let (written, result) = bench.phase(Work::Write, 1, load).await;
    assert_eq!(result, Ok(()));
    assert!((MS * 1990..MS * 2050).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((written.requests.scheduled, written.requests.ok), (200, 200));
    let ms = |latency: &crate::record::Latency, percent| latency.percentile(percent).map(|p| p.us / 1000);
    // Five waited for the slow one: an eye on service times alone sees one slow request.
    assert_eq!(ms(&written.service, 99.0), Some(1));
    assert!(ms(&written.response, 99.0) >= Some(40), "{:?}", ms(&written.response, 99.0));
    assert_eq!(written.response.count(), 200, "missed slots are sent late, never skipped");
    // None of that was the generator's doing.
    assert!(written.send_lag.percentile(100.0).is_some_and(|lag| lag.us <= 1000), "{:?}", written.send_lag);
    assert_eq!(written.send_lag.count(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_rate_above_capacity_ends_in_time_and_loses_count_of_nothing() {
    // One answer every 10 ms, ten times as many wanted, 100 ms to live.
    let mut bench = Bench::new(10_000, |_| Script::Answer(MS * 10));
    let load = rate(1000.0, Pipeline::Window(1), Until::After(MS * 3000));
    let start = Instant::now();
    let (written, result) = bench.phase(Work::Write, 1, load).await;
    assert_eq!(result, Ok(()));
    assert!(start.elapsed() <= MS * 3250, "{:?}", start.elapsed());
    let requests = written.requests;
    assert_eq!(requests.scheduled, 3000);
    // Those that are sent have nearly timed out in the queue; so it is with every queue that is longer than patience.
    assert!((1..330).contains(&requests.ok), "{requests:?}");
    assert_eq!(requests.timed_out, 3000 - requests.ok);
    assert_eq!(written.keys.acknowledged + written.keys.unknown + written.keys.not_sent, 3000);
    // What was written last is there, in whatever version.
    let (read, _) = bench.pass(Op::Read, 0, Pipeline::Window(10)).await;
    assert_eq!(read.keys.matched + read.keys.absent, 1000, "{:?}", read.keys);
}

#[tokio::test(start_paused = true)]
async fn a_rate_over_the_keys_takes_each_once() {
    let mut bench = Bench::new(10_000, |_| Script::Answer(MS));
    let start = Instant::now();
    let (written, _) = bench.phase(Work::Write, 1, rate(2000.0, Pipeline::All, Until::Pass)).await;
    assert!((MS * 499..MS * 510).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((written.requests.scheduled, written.keys.acknowledged), (1000, 1000));
    let (read, _) = bench.pass(Op::Read, 1, Pipeline::Window(10)).await;
    assert_eq!(read.keys.matched, 1000);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_leaves_the_rest_of_a_rate_unsent() {
    let mut bench = Bench::new(10_000, |n| if n < 100 { Script::Answer(MS) } else { Script::Break });
    let load = rate(1000.0, Pipeline::All, Until::After(MS * 1000));
    let (written, result) = bench.phase(Work::Write, 1, load).await;
    assert!(result.is_err());
    assert_eq!((written.requests.scheduled, written.requests.ok), (1000, 100));
    assert_eq!((written.requests.failed, written.requests.unsent), (1, 899));
}

#[tokio::test(start_paused = true)]
async fn a_mix_verifies_every_reading_while_it_writes() {
    for (refused, late) in [(0, 0), (7, 0), (0, 11), (7, 11)] {
        let mut bench = Bench::new(10_000, move |n| {
            if refused > 0 && n % refused == 3 {
                Script::Refuse(Kind::Oom, MS)
            } else if late > 0 && n % (late * 100) == 5 {
                Script::Answer(MS * 150)
            } else {
                Script::Answer(MS)
            }
        });
        let (written, _) = bench.pass(Op::Write, 1, Pipeline::Window(10)).await;
        for pick in [Pick::Uniform, Pick::Hot] {
            let load = Load { until: Until::After(MS * 2000), ..Load::pass(Pipeline::Window(16)) };
            let (mixed, result) = bench.phase(Work::Mix(Mix { reads: 0.5, pick }), 1, load).await;
            assert_eq!(result, Ok(()));
            let keys = mixed.keys;
            assert!(keys.matched > 1000 && keys.acknowledged > 1000, "{keys:?}");
            assert_eq!(keys.checked, keys.matched + keys.unread + keys.absent, "{keys:?}");
            assert!(keys.absent == 0 || written.keys.refused > 0, "{keys:?}");
        }
        let (read, _) = bench.pass(Op::Read, 0, Pipeline::Window(1)).await;
        assert_eq!(read.keys.stale + read.keys.foreign + read.keys.lost, 0, "{:?}", read.keys);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mix_tells_a_write_that_was_lost() {
    let mut bench = Bench::new(10_000, |_| Script::Answer(MS));
    let load = Load { until: Until::After(MS * 500), ..Load::pass(Pipeline::Window(16)) };
    let mix = Work::Mix(Mix { reads: 0.0, pick: Pick::Uniform });
    bench.phase(mix, 1, load).await.1.expect("unbroken");
    // Three keys fall back to what they held before their last write, one vanishes.
    let again: Vec<_> =
        bench.driver.store.iter().filter(|(_, version)| **version > 1).map(|(place, _)| *place).collect();
    for place in &again[..3] {
        bench.driver.store.entry(*place).and_modify(|version| *version -= 1);
    }
    bench.driver.store.remove(&again[3]);
    let (read, _) = bench.pass(Op::Read, 0, Pipeline::Window(10)).await;
    assert_eq!((read.keys.stale, read.keys.lost), (3, 1), "{:?}", read.keys);
}
