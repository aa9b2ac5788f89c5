//! Makes the result as it is stored out of the working types of a finished run.

mod cases;
mod loss;

use jiff::Timestamp;

use self::cases::{compare, phase_server, run_server};
use super::result::{self, SCHEMA};
use super::wording;
use crate::dataset::{Dataset, Owner, Place};
use crate::driver::note;
use crate::plan::{Churn, Pipeline, Plan, Replies, Sockets};
use crate::record::{ClientRecord, Connects, ErrorCount, Keys, Latency, Recorder, Requests, Timeouts, WrongReading};
use crate::verdict::{
    Ceiling, Culprit, Environment, Generator, Judgement, Outcome, PhaseOutcome, Reconciled, Reconciliation, RunOutcome,
    ServerCounters,
};

/// The result of `plans`, the cases of a scenario, judged.
pub fn document(plans: &[Plan], outcome: &Outcome, judgement: &Judgement) -> result::Document {
    let first = &plans[0];
    let runs = runs(plans, outcome, &judgement.reconciliations);
    result::Document {
        schema: SCHEMA.to_owned(),
        name: first.name.clone(),
        description: first.description.clone(),
        seed: first.dataset.seed(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: timestamp(outcome).to_string(),
        verdict: judgement.verdict.name().to_owned(),
        reasons: judgement.reasons.iter().map(|reason| wording::reason(reason, outcome)).collect(),
        warnings: judgement.warnings.iter().map(wording::warning).collect(),
        load: load(first),
        comparison: compare(&runs),
        runs,
        generator: generator(&outcome.generator, &outcome.runs, judgement.generator_bound()),
        server: server(outcome, judgement),
        bottleneck: bottleneck(outcome, judgement),
        limit: None,
        environment: environment(&outcome.environment),
    }
}

/// To the second: nobody needs more, and it also names the folder.
fn timestamp(outcome: &Outcome) -> Timestamp {
    let exact = Timestamp::try_from(outcome.started).unwrap_or(Timestamp::UNIX_EPOCH);
    Timestamp::from_second(exact.as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn load(plan: &Plan) -> result::Load {
    result::Load {
        clients: plan.clients.count,
        connections: plan.clients.connections,
        keys: plan.dataset.keys(),
        driver: plan.clients.driver.name().to_owned(),
        threads: plan.clients.threads,
    }
}

fn runs(plans: &[Plan], outcome: &Outcome, reconciliations: &[Reconciliation]) -> Vec<result::Run> {
    let run = |(index, run): (usize, &RunOutcome)| {
        let reconciliation = reconciliations.get(index);
        let plan = plans.get(run.plan).unwrap_or(&plans[0]);
        let dataset = plan.dataset.shifted(run.shift);
        result::Run {
            case: run.case.clone(),
            repeat: run.repeat,
            load: load(plan),
            server: run_server(run),
            reconciled: reconciliation.and_then(|r| match r.result {
                Reconciled::Yes => Some(true),
                Reconciled::No(_) => Some(false),
                Reconciled::NotPossible(_) => None,
            }),
            server_calls: reconciliation.and_then(|r| r.calls),
            phases: (0..run.phases.len()).map(|at| phase(&dataset, run, at, &outcome.environment)).collect(),
        }
    };
    outcome.runs.iter().enumerate().map(run).collect()
}

fn phase(dataset: &Dataset, run: &RunOutcome, at: usize, environment: &Environment) -> result::Phase {
    let phase = &run.phases[at];
    let record = &phase.record;
    let Recorder {
        requests,
        then: _,
        keys,
        timeouts,
        errors,
        service,
        response,
        send_lag,
        bytes_sent,
        bytes_received,
        connects,
        wrong,
    } = record;
    let service = latency(service);
    let response = if phase.is_open_loop() { latency(response) } else { service.clone() };
    result::Phase {
        name: phase.name.clone(),
        run: phase.run.to_owned(),
        seconds: finite(phase.seconds),
        load_loop: if phase.is_open_loop() { "open" } else { "closed" }.to_owned(),
        pipeline: phase.load.map(|load| pipeline(load.pipeline)),
        offered_per_second: phase.load.and_then(|load| load.rate).map(|rate| rate.per_second),
        arrivals: phase.load.and_then(|load| load.rate).map(|rate| rate.arrivals.name().to_owned()),
        churn: phase.churn.map(churn),
        batch: phase.load.map(|load| load.batch),
        replies: phase.load.map(|load| load.replies.name().to_owned()),
        close: phase.load.and_then(|load| load.replies.close()).map(|close| close.name().to_owned()),
        requests: self::requests(requests),
        keys: result::Keys {
            loss: loss::loss(dataset, run, at, &environment.server_config),
            ..self::keys(keys, wrong.iter().map(|wrong| example(dataset, wrong)).collect())
        },
        timeouts: self::timeouts(timeouts),
        errors: errors.rows().into_iter().map(error).collect(),
        requests_per_second: per_second(requests.ok, phase.seconds),
        keys_per_second: per_second(moved(phase), phase.seconds),
        bytes_sent: *bytes_sent,
        bytes_received: *bytes_received,
        latency_us: result::Latencies { service, response },
        send_lag_us: (send_lag.count() > 0).then(|| latency(send_lag)),
        connect: connect(connects),
        server: phase_server(phase),
        clients: phase.clients.iter().zip(0..).map(|(record, id)| client(id, record)).collect(),
    }
}

/// Keys that were written or read; where replies were not awaited, also those that were only sent.
fn moved(phase: &PhaseOutcome) -> u64 {
    let keys = &phase.record.keys;
    let sent = if phase.load.is_some_and(|load| load.replies != Replies::Await) { keys.unknown } else { 0 };
    keys.acknowledged + sent + keys.checked.saturating_sub(keys.unread)
}

fn pipeline(pipeline: Pipeline) -> result::Pipeline {
    match pipeline {
        Pipeline::Window(window) => result::Pipeline::Window(window),
        Pipeline::All => result::Pipeline::All("all".to_owned()),
    }
}

fn requests(requests: &Requests) -> result::Requests {
    let &Requests { scheduled, ok, failed, timed_out, discarded, unsent } = requests;
    result::Requests { scheduled, ok, failed, timed_out, discarded, unsent }
}

fn keys(keys: &Keys, examples: Vec<result::Example>) -> result::Keys {
    let &Keys {
        scheduled,
        acknowledged,
        refused,
        unknown,
        not_sent,
        checked,
        matched,
        lost,
        absent,
        stale,
        foreign,
        corrupt,
        undecided,
        unread,
    } = keys;
    result::Keys {
        scheduled,
        acknowledged,
        refused,
        unknown,
        not_sent,
        checked,
        matched,
        lost,
        absent,
        stale,
        foreign,
        corrupt,
        undecided,
        unread,
        loss: None,
        examples,
    }
}

/// Key and expected value are not kept under load: they follow from the place.
fn example(dataset: &Dataset, wrong: &WrongReading) -> result::Example {
    let place = Place { client: wrong.client, index: wrong.index };
    let expected = dataset.shown(place, wrong.version);
    result::Example {
        client: wrong.client,
        key: key(dataset, place),
        class: wrong.class.name().to_owned(),
        expected: note(&expected).into(),
        got: wrong.got.as_deref().map(str::to_owned),
        owner: wrong.owner.map(|found| owner(dataset, found)),
    }
}

fn owner(dataset: &Dataset, owner: Owner) -> result::Owner {
    let Owner { client, index, version } = owner;
    // A value may name a client or key that this dataset does not have.
    let known = index.filter(|&index| client < dataset.clients() && index < dataset.keys());
    result::Owner { client, key: known.map(|index| key(dataset, Place { client, index })), index, version }
}

fn key(dataset: &Dataset, place: Place) -> String {
    let mut text = Vec::new();
    dataset.key(place, &mut text);
    note(&text).into()
}

fn timeouts(timeouts: &Timeouts) -> result::Timeouts {
    let &Timeouts { connect, setup, command } = timeouts;
    result::Timeouts { connect, setup, command }
}

fn error(row: &ErrorCount) -> result::Error {
    result::Error {
        stage: row.fault.stage.name().to_owned(),
        kind: row.fault.kind.name().to_owned(),
        count: row.count,
        example: row.example.to_string(),
    }
}

fn connect(connects: &Connects) -> result::Connect {
    let Connects { tried: _, admitted, refused, tcp, tls, setup, login, first_reply, close } = connects;
    result::Connect {
        admitted: *admitted,
        refused: *refused,
        tcp_us: latency(tcp),
        tls_us: latency(tls),
        setup_us: latency(setup),
        auth_us: latency(login),
        first_reply_us: latency(first_reply),
        close_us: latency(close),
    }
}

fn churn(churn: Churn) -> result::Churn {
    let Churn { times, warmup, concurrency, sockets } = churn;
    result::Churn { times, warmup, concurrency, pool: sockets == Sockets::Pooled }
}

fn latency(latency: &Latency) -> result::Latency {
    let mut at_least = Vec::new();
    let mut level = |name: &str, percent: f64| {
        let found = latency.percentile(percent)?;
        if found.at_least {
            at_least.push(name.to_owned());
        }
        Some(found.us)
    };
    result::Latency {
        p50: level("p50", 50.0),
        p90: level("p90", 90.0),
        p99: level("p99", 99.0),
        p999: level("p999", 99.9),
        p9999: level("p9999", 99.99),
        max: level("max", 100.0),
        count: latency.count(),
        censored: latency.censored(),
        at_least,
        out_of_range: latency.out_of_range(),
    }
}

fn client(id: u32, record: &ClientRecord) -> result::Client {
    let ClientRecord { requests, settled: _, lost, mismatched, took } = record;
    result::Client {
        id,
        seconds: finite(took.as_secs_f64()),
        scheduled: requests.scheduled,
        ok: requests.ok,
        failed: requests.failed,
        timed_out: requests.timed_out,
        unsent: requests.unsent,
        lost: *lost,
        mismatched: *mismatched,
    }
}

/// By how much requests left late, over all phases with a rate.
fn send_lag(runs: &[RunOutcome]) -> Latency {
    let mut all = Latency::default();
    runs.iter().flat_map(|run| &run.phases).for_each(|phase| all.add(&phase.record.send_lag));
    all
}

fn generator(generator: &Generator, runs: &[RunOutcome], bound: Option<bool>) -> result::Generator {
    let ceiling = |ceiling: &Ceiling| result::Ceiling {
        case: ceiling.case.clone(),
        phase: ceiling.phase.clone(),
        requests_per_second: finite(ceiling.requests_per_second),
    };
    let send_lag = send_lag(runs);
    result::Generator {
        cpu_seconds: generator.cpu_seconds.map(finite),
        cpu_percent_max: generator.cpu_percent_max.map(finite),
        rss_bytes_max: generator.rss_bytes_max,
        host_cpu_percent_max: generator.host_cpu_percent_max.map(finite),
        host_cores: generator.host_cores,
        send_lag_us: (send_lag.count() > 0).then(|| latency(&send_lag)),
        ceiling: Ceiling::nearest(&generator.ceilings, runs).map(|nearest| finite(nearest.requests_per_second)),
        ceilings: generator.ceilings.iter().map(ceiling).collect(),
        bound,
    }
}

fn server(outcome: &Outcome, judgement: &Judgement) -> result::Server {
    let server = &outcome.server;
    let before = outcome.runs.first().and_then(|run| run.server_before.as_ref());
    // Cases may load several servers; this is the first one's.
    let here = |run: &&RunOutcome| outcome.runs.first().is_some_and(|first| first.served_by == run.served_by);
    let after = outcome.runs.iter().rfind(here).and_then(|run| run.server_after.as_ref());
    result::Server {
        name: server.name.clone(),
        version: server.version.clone(),
        address: server.address.clone(),
        db: server.db,
        spawned: server.spawned,
        cpu_seconds: server.cpu_seconds.map(finite),
        cpu_percent_max: server.cpu_percent_max.map(finite),
        memory_bytes_max: server.memory_bytes_max,
        keys_before: before.and_then(|counters| counters.dbsize),
        keys_after: after.and_then(|counters| counters.dbsize),
        keys_removed: server.removed,
        evicted: counted(outcome, |counters| counters.evicted),
        rejected_connections: counted(outcome, |counters| counters.rejected_connections),
        commands: counted(outcome, |counters| counters.commands_processed),
        reconciled: judgement.reconciled(),
    }
}

/// How far a counter went over all runs; `None` if it could not be followed through every one.
fn counted(outcome: &Outcome, counter: fn(&ServerCounters) -> u64) -> Option<u64> {
    if outcome.runs.is_empty() {
        return None;
    }
    let steps = outcome.runs.iter().map(|run| {
        let (before, after) = (run.server_before.as_ref()?, run.server_after.as_ref()?);
        (before.run_id == after.run_id).then(|| counter(after).checked_sub(counter(before)))?
    });
    steps.sum()
}

fn bottleneck(outcome: &Outcome, judgement: &Judgement) -> Option<result::Bottleneck> {
    let (run, found) = judgement.bottleneck()?;
    if found.culprit == Culprit::Undecided && outcome.runs.iter().all(|run| run.sections.is_empty()) {
        // Nobody looked.
        return None;
    }
    let title = outcome.runs.get(run).and_then(|run| wording::run_title(run, wording::is_repeated(run, outcome)));
    let evidence = wording::evidence::sentences(found).into_iter();
    Some(result::Bottleneck {
        cause: found.culprit.name().to_owned(),
        evidence: title.into_iter().chain(evidence).collect(),
    })
}

fn environment(environment: &Environment) -> result::Environment {
    let Environment { cpu, cores, memory_bytes, kernel, governor, fd_limit, debug_build, sysctls, server_config } =
        environment.clone();
    result::Environment {
        keyswarm: env!("CARGO_PKG_VERSION").to_owned(),
        cpu,
        cores,
        memory_bytes,
        kernel,
        governor,
        debug_build,
        fd_limit,
        // Once more: whoever gathered them, a secret must not get into a file that is shown around.
        server_config: crate::verdict::without_secrets(server_config),
        sysctls,
    }
}

/// So many per second; 0 where no time has passed.
fn per_second(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { finite(n as f64 / seconds) } else { 0.0 }
}

/// To the microsecond, and never what JSON cannot say.
fn finite(number: f64) -> f64 {
    let rounded = (number * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded } else { 0.0 }
}

#[cfg(test)]
mod tests;
