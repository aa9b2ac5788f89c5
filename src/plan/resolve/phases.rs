//! `[[phase]]` and `[limits]`: what is done, and what must hold.

mod connect;

use std::time::Duration;

pub use self::connect::advise;
use super::super::{
    Arrivals, Close, LimitSet, Limits, Load, Mix, Phase, Pipeline, Rate, Replies, Run, Timeouts, Until,
};
use super::judge::Judge;
use super::name_fault;
use crate::dataset::{Dataset, Pick};
use crate::plan::DriverKind;
use crate::scenario::units::{counted, duration_text, size_shown, size_text};
use crate::scenario::{self, Depth, Key, LimitTable, nearest, phase_names};

/// The most keys per command: what older servers take as one command (1,048,576 words) holds as many MSET pairs.
const LARGEST_BATCH: u32 = 100_000;
/// The largest command or reply that fred is given, in bytes: it holds some copies of each.
const FRED_LARGEST: u64 = 64 << 20;
/// The most requests in flight on a connection.
pub const DEEPEST: u32 = 1_000_000;
/// Names that mean something else where phases are named.
const RESERVED: [&str; 10] =
    ["connect", "timeouts", "errors", "lost", "mismatched", "p50", "p90", "p99", "p999", "max"];

/// What a phase runs, before its other keys are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Verify,
    Mix,
    Connect,
    Wait,
}

/// The phases, with a name each.
pub fn phases(phases: &Key<Vec<scenario::Phase>>, dataset: Option<&Dataset>, judge: &mut Judge<'_>) -> Vec<Phase> {
    if phases.is_absent() {
        judge.fault_near(None, "no [[phase]], so nothing would be done: add one with `run = \"write\"`");
    }
    let written = phases.value().map(Vec::as_slice).unwrap_or_default();
    fn text(key: &Key<scenario::Text>) -> Option<&str> {
        key.value().map(|text| text.value.as_str())
    }
    let names = phase_names(&written.iter().map(|phase| (text(&phase.name), text(&phase.run))).collect::<Vec<_>>());
    let mut resolved: Vec<Phase> = Vec::new();
    for (phase, name) in written.iter().zip(names) {
        if let Some(span) = phase.name.span() {
            if resolved.iter().any(|earlier| earlier.name == name) {
                judge.fault(span, "an earlier phase has this name already");
            } else if RESERVED.contains(&name.as_str()) {
                judge.fault(span, "this name means something else in results or [limits]; choose another");
            } else if let Some(what) = name_fault(&name) {
                judge.fault(span, what);
            }
        }
        let run = run(phase, dataset, judge);
        resolved.push(Phase { name, run });
    }
    resolved
}

fn run(phase: &scenario::Phase, dataset: Option<&Dataset>, judge: &mut Judge<'_>) -> Run {
    let scenario::Phase {
        span, run, keys, pipeline, rate, arrivals, duration, reads, pick, batch, replies, close, ..
    } = phase;
    if run.is_absent() {
        judge.fault(*span, "a phase needs `run = \"write\"`, \"verify\", \"mix\", \"connect\" or \"wait\"");
    }
    let kinds = [
        ("write", Kind::Write),
        ("verify", Kind::Verify),
        ("mix", Kind::Mix),
        ("connect", Kind::Connect),
        ("wait", Kind::Wait),
    ];
    let kind = judge.word(run, "kind of phase", Kind::Write, &kinds, &[]);
    let known = run.value().is_some_and(|text| kinds.iter().any(|(word, _)| *word == text.value));
    if known && kind != Kind::Connect {
        connect::refuse_keys(phase, judge);
    }
    if known && kind != Kind::Mix {
        for (name, span) in [("reads", reads.span()), ("pick", pick.span())] {
            if let Some(span) = span {
                judge.fault(span, format!("only a mix chooses, so `{name}` has no effect here: use `run = \"mix\"`"));
            }
        }
    }
    // At the word that makes it necessary.
    if duration.is_absent() && matches!(kind, Kind::Mix | Kind::Wait) {
        judge.fault(run.span().unwrap_or(*span), "this phase has no end without a `duration`, such as \"10s\"");
    }
    match kind {
        Kind::Write => Run::Write(load(phase, dataset, judge)),
        Kind::Verify => Run::Verify(reading(phase, "a verify phase", dataset, judge)),
        Kind::Mix => {
            if let Some(span) = batch.span() {
                judge.fault(span, "each key of a mix has versions of its own, so a mix has no `batch`");
            }
            Run::Mix(reading(phase, "a mix", dataset, judge), mix(phase, judge))
        }
        Kind::Connect => Run::Connect(connect::churn(phase, judge)),
        Kind::Wait => {
            let load = [
                ("keys", keys.span()),
                ("pipeline", pipeline.span()),
                ("rate", rate.span()),
                ("arrivals", arrivals.span()),
                ("batch", batch.span()),
                ("replies", replies.span()),
                ("close", close.span()),
            ];
            for (name, span) in load {
                if let Some(span) = span {
                    judge.fault(span, format!("a wait phase sends nothing, so `{name}` has no effect"));
                }
            }
            Run::Wait { duration: judge.above_zero(duration, Duration::from_secs(1)) }
        }
    }
}

/// What a mix does.
fn mix(phase: &scenario::Phase, judge: &mut Judge<'_>) -> Mix {
    let picks = [Pick::Uniform, Pick::Zipf, Pick::Gaussian, Pick::Hot].map(|pick| (pick.name(), pick));
    if phase.reads.is_absent() {
        let span = phase.run.span().unwrap_or(phase.span);
        judge.fault(span, "a mix needs `reads`, the part of requests that read, such as 0.9");
    }
    Mix {
        reads: phase.reads.value().copied().unwrap_or_default(),
        pick: judge.word(&phase.pick, "way to pick keys", Pick::Uniform, &picks, &[]),
    }
}

/// How a phase issues its requests that compares what it reads.
fn reading(phase: &scenario::Phase, what: &str, dataset: Option<&Dataset>, judge: &mut Judge<'_>) -> Load {
    let load = load(phase, dataset, judge);
    if let (true, Some(span)) = (load.replies != Replies::Await, phase.replies.span()) {
        judge.fault(span, format!("{what} compares every reply, so it has to await them"));
    }
    load
}

/// How many of each client's keys a phase is about; `None`: all of them.
fn keys(written: &Key<i128>, dataset: Option<&Dataset>, judge: &mut Judge<'_>) -> Option<u64> {
    let some = judge.optional(written, 1..=Dataset::MAX_KEYS)?;
    let all = dataset.map_or(u64::MAX, Dataset::keys);
    if let (true, Some(span)) = (some > all, written.span()) {
        judge.fault(span, format!("each client has {} only (`dataset.keys`)", counted(all, "key")));
    }
    // All of them is the same as no word about it.
    Some(some).filter(|&some| some < all)
}

/// How a phase issues its requests.
fn load(phase: &scenario::Phase, dataset: Option<&Dataset>, judge: &mut Judge<'_>) -> Load {
    let keys = keys(&phase.keys, dataset, judge);
    let words = [Arrivals::Poisson, Arrivals::Uniform].map(|arrivals| (arrivals.name(), arrivals));
    let arrivals = judge.word(&phase.arrivals, "way to arrive", Arrivals::Poisson, &words, &[]);
    let rate = phase.rate.value().map(|&per_second| Rate { per_second, arrivals });
    if let (true, Some(span)) = (phase.rate.is_absent(), phase.arrivals.span()) {
        judge.fault(span, "without a `rate` no request has a moment of its own, so `arrivals` has no effect");
    }
    let duration = &phase.duration;
    let until = duration.written().map_or(Until::Pass, |_| Until::After(judge.above_zero(duration, Duration::MAX)));
    let replies = self::replies(&phase.replies, &phase.close, judge);
    let batch = judge.number(&phase.batch, 1, 1..=LARGEST_BATCH);
    if replies != Replies::Await {
        if let Some(span) = phase.pipeline.span() {
            let what = "replies that are not waited for make no room, so `pipeline` has no effect; leave it away";
            judge.fault(span, what);
        }
        if let Some(span) = duration.span() {
            judge.fault(
                span,
                "a phase whose replies are not awaited passes over its keys once, however long that takes",
            );
        }
    }
    let awaits = phase.rate.is_absent() && replies == Replies::Await;
    let absent = if awaits { Pipeline::Window(1) } else { Pipeline::All };
    let pipeline = depth(&phase.pipeline, absent, judge);
    if let (Pipeline::All, true, Until::After(_), Some(span)) =
        (pipeline, phase.rate.is_absent(), until, phase.pipeline.span())
    {
        let what =
            "with everything due at the start a phase has no use for a `duration`: give it a `rate`, or a number here";
        judge.fault(span, what);
    }
    Load { keys, pipeline, rate, until, batch, replies }
}

fn replies(replies: &Key<scenario::Text>, close: &Key<scenario::Text>, judge: &mut Judge<'_>) -> Replies {
    let words = [("after-drain", Close::AfterDrain), ("at-once", Close::AtOnce)];
    let ending = judge.word(close, "way to close", Close::AfterDrain, &words, &[]);
    let words = [("await", Replies::Await), ("forget", Replies::Forget(ending)), ("discard", Replies::Discard(ending))];
    let meant = judge.word(replies, "way with replies", Replies::Await, &words, &[]);
    if let (Replies::Await, Some(span)) = (meant, close.span()) {
        judge.fault(span, "replies are awaited, and the connection is kept, so `close` has no effect");
    }
    meant
}

/// Whether the driver and the commands can do what the phases want with this data.
pub fn feasible(
    written: &Key<Vec<scenario::Phase>>,
    phases: &[Phase],
    dataset: &scenario::Dataset,
    data: &Dataset,
    driver: DriverKind,
    judge: &mut Judge<'_>,
) {
    let of_file = written.value().map(Vec::as_slice).unwrap_or_default();
    let mut largest = (0, dataset.value.span().or(dataset.fields.span()));
    for (phase, resolved) in of_file.iter().zip(phases) {
        let Some(load) = resolved.run.load() else { continue };
        if let (true, true, Some(span)) = (data.is_hash(), load.batch > 1, phase.batch.span()) {
            judge.fault(span, "HSET and HGETALL are about one key, so hashes have no `batch`");
        }
        let uneven = resolved.run.writes_unevenly();
        if let (true, true, Some(span)) = (uneven, load.batch > 1, phase.batch.span()) {
            judge.fault(
                span,
                "where a phase writes for a `duration` each key has versions of its own, so it has no `batch`",
            );
        }
        let ex = dataset.expire_as.written().is_some() && data.expiry().is_some_and(|expiry| expiry.as_option);
        if let (true, true, true, Some(span)) = (ex, resolved.run.writes(), load.batch > 1, phase.batch.span()) {
            judge.fault(
                span,
                "MSET has no option to expire; leave `expire_as` away, and an EXPIRE follows for each key",
            );
        }
        let bytes = u64::from(load.batch).saturating_mul(data.largest_values());
        if bytes > largest.0 {
            largest = (bytes, phase.batch.span().or(largest.1));
        }
        if driver == DriverKind::Fred {
            let at = |key: &Key<scenario::Text>| key.span().unwrap_or(phase.span);
            match load.replies {
                Replies::Discard(_) => judge.fault(
                    at(&phase.replies),
                    "fred reads every reply, and cannot be kept from it; \"forget\" it can, or take `driver = \"socket\"`",
                ),
                Replies::Forget(Close::AtOnce) => judge.fault(
                    at(&phase.close),
                    "fred does not tell when a command has left, so what it never sent would count as sent; \
                     take `close = \"after-drain\"`, or `driver = \"socket\"`",
                ),
                Replies::Forget(Close::AfterDrain) | Replies::Await => {}
            }
        }
    }
    if driver == DriverKind::Fred && largest.0 > FRED_LARGEST {
        let (bytes, most) = (size_shown(largest.0), size_text(FRED_LARGEST));
        judge.fault_near(
            largest.1,
            format!("fred holds whole commands in memory, and this makes {bytes}: at most {most}; `driver = \"socket\"` sends and compares in pieces"),
        );
    }
}

fn depth(pipeline: &Key<Depth>, absent: Pipeline, judge: &mut Judge<'_>) -> Pipeline {
    let Some(written) = pipeline.written() else { return absent };
    match written.value {
        Depth::All => Pipeline::All,
        Depth::Window(depth) => match u32::try_from(depth) {
            Ok(depth @ 1..=DEEPEST) => Pipeline::Window(depth),
            _ => {
                judge.fault(written.span, "requests in flight: from 1 (a plain loop) to 1,000,000, or \"all\"");
                Pipeline::Window(1)
            }
        },
    }
}

/// The limits, each of which can be broken.
pub fn limits(limits: &scenario::Limits, phases: &[Phase], timeouts: &Timeouts, judge: &mut Judge<'_>) -> Limits {
    let reads = phases.iter().any(|phase| phase.run.reads());
    let run = limit_set(&limits.run, judge);
    if !phases.is_empty() && !reads && (run.lost.is_some() || run.mismatched.is_some()) {
        judge.advise("no phase reads keys back, so the limits `lost` and `mismatched` cannot be broken");
    }
    let latencies = [run.p50, run.p90, run.p99, run.p999, run.max];
    let opens = phases.iter().any(|phase| matches!(phase.run, Run::Connect(_)));
    if !opens && latencies.into_iter().flatten().any(|limit| limit > timeouts.command) {
        let command = duration_text(timeouts.command);
        judge.advise(format!(
            "a latency limit above timeouts.command ({command}) is broken by no request: it times out first"
        ));
    }
    let mut named = Vec::new();
    for (name, table) in &limits.phases {
        let set = limit_set(table, judge);
        match phases.iter().find(|phase| phase.name == name.value) {
            None => {
                let names = || phases.iter().map(|phase| phase.name.as_str());
                let what = match nearest(&name.value, names()) {
                    Some(near) => format!("no phase has this name; did you mean `{near}`?"),
                    None => "no phase has this name".to_owned(),
                };
                judge.fault(name.span, what);
            }
            Some(Phase { run: Run::Wait { .. }, .. }) => {
                judge.fault(name.span, "a wait phase sends nothing, so its limits have no effect");
            }
            Some(Phase { run: run @ (Run::Write(_) | Run::Connect(_)), .. }) => {
                if let Some(Load { replies: Replies::Discard(_), .. }) = run.load() {
                    let LimitTable { p50, p90, p99, p999, max, .. } = table;
                    for span in [p50, p90, p99, p999, max].into_iter().filter_map(Key::span) {
                        judge.fault(span, "no reply is read in this phase, so it has no latency");
                    }
                }
                for span in [table.lost.span(), table.absent.span(), table.mismatched.span()].into_iter().flatten() {
                    judge.fault(span, format!("a {} phase reads nothing back, so this has no effect", run.name()));
                }
            }
            Some(Phase { run: Run::Verify(_) | Run::Mix(..), .. }) => {}
        }
        named.push((name.value.clone(), set));
    }
    Limits { run, phases: named }
}

fn limit_set(table: &LimitTable, judge: &mut Judge<'_>) -> LimitSet {
    let LimitTable { timeouts, errors, lost, absent, mismatched, p50, p90, p99, p999, max } = table;
    let mut count = |key| judge.optional(key, 0..=i64::MAX as u64);
    let (timeouts, errors, lost) = (count(timeouts), count(errors), count(lost));
    let (absent, mismatched) = (count(absent), count(mismatched));
    let mut latency = |key: &Key<Duration>| key.written().map(|_| judge.above_zero(key, Duration::MAX));
    LimitSet {
        timeouts,
        errors,
        lost,
        absent,
        mismatched,
        p50: latency(p50),
        p90: latency(p90),
        p99: latency(p99),
        p999: latency(p999),
        max: latency(max),
    }
}
