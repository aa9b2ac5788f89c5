//! What sets runs beside each other: the server under each of them, and the repeats of a case against those of the first.

use super::finite;
use crate::report::result::{Comparison, Phase, PhaseServer, Run, RunServer, Spread};
use crate::verdict::{ConnectionCounts, Footprint, PhaseOutcome, RunOutcome, ServerCounters};

/// The server in one run.
pub fn run_server(run: &RunOutcome) -> RunServer {
    let keys = |counters: &Option<ServerCounters>| counters.as_ref().and_then(|counters| counters.dbsize);
    let loads = || run.phases.iter().filter(|phase| phase.loads());
    RunServer {
        name: run.served_by.name.clone(),
        version: run.served_by.version.clone(),
        address: run.served_by.address.clone(),
        keys_before: keys(&run.server_before),
        keys_after: keys(&run.server_after),
        cpu_percent: busy(loads()).map(finite),
        memory_bytes: loads().filter_map(|phase| phase.footprint.memory_bytes).max(),
        bytes_per_key: run.bytes_per_key().map(finite),
    }
}

/// Percent of a core over several phases; `None` if it is unknown for any of them.
fn busy<'a>(phases: impl Iterator<Item = &'a PhaseOutcome>) -> Option<f64> {
    let (mut cpu, mut wall) = (0.0, 0.0);
    for phase in phases {
        cpu += phase.footprint.cpu_percent? * phase.seconds;
        wall += phase.seconds;
    }
    (wall > 0.0).then_some(cpu / wall)
}

/// The server in one phase.
pub fn phase_server(phase: &PhaseOutcome) -> PhaseServer {
    let Footprint { cpu_percent, memory_bytes, keys } = phase.footprint;
    let ConnectionCounts { connections_received, auth_calls, hello_calls } = phase.evidence;
    let cpu_percent = cpu_percent.map(finite);
    PhaseServer { cpu_percent, memory_bytes, keys, connections_received, auth_calls, hello_calls }
}

/// The repeats of each case, phase by phase, in the order of the runs. One run has nothing to be compared with.
pub fn compare(runs: &[Run]) -> Vec<Comparison> {
    let (Some(first), true) = (runs.first(), runs.len() > 1) else { return Vec::new() };
    let mut rows: Vec<Comparison> = Vec::new();
    for run in runs {
        for phase in run.phases.iter().filter(|phase| phase.pipeline.is_some()) {
            if rows.iter().any(|row| row.case == run.case && row.phase == phase.name) {
                continue;
            }
            let of = |case: &Option<String>, pick: fn(&Phase) -> f64| {
                let runs = runs.iter().filter(|other| other.case == *case);
                spread(runs.flat_map(|run| &run.phases).filter(|other| other.name == phase.name).map(pick))
            };
            let rate: fn(&Phase) -> f64 = |phase| phase.keys_per_second;
            let (Some(seconds), Some(rates)) = (of(&run.case, |phase| phase.seconds), of(&run.case, rate)) else {
                continue;
            };
            let base = (run.case != first.case).then(|| of(&first.case, rate)).flatten();
            rows.push(Comparison {
                case: run.case.clone(),
                phase: phase.name.clone(),
                runs: runs.iter().filter(|other| other.case == run.case && has(other, &phase.name)).count() as u64,
                seconds,
                keys_per_second: rates,
                ratio: base.and_then(|base| ratio(rates, base)),
            });
        }
    }
    rows
}

fn has(run: &Run, phase: &str) -> bool {
    run.phases.iter().any(|other| other.name == phase)
}

/// Median, lowest and highest; `None` of nothing.
fn spread(figures: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
    let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    Some(Spread { median: finite(median), lowest, highest })
}

/// One against another: the medians, and the widest that any two of their figures make. `None` against nothing.
fn ratio(own: Spread, base: Spread) -> Option<Spread> {
    (base.lowest > 0.0).then(|| Spread {
        median: finite(own.median / base.median),
        lowest: finite(own.lowest / base.highest),
        highest: finite(own.highest / base.lowest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_spans_what_any_two_repeats_make() {
        let of = |figures: &[f64]| spread(figures.iter().copied());
        let (slow, fast) = (of(&[10.0, 12.0, 8.0]).expect("some"), of(&[30.0, 20.0]).expect("some"));
        assert_eq!(slow, Spread { median: 10.0, lowest: 8.0, highest: 12.0 });
        assert_eq!(fast.median, 25.0);
        let against = ratio(fast, slow).expect("above zero");
        assert_eq!((against.median, against.lowest, against.highest), (2.5, 1.666667, 3.75));
        assert_eq!(ratio(fast, of(&[0.0]).expect("one")), None);
        assert_eq!(of(&[]), None);
    }
}
