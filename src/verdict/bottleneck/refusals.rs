//! Causes that the server, or this machine's kernel, told in so many words. They stand however busy the generator was.

use super::{Bottleneck, Case, Culprit, Evidence, connecting_failed};
use crate::record::Recorder;
use crate::verdict::Fate;
use crate::wire::fault::{Kind, Stage};

/// `maxclients` of a server of which nobody asked for another.
const DEFAULT_MAXCLIENTS: u64 = 10_000;
/// Files that Redis keeps for itself beside its clients'.
const RESERVED_FILES: u64 = 32;

/// The first of them that there is evidence for, data before requests before connections.
pub fn find(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    eviction(case, total)
        .or_else(|| server_memory(case, total))
        .or_else(|| generator_limits(total))
        .or_else(|| turned_away(case, total))
        .or_else(|| slow_reader(case, total))
}

fn errors(total: &Recorder, of: impl Fn(Stage, Kind) -> bool) -> u64 {
    total.errors.rows().iter().filter(|row| of(row.fault.stage, row.fault.kind)).map(|row| row.count).sum()
}

/// Keys went away to make room for others. Where all were read back, it was not this run's.
fn eviction(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let evicted = case.run.evicted().filter(|&keys| keys > 0)?;
    let keys = &total.keys;
    if keys.checked > 0 && keys.lost == 0 {
        return None;
    }
    let lost = (keys.checked > 0).then_some(Evidence::Lost(keys.lost, keys.mismatched()));
    let evidence = [Some(Evidence::Evicted(evicted)), lost, memory(case)];
    Some(Bottleneck::of(Culprit::Eviction, evidence.into_iter().flatten()))
}

fn server_memory(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let refused = errors(total, |_, kind| kind == Kind::Oom);
    if refused > 0 {
        let counted = case.grown(|counters| counters.oom_errors);
        let evidence = [Some(Evidence::OutOfMemory(refused, counted)), memory(case)];
        return Some(Bottleneck::of(Culprit::ServerMemory, evidence.into_iter().flatten()));
    }
    // A server on this machine that went away while the kernel killed something was what it killed.
    let killed: u64 = case.run.sections.iter().filter_map(|section| section.kernel.oom_kills).sum();
    let gone = case.run.phases.iter().any(|phase| phase.server != Fate::There);
    let here = case.run.sections.iter().any(|section| section.local.is_some());
    (killed > 0 && gone && here).then(|| Bottleneck::of(Culprit::ServerMemory, [Evidence::OomKilled(killed)]))
}

fn memory(case: &Case<'_>) -> Option<Evidence> {
    let after = case.run.server_after.as_ref();
    let limit =
        after.and_then(|after| after.maxmemory).or_else(|| case.setting("maxmemory")).filter(|&bytes| bytes > 0)?;
    let sampled = case.run.sections.iter().filter_map(|section| section.memory_bytes_max).max();
    Some(Evidence::Memory(sampled.or(case.server.memory_bytes_max)?, limit))
}

fn generator_limits(total: &Recorder) -> Option<Bottleneck> {
    let denied = [Kind::TooManyFiles, Kind::NoPort].map(|kind| (kind, errors(total, |_, found| found == kind)));
    let evidence: Vec<_> =
        denied.into_iter().filter(|(_, times)| *times > 0).map(|(kind, times)| Evidence::Denied(kind, times)).collect();
    (!evidence.is_empty()).then_some(Bottleneck { culprit: Culprit::GeneratorLimits, evidence })
}

/// `maxclients`, which is lower than asked for if the server may not open so many files.
fn turned_away(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let told = errors(total, |_, kind| kind == Kind::MaxClients);
    let closed = errors(total, |stage, kind| stage == Stage::Setup && matches!(kind, Kind::Reset | Kind::Eof));
    let rejected = case.grown(|counters| Some(counters.rejected_connections)).unwrap_or(0);
    let files = case.server.fd_limit;
    // Without a file for it, a connection is not even accepted; servers other than Redis close it.
    let full = files.zip(case.server.fds_max).is_some_and(|(limit, most)| most + 1 >= limit);
    if told == 0 && rejected == 0 && !full || !connecting_failed(total) {
        return None;
    }
    let most = case.run.server_after.as_ref().and_then(|after| after.maxclients).or_else(|| case.setting("maxclients"));
    let wanted = case.spawned().map(|spawn| spawn.maxclients.map_or(DEFAULT_MAXCLIENTS, u64::from));
    let lowered =
        files.zip(most).zip(wanted).filter(|((files, most), wanted)| most < wanted && most + RESERVED_FILES >= *files);
    let counted = [
        (told + closed > 0).then_some(Evidence::TurnedAway(told + closed)),
        (rejected > 0).then_some(Evidence::Rejected(rejected)),
        most.map(Evidence::MaxClients),
    ];
    let mut evidence: Vec<_> = counted.into_iter().flatten().collect();
    if lowered.is_none() && !full {
        return Some(Bottleneck { culprit: Culprit::MaxClients, evidence });
    }
    evidence.extend(lowered.map(|(_, wanted)| Evidence::WantedClients(wanted)));
    evidence.extend(files.map(|limit| Evidence::Files(limit, case.server.fds_max)));
    Some(Bottleneck { culprit: Culprit::ServerFds, evidence })
}

fn slow_reader(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    let told = case.grown(|counters| counters.output_disconnections).unwrap_or(0).max(case.server.readers_cut_off);
    let lost = errors(total, |stage, kind| {
        matches!(stage, Stage::Read | Stage::Write) && matches!(kind, Kind::Reset | Kind::Eof)
    });
    (told > 0 && lost > 0)
        .then(|| Bottleneck::of(Culprit::SlowReader, [Evidence::CutOff(told), Evidence::LostConnections(lost)]))
}
