//! Causes that are inferred from shares of time, from queues and from latencies. The generator must not have been one itself.

use std::time::Duration;

use super::{Bottleneck, Case, Culprit, Evidence, Halt, connecting_failed};
use crate::record::Recorder;
use crate::sample::section::{Busy, Section};
use crate::verdict::{PhaseBound, PhaseOutcome};

/// From here on nothing is left of a core, in seconds per second.
const SATURATED: f64 = 0.95;
/// A thread that did its own work for so much of the time is slow by itself, whoever else wants its core.
const OWN_WORK: f64 = 0.90;
/// Less than that, in seconds per second, somebody else always takes.
const NOTICEABLE: f64 = 0.10;
/// A halt that is shorter explains nothing.
const HALT: Duration = Duration::from_millis(100);
/// A latency that is so many times the median is a spike.
const SPIKE: u64 = 10;
/// A network that loses one segment in so many is slow because of that.
const LOSSY: u64 = 100;
/// ... if there were at least so many.
const LOSSES: u64 = 100;
/// How late a connect may come through after a step, since the kernel rounds its timers.
const STEP_SLACK: Duration = Duration::from_millis(350);

/// What is known of a phase in any case.
pub fn numbers(phase: &PhaseOutcome, bound: &PhaseBound) -> Vec<Evidence> {
    if bound.pressure.is_none() && bound.server.is_none() {
        return vec![Evidence::TooShort(phase.name.clone(), phase.seconds)];
    }
    let server = bound.server.map(|share| Evidence::MainThread {
        phase: phase.name.clone(),
        share,
        saturated: Duration::ZERO,
        observed: Duration::ZERO,
    });
    let loader = bound.pressure.map(Evidence::Loader);
    [server, Some(achieved(phase)), loader].into_iter().flatten().collect()
}

fn achieved(phase: &PhaseOutcome) -> Evidence {
    let (requests, seconds) = (phase.record.requests, phase.seconds.max(1e-9));
    if requests.ok == 0 && requests.discarded > 0 {
        return Evidence::HandedOver(phase.name.clone(), requests.discarded as f64 / seconds);
    }
    let latency = phase.judged_latency();
    let levels = latency.percentile(50.0).zip(latency.percentile(99.0));
    Evidence::Achieved {
        phase: phase.name.clone(),
        requests_per_second: requests.ok as f64 / seconds,
        latency_us: levels.map(|(p50, p99)| (p50.us, p99.us, p99.at_least)),
    }
}

/// The phase in which it was, and every sign of it.
pub fn generator_cpu(case: &Case<'_>) -> Option<Bottleneck> {
    let bound = case.bounds.iter().filter(|bound| bound.bound == Some(true));
    let worst = bound.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let signs = worst.signs.iter().map(|sign| Evidence::GeneratorBound(worst.phase.clone(), *sign));
    let server = worst.server.map(|share| Evidence::MainThread {
        phase: worst.phase.clone(),
        share,
        saturated: Duration::ZERO,
        observed: Duration::ZERO,
    });
    Some(Bottleneck::of(Culprit::GeneratorCpu, signs.chain(server)))
}

/// Connections were dropped before the server accepted them, and keyswarm felt it. Where nothing failed, it counts only if
/// connecting took most of the time.
pub fn accept_queue(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let seen = || case.run.sections.iter().filter_map(|section| section.local);
    let overflows: u64 = seen().filter_map(|local| local.overflows.max(local.drops)).sum();
    let queue = seen().filter_map(|local| local.queue_max).max();
    let backlog = case.setting("tcp-backlog");
    let somaxconn = case.sysctls().get("net.core.somaxconn").and_then(|text| text.parse().ok());
    let room = backlog.map(|backlog| somaxconn.map_or(backlog, |most: u64| backlog.min(most)));
    let full = queue.zip(room).is_some_and(|(queue, room)| queue >= room);
    let steps = syn_steps(case, total);
    let resent: u64 = case.run.sections.iter().filter_map(|section| section.kernel.syn_retransmits).sum();
    let timeouts = total.timeouts;
    let timed_out = timeouts.connect + timeouts.setup;
    let all: f64 = case.run.phases.iter().map(|phase| phase.seconds).sum();
    let connecting = case.run.admission().map_or(0.0, |phase| phase.seconds);
    let matters = timed_out > 0
        || !steps.is_empty() && (connecting * 2.0 > all && !case.failed(total) || connecting_failed(total));
    if overflows == 0 && !full || steps.is_empty() && resent == 0 && timed_out == 0 || !matters {
        return None;
    }
    let evidence = [
        (overflows > 0).then_some(Evidence::Overflows(overflows, room)),
        queue.filter(|&queue| queue > 0).map(Evidence::AcceptQueue),
        (!steps.is_empty()).then_some(Evidence::SynSteps(steps)),
        (resent > 0).then_some(Evidence::SynRetransmits(resent)),
        (timed_out > 0).then_some(Evidence::ConnectTimeouts(timeouts.connect, timeouts.setup)),
    ];
    Some(Bottleneck::of(Culprit::AcceptQueue, evidence.into_iter().flatten()))
}

/// Connects that came through when the kernel had sent the SYN again: by the second of each step, how many.
fn syn_steps(case: &Case<'_>, total: &Recorder) -> Vec<(u64, u64)> {
    let linear = case.sysctls().get("net.ipv4.tcp_syn_linear_timeouts").and_then(|text| text.parse::<u64>().ok());
    // The first few at equal distances, where the kernel knows that (Linux 6.5), then each twice as long as the one before.
    let steps: &[u64] = if linear.is_some_and(|steps| steps >= 4) { &[1, 2, 3, 4, 5, 7, 11] } else { &[1, 3, 7, 15] };
    let slack = Duration::from_millis(50);
    let through = |step: u64| {
        let at = Duration::from_secs(step);
        let (from, to) = (at.saturating_sub(slack), at + STEP_SLACK);
        let given_up = if (from..to).contains(&case.plan.timeouts.connect) { total.connects.tcp.censored() } else { 0 };
        total.connects.tcp.count_between(from, to).saturating_sub(given_up)
    };
    steps.iter().map(|&step| (step, through(step))).filter(|(_, count)| *count > 0).collect()
}

/// The server stood still for long enough to explain the slowest request, while most were fast.
pub fn stall(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let spike = |phase: &PhaseOutcome| {
        let latency = phase.judged_latency();
        let (p50, max) = (latency.percentile(50.0)?.us, latency.percentile(100.0)?.us);
        (max >= SPIKE * p50.max(1)).then_some((max, p50))
    };
    let spikes = case.run.phases.iter().filter(|phase| phase.loads()).filter_map(spike);
    let worst = spikes.max_by_key(|(max, _)| *max);
    let timed_out = total.timeouts.command;
    // Without any latency to compare with, nothing was ever answered.
    let mute = timed_out > 0 && case.loads().all(|(phase, _)| phase.judged_latency().count() == 0);
    let longest = worst.map(|(max, _)| Duration::from_micros(max)).or(mute.then_some(HALT))?;
    let mut halts: Vec<(Halt, Duration)> =
        halts(case, longest).filter(|(_, took)| *took >= HALT && *took * 2 >= longest).collect();
    halts.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    if halts.is_empty() {
        return None;
    }
    let evidence = halts.into_iter().map(|(halt, took)| Evidence::Halt(halt, took));
    let spike = worst.map(|(max, p50)| Evidence::Spike(max, p50));
    let timed_out = (timed_out > 0).then_some(Evidence::TimedOut(timed_out));
    Some(Bottleneck::of(Culprit::Stall, evidence.chain(spike).chain(timed_out)))
}

/// Every halt that was seen or told.
fn halts<'a>(case: &Case<'a>, longest: Duration) -> impl Iterator<Item = (Halt, Duration)> + use<'a> {
    let run = case.run;
    let slow = [(&run.slow.command, Halt::Command as fn(String) -> Halt), (&run.slow.event, Halt::Event)];
    let slow = slow.into_iter().filter_map(|(found, halt)| {
        let found = found.as_ref()?;
        Some((halt(found.name.clone()), found.took))
    });
    let forks = case.grown(|counters| counters.forks).filter(|&forks| forks > 0);
    let fork = forks.and_then(|_| run.server_after.as_ref()?.latest_fork_us);
    let fork = fork.map(|us| (Halt::Fork, Duration::from_micros(us)));
    // How long each of them took is not told, only that the server waited for its disk.
    let delayed = case.grown(|counters| counters.aof_delayed_fsync).filter(|&times| times > 0);
    let delayed = delayed.map(|times| (Halt::DelayedFsync(times), longest));
    let phases = run.phases.iter().filter(|phase| phase.loads()).filter_map(|phase| run.section(&phase.name));
    let quiet = phases.flat_map(|section| {
        let stopped = section.local.map(|local| (Halt::Stopped, local.stopped)).filter(|(_, took)| !took.is_zero());
        let busy = section.server().and_then(|busy| busy.share()).is_some_and(|share| share >= SATURATED);
        let silent = (stopped.is_none() && !busy).then_some((Halt::Silent, section.silence));
        stopped.into_iter().chain(silent)
    });
    slow.chain(fork).chain(delayed).chain(quiet)
}

/// The server's main thread had no time left: by its own work or quota, or since others had its core.
pub fn server(case: &Case<'_>) -> Option<Bottleneck> {
    case.subjects().into_iter().find_map(|(phase, bound)| {
        let section = case.run.section(&phase.name)?;
        server_in(phase, bound, section)
    })
}

fn server_in(phase: &PhaseOutcome, bound: &PhaseBound, section: &Section) -> Option<Bottleneck> {
    let main = section.server()?;
    let share = main.share()?;
    let per_second =
        |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() / section.wall.as_secs_f64().max(1e-9);
    let local = section.local.unwrap_or_default();
    let idle = (1.0 - share).max(0.0);
    let throttled = per_second(local.throttled).min(idle);
    // Older kernels count a throttled thread as waiting.
    let waiting = (per_second(local.waiting) - throttled).max(0.0);
    let stolen = per_second(section.kernel.steal).min(idle);
    let most = main.saturated * 2 >= main.observed;
    let others = waiting.max(stolen);
    // Where server and loader wait for their cores in turn, neither has lost all of its time; but who waits longer than he
    // works would be done sooner without others.
    let crowded = others >= NOTICEABLE && others >= share;
    if !most && !crowded && share + throttled + waiting.max(stolen) < SATURATED {
        return None;
    }
    let thread = thread(phase, share, main);
    let rest = [Some(achieved(phase)), bound.pressure.map(Evidence::Loader)].into_iter().flatten();
    if share >= OWN_WORK || most || throttled >= others {
        let quota = (throttled >= NOTICEABLE).then_some(Evidence::Throttled(throttled));
        // What is missing to a whole core.
        let waited = (!most && waiting > 0.0).then_some(Evidence::WaitedForCore(waiting));
        let evidence = [thread].into_iter().chain(quota).chain(waited).chain(rest);
        return Some(Bottleneck::of(Culprit::ServerCpu, evidence));
    }
    (others >= NOTICEABLE && bound.bound == Some(false)).then(|| {
        let stolen = (stolen >= NOTICEABLE).then_some(Evidence::Stolen(stolen));
        let waited = (waiting >= NOTICEABLE).then_some(Evidence::WaitedForCore(waiting));
        Bottleneck::of(Culprit::Neighbour, waited.into_iter().chain(stolen).chain([thread]).chain(rest))
    })
}

fn thread(phase: &PhaseOutcome, share: f64, main: Busy) -> Evidence {
    let Busy { saturated, observed, .. } = main;
    Evidence::MainThread { phase: phase.name.clone(), share, saturated, observed }
}

/// Segments were lost on the way to a server elsewhere.
pub fn network(case: &Case<'_>) -> Option<Bottleneck> {
    let sections = || case.run.sections.iter();
    if sections().any(|section| section.local.is_some()) {
        return None;
    }
    let sum = |of: fn(&Section) -> Option<u64>| sections().filter_map(of).sum::<u64>();
    let (resent, sent) = (sum(|section| section.kernel.retransmits), sum(|section| section.kernel.segments));
    let lossy = resent >= LOSSES && resent * LOSSY >= sent;
    let rest = case.subjects().into_iter().take(1).map(|(phase, _)| achieved(phase));
    lossy.then(|| Bottleneck::of(Culprit::Network, [Evidence::Retransmits(resent, sent)].into_iter().chain(rest)))
}
