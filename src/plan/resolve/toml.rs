//! A plan written as a scenario again, every default spelled out. Every field is taken apart by name, so that a new one
//! cannot be forgotten here.

use std::time::Duration;

use toml_edit::Value;

use super::super::{
    Churn, Cleanup, Clients, Flush, LimitSet, Limits, Load, Mix, Phase, Pipeline, Plan, Protocol, Rate, Run,
    SearchPlan, Secret, Server, Sockets, Spawn, TargetPlan, Timeouts, Tls, Until, Vary,
};
use super::target::{BUILTIN, Kept};
use super::url;
use crate::dataset::{Dataset, Expiry, KeyPattern, ValuePattern};
use crate::scenario::escaped;
use crate::scenario::units::{duration_text, percent_text, rate_text, size_text};

/// What becomes of passwords.
pub enum Secrets {
    /// The variables that they came from, or `***`.
    Hidden(Kept),
    /// As they are; for comparing only.
    Shown,
}

/// The plan as TOML.
pub fn written(plan: &Plan, secrets: &Secrets) -> String {
    let Plan {
        name,
        description,
        // A label is no key of the plan itself.
        case: _,
        repeat,
        between,
        target,
        clients,
        timeouts,
        dataset,
        phases,
        limits,
        sample_interval,
        search,
        advice: _,
        resolved: _,
    } = plan;
    let mut out = String::new();
    key(&mut out, "name", text(name));
    if let Some(description) = description {
        key(&mut out, "description", text(description));
    }
    key(&mut out, "seed", dataset.seed());
    key(&mut out, "repeat", repeat);
    key(&mut out, "between", text(between.name()));
    self::target(&mut out, target, secrets);
    self::clients(&mut out, clients);
    self::timeouts(&mut out, timeouts);
    self::dataset(&mut out, dataset);
    phases.iter().for_each(|phase| self::phase(&mut out, phase));
    self::limits(&mut out, limits);
    out.push_str("\n[sample]\n");
    key(&mut out, "interval", duration(*sample_interval));
    if let Some(search) = search {
        self::search(&mut out, search);
    }
    out
}

fn key(out: &mut String, name: &str, value: impl std::fmt::Display) {
    out.push_str(&format!("{name} = {value}\n"));
}

/// A string of ours: a `${` in it is no variable.
fn text(text: &str) -> String {
    Value::from(escaped(text)).to_string()
}

fn duration(duration: Duration) -> String {
    text(&duration_text(duration))
}

fn size(bytes: u64) -> String {
    text(&size_text(bytes))
}

/// `{ a = 1, b = 2 }`
fn inline(fields: &[(&str, Option<String>)]) -> String {
    let fields = fields.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} = {value}")));
    let fields = fields.collect::<Vec<_>>().join(", ");
    if fields.is_empty() { "{}".into() } else { format!("{{ {fields} }}") }
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn target(out: &mut String, target: &TargetPlan, secrets: &Secrets) {
    let TargetPlan { server, flush, cleanup } = target;
    out.push_str("\n[target]\n");
    let protocol = match server {
        Server::Remote(endpoint) => {
            let password = |secret: &Secret| match secrets {
                Secrets::Hidden(Kept::Password(variables)) => variables.clone(),
                Secrets::Hidden(_) => secret.to_string(),
                Secrets::Shown => url::encoded(secret.reveal()),
            };
            let url = match secrets {
                Secrets::Hidden(Kept::Url(variables)) => variables.clone(),
                // All else that could look like a variable is %-encoded in a URL.
                _ => url::text(endpoint, password),
            };
            key(out, "url", Value::from(url));
            if let Some(tls) = &endpoint.tls {
                key(out, "tls", self::tls(tls));
            }
            endpoint.protocol
        }
        Server::Spawned(spawn) => {
            key(out, "spawn", self::spawn(spawn, secrets));
            spawn.protocol
        }
        Server::Builtin(builtin) => {
            key(out, "url", text(BUILTIN));
            builtin.protocol
        }
    };
    key(
        out,
        "protocol",
        match protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        },
    );
    key(
        out,
        "flush",
        text(match flush {
            Flush::Never => "never",
            Flush::Before => "before",
        }),
    );
    key(
        out,
        "cleanup",
        text(match cleanup {
            Cleanup::Keep => "keep",
            Cleanup::Unlink => "unlink",
        }),
    );
}

fn tls(tls: &Tls) -> String {
    let Tls { ca, identity, server_name, insecure } = tls;
    let path = |path: &std::path::PathBuf| text(&path.to_string_lossy());
    inline(&[
        ("ca", ca.as_ref().map(path)),
        ("cert", identity.as_ref().map(|(cert, _)| path(cert))),
        ("key", identity.as_ref().map(|(_, key)| path(key))),
        ("server_name", server_name.as_deref().map(text)),
        ("insecure", Some(insecure.to_string())),
    ])
}

fn spawn(spawn: &Spawn, secrets: &Secrets) -> String {
    let Spawn { program, cpus, cpu_quota, maxmemory, maxclients, tcp_backlog, password, args, protocol: _ } = spawn;
    inline(&[
        ("program", Some(text(program))),
        ("cpus", cpus.as_ref().map(|cpus| array(cpus.iter().map(usize::to_string)))),
        ("cpu_quota", cpu_quota.map(|quota| text(&percent_text(quota.into())))),
        ("maxmemory", maxmemory.map(size)),
        ("maxclients", maxclients.map(|number| number.to_string())),
        ("tcp_backlog", tcp_backlog.map(|number| number.to_string())),
        (
            "password",
            password.as_ref().map(|secret| match secrets {
                Secrets::Hidden(Kept::Password(variables)) => Value::from(variables).to_string(),
                Secrets::Hidden(_) => text(&secret.to_string()),
                Secrets::Shown => text(secret.reveal()),
            }),
        ),
        ("args", Some(array(args.iter().map(|arg| text(arg))))),
    ])
}

fn clients(out: &mut String, clients: &Clients) {
    let Clients { count, connections, driver, stagger, threads, cpus, spin, opening: _ } = clients;
    out.push_str("\n[clients]\n");
    key(out, "count", count);
    key(out, "connections", connections);
    key(out, "driver", text(driver.name()));
    key(out, "stagger", duration(*stagger));
    key(out, "threads", threads);
    if let Some(cpus) = cpus {
        key(out, "cpus", array(cpus.iter().map(usize::to_string)));
    }
    key(out, "spin", spin);
}

fn timeouts(out: &mut String, timeouts: &Timeouts) {
    let Timeouts { connect, setup, command, silence } = timeouts;
    out.push_str("\n[timeouts]\n");
    for (name, value) in [("connect", connect), ("setup", setup), ("command", command), ("silence", silence)] {
        key(out, name, duration(*value));
    }
}

fn dataset(out: &mut String, dataset: &Dataset) {
    out.push_str("\n[dataset]\n");
    key(out, "keys", dataset.keys());
    key(
        out,
        "key",
        text(match dataset.key_pattern() {
            KeyPattern::Uuid => "uuid",
            KeyPattern::Template(template) => template.source(),
        }),
    );
    key(out, "first", dataset.first());
    if dataset.is_hash() {
        let names = dataset.fields().iter().map(|field| toml_edit::Key::new(&field.name).display_repr().into_owned());
        let names: Vec<String> = names.collect();
        let values = dataset.fields().iter().map(|field| Some(value(&field.value)));
        key(out, "fields", inline(&names.iter().map(String::as_str).zip(values).collect::<Vec<_>>()));
    } else {
        key(out, "value", value(dataset.value_pattern()));
    }
    if let Some(Expiry { seconds, as_option }) = dataset.expiry() {
        key(out, "expire", duration(Duration::from_secs(seconds)));
        // As an option only where nothing else was said, or a batch could not have it.
        if !as_option {
            key(out, "expire_as", text("command"));
        }
    }
    key(out, "order", text(dataset.order().name()));
}

fn value(pattern: &ValuePattern) -> String {
    match pattern {
        ValuePattern::Uuid => text("uuid"),
        ValuePattern::Template(template) => text(template.source()),
        ValuePattern::Bytes { sizes, alphabet } => {
            let pairs = sizes.weights();
            let alphabet = ("alphabet", Some(text(alphabet.name())));
            match pairs[..] {
                [(bytes, 1)] => inline(&[("random", Some(size(bytes as u64))), alphabet]),
                _ => {
                    let pairs = pairs.iter().map(|(bytes, weight)| format!("[{}, {weight}]", size(*bytes as u64)));
                    inline(&[("sizes", Some(array(pairs))), alphabet])
                }
            }
        }
    }
}

fn phase(out: &mut String, phase: &Phase) {
    let Phase { name, run } = phase;
    out.push_str("\n[[phase]]\n");
    key(out, "name", text(name));
    key(out, "run", text(run.name()));
    match run {
        Run::Write(load) | Run::Verify(load) => self::load(out, load),
        Run::Mix(load, Mix { reads, pick }) => {
            key(out, "reads", Value::from(*reads));
            key(out, "pick", text(pick.name()));
            self::load(out, load);
        }
        Run::Connect(churn) => self::churn(out, churn),
        Run::Wait { duration } => key(out, "duration", self::duration(*duration)),
    }
}

fn churn(out: &mut String, churn: &Churn) {
    let Churn { times, warmup, concurrency, sockets } = churn;
    key(out, "times", times);
    key(out, "warmup", warmup);
    key(out, "concurrency", concurrency);
    key(out, "pool", *sockets == Sockets::Pooled);
}

fn load(out: &mut String, load: &Load) {
    let Load { keys, pipeline, rate, until, batch, replies } = load;
    if let Some(keys) = keys {
        key(out, "keys", keys);
    }
    match (pipeline, replies.close()) {
        (Pipeline::Window(depth), _) => key(out, "pipeline", depth),
        (Pipeline::All, None) => key(out, "pipeline", text("all")),
        // Nothing is waited for, so there is no pipeline to speak of.
        (Pipeline::All, Some(_)) => {}
    }
    key(out, "batch", batch);
    key(out, "replies", text(replies.name()));
    if let Some(close) = replies.close() {
        key(out, "close", text(close.name()));
    }
    if let Some(Rate { per_second, arrivals }) = rate {
        key(out, "rate", text(&rate_text(*per_second)));
        key(out, "arrivals", text(arrivals.name()));
    }
    match until {
        Until::Pass => {}
        Until::After(duration) => key(out, "duration", self::duration(*duration)),
    }
}

fn limits(out: &mut String, limits: &Limits) {
    let Limits { run, phases } = limits;
    out.push_str("\n[limits]\n");
    limit_set(out, run);
    for (name, set) in phases {
        // A name may hold a dot, or anything else that a bare key may not.
        out.push_str(&format!("\n[limits.{}]\n", toml_edit::Key::new(name).display_repr()));
        limit_set(out, set);
    }
}

fn search(out: &mut String, search: &SearchPlan) {
    let SearchPlan { vary, from, to, trial, confirm, width_percent } = search;
    let level = |level: &u64| match vary {
        Vary::Rate { .. } => text(&rate_text(*level as f64)),
        _ => level.to_string(),
    };
    out.push_str("\n[search]\n");
    key(out, "vary", text(&vary.name()));
    key(out, "from", level(from));
    key(out, "to", level(to));
    if let Some(trial) = trial {
        key(out, "trial", duration(*trial));
    }
    key(out, "confirm", confirm);
    key(out, "width", text(&format!("{width_percent}%")));
}

fn limit_set(out: &mut String, set: &LimitSet) {
    let LimitSet { timeouts, errors, lost, absent, mismatched, p50, p90, p99, p999, max } = set;
    let counts =
        [("timeouts", timeouts), ("errors", errors), ("lost", lost), ("absent", absent), ("mismatched", mismatched)];
    for (name, limit) in counts {
        if let Some(limit) = limit {
            key(out, name, limit);
        }
    }
    for (name, limit) in [("p50", p50), ("p90", p90), ("p99", p99), ("p999", p999), ("max", max)] {
        if let Some(limit) = limit {
            key(out, name, duration(*limit));
        }
    }
}
