use super::*;
use crate::plan::{Protocol, Spawn};
use crate::sample::process::ThreadUsage;
use crate::sample::section::{Busy, LocalSection, Section};
use crate::verdict::fixture;
use crate::verdict::judge::bounds;
use crate::verdict::{Fate, Slow, SlowThing};
use crate::wire::fault::Fault;
use std::time::Duration;

const SECONDS: f64 = 10.0;

/// What is different from a run in which all went well.
type Change = fn(&mut Made);

fn part(share: f64) -> Duration {
    Duration::from_secs_f64(SECONDS * share)
}

/// A run in which nothing failed, whose phases took ten seconds each, with a server here that was half busy.
struct Made {
    plan: Plan,
    run: RunOutcome,
    server: ServerSide,
    environment: Environment,
    broken: bool,
}

impl Made {
    fn new() -> Self {
        let mut run = fixture::good_run();
        for phase in &mut run.phases[1..] {
            phase.seconds = SECONDS;
        }
        for counters in [&mut run.server_before, &mut run.server_after].into_iter().flatten() {
            counters.oom_errors = Some(0);
        }
        let mut made = Self {
            plan: fixture::plan(),
            run,
            server: ServerSide::default(),
            environment: Environment::default(),
            broken: false,
        };
        made.run.sections = ["connect", "write", "verify"].map(|phase| section(phase, 0.5, 0.3)).into();
        made
    }

    fn found(&self) -> Bottleneck {
        let Self { plan, run, server, environment, broken } = self;
        let bounds = bounds(plan, run, &[]);
        find(&Case { plan, run, server, environment, bounds: &bounds, broken: *broken })
    }

    fn phase(&mut self, name: &str) -> &mut PhaseOutcome {
        self.run.phases.iter_mut().find(|phase| phase.name == name).expect("of the fixture")
    }

    fn local(&mut self, phase: &str) -> &mut LocalSection {
        self.section(phase).local.as_mut().expect("a server here")
    }

    fn section(&mut self, phase: &str) -> &mut Section {
        self.run.sections.iter_mut().find(|section| section.phase == phase).expect("made above")
    }

    /// The server's and the loader's share in every phase.
    fn shares(&mut self, server: f64, loader: f64) {
        for name in ["connect", "write", "verify"] {
            *self.section(name) = section(name, server, loader);
        }
    }

    fn errors(&mut self, phase: &str, stage: Stage, kind: Kind, count: u64) {
        self.phase(phase).record.errors.count(Fault::new(stage, kind), count, "x");
    }

    fn after(&mut self) -> &mut crate::verdict::ServerCounters {
        self.run.server_after.as_mut().expect("of the fixture")
    }

    fn setting(&mut self, name: &str, value: &str) {
        self.environment.server_config.insert(name.into(), value.into());
    }

    fn spawned(&mut self, maxclients: Option<u32>) {
        self.plan.target.server = Server::Spawned(Spawn {
            program: "redis-server".into(),
            cpus: None,
            cpu_quota: None,
            maxmemory: None,
            maxclients,
            tcp_backlog: None,
            password: None,
            args: Vec::new(),
            protocol: Protocol::Resp2,
        });
    }
}

fn section(phase: &str, server: f64, loader: f64) -> Section {
    let mut main = Busy::default();
    main.add(part(server), part(1.0));
    let local = LocalSection { main, waiting: Some(Duration::ZERO), ..LocalSection::default() };
    Section {
        phase: phase.into(),
        wall: part(1.0),
        threads: vec![ThreadUsage { busy: part(loader), waiting: Some(Duration::ZERO) }],
        local: Some(local),
        ..Section::default()
    }
}

/// Command timeouts in the write phase.
fn timed_out(made: &mut Made) {
    made.phase("write").record.timeouts.command = 3;
}

#[test]
fn each_cause_has_evidence_of_its_own() {
    let cases: [(&str, Culprit, Change); 28] = [
        ("half busy, nothing failed", Culprit::None, |_| {}),
        ("timeouts without any sign", Culprit::Undecided, timed_out),
        ("a limit broken without any sign", Culprit::Undecided, |m| m.broken = true),
        ("nothing seen of the phases", Culprit::Undecided, |m| m.run.sections.clear()),
        ("saturated", Culprit::ServerCpu, |m| m.shares(0.99, 0.4)),
        ("saturated, the loader at its end as well", Culprit::ServerCpu, |m| m.shares(0.99, 0.99)),
        ("saturated, and timeouts", Culprit::ServerCpu, |m| {
            m.shares(0.99, 0.4);
            timed_out(m);
        }),
        ("the server's own figures, from elsewhere", Culprit::ServerCpu, |m| {
            for section in &mut m.run.sections {
                section.local = None;
                section.told.add(part(0.97), part(1.0));
            }
        }),
        ("at the end of its quota", Culprit::ServerCpu, |m| {
            m.shares(0.25, 0.1);
            m.local("write").throttled = Some(part(0.74));
        }),
        ("saturated in the phase in which nothing failed", Culprit::Undecided, |m| {
            *m.section("verify") = section("verify", 0.99, 0.3);
            timed_out(m);
        }),
        ("the loader at its end", Culprit::GeneratorCpu, |m| m.shares(0.5, 0.97)),
        ("others have the server's core", Culprit::Neighbour, |m| {
            m.shares(0.5, 0.3);
            m.local("write").waiting = Some(part(0.49));
        }),
        ("both wait for their cores in turn", Culprit::Neighbour, |m| {
            m.shares(0.12, 0.08);
            m.local("write").waiting = Some(part(0.45));
            m.section("write").threads[0].waiting = Some(part(0.39));
        }),
        ("a wait now and then", Culprit::None, |m| m.local("write").waiting = Some(part(0.2))),
        ("the hypervisor has it", Culprit::Neighbour, |m| {
            m.shares(0.5, 0.3);
            m.section("write").kernel.steal = Some(part(0.6));
        }),
        ("others have the loader's core", Culprit::GeneratorCpu, |m| {
            m.shares(0.2, 0.1);
            m.section("write").threads[0].waiting = Some(part(0.85));
        }),
        ("OOM, however busy the loader", Culprit::ServerMemory, |m| {
            m.shares(0.2, 0.99);
            m.errors("write", Stage::Reply, Kind::Oom, 7);
            m.after().oom_errors = Some(7);
        }),
        ("killed by the kernel", Culprit::ServerMemory, |m| {
            m.section("write").kernel.oom_kills = Some(1);
            m.phase("write").server = Fate::Gone;
            m.errors("write", Stage::Read, Kind::Reset, 7);
        }),
        ("keys evicted and lost", Culprit::Eviction, |m| {
            m.after().evicted = 9;
            m.phase("verify").record.keys.lost = 9;
        }),
        ("keys evicted that were not ours", Culprit::None, |m| m.after().evicted = 9),
        ("maxclients, told by the server", Culprit::MaxClients, |m| {
            m.errors("connect", Stage::Setup, Kind::MaxClients, 3);
            m.after().rejected_connections = 3;
            m.after().maxclients = Some(5);
        }),
        ("maxclients, seen as a reset right after connecting", Culprit::MaxClients, |m| {
            m.errors("connect", Stage::Setup, Kind::Reset, 3);
            m.after().rejected_connections = 3;
        }),
        ("somebody else was rejected", Culprit::None, |m| m.after().rejected_connections = 3),
        ("maxclients lowered for want of files", Culprit::ServerFds, |m| {
            m.spawned(None);
            m.errors("connect", Stage::Setup, Kind::MaxClients, 3);
            m.after().maxclients = Some(32);
            m.server.fd_limit = Some(64);
        }),
        ("maxclients as it was asked for", Culprit::MaxClients, |m| {
            m.spawned(Some(32));
            m.errors("connect", Stage::Setup, Kind::MaxClients, 3);
            m.after().maxclients = Some(32);
            m.server.fd_limit = Some(64);
        }),
        ("no ports left", Culprit::GeneratorLimits, |m| m.errors("connect", Stage::Connect, Kind::NoPort, 3)),
        ("cut off at the output buffer", Culprit::SlowReader, |m| {
            m.server.readers_cut_off = 2;
            m.errors("verify", Stage::Read, Kind::Eof, 60);
        }),
        ("lossy", Culprit::Network, |m| {
            for section in &mut m.run.sections {
                section.local = None;
                section.kernel.segments = Some(10_000);
                section.kernel.retransmits = Some(300);
            }
        }),
    ];
    for (what, culprit, change) in cases {
        let mut made = Made::new();
        change(&mut made);
        let found = made.found();
        assert_eq!(found.culprit, culprit, "{what}: {found:?}");
        assert!(!found.evidence.is_empty(), "{what}");
    }
}

#[test]
fn a_halt_explains_a_spike_and_nothing_else() {
    let halted = |change: fn(&mut Made)| {
        let mut made = Made::new();
        timed_out(&mut made);
        made.phase("write").record.service.record(Duration::from_millis(1_500), 3);
        change(&mut made);
        made.found()
    };
    let stopped = halted(|m| m.local("write").stopped = Duration::from_millis(1_400));
    assert_eq!(
        (stopped.culprit, &stopped.evidence[0]),
        (Culprit::Stall, &Evidence::Halt(Halt::Stopped, Duration::from_millis(1_400)))
    );
    let causes: [(&str, Culprit, Change); 8] = [
        ("a stopped process, and a loader that had much to send then", Culprit::Stall, |m| {
            m.shares(0.5, 0.97);
            m.local("write").stopped = Duration::from_millis(1_400);
        }),
        ("no answer that a loader without time would have seen", Culprit::GeneratorCpu, |m| {
            m.shares(0.5, 0.97);
            m.section("write").silence = Duration::from_secs(1);
        }),
        ("a command", Culprit::Stall, |m| m.run.slow = Slow { command: took_of(1_300), event: None }),
        ("a command too short", Culprit::Undecided, |m| m.run.slow = Slow { command: took_of(200), event: None }),
        ("a fork", Culprit::Stall, |m| {
            m.run.server_before.as_mut().expect("there").forks = Some(0);
            (m.after().forks, m.after().latest_fork_us) = (Some(1), Some(900_000));
        }),
        ("an answer that did not come", Culprit::Stall, |m| m.section("write").silence = Duration::from_secs(1)),
        ("a slow answer of a busy server", Culprit::ServerCpu, |m| {
            m.shares(0.99, 0.3);
            m.section("write").silence = Duration::from_secs(1);
        }),
        ("all were slow", Culprit::Undecided, |m| {
            m.phase("write").record.service.record(Duration::from_millis(900), 100_000);
            m.local("write").stopped = Duration::from_millis(1_400);
        }),
    ];
    for (what, culprit, change) in causes {
        assert_eq!(halted(change).culprit, culprit, "{what}");
    }
}

#[test]
fn wrong_data_is_no_load_that_was_too_much() {
    let mut made = Made::new();
    made.phase("verify").record.keys.lost = 2;
    made.phase("verify").record.keys.corrupt = 1;
    let found = made.found();
    assert_eq!(found.culprit, Culprit::Undecided);
    assert_eq!(found.evidence[0], Evidence::WrongData { lost: 2, mismatched: 1 });
}

fn took_of(ms: u64) -> Option<SlowThing> {
    Some(SlowThing { name: "EVAL".into(), took: Duration::from_millis(ms) })
}

#[test]
fn what_was_handed_over_is_not_said_to_be_achieved() {
    let mut made = Made::new();
    *made.section("write") = section("write", 0.99, 0.3);
    let requests = &mut made.phase("write").record.requests;
    (requests.discarded, requests.ok) = (requests.ok, 0);
    let sent = requests.discarded as f64;
    let found = made.found();
    assert_eq!(found.culprit, Culprit::ServerCpu);
    assert!(found.evidence.contains(&Evidence::HandedOver("write".into(), sent / SECONDS)), "{:?}", found.evidence);
}

#[test]
fn a_brief_phase_tells_nothing_of_a_run_that_went_well() {
    let mut made = Made::new();
    *made.section("write") = section("write", 0.99, 0.3);
    made.phase("write").seconds = SECONDS / 20.0;
    assert_eq!(made.found().culprit, Culprit::None);
    // Where something failed in it, it is what is to be explained.
    timed_out(&mut made);
    assert_eq!(made.found().culprit, Culprit::ServerCpu);
}

#[test]
fn a_server_that_went_away_is_what_failed() {
    let mut made = Made::new();
    made.errors("write", Stage::Read, Kind::Reset, 3);
    made.phase("write").server = Fate::Gone;
    let found = made.found();
    assert_eq!((found.culprit, &found.evidence[0]), (Culprit::Undecided, &Evidence::WentAway("write".into())));
}

#[test]
fn a_full_accept_queue_needs_both_ends() {
    let made = |overflows: u64, through: u64, timeouts: u64| {
        let mut made = Made::new();
        made.setting("tcp-backlog", "16");
        made.environment.sysctls.insert("net.ipv4.tcp_syn_linear_timeouts".into(), "4".into());
        made.local("connect").overflows = Some(overflows);
        made.local("connect").queue_max = Some(if overflows > 0 { 17 } else { 3 });
        let record = &mut made.phase("connect").record;
        record.connects.tcp.record(Duration::from_millis(1_020), through);
        record.timeouts.connect = timeouts;
        made
    };
    let found = made(9, 4, 5).found();
    assert_eq!(found.culprit, Culprit::AcceptQueue);
    let expected = [
        Evidence::Overflows(9, Some(16)),
        Evidence::AcceptQueue(17),
        Evidence::SynSteps(vec![(1, 4)]),
        Evidence::ConnectTimeouts(5, 0),
    ];
    assert_eq!(found.evidence, expected);
    assert_eq!(made(0, 4, 5).found().culprit, Culprit::Undecided, "the server dropped nothing");
    assert_eq!(made(9, 4, 0).found().culprit, Culprit::None, "slow for a moment, in a run that took long");
    let mut burst = made(9, 4, 0);
    burst.phase("connect").seconds = 60.0;
    assert_eq!(burst.found().culprit, Culprit::AcceptQueue, "connecting was all that took time");
}

#[test]
fn several_runs_are_told_by_the_one_that_failed() {
    let plan = fixture::plan();
    let mut saturated = Made::new();
    saturated.shares(0.99, 0.3);
    let mut full = Made::new();
    full.errors("write", Stage::Reply, Kind::Oom, 7);
    let mut outcome = fixture::outcome(Made::new().run);
    outcome.runs.extend([saturated.run, full.run]);
    let judgement = crate::verdict::judge(std::slice::from_ref(&plan), &outcome);
    let told = judgement.bottleneck().map(|(run, found)| (run, found.culprit));
    assert_eq!(told, Some((2, Culprit::ServerMemory)));
    outcome.runs.pop();
    let judgement = crate::verdict::judge(std::slice::from_ref(&plan), &outcome);
    assert_eq!(judgement.bottleneck().map(|(run, found)| (run, found.culprit)), Some((1, Culprit::ServerCpu)));
    assert_eq!(judgement.generator_bound(), Some(false));
}
