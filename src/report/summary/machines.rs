//! The server, what is left in it, and keyswarm itself.

use super::super::format::{bytes, count, percent, rate};
use super::super::result::{Document, Server};
use super::super::wording::{evidence, plural};
use super::page::Page;

/// The server and keyswarm itself.
pub fn machines(document: &Document, page: &mut Page) {
    let server = &document.server;
    let mut items: Vec<String> = server_name(server).into_iter().collect();
    // One item, so that a narrow terminal does not leave one of them alone on a line.
    let load: Vec<String> =
        server.cpu_percent_max.map(cpu).into_iter().chain(server.memory_bytes_max.map(bytes)).collect();
    items.extend((!load.is_empty()).then(|| load.join("   ")));
    for (number, what) in [(server.evicted, "evicted"), (server.rejected_connections, "rejected")] {
        items.extend(number.filter(|&number| number > 0).map(|number| format!("{} {what}", count(number))));
    }
    page.items("server", items);
    page.items("left", left(server));
    let loader = &document.generator;
    let own = loader.cpu_percent_max.map(cpu).into_iter().chain(loader.rss_bytes_max.map(bytes));
    let host = loader.host_cpu_percent_max.zip(loader.host_cores);
    let host =
        host.map(|(busy, cores)| format!("host cpu max {} of {}", percent(busy), plural(cores, "core", "cores")));
    let bound = loader.bound.map(|bound| if bound { "THE BOTTLENECK" } else { "not the bottleneck" });
    let ceiling = loader.ceiling.map(|ceiling| {
        let of = loader.ceilings.iter().find(|known| known.requests_per_second == ceiling);
        let phase = of.map_or_else(String::new, |known| format!(" in {}", known.phase));
        format!("its own ceiling here{phase}: {}", rate(ceiling))
    });
    let verdict = match (bound, ceiling) {
        (Some(bound), Some(ceiling)) => Some(format!("{bound} ({ceiling})")),
        (bound, ceiling) => ceiling.or(bound.map(str::to_owned)),
    };
    page.items("loader", own.chain(host).chain(verdict));
    if let Some(found) = &document.bottleneck {
        page.paragraph("bottleneck", &format!("{}: {}", evidence::title(&found.cause), found.evidence.join("; ")));
    }
}

/// Which server it was, and where; `None` if there was none.
fn server_name(server: &Server) -> Option<String> {
    let mut words = vec![server.name.as_deref()?];
    words.extend(server.version.as_deref());
    words.extend(["at", &server.address]);
    let db = if server.db == 0 { String::new() } else { format!(", db {}", server.db) };
    let spawned = if server.spawned { " (spawned)" } else { "" };
    Some(format!("{}{db}{spawned}", words.join(" ")))
}

/// What the runs leave behind on a server of somebody's own.
fn left(server: &Server) -> Vec<String> {
    let more = match (server.keys_before, server.keys_after) {
        (Some(before), Some(after)) if !server.spawned => after.saturating_sub(before),
        _ => 0,
    };
    let stay = more.saturating_sub(server.keys_removed.unwrap_or(0));
    let mut items = Vec::new();
    if stay > 0 {
        items.push(format!("{} in db {}", plural(stay, "key", "keys"), server.db));
    } else if server.keys_removed.is_some() {
        items.push(format!("nothing in db {}", server.db));
    }
    items.extend(server.keys_removed.map(|keys| format!("clean-up removed {}", plural(keys, "key", "keys"))));
    items
}

fn cpu(highest: f64) -> String {
    format!("cpu max {} of 1 core", percent(highest))
}
