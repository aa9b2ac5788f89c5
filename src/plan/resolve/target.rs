//! `[target]`: which server, and as whom.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Builtin, Cleanup, Endpoint, Flush, Protocol, Secret, Server, Spawn, Tls};
use super::cores::{self, Wish};
use super::judge::Judge;
use super::url;
use crate::dataset::Dataset;
use crate::scenario::units::percent_text;
use crate::scenario::{self, Key, Target, Text, Written};

/// Bytes of `maxmemory` below which no Redis starts to be useful: it needs about 1 MB for itself.
const LEAST_MEMORY: u64 = 2_000_000;

/// What stands in a resolved scenario in place of a password.
const REDACTED: &str = "***";

/// Settings that keyswarm makes itself, with what to write instead. A password among them would also show in the process
/// list.
const OURS: [(&str, &str); 17] = [
    ("port", "keyswarm chooses a free port"),
    ("tls-port", "keyswarm chooses a free port"),
    ("bind", "keyswarm binds the server to this host"),
    ("dir", "keyswarm gives the server a private folder"),
    ("unixsocket", "keyswarm chooses the way to the server"),
    ("daemonize", "keyswarm starts and stops the server"),
    ("supervised", "keyswarm starts and stops the server"),
    ("pidfile", "keyswarm starts and stops the server"),
    ("requirepass", "write `password = \"…\"` in `spawn`"),
    ("masterauth", "a password in `args` would show in the process list"),
    ("primaryauth", "a password in `args` would show in the process list"),
    ("tls-key-file-pass", "a password in `args` would show in the process list"),
    ("tls-client-key-file-pass", "a password in `args` would show in the process list"),
    ("user", "a password in `args` would show in the process list"),
    ("maxmemory", "write `maxmemory = \"…\"` in `spawn`"),
    ("maxclients", "write `maxclients = …` in `spawn`"),
    ("tcp-backlog", "write `tcp_backlog = …` in `spawn`"),
];

/// The word in place of a URL that names the built-in responder.
pub const BUILTIN: &str = "builtin";

/// The server, if it can be told, and the cores that it should run on. The built-in responder answers for `dataset`.
pub fn server(
    target: &Target,
    folder: &Path,
    allowed: &[usize],
    dataset: Option<&Dataset>,
    judge: &mut Judge<'_>,
) -> (Option<Server>, Wish) {
    let Target { span, url, spawn, tls, protocol, flush: _, cleanup: _ } = target;
    let protocol = match protocol.written() {
        None => Protocol::Resp2,
        Some(Written { value: 2, .. }) => Protocol::Resp2,
        Some(Written { value: 3, .. }) => Protocol::Resp3,
        Some(written) => {
            judge.fault(written.span, "the protocol is 2 (RESP2) or 3 (RESP3)");
            Protocol::Resp2
        }
    };
    if let (Some(url), Some(spawn)) = (url.span(), spawn.span()) {
        const BOTH: &str = "`url` and `spawn` both name a server; leave one of them away";
        // Of two places, the later text (a flag, if there is one) is the one to mend.
        judge.fault(url.max(spawn), BOTH);
    }
    if url.is_absent() && spawn.is_absent() {
        let what =
            "no server to load: write `url = \"redis://HOST:PORT\"` or `spawn = {}` in [target], or use --target";
        judge.fault_near(*span, what);
    }
    let builtin = is_builtin(target);
    let endpoint = url.written().filter(|_| !builtin).and_then(|url| endpoint(url, protocol, judge));
    let secured = endpoint.as_ref().is_some_and(|endpoint| endpoint.tls.is_some());
    let tls = match tls.written() {
        None => None,
        Some(written) if url.written().is_none() || builtin || endpoint.is_some() && !secured => {
            judge.fault(written.span, "`tls` has no effect without a rediss:// URL");
            None
        }
        Some(written) => Some(self::tls(&written.value, folder, judge)),
    };
    if let Some(written) = spawn.written() {
        let (spawn, wish) = self::spawn(&written.value, protocol, allowed, judge);
        return (Some(Server::Spawned(spawn)), wish);
    }
    if builtin {
        let known = dataset.map(|dataset| Arc::new(dataset.clone()));
        return (
            known.map(|dataset| Server::Builtin(Builtin { dataset, threads: 1, cpus: None, protocol })),
            Wish::Auto,
        );
    }
    let endpoint = endpoint.map(|endpoint| Endpoint { tls: endpoint.tls.map(|none| tls.unwrap_or(none)), ..endpoint });
    (endpoint.map(Server::Remote), Wish::Inherit)
}

fn is_builtin(target: &Target) -> bool {
    target.url.value().is_some_and(|url| url.value == BUILTIN)
}

/// What is done to the database before and after a case, which may be the `only` one.
pub fn before_and_after(target: &Target, only: bool, judge: &mut Judge<'_>) -> (Flush, Cleanup) {
    let flush_words = [("never", Flush::Never), ("before", Flush::Before)];
    let cleanup_words = [("keep", Cleanup::Keep), ("unlink", Cleanup::Unlink)];
    let flush = judge.word(&target.flush, "`flush`", Flush::Never, &flush_words, &[]);
    let cleanup = judge.word(&target.cleanup, "`cleanup`", Cleanup::Keep, &cleanup_words, &[]);
    if (flush, cleanup) != (Flush::Never, Cleanup::Keep) {
        if target.spawn.written().is_some() {
            // A case may begin on what the one before has left.
            if only || cleanup != Cleanup::Keep {
                judge.advise(
                    "a spawned server starts empty and ends with the run: `flush` and `cleanup` matter to a `url` only",
                );
            }
        } else if is_builtin(target) {
            judge.advise("the built-in responder stores nothing: `flush` and `cleanup` have nothing to remove");
        }
    }
    (flush, cleanup)
}

fn endpoint(url: &Written<Text>, protocol: Protocol, judge: &mut Judge<'_>) -> Option<Endpoint> {
    let text = &url.value;
    match url::parse(&text.value) {
        Ok(endpoint) => {
            let redacted = endpoint.password.as_ref().is_some_and(|secret| secret.reveal() == REDACTED);
            if redacted && kept_of_url(text) == Kept::Nothing {
                let at = url::password_at(&text.value).map_or(url.span, |range| text.part(url.span, range));
                judge.fault(at, "the password was redacted here; give it with --target or ${VAR}");
            }
            Some(Endpoint { protocol, ..endpoint })
        }
        Err(what) => {
            judge.fault(url.span, what);
            None
        }
    }
}

/// What may be written of a password in the resolved scenario, which is stored: the names of the variables that it came
/// from, so that the stored scenario can be run again. TOML strings, their variables not filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Nothing: some of it is written in the scenario.
    #[default]
    Nothing,
    /// The password, as in `${REDIS_PASSWORD}`.
    Password(String),
    /// All of the URL, as in `${REDIS_URL}`: the password is but a part of the variable.
    Url(String),
}

/// What may be written of the target's password.
pub fn kept(target: &Target) -> Kept {
    match (target.spawn.value().map(|spawn| spawn.password.value()), target.url.value()) {
        (Some(password), _) => {
            let written = password.and_then(|text| text.as_variables(0..text.value.len()));
            written.map_or(Kept::Nothing, Kept::Password)
        }
        (None, Some(url)) => kept_of_url(url),
        (None, None) => Kept::Nothing,
    }
}

fn kept_of_url(url: &Text) -> Kept {
    let Some(password) = url::password_at(&url.value).filter(|range| !range.is_empty()) else { return Kept::Nothing };
    let all = || url.as_variables(0..url.value.len()).map(Kept::Url);
    url.as_variables(password).map(Kept::Password).or_else(all).unwrap_or_default()
}

fn tls(tls: &scenario::Tls, folder: &Path, judge: &mut Judge<'_>) -> Tls {
    let scenario::Tls { ca, cert, key, server_name, insecure } = tls;
    let insecure = insecure.value().copied().unwrap_or(false);
    if let (true, Some(span)) = (insecure, ca.span()) {
        judge.fault(span, "`ca` has no effect with `insecure = true`, which accepts any certificate");
    }
    for (one, other, what) in [(cert, key, "`cert` needs its `key`"), (key, cert, "`key` needs its `cert`")] {
        if let (Some(span), true) = (one.span(), other.is_absent()) {
            judge.fault(span, what);
        }
    }
    if let Some(written) = server_name.written().filter(|name| name.value.value.is_empty()) {
        judge.fault(written.span, "an empty name cannot be verified; leave it away to use the URL's host");
    }
    Tls {
        ca: file(ca, folder, judge),
        identity: file(cert, folder, judge).zip(file(key, folder, judge)),
        server_name: server_name.value().map(|text| text.value.clone()),
        insecure,
    }
}

/// A file that must be there, its path taken from the scenario's folder and made absolute, so that the resolved scenario
/// means the same wherever it is stored.
fn file(key: &Key<Text>, folder: &Path, judge: &mut Judge<'_>) -> Option<PathBuf> {
    let written = key.written()?;
    let path = folder.join(&written.value.value);
    if !path.is_file() {
        judge.fault(written.span, "there is no such file (relative paths start at the scenario's folder)");
    }
    Some(std::path::absolute(&path).unwrap_or(path))
}

fn spawn(spawn: &scenario::Spawn, protocol: Protocol, allowed: &[usize], judge: &mut Judge<'_>) -> (Spawn, Wish) {
    let scenario::Spawn { program, cpus, cpu_quota, maxmemory, maxclients, tcp_backlog, password, args } = spawn;
    for (key, what) in [
        (program, "name a server, such as \"redis-server\""),
        (password, "an empty password protects nothing; leave it away"),
    ] {
        if let Some(written) = key.written().filter(|written| written.value.value.is_empty()) {
            judge.fault(written.span, what);
        }
    }
    if let Some(written) = maxmemory.written().filter(|written| written.value < LEAST_MEMORY) {
        judge.fault(written.span, "a server alone needs about 1 MB; give it 2MB at least");
    }
    let args = args.value().map(Vec::as_slice).unwrap_or_default();
    judge_args(args, judge);
    let resolved = Spawn {
        program: program.value().map_or_else(|| "redis-server".to_owned(), |text| text.value.clone()),
        cpus: None,
        cpu_quota: quota(cpu_quota, allowed.len(), judge),
        maxmemory: maxmemory.value().copied(),
        maxclients: judge.optional(maxclients, 1..=1_000_000u32),
        tcp_backlog: judge.optional(tcp_backlog, 1..=65_535u32),
        password: password.value().map(|text| Secret::new(&text.value)),
        args: args.iter().map(|arg| arg.value.value.clone()).collect(),
        protocol,
    };
    (resolved, cores::wish(cpus, allowed, judge))
}

/// A quota that the kernel takes, and that has an effect on a machine of so many cores (0: not known).
fn quota(key: &Key<u64>, cores: usize, judge: &mut Judge<'_>) -> Option<u32> {
    /// One millisecond in each period of a hundred: the kernel takes no less.
    const LEAST: u64 = 10;
    let written = key.written()?;
    let most = 1000 * if cores == 0 { 1024 } else { cores as u64 };
    if written.value < LEAST {
        judge.fault(written.span, "a server needs some CPU; give it 1% at least");
    } else if written.value > most {
        let most = percent_text(most);
        judge.fault(written.span, format!("no more than this machine has: {most} is all of its cores; leave it away"));
    } else if written.value < 1000 {
        let (runs, halts) = (written.value as f64 / 10.0, (1000 - written.value) as f64 / 10.0);
        judge.advise(format!(
            "`cpu_quota = \"{}\"` lets a busy server run for {runs} ms and then halts it for up to {halts} ms, ten times a \
             second: latencies show these halts. For a slow server without them, share its core with another process",
            percent_text(written.value)
        ));
    }
    u32::try_from(written.value).ok()
}

/// The arguments must be options that keyswarm leaves alone. Where one is not, nothing but names of options is shown: what
/// else stands there may be a password.
fn judge_args(args: &[Written<Text>], judge: &mut Judge<'_>) {
    let mut refused = false;
    if let Some(first) = args.first().filter(|first| !first.value.value.starts_with("--")) {
        judge.fault(first.span, "the first argument is an option, such as \"--appendonly\"; its value follows it");
        refused = true;
    }
    for arg in args {
        let name = arg.value.value.strip_prefix("--").and_then(|name| name.split_whitespace().next());
        let name = name.map(str::to_ascii_lowercase);
        if let Some((_, instead)) = OURS.iter().find(|(ours, _)| Some(*ours) == name.as_deref()) {
            judge.fault(arg.span, format!("not here: {instead}"));
            refused = true;
        }
    }
    let is_option = |text: &str| {
        text.strip_prefix("--").is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-'))
    };
    if refused {
        let others = args.iter().filter(|arg| !is_option(&arg.value.value));
        judge.conceal(&others.map(|arg| arg.span).collect::<Vec<_>>());
    }
}
