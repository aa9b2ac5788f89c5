use super::*;
use crate::dataset::{KeyPattern, Order, ValuePattern};
use crate::driver::scripted::{Fate as Script, ScriptedDriver};
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
        let share = Share::new(0, 0, 1, 1000);
        let spec = PassSpec {
            op,
            version,
            pipeline,
            start: Instant::now(),
            command: MS * 100,
            silence: MS * 300,
            spin: false,
        };
        let tally = RefCell::new(Tally::new(pipeline == Pipeline::All, [0]));
        count_scheduled(op, &share, &mut tally.borrow_mut());
        if op == Op::Write {
            self.ledger.begin(version);
        }
        let pass = Pass::new(spec, share, &self.dataset, &mut self.ledger, &mut self.flight, &tally, &self.stop);
        let result = pass.run(&mut self.driver).await;
        let (recorder, clients) = tally.into_inner().finish();
        assert!(recorder.conserved(), "{:?} {:?}", recorder.requests, recorder.keys);
        assert_eq!(clients[0].1.requests, recorder.requests);
        assert_eq!(recorder.requests.scheduled, 1000);
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
