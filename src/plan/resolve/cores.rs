//! Which cores the spawned server and the loader get.

use super::judge::Judge;
use crate::scenario::{Cpus, Key, Span};

/// What a `cpus` key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing: the affinity is inherited.
    Inherit,
    /// A core that the other side does not use.
    Auto,
    /// These.
    These(Vec<usize>),
}

/// Reads a `cpus` key against the cores that are `allowed` (empty: unknown, then anything goes).
pub fn wish(key: &Key<Cpus>, allowed: &[usize], judge: &mut Judge<'_>) -> Wish {
    match key.written().map(|written| (&written.value, written.span)) {
        None => Wish::Inherit,
        Some((Cpus::Auto, _)) => Wish::Auto,
        Some((Cpus::List(list), span)) => {
            if list.is_empty() {
                judge.fault(span, "no core at all; leave `cpus` away to use any");
            }
            let mut cores = Vec::with_capacity(list.len());
            for core in list {
                match usize::try_from(core.value) {
                    Ok(number) if cores.contains(&number) => judge.fault(core.span, "this core is named twice"),
                    Ok(number) if allowed.is_empty() || allowed.contains(&number) => cores.push(number),
                    _ => missing(core.span, allowed, judge),
                }
            }
            Wish::These(cores)
        }
    }
}

fn missing(span: Span, allowed: &[usize], judge: &mut Judge<'_>) {
    judge.fault(span, format!("no such core here; there are {}", ranges(allowed)));
}

/// `0-3, 8`
fn ranges(cores: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match last - first {
        0 => format!("{first}"),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Deals cores to a spawned server (`None`: the server is not ours) and to `threads` loading threads, so that the two
/// keep apart where "auto" leaves the choice. `None` inherits.
pub fn deal(
    server: Option<Wish>,
    loader: Wish,
    threads: u32,
    allowed: &[usize],
    judge: &mut Judge<'_>,
) -> (Option<Vec<usize>>, Option<Vec<usize>>) {
    let listed = |wish: &Wish| match wish {
        Wish::These(cores) => cores.clone(),
        Wish::Inherit | Wish::Auto => Vec::new(),
    };
    let free_of = |others: &[usize]| allowed.iter().copied().filter(|core| !others.contains(core)).collect::<Vec<_>>();
    let Some(server) = server else {
        // A server elsewhere shares no core with the loader, so there is nothing to keep apart.
        let cores = listed(&loader);
        return (None, (!cores.is_empty()).then_some(cores));
    };
    let automatic = server == Wish::Auto || loader == Wish::Auto;
    if automatic && allowed.len() < 2 {
        judge.advise("this machine allows one core, so the server and the loader share it: their figures are mixed");
        let keep = |wish| Some(listed(&wish)).filter(|cores| !cores.is_empty());
        return (keep(server), keep(loader));
    }
    let for_server = match server {
        Wish::Inherit => Vec::new(),
        Wish::Auto => free_of(&listed(&loader)).into_iter().take(1).collect(),
        Wish::These(cores) => cores,
    };
    let for_loader: Vec<_> = match loader {
        Wish::Inherit => Vec::new(),
        // Without a core of its own the server may run anywhere; the first one is left to it.
        Wish::Auto if for_server.is_empty() => free_of(&allowed[..1]).into_iter().take(threads as usize).collect(),
        Wish::Auto => free_of(&for_server).into_iter().take(threads as usize).collect(),
        Wish::These(cores) => cores,
    };
    if for_server.iter().any(|core| for_loader.contains(core)) {
        judge.advise("the server and the loader share a core: the loader's work slows the server that it measures");
    } else if automatic && (for_server.is_empty() || for_loader.is_empty()) {
        judge.advise("no core is left for \"auto\", or the other side is not pinned: server and loader may share one");
    }
    (Some(for_server).filter(|cores| !cores.is_empty()), Some(for_loader).filter(|cores| !cores.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Faults;

    fn dealt(server: Option<Wish>, loader: Wish, threads: u32, allowed: &[usize]) -> String {
        let mut faults = Faults::new("x");
        let mut judge = Judge::new(&mut faults, Vec::new());
        let (server, loader) = deal(server, loader, threads, allowed, &mut judge);
        format!("{server:?} {loader:?} {}", judge.finish().expect("no faults").len())
    }

    #[test]
    fn auto_keeps_server_and_loader_apart() {
        let (auto, these) = (|| Wish::Auto, |cores: &[usize]| Wish::These(cores.to_vec()));
        assert_eq!(dealt(Some(auto()), auto(), 1, &[0, 1]), "Some([0]) Some([1]) 0");
        assert_eq!(dealt(Some(auto()), auto(), 2, &[2, 3, 5, 7]), "Some([2]) Some([3, 5]) 0");
        assert_eq!(dealt(Some(auto()), these(&[0]), 1, &[0, 1]), "Some([1]) Some([0]) 0");
        assert_eq!(dealt(Some(these(&[1])), auto(), 1, &[0, 1]), "Some([1]) Some([0]) 0");
        assert_eq!(dealt(Some(these(&[1])), these(&[1]), 1, &[0, 1]), "Some([1]) Some([1]) 1");
        assert_eq!(dealt(Some(auto()), auto(), 1, &[4]), "None None 1");
        assert_eq!(dealt(Some(Wish::Inherit), Wish::Inherit, 1, &[4]), "None None 0");
        assert_eq!(dealt(None, auto(), 1, &[0, 1]), "None None 0");
        assert_eq!(dealt(None, these(&[1]), 1, &[0, 1]), "None Some([1]) 0");
    }

    #[test]
    fn cores_are_named_in_runs() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10, 11");
    }
}
