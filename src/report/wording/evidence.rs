//! The words for what held the load back, and for what shows it: short sentences with numbers.

use std::time::Duration;

use super::{generator, plural};
use crate::report::format::{bytes, count, latency, rate};
use crate::verdict::{Bottleneck, Evidence, Halt};

/// Every piece of evidence.
pub fn sentences(found: &Bottleneck) -> Vec<String> {
    found.evidence.iter().map(sentence).collect()
}

/// The cause for people, by its name in results.
pub fn title(cause: &str) -> &str {
    match cause {
        "server_cpu" => "server CPU",
        "neighbour" => "a neighbour on the server's core",
        "server_memory" => "server memory",
        "stall" => "the server stood still",
        "accept_queue" => "the server's accept queue",
        "server_fds" => "the server's limit on open files",
        "slow_reader" => "clients that read too slowly",
        "generator_cpu" => "keyswarm's own CPU",
        "generator_limits" => "limits of keyswarm's machine",
        other => other,
    }
}

fn sentence(evidence: &Evidence) -> String {
    match evidence {
        Evidence::MainThread { phase, share, saturated, observed } if saturated.is_zero() || observed.is_zero() => {
            format!("the server's main thread used {share:.2} s/s in {phase}")
        }
        Evidence::MainThread { phase, share, saturated, observed } => {
            format!("main thread {share:.2} s/s in {phase}, at its end for {} of {}", span(*saturated), span(*observed))
        }
        Evidence::WaitedForCore(share) => {
            format!("its main thread waited {share:.2} s/s for a core that others had")
        }
        Evidence::Stolen(share) => format!("the hypervisor gave {share:.2} s/s of this machine's cores to others"),
        Evidence::Throttled(share) => format!("its CPU quota kept it off the cores for {share:.2} s/s"),
        Evidence::Achieved { phase, requests_per_second, latency_us } => {
            let latencies = latency_us
                .map(|(p50, p99, at_least)| format!(", p50 {}, p99 {}", latency(p50, false), latency(p99, at_least)));
            format!("{phase} achieved {}{}", rate(*requests_per_second), latencies.unwrap_or_default())
        }
        Evidence::HandedOver(phase, requests_per_second) => {
            format!("{phase} handed over {}, whose replies nobody read", rate(*requests_per_second))
        }
        Evidence::Loader(pressure) => format!("the busiest loading thread {}", generator::pressed(pressure)),
        Evidence::GeneratorBound(phase, sign) => format!("in {phase}, {}", generator::sign(sign)),
        Evidence::OutOfMemory(refused, counted) => {
            let counted = counted.map(|counted| format!(" (the server counted {})", count(counted)));
            format!("{} refused with OOM{}", plural(*refused, "request", "requests"), counted.unwrap_or_default())
        }
        Evidence::Memory(used, limit) => format!("it used {} of its maxmemory of {}", bytes(*used), bytes(*limit)),
        Evidence::OomKilled(killed) => {
            format!("the kernel killed {} for want of memory", plural(*killed, "process", "processes"))
        }
        Evidence::Evicted(keys) => format!("the server evicted {}", plural(*keys, "key", "keys")),
        Evidence::Lost(lost, wrong) => {
            format!("{} lost, {}", plural(*lost, "key", "keys"), plural(*wrong, "wrong value", "wrong values"))
        }
        Evidence::Halt(halt, took) => self::halt(halt, *took),
        Evidence::Spike(max, p50) => {
            format!("the slowest request took {}, the median {}", latency(*max, false), latency(*p50, false))
        }
        Evidence::TimedOut(requests) => format!("{} timed out", plural(*requests, "request", "requests")),
        Evidence::Overflows(dropped, room) => {
            let room = room.map(|room| format!(", which holds {} and one more", count(room)));
            format!(
                "{} dropped at the full accept queue{}",
                plural(*dropped, "connection", "connections"),
                room.unwrap_or_default()
            )
        }
        Evidence::AcceptQueue(longest) => format!("up to {} waited to be accepted", count(*longest)),
        Evidence::SynSteps(steps) => {
            let steps: Vec<String> = steps.iter().map(|(at, times)| format!("{} × {at} s", count(*times))).collect();
            format!("connects came through on the steps of the SYN's retransmission: {}", steps.join(", "))
        }
        Evidence::SynRetransmits(segments) => format!("{} sent again", plural(*segments, "SYN", "SYNs")),
        Evidence::ConnectTimeouts(connect, setup) => format!(
            "{} and {}",
            plural(*connect, "connect timeout", "connect timeouts"),
            plural(*setup, "setup timeout", "setup timeouts")
        ),
        Evidence::TurnedAway(connections) => {
            format!("{} turned away", plural(*connections, "connection", "connections"))
        }
        Evidence::Rejected(connections) => format!("the server counted {} rejected", count(*connections)),
        Evidence::MaxClients(most) => format!("its maxclients is {}", count(*most)),
        Evidence::WantedClients(wanted) => {
            format!("not {} as it should be, since it may not open so many files", count(*wanted))
        }
        Evidence::Files(limit, most) => {
            let most = most.map(|most| format!(" and had {} open at most", count(most)));
            format!("it may open {}{}", plural(*limit, "file", "files"), most.unwrap_or_default())
        }
        Evidence::CutOff(clients) => {
            format!("the server cut off {} at the limit of its output buffers", plural(*clients, "client", "clients"))
        }
        Evidence::LostConnections(requests) => {
            format!("{} failed as connections were lost", plural(*requests, "request", "requests"))
        }
        Evidence::Denied(kind, times) => format!("{} × {}", count(*times), kind.name()),
        Evidence::Retransmits(resent, sent) => {
            format!("{} of {} TCP segments were sent again", count(*resent), count(*sent))
        }
        Evidence::Failures { connecting, command, errors } => failures(&[
            (*connecting, "connect or setup timeout", "connect or setup timeouts"),
            (*command, "command timeout", "command timeouts"),
            (*errors, "error", "errors"),
        ]),
        Evidence::WrongData { lost, mismatched } => {
            let what = listed(&[(*lost, "key lost", "keys lost"), (*mismatched, "wrong value", "wrong values")]);
            format!("{what}, and no sign of too much load")
        }
        Evidence::WentAway(phase) => format!("the server went away in {phase}, and nothing shows why"),
        Evidence::TooShort(phase, seconds) => {
            format!("{phase} took {seconds:.2} s, of which too little was seen to tell")
        }
        Evidence::NothingLoaded => "there was no load".to_owned(),
    }
}

fn failures(counts: &[(u64, &str, &str)]) -> String {
    let what = listed(counts);
    let what = if what.is_empty() { "a limit was broken" } else { what.as_str() };
    format!("{what}, and nothing shows why")
}

/// "3 errors, 1 command timeout": those that occurred.
fn listed(counts: &[(u64, &str, &str)]) -> String {
    let some = counts.iter().filter(|(n, _, _)| *n > 0);
    some.map(|&(n, one, many)| plural(n, one, many)).collect::<Vec<_>>().join(", ")
}

fn halt(halt: &Halt, took: Duration) -> String {
    let took = latency(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), false);
    match halt {
        Halt::Stopped => format!("its process was seen stopped, for at most {took}"),
        Halt::Command(name) => format!("SLOWLOG: {name} took {took}"),
        Halt::Event(name) => format!("LATENCY: {name} took {took}"),
        Halt::Fork => format!("a fork took {took}"),
        Halt::DelayedFsync(times) => format!("{} for the disk", plural(*times, "write waited", "writes waited")),
        Halt::Silent => format!("it did not answer INFO for {took} and was not busy"),
    }
}

/// "40 s", "0.4 s".
fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.95 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Culprit;

    #[test]
    fn evidence_is_told_in_sentences_with_numbers() {
        let seconds = Duration::from_secs;
        let evidence = vec![
            Evidence::MainThread { phase: "write".into(), share: 0.99, saturated: seconds(40), observed: seconds(41) },
            Evidence::Achieved {
                phase: "write".into(),
                requests_per_second: 352_000.0,
                latency_us: Some((800, 2_100, false)),
            },
            Evidence::HandedOver("pipe".into(), 1_200_000.0),
            Evidence::Overflows(12, Some(16)),
            Evidence::SynSteps(vec![(1, 9), (3, 2)]),
            Evidence::OutOfMemory(7, Some(7)),
            Evidence::Halt(Halt::Command("EVAL".into()), Duration::from_millis(1_250)),
            Evidence::ConnectTimeouts(1, 0),
        ];
        let found = Bottleneck { culprit: Culprit::ServerCpu, evidence };
        insta::assert_snapshot!(sentences(&found).join("\n"), @r"
        main thread 0.99 s/s in write, at its end for 40 s of 41 s
        write achieved 352 k/s, p50 0.8 ms, p99 2.1 ms
        pipe handed over 1.2 M/s, whose replies nobody read
        12 connections dropped at the full accept queue, which holds 16 and one more
        connects came through on the steps of the SYN's retransmission: 9 × 1 s, 2 × 3 s
        7 requests refused with OOM (the server counted 7)
        SLOWLOG: EVAL took 1.25 s
        1 connect timeout and 0 setup timeouts
        ");
        assert_eq!((title("server_cpu"), title("eviction")), ("server CPU", "eviction"));
    }
}
