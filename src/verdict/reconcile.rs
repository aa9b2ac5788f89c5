//! Holds keyswarm's counts against the server's own: both looked at the same requests, so they must agree.
//!
//! A request that was answered was counted by the server, one that was sent without an answer may have been, and one
//! that was never sent was not. That leaves a range for every command; the server's count must lie in it.

use std::collections::BTreeSet;

use super::counters::RESET;
use super::{PhaseOutcome, RunOutcome, ServerCounters, Unread, Warning};
use crate::plan::{Command, Commands};
use crate::record::{Keys, Recorder, Requests};
use crate::wire::fault::{Kind, Stage};
use crate::wire::info::CommandStat;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Calls of a command.
    Calls(Command),
    /// Keys in the database, with those that were evicted or expired.
    Keys,
}

/// A count of the server's that lies outside of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What was compared.
    pub quantity: Quantity,
    /// What the server counted.
    pub server: u64,
    /// What it must have counted at least.
    pub at_least: u64,
    /// What it may have counted at most.
    pub at_most: u64,
}

/// Why nothing could be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The counters could not be read before or after.
    Unreadable(Unread),
    /// The server does not count calls by command.
    NotTold,
    /// It is another process than before.
    Restarted,
    /// Somebody reset the counters.
    Reset,
    /// The counts differ, and others used the server as well.
    OtherClients(Vec<Gap>),
}

/// The outcome of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciled {
    /// Every count lies in its range.
    Yes,
    /// A count cannot be true together with keyswarm's.
    No(Vec<Gap>),
    /// It cannot be told.
    NotPossible(Impossible),
}

/// What the comparison of one run found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconciliation {
    /// The outcome.
    pub result: Reconciled,
    /// Calls of the load's commands that the server counted during the run; `None` if it could not be told.
    pub calls: Option<u64>,
    /// What was noticed on the way.
    pub warnings: Vec<Warning>,
}

/// Counts that the server must, and may, have made.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    at_least: u64,
    at_most: u64,
}

/// Compares a run with the server's counters around it. `keys` are the keys of all clients together.
pub fn reconcile(run: &RunOutcome, keys: u64) -> Reconciliation {
    let (before, after) = match comparable(run) {
        Ok(both) => both,
        Err(why) => return impossible(why, None, Vec::new()),
    };
    let mut warnings = losses(before, after);
    let others = other_clients(run, before, after);
    let disturbed = others.is_some();
    warnings.extend(others);
    if before.commands.is_none() || after.commands.is_none() {
        return impossible(Impossible::NotTold, None, warnings);
    }
    warnings.extend(keyspace(run, before, after));
    let mut counted = 0;
    let mut gaps = Vec::new();
    for command in sent(run) {
        let Some((calls, refused_are_counted)) = calls(command, before, after) else { continue };
        counted += calls;
        gaps.extend(gap(Quantity::Calls(command), calls, calls_of(run, command, refused_are_counted)));
    }
    let counted = Some(counted);
    gaps.extend(key_gap(run, before, after, keys));
    if gaps.is_empty() {
        Reconciliation { result: Reconciled::Yes, calls: counted, warnings }
    } else if disturbed && gaps.iter().all(others_can_explain) {
        impossible(Impossible::OtherClients(gaps), counted, warnings)
    } else {
        Reconciliation { result: Reconciled::No(gaps), calls: counted, warnings }
    }
}

fn impossible(why: Impossible, calls: Option<u64>, mut warnings: Vec<Warning>) -> Reconciliation {
    warnings.push(Warning::NotReconciled(why.clone()));
    Reconciliation { result: Reconciled::NotPossible(why), calls, warnings }
}

/// Others add calls, and add or delete keys; they cannot undo a call.
fn others_can_explain(gap: &Gap) -> bool {
    gap.quantity == Quantity::Keys || gap.server > gap.at_most
}

/// Both readings, if they are of one process that went on counting.
fn comparable(run: &RunOutcome) -> Result<(&ServerCounters, &ServerCounters), Impossible> {
    let (Some(before), Some(after)) = (&run.server_before, &run.server_after) else {
        return Err(Impossible::Unreadable(run.unread.clone()));
    };
    if before.run_id != after.run_id {
        return Err(Impossible::Restarted);
    }
    let counters = |c: &ServerCounters| {
        let calls = |command| c.commands.as_ref().map_or(0, |commands| commands.of_load(command).calls);
        let general = [c.commands_processed, c.connections_received, c.keyspace_hits, c.evicted, c.expired];
        general.into_iter().chain(Command::ALL.into_iter().map(calls)).collect::<Vec<_>>()
    };
    let went_back = counters(before).into_iter().zip(counters(after)).any(|(before, after)| after < before);
    let was_reset = foreign_commands(run, before, after).iter().any(|(name, _)| name == RESET);
    if went_back || was_reset { Err(Impossible::Reset) } else { Ok((before, after)) }
}

/// Keys that the server dropped for reasons of its own.
fn losses(before: &ServerCounters, after: &ServerCounters) -> Vec<Warning> {
    let (evicted, expired) = (after.evicted - before.evicted, after.expired - before.expired);
    let evicted = (evicted > 0).then_some(Warning::Evicted(evicted));
    evicted.into_iter().chain((expired > 0).then_some(Warning::Expired(expired))).collect()
}

/// What shows that keyswarm was not alone, if anything does.
fn other_clients(run: &RunOutcome, before: &ServerCounters, after: &ServerCounters) -> Option<Warning> {
    let received = after.connections_received - before.connections_received;
    let own: u64 = run.phases.iter().map(|phase| phase.record.connects.tried).sum();
    let more = received.saturating_sub(own + run.own_connections);
    let connections = more.max(before.foreign_clients).max(after.foreign_clients);
    let commands = foreign_commands(run, before, after);
    (connections > 0 || !commands.is_empty()).then_some(Warning::OtherClients { connections, commands })
}

/// Calls between both readings of commands that this run never sent.
fn foreign_commands(run: &RunOutcome, before: &ServerCounters, after: &ServerCounters) -> Vec<(String, u64)> {
    let (Some(before), Some(after)) = (&before.commands, &after.commands) else { return Vec::new() };
    let earlier = |name: &str| before.others.get(name).copied().unwrap_or(0);
    let others = after.others.iter().map(|(name, calls)| (name.clone(), calls.saturating_sub(earlier(name))));
    let own = sent(run);
    let loads = Command::ALL.into_iter().filter(|command| !own.contains(command)).map(|command| {
        let calls = after.of_load(command).calls.saturating_sub(before.of_load(command).calls);
        (command.name().to_lowercase(), calls)
    });
    others.chain(loads).filter(|(_, calls)| *calls > 0).collect()
}

/// The commands that this run's phases are made of. Readings and writes may be looked for even where there was no phase.
fn sent(run: &RunOutcome) -> BTreeSet<Command> {
    let commands = run.phases.iter().flat_map(|phase| &phase.commands);
    commands.flat_map(|commands| [Some(commands.main), commands.then]).flatten().collect()
}

/// Calls of a command, with whether refused ones are among them.
fn calls(command: Command, before: &ServerCounters, after: &ServerCounters) -> Option<(u64, bool)> {
    let of = |counters: &ServerCounters| counters.commands.as_ref().map(|commands| commands.of_load(command));
    let (before, after): (CommandStat, CommandStat) = (of(before)?, of(after)?);
    let rejected = after.rejected.unwrap_or(0).saturating_sub(before.rejected.unwrap_or(0));
    // A command that was never called has no line, which says nothing about what its line would tell.
    let told = after.rejected.is_some() || after.calls == 0;
    Some((after.calls - before.calls + rejected, told))
}

/// How often the phases must, and may, have called a command.
fn calls_of(run: &RunOutcome, command: Command, refused_are_counted: bool) -> Range {
    let mut range = Range::default();
    for PhaseOutcome { record, commands, .. } in &run.phases {
        let part = match commands[..] {
            [commands] => part_of(record, commands, command, refused_are_counted),
            [writing, reading] => part_of_mix(record, writing, reading, command),
            _ => Range::default(),
        };
        range.at_least += part.at_least;
        range.at_most += part.at_most;
    }
    range
}

/// ... of a phase that only writes or only reads. What is counted together is told apart by how much of it follows.
fn part_of(record: &Recorder, commands: Commands, command: Command, refused_are_counted: bool) -> Range {
    let (requests, alone) = match commands.then {
        None if commands.main == command => (record.requests, true),
        Some(_) if commands.main == command => (record.requests.less(&record.then), false),
        Some(then) if then == command => (record.then, false),
        _ => return Range::default(),
    };
    let refused = if refused_are_counted && alone { refused(record) } else { 0 };
    let Requests { scheduled, ok, unsent, .. } = requests;
    Range { at_least: ok + refused, at_most: scheduled - unsent.min(scheduled) }
}

/// ... of a mix, whose requests are told apart by what became of their keys.
fn part_of_mix(record: &Recorder, writing: Commands, reading: Commands, command: Command) -> Range {
    let Recorder { keys, then, .. } = record;
    if command == writing.main {
        Range { at_least: keys.acknowledged, at_most: keys.scheduled - keys.not_sent }
    } else if command == reading.main {
        Range { at_least: keys.checked - keys.unread, at_most: keys.checked }
    } else if writing.then == Some(command) || reading.then == Some(command) {
        // Those of writes and those of reads are not told apart.
        Range { at_least: 0, at_most: then.scheduled }
    } else {
        Range::default()
    }
}

/// Requests that the server surely counted although it answered with an error. Bytes that made no sense tell nothing,
/// and an error without a name of its own may be "unknown command", which no server counts.
fn refused(record: &Recorder) -> u64 {
    let rows = record.errors.rows();
    let sure = rows.iter().filter(|row| {
        row.fault.stage == Stage::Reply && !matches!(row.fault.kind, Kind::Protocol | Kind::Other | Kind::MaxClients)
    });
    sure.map(|row| row.count).sum::<u64>().min(record.requests.failed)
}

/// Keys that must, and may, be in the database at the end. Those that were found lost are accounted for already.
fn key_gap(run: &RunOutcome, before: &ServerCounters, after: &ServerCounters, keys: u64) -> Option<Gap> {
    let (before_keys, after_keys) = (before.dbsize?, after.dbsize?);
    let gone = after.evicted - before.evicted + after.expired - before.expired;
    let lost = run.phases.iter().map(|phase| phase.record.keys.lost).max().unwrap_or(0);
    // Every pass writes the same keys, so the fullest pass tells how many there must be.
    let passes = run.phases.iter().filter(|phase| phase.is_pass()).map(|phase| phase.record.keys.acknowledged);
    let new = if run.keys_were_fresh { passes.max().unwrap_or(0) } else { 0 };
    let may_be_new = run.phases.iter().map(|phase| written_at_most(&phase.record.keys)).sum::<u64>().min(keys);
    let range = Range { at_least: (before_keys + new).saturating_sub(gone + lost), at_most: before_keys + may_be_new };
    gap(Quantity::Keys, after_keys, range)
}

fn written_at_most(keys: &Keys) -> u64 {
    keys.acknowledged + keys.unknown
}

fn gap(quantity: Quantity, server: u64, range: Range) -> Option<Gap> {
    let Range { at_least, at_most } = range;
    (server < at_least || server > at_most).then_some(Gap { quantity, server, at_least, at_most })
}

/// Every value that was read was a hit for the server, and every missing key a miss.
fn keyspace(run: &RunOutcome, before: &ServerCounters, after: &ServerCounters) -> Vec<Warning> {
    let (mut found, mut missing) = (0, 0);
    for PhaseOutcome { record: Recorder { keys, .. }, .. } in &run.phases {
        found += keys.matched + keys.mismatched();
        missing += keys.lost + keys.absent;
    }
    let hits = ("hits", after.keyspace_hits - before.keyspace_hits, found);
    let misses = ("misses", after.keyspace_misses.saturating_sub(before.keyspace_misses), missing);
    let fewer = [hits, misses].into_iter().filter(|(_, server, own)| server < own);
    fewer.map(|(what, server, own)| Warning::Keyspace { what, server, own }).collect()
}

#[cfg(test)]
mod real_server;
#[cfg(test)]
mod tests;
