//! What is bound to fail is said before it is tried, and tried all the same.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::dataset::{Dataset, Place};
use crate::plan::predict::{Room, files_needed, over_tcp, sockets_needed};
use crate::plan::{Plan, SearchPlan, Vary};
use crate::scenario::units::{number_shown, size_shown};
use crate::target::{self, Target};
use crate::wire::info::Info;

/// Keys that are written to learn what one takes, ...
const KEYS: u64 = 10_000;
/// ... fewer if values are so long that all of them would take more than this, in bytes.
const MOST_BYTES: u64 = 64 << 20;
const FEWEST: u64 = 100;
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(10);
/// Another seed than the scenario's: these keys are nobody's.
const OTHER_SEED: u64 = 0x7072_6566_6c69_6768;
/// A bucket of the server's table, in bytes.
const BUCKET: u64 = 8;
/// Memory of a connection in use, in bytes.
const PER_CONNECTION: u64 = 40_000;

/// The resource, the highest level that it leaves room for, and the numbers.
type Foreseen = (&'static str, Option<u64>, String);

/// What will bound the search, as far as it can be told without a trial.
pub async fn foresee(plan: &Plan, search: &SearchPlan, target: &Target) -> Vec<Foreseen> {
    let room = Room::of_this_process();
    let highest = |fits: &dyn Fn(&Plan) -> bool| highest(plan, search, fits);
    let config = &target.facts.config;
    let mut foreseen = Vec::new();
    foreseen.extend(memory(plan, search, target, room).await);
    let mut bounded =
        |what, level: Option<u64>, text: String| foreseen.extend(level.map(|level| (what, Some(level), text)));
    bounded(
        "fds",
        highest(&|plan| files_needed(plan) <= room.files),
        format!("this process may have {} file descriptors", number_shown(room.files)),
    );
    if let Some(ports) = room.ports.filter(|_| over_tcp(plan)) {
        bounded(
            "ports",
            highest(&|plan| sockets_needed(plan) <= ports),
            format!("{} ephemeral ports to one address", number_shown(ports)),
        );
    }
    if let Some(most) = config.maxclients {
        let text = format!("the server's maxclients is {}, and one connection is keyswarm's own", number_shown(most));
        bounded("maxclients", highest(&|plan| sockets_needed(plan) <= most), text);
    }
    if let (Vary::Burst, Some(backlog)) = (&search.vary, config.tcp_backlog) {
        let somaxconn = somaxconn().filter(|_| target.local_pid().is_some());
        let queue = somaxconn.map_or(backlog, |most| most.min(backlog)) + 1;
        let kernel = somaxconn.map(|most| format!(", net.core.somaxconn {}", number_shown(most))).unwrap_or_default();
        let text = format!(
            "a server that is busy elsewhere keeps {} waiting (tcp-backlog {}{kernel}, and one more)",
            number_shown(queue),
            number_shown(backlog)
        );
        bounded("accept queue", Some(queue).filter(|queue| *queue < search.to), text);
    }
    let (one, many) = search.vary.nouns();
    for (_, level, text) in &mut foreseen {
        text.push_str(&match level {
            Some(1) => format!(": room for 1 {one}"),
            Some(level) => format!(": room for {} {many}", number_shown(*level)),
            None => format!(": room for {} {many} and more", number_shown(search.to)),
        });
    }
    foreseen
}

/// The highest level of the search that fits, unless all do; 0 if none does.
fn highest(plan: &Plan, search: &SearchPlan, fits: &dyn Fn(&Plan) -> bool) -> Option<u64> {
    let fits = |level| fits(&plan.at(search, level));
    if fits(search.to) {
        return None;
    }
    // What does not fit goes on not to fit.
    let (mut low, mut high) = (search.from - 1, search.to);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

fn somaxconn() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

/// Where memory fills, by what some keys were measured to take.
async fn memory(plan: &Plan, search: &SearchPlan, target: &Target, room: Room) -> Option<Foreseen> {
    if search.vary == Vary::Burst || !plan.writes() {
        return None;
    }
    let before = used_memory(target).await?;
    let (keys, bytes) = measured(plan, target, before).await?;
    let per_key = bytes as f64 / keys as f64;
    let without_buckets = (bytes as f64 - (BUCKET * keys.next_power_of_two()) as f64).max(0.0) / keys as f64;
    let needed = |plan: &Plan| {
        let all = u64::from(plan.dataset.clients()) * plan.dataset.keys();
        let buckets = BUCKET * all.next_power_of_two();
        before + buckets + sockets_needed(plan) * PER_CONNECTION + (without_buckets * all as f64) as u64
    };
    let (most, whose) = match target.facts.config.maxmemory {
        Some(most @ 1..) => (most, "the server's maxmemory"),
        _ if target.local_pid().is_some() => (before + room.memory?, "this host's memory"),
        _ => return None,
    };
    let level = highest(plan, search, &|plan| needed(plan) <= most);
    let text = format!(
        "{} per key, measured on {} of them; {whose} is {}",
        size_shown(per_key.round() as u64),
        number_shown(keys),
        size_shown(most)
    );
    Some(("memory", level, text))
}

/// Writes some keys and removes them again. Returns how many, and the bytes that they took; `None` where somebody's keys could
/// be met, or the server does not play along.
async fn measured(plan: &Plan, target: &Target, before: u64) -> Option<(u64, u64)> {
    let dataset = &plan.dataset;
    let nobodys = target.spawned() || target.facts.dbsize == Some(0) || !dataset.keys_may_be_taken();
    if !nobodys {
        return None;
    }
    let longest = dataset.value_len(Place { client: 0, index: 0 }).max(1) as u64;
    let keys = (MOST_BYTES / longest).clamp(FEWEST, KEYS);
    let (key, value) = (dataset.key_pattern().clone(), dataset.value_pattern().clone());
    let sample = Dataset::new(dataset.seed() ^ OTHER_SEED, 1, keys, dataset.first(), key, value, dataset.order());
    let places = |from: u64, to: u64| (from..to).map(|index| Place { client: 0, index }).collect::<Vec<_>>();
    let written = target::fill(&target.control, &sample, places(0, keys), WITHIN).await;
    let after = used_memory(target).await;
    let (batches, removed) = mpsc::channel(1);
    let tell = async move {
        for from in (0..keys).step_by(200) {
            if batches.send(places(from, (from + 200).min(keys))).await.is_err() {
                return;
            }
        }
    };
    // What could not be removed is no more than a few of keyswarm's own keys.
    let (_, _) = tokio::join!(tell, target::unlink(&target.control, &sample, removed, WITHIN));
    written.ok()?;
    Some((keys, after?.checked_sub(before)?))
}

async fn used_memory(target: &Target) -> Option<u64> {
    let answer = target.control.call(&[b"INFO", b"memory"], WITHIN).await.ok()?;
    Info::parse(&answer.text()?).number("used_memory")
}
