//! Batches, what follows keys, and replies that nobody waits for.

use super::*;
use crate::dataset::Expiry;
use crate::plan::Close;
use crate::record::Requests;

fn batch(batch: u32) -> Load {
    Load { batch, ..Load::pass(Pipeline::Window(3)) }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_one_request_and_all_of_its_keys() {
    for size in [2, 7, 100, 999, 5000] {
        let mut bench = Bench::new(10_000, |_| Script::Answer(MS));
        let commands = 1000u64.div_ceil(size.into());
        let (written, result) = bench.ended(Work::Write, 1, batch(size)).await;
        assert_eq!(result, Ok(Ending::Open));
        assert_eq!((written.requests.ok, written.keys.acknowledged), (commands, 1000));
        assert_eq!(written.service.count(), commands);
        let (read, _) = bench.ended(Work::Read, 1, batch(size)).await;
        assert_eq!((read.requests.ok, read.keys.matched, read.service.count()), (commands, 1000, commands));
        assert_eq!(bench.driver.deepest as u64, commands.min(3), "the window counts commands");
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_batch_becomes_of_each_of_its_keys() {
    // 143 batches, the last of six keys: one refused, one late, and the connection breaks at the last.
    let mut bench = Bench::new(10_000, |n| match n {
        10 => Script::Refuse(Kind::Oom, MS),
        20 => Script::Answer(MS * 150),
        142 => Script::Break,
        _ => Script::Answer(MS),
    });
    let (written, result) = bench.ended(Work::Write, 1, Load { batch: 7, ..Load::pass(Pipeline::Window(1)) }).await;
    assert_eq!(result.map_err(|b| b.fault.kind), Err(Kind::Reset));
    let Requests { ok, failed, timed_out, unsent, .. } = written.requests;
    assert_eq!((ok, failed, timed_out, unsent), (140, 2, 1, 0));
    let Keys { acknowledged, refused, unknown, not_sent, .. } = written.keys;
    assert_eq!((acknowledged, refused, unknown, not_sent), (980, 7, 7 + 6, 0));
    let (read, _) = bench.ended(Work::Read, 1, Load::pass(Pipeline::Window(9))).await;
    assert_eq!(read.requests.failed, 9, "the driver stays broken");
    assert_eq!(read.keys.unread, 1000);
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_key_is_a_request_and_no_key() {
    for (size, way) in [(1, false), (1, true), (10, true)] {
        let mut bench = Bench::new(10_000, |_| Script::Answer(MS));
        bench.dataset = bench.dataset.with_expiry(Some(Expiry { seconds: 60, as_option: way }));
        let apart = size > 1 || !way;
        let (written, _) = bench.ended(Work::Write, 1, batch(size)).await;
        let expires = if apart { 1000 } else { 0 };
        assert_eq!(written.requests.ok, 1000 / u64::from(size) + expires);
        assert_eq!((written.then.ok, written.keys.acknowledged), (expires, 1000));
        let (read, _) = bench.ended(Work::Read, 1, batch(size)).await;
        assert_eq!((read.then.ok, read.keys.matched), (1000, 1000));
        assert_eq!(read.requests.ok, 1000 / u64::from(size) + 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn what_follows_may_fail_on_its_own() {
    // SET, EXPIRE, SET, EXPIRE ...: every tenth EXPIRE finds nothing.
    let mut bench = Bench::new(10_000, |n| match n {
        n if n % 20 == 19 => Script::Refuse(Kind::NoKey, MS),
        _ => Script::Answer(MS),
    });
    bench.dataset = bench.dataset.with_expiry(Some(Expiry { seconds: 60, as_option: false }));
    let (written, _) = bench.ended(Work::Write, 1, Load::pass(Pipeline::Window(10))).await;
    assert_eq!((written.keys.acknowledged, written.keys.refused), (1000, 0));
    assert_eq!((written.then.ok, written.then.failed, written.requests.failed), (900, 100, 100));
}

fn replies(replies: Replies) -> Load {
    Load { replies, ..Load::pass(Pipeline::All) }
}

#[tokio::test(start_paused = true)]
async fn forgotten_replies_are_counted_and_never_late() {
    let mut bench = Bench::new(100, |n| Script::Answer(MS * (200 + n as u32 % 7)));
    let (written, result) = bench.ended(Work::Write, 1, replies(Replies::Forget(Close::AfterDrain))).await;
    assert_eq!(result, Ok(Ending::Drained));
    assert!(bench.driver.closed);
    assert_eq!((written.requests.ok, written.requests.timed_out, written.keys.acknowledged), (1000, 0, 1000));
}

#[tokio::test(start_paused = true)]
async fn what_is_closed_at_once_is_discarded_as_far_as_nobody_answered() {
    let mut bench = Bench::new(400, |_| Script::Answer(MS));
    let (written, result) = bench.ended(Work::Write, 1, replies(Replies::Forget(Close::AtOnce))).await;
    assert_eq!(result, Ok(Ending::CutOff));
    assert!(written.requests.ok > 0 && written.requests.discarded > 0, "{:?}", written.requests);
    assert_eq!(written.requests.ok + written.requests.discarded, 1000);
    assert_eq!((written.keys.acknowledged, written.keys.unknown), (written.requests.ok, written.requests.discarded));
}

#[tokio::test(start_paused = true)]
async fn discarded_replies_leave_every_key_unknown() {
    for (close, ending) in [(Close::AfterDrain, Ending::Drained), (Close::AtOnce, Ending::CutOff)] {
        let mut bench = Bench::new(64, |_| Script::Answer(MS));
        let (written, result) = bench.ended(Work::Write, 1, replies(Replies::Discard(close))).await;
        assert_eq!((result, bench.driver.closed), (Ok(ending), close == Close::AfterDrain));
        assert_eq!((written.requests.discarded, written.keys.unknown), (1000, 1000));
        assert_eq!(written.service.count(), 0, "without a reply there is no latency");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_closes_is_given_up() {
    let mut bench = Bench::new(10_000, |n| if n == 0 { Script::Silence } else { Script::Answer(MS) });
    let start = Instant::now();
    let (written, result) = bench.ended(Work::Write, 1, replies(Replies::Discard(Close::AfterDrain))).await;
    assert_eq!(result.map_err(|b| b.fault.kind), Err(Kind::Silent));
    assert!(start.elapsed() < MS * 1000, "{:?}", start.elapsed());
    assert_eq!(written.requests.discarded, 1000);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_under_discarded_replies_leaves_the_rest_unsent() {
    let mut bench = Bench::new(10_000, |n| if n == 500 { Script::Break } else { Script::Answer(MS) });
    let (written, result) = bench.ended(Work::Write, 1, replies(Replies::Discard(Close::AtOnce))).await;
    assert_eq!(result.map_err(|b| b.fault.kind), Err(Kind::Reset));
    assert_eq!(written.requests.failed, written.keys.unknown);
    assert!(written.requests.failed > 0, "{:?}", written.requests);
}
