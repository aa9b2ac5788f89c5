//! The text of `keyswarm check`: a plan and its predictions, in 80 columns, without colour.

use std::io::{self, Write};
use std::time::Duration;

use crate::dataset::{Dataset, KeyPattern, Order, ValuePattern};
use crate::plan::predict::{PhaseTraffic, Prediction, Room, over_tcp, predict};
use crate::plan::{
    Between, Churn, Cleanup, Clients, Close, Flush, LimitSet, Load, Mix, Phase, Pipeline, Plan, Protocol, Rate,
    Replies, Run, SearchPlan, Server, Sockets, Spawn, Until,
};
use crate::scenario::units::{
    counted, duration_shown, lines, number_shown, percent_text, rate_shown, size_shown, size_text,
};

/// Columns in all, and of the labels on the left.
const WIDTH: usize = 80;
const LABEL: usize = 10;

/// Writes what `plans`, the cases of the scenario called `file`, will do and need in `room`: the first in full, of the others
/// what differs from it.
///
/// # Errors
/// `out` cannot be written to.
pub fn check(file: &str, plans: &[Plan], room: Room, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{file} is valid")?;
    let mut first: Option<Vec<String>> = None;
    for plan in plans {
        let mut text = Vec::new();
        case(plan, &predict(plan, room), &mut text)?;
        let rows: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
        if let Some(label) = &plan.case {
            writeln!(out)?;
            row(out, "case", label)?;
        }
        let known = first.as_deref().unwrap_or_default();
        rows.iter().filter(|row| !known.contains(row)).try_for_each(|row| writeln!(out, "{row}"))?;
        first.get_or_insert(rows);
    }
    Ok(())
}

fn case(plan: &Plan, prediction: &Prediction, out: &mut dyn Write) -> io::Result<()> {
    row(out, "target", &target(plan))?;
    row(out, "clients", &clients(&plan.clients))?;
    for (at, text) in data(plan, prediction).iter().enumerate() {
        row(out, if at == 0 { "data" } else { "" }, text)?;
    }
    phases(plan, prediction, out)?;
    if let Some(uneven) = plan.phases.iter().find(|phase| phase.run.writes_unevenly()) {
        // Two bytes and two bits, see `record::versions`.
        let bytes = prediction.keys * 9 / 4;
        row(out, "versions", &format!("key by key from {} on, {} in this process", uneven.name, size_shown(bytes)))?;
    }
    row(out, "limits", &limits(plan))?;
    row(out, "sockets", &sockets(plan, prediction))?;
    row(out, "longest", &longest(plan, prediction))?;
    if plan.repeat > 1 {
        let between = match plan.between {
            Between::Flush => "the database emptied between them",
            Between::Next => "each with new keys, on top of those before",
            Between::Again => "each writing the same keys in their next version",
        };
        row(out, "repeat", &format!("{} runs, {between}", plan.repeat))?;
    }
    if let Some(search) = &plan.search {
        row(out, "limit", &self::search(search))?;
    }
    plan.advice.iter().try_for_each(|advice| row(out, "note", advice))?;
    let warnings = prediction.warnings.iter().map(String::as_str).chain(plan.dataset.blind_spot());
    warnings.into_iter().try_for_each(|warning| row(out, "warning", warning))
}

/// A label and a text that goes on below itself.
fn row(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    for (at, line) in lines(text, WIDTH - LABEL - 2).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        writeln!(out, "  {label:<LABEL$}{line}")?;
    }
    Ok(())
}

fn target(plan: &Plan) -> String {
    let (mut text, protocol) = match &plan.target.server {
        Server::Remote(endpoint) => (endpoint.url_shown(), endpoint.protocol),
        Server::Spawned(spawn) => (spawned(spawn), spawn.protocol),
        Server::Builtin(builtin) => {
            let cores = on_cores(builtin.cpus.as_deref());
            (format!("built in, within keyswarm{cores}: it recomputes what is read"), builtin.protocol)
        }
    };
    text.push_str(match protocol {
        Protocol::Resp2 => ", RESP2",
        Protocol::Resp3 => ", RESP3",
    });
    if plan.target.flush == Flush::Before {
        text.push_str(", emptied before the run");
    }
    if plan.target.cleanup == Cleanup::Unlink {
        text.push_str(", what was written is removed afterwards");
    }
    text
}

fn spawned(spawn: &Spawn) -> String {
    let mut text = format!("{}, started for this run", spawn.program);
    text.push_str(&on_cores(spawn.cpus.as_deref()));
    if let Some(quota) = spawn.cpu_quota {
        text.push_str(&format!(", at most {} of a core", percent_text(quota.into())));
    }
    if let Some(bytes) = spawn.maxmemory {
        text.push_str(&format!(", maxmemory {}", size_text(bytes)));
    }
    if let Some(most) = spawn.maxclients {
        text.push_str(&format!(", maxclients {}", number_shown(most.into())));
    }
    text
}

fn on_cores(cores: Option<&[usize]>) -> String {
    match cores {
        None => String::new(),
        Some([core]) => format!(", core {core}"),
        Some(cores) => {
            format!(", cores {}", cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" "))
        }
    }
}

fn clients(clients: &Clients) -> String {
    let mut text = format!(
        "{} × {}, driver {}, {}{}",
        number_shown(clients.count.into()),
        counted(clients.connections.into(), "connection"),
        clients.driver.name(),
        counted(clients.threads.into(), "thread"),
        on_cores(clients.cpus.as_deref()),
    );
    if clients.spin {
        text.push_str(", spinning");
    }
    if !clients.stagger.is_zero() {
        text.push_str(&format!(", one every {}", duration_shown(clients.stagger)));
    }
    text
}

fn data(plan: &Plan, prediction: &Prediction) -> [String; 2] {
    let dataset = &plan.dataset;
    let key = match dataset.key_pattern() {
        KeyPattern::Uuid => "uuid",
        KeyPattern::Template(template) => template.source(),
    };
    let value = match dataset.fields() {
        [] => value(dataset.value_pattern()),
        [field] => format!("{{{}: {}}}", field.name, value(&field.value)),
        [field, others @ ..] => format!("{{{}: {}, … {} more}}", field.name, value(&field.value), others.len()),
    };
    let order = match dataset.order() {
        Order::Written => "",
        Order::Shuffled => ", shuffled",
    };
    let expiry = dataset
        .expiry()
        .map_or(String::new(), |expiry| format!(", each for {}", duration_shown(Duration::from_secs(expiry.seconds))));
    [
        format!(
            "{} × {}, {key} → {value}{expiry}{order}, seed {}",
            number_shown(dataset.clients().into()),
            counted(dataset.keys(), "key"),
            dataset.seed()
        ),
        match &plan.target.server {
            Server::Builtin(_) => format!("{} in all, none of them stored", counted(prediction.keys, "key")),
            Server::Remote(_) | Server::Spawned(_) => format!(
                "{} in all: about {} on the server, {} per key",
                counted(prediction.keys, "key"),
                size_shown(prediction.server_bytes),
                size_shown(prediction.bytes_per_key.round() as u64)
            ),
        },
    ]
}

fn value(pattern: &ValuePattern) -> String {
    match pattern {
        ValuePattern::Uuid => "uuid".to_owned(),
        ValuePattern::Template(template) => template.source().to_owned(),
        ValuePattern::Bytes { sizes, alphabet } if sizes.smallest() == sizes.largest() => {
            format!("{} {}", size_text(sizes.largest() as u64), alphabet.name())
        }
        ValuePattern::Bytes { sizes, alphabet } => format!(
            "{} to {} {}, {} on average",
            size_text(sizes.smallest() as u64),
            size_text(sizes.largest() as u64),
            alphabet.name(),
            size_shown(sizes.mean() as u64)
        ),
    }
}

fn phases(plan: &Plan, prediction: &Prediction, out: &mut dyn Write) -> io::Result<()> {
    let names = plan.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or(0);
    let loads: Vec<_> = plan
        .phases
        .iter()
        .zip(&prediction.phases)
        .map(|(phase, traffic)| load(phase, &plan.dataset, traffic))
        .collect();
    let widest = |column: usize| loads.iter().flatten().map(|load| load[column].chars().count()).max().unwrap_or(0);
    let (commands, pipelines, sent, received) = (widest(0), widest(1), widest(2), widest(3));
    for (at, (phase, load)) in plan.phases.iter().zip(&loads).enumerate() {
        let label = if at == 0 { "phases" } else { "" };
        write!(out, "  {label:<LABEL$}{:<names$}  ", phase.name)?;
        match load {
            Ok([command, pipeline, out_bytes, in_bytes]) => {
                let sizes = format!("{out_bytes:>sent$} out, {in_bytes:>received$} in");
                let sizes = if out_bytes.is_empty() { "as many bytes as the server takes" } else { &sizes };
                writeln!(out, "{command:<commands$}  {pipeline:<pipelines$}  {sizes}")?;
            }
            Err(nothing) => writeln!(out, "{nothing}")?,
        }
    }
    Ok(())
}

/// Command, pipeline, bytes sent and received; or the words for a phase that sends nothing.
fn load(phase: &Phase, dataset: &Dataset, traffic: &Option<PhaseTraffic>) -> Result<[String; 4], String> {
    let load = match phase.run {
        Run::Wait { duration } => return Err(format!("nothing is sent for {}", duration_shown(duration))),
        Run::Connect(churn) => return Err(self::churn(&churn)),
        Run::Write(load) | Run::Verify(load) | Run::Mix(load, _) => load,
    };
    let names = phase.run.commands(dataset).into_iter().map(|commands| {
        let batch = if load.batch > 1 { format!(" × {}", number_shown(load.batch.into())) } else { String::new() };
        let then = commands.then.map_or(String::new(), |then| format!(" + {}", then.name()));
        format!("{}{batch}{then}", commands.main.name())
    });
    let names: Vec<String> = names.collect();
    let command = match (&phase.run, &names[..]) {
        (Run::Mix(_, Mix { reads, pick }), [write, read]) => {
            format!("{} % {read}, else {write}, keys {}", reads * 100.0, pick.name())
        }
        _ => names.concat(),
    };
    let size = |bytes: fn(&PhaseTraffic) -> u64| traffic.as_ref().map_or(String::new(), |all| size_shown(bytes(all)));
    Ok([command, issued(&load), size(|all| all.sent), size(|all| all.received)])
}

/// Which connections come and go.
fn churn(churn: &Churn) -> String {
    let (times, at_once) = (number_shown(churn.times), number_shown(churn.concurrency.into()));
    let warmup = match churn.warmup {
        0 => String::new(),
        warmup => format!(" ({} to warm up)", number_shown(warmup)),
    };
    match (churn.sockets, churn.concurrency) {
        (Sockets::Fresh, 1) => format!("{times} × open, PING, close, one at a time{warmup}"),
        (Sockets::Fresh, _) => format!("{times} × open, PING, close, {at_once} at a time{warmup}"),
        (Sockets::Pooled, _) => format!("{times} × PING on a pool of {at_once}{warmup}"),
    }
}

/// How requests are issued.
fn issued(load: &Load) -> String {
    if let Some(close) = load.replies.close() {
        let replies = if matches!(load.replies, Replies::Discard(_)) { "no reply read" } else { "no reply waited for" };
        return match close {
            Close::AfterDrain => format!("{replies}, drained"),
            Close::AtOnce => format!("{replies}, closed at once"),
        };
    }
    let most = match load.pipeline {
        Pipeline::Window(1) => Some("one at a time".to_owned()),
        Pipeline::Window(depth) => Some(format!("pipeline {}", number_shown(depth.into()))),
        Pipeline::All => None,
    };
    let issued = match (load.rate, most) {
        (Some(Rate { per_second, arrivals }), most) => {
            let most = most.map_or(String::new(), |most| format!(", {most} per connection"));
            format!("{}, {}{most}, open loop", rate_shown(per_second), arrivals.name())
        }
        (None, Some(most)) => format!("{most}, closed loop"),
        (None, None) => "all due at once, open loop".to_owned(),
    };
    let issued = match load.keys {
        Some(keys) => format!("{} of each client, {issued}", counted(keys, "key")),
        None => issued,
    };
    match load.until {
        Until::Pass => issued,
        Until::After(duration) => format!("{issued}, for {}", duration_shown(duration)),
    }
}

fn limits(plan: &Plan) -> String {
    let mut texts = Vec::from_iter(limit_set(&plan.limits.run));
    for (name, set) in &plan.limits.phases {
        texts.extend(limit_set(set).map(|text| format!("{name}: {text}")));
    }
    if texts.is_empty() { "none: only keys left unsent or unread fail the run".into() } else { texts.join("; ") }
}

fn limit_set(set: &LimitSet) -> Option<String> {
    let LimitSet { timeouts, errors, lost, absent, mismatched, p50, p90, p99, p999, max } = set;
    let counts =
        [("timeouts", timeouts), ("errors", errors), ("lost", lost), ("absent", absent), ("mismatched", mismatched)];
    let latencies = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
    let counts = counts.iter().filter_map(|(name, limit)| limit.map(|most| format!("{name} {}", number_shown(most))));
    let latencies =
        latencies.iter().filter_map(|(name, limit)| limit.map(|most| format!("{name} {}", duration_shown(most))));
    let texts: Vec<_> = counts.chain(latencies).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn search(search: &SearchPlan) -> String {
    let SearchPlan { vary, from, to, trial, confirm, width_percent } = search;
    let trial = match trial {
        Some(duration) => format!("each phase of a trial runs {}", duration_shown(*duration)),
        None => "a trial is all of this once".to_owned(),
    };
    format!(
        "`keyswarm limit` varies {} from {} to {}; {trial}, {} per bound, width {width_percent} %",
        vary.name(),
        number_shown(*from),
        number_shown(*to),
        counted((*confirm).into(), "trial"),
    )
}

fn sockets(plan: &Plan, prediction: &Prediction) -> String {
    let room = match prediction.room.files {
        u64::MAX => "any number of".to_owned(),
        files => number_shown(files),
    };
    let (sockets, files) = (number_shown(prediction.sockets), number_shown(prediction.files));
    let mut text = format!("{sockets}, one of keyswarm's own; {files} of {room} fds");
    if let Some(ports) = prediction.room.ports.filter(|_| over_tcp(plan)) {
        text.push_str(&format!(", {sockets} of {} ports", number_shown(ports)));
    }
    if prediction.closed > 0 {
        text.push_str(&format!(", and {} more that open and close", number_shown(prediction.closed)));
    }
    text
}

fn longest(plan: &Plan, prediction: &Prediction) -> String {
    let timeouts = &plan.timeouts;
    let mut text = format!("{} + {} to connect", duration_shown(timeouts.connect), duration_shown(timeouts.setup));
    if !plan.clients.stagger.is_zero() {
        text.push_str(&format!(" ({} until the last client has)", duration_shown(prediction.longest_connect)));
    }
    text.push_str(&format!(
        ", {} per request, {} without a byte",
        duration_shown(timeouts.command),
        duration_shown(timeouts.silence)
    ));
    text
}

#[cfg(test)]
mod tests;
