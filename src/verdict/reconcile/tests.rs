use proptest::prelude::*;

use super::*;
use crate::verdict::counters::CommandCounts;
use crate::verdict::fixture::*;
use crate::wire::fault::Fault;
use crate::wire::info::CommandStat;

fn result(run: &RunOutcome) -> Reconciled {
    reconcile(run, ALL).result
}

/// A good run that the server saw like this afterwards.
fn seen(after: ServerCounters) -> RunOutcome {
    RunOutcome { server_after: Some(after), ..good_run() }
}

fn with_others(mut counters: ServerCounters, name: &str) -> ServerCounters {
    counters.connections_received += 1;
    if let Some(commands) = &mut counters.commands {
        commands.others.insert(name.to_owned(), 3);
    }
    counters
}

#[test]
fn the_same_counts_on_both_sides_reconcile() {
    let found = reconcile(&good_run(), ALL);
    assert_eq!(found, Reconciliation { result: Reconciled::Yes, calls: Some(2 * ALL), warnings: Vec::new() });
}

#[test]
fn fewer_calls_or_keys_than_were_answered_cannot_be() {
    for (after, quantity) in [
        (counters(ALL - 1, ALL, ALL), Quantity::Calls(Command::Set)),
        (counters(ALL, ALL - 1, ALL), Quantity::Calls(Command::Get)),
        (counters(ALL, ALL, ALL - 1), Quantity::Keys),
    ] {
        let gap = Gap { quantity, server: ALL - 1, at_least: ALL, at_most: ALL };
        assert_eq!(result(&seen(after)), Reconciled::No(vec![gap]));
    }
}

#[test]
fn others_explain_more_calls_and_any_keys_but_never_fewer_calls() {
    let more = counters(ALL + 2, ALL, ALL + 1);
    assert!(matches!(result(&seen(more.clone())), Reconciled::No(gaps) if gaps.len() == 2));
    let found = reconcile(&seen(with_others(more, "del")), ALL);
    assert!(matches!(&found.result, Reconciled::NotPossible(Impossible::OtherClients(gaps)) if gaps.len() == 2));
    let others = Warning::OtherClients { connections: 1, commands: vec![("del".to_owned(), 3)] };
    assert!(found.warnings.contains(&others), "{:?}", found.warnings);
    assert!(matches!(result(&seen(with_others(counters(ALL, ALL, 3), "del"))), Reconciled::NotPossible(_)));
    assert!(matches!(result(&seen(with_others(counters(ALL - 1, ALL, ALL), "del"))), Reconciled::No(_)));
}

#[test]
fn others_who_changed_no_count_are_only_mentioned() {
    let found = reconcile(&seen(with_others(counters(ALL, ALL, ALL), "hset")), ALL);
    assert_eq!((found.result, found.warnings.len()), (Reconciled::Yes, 1));
    let mut listed = counters(ALL, ALL, ALL);
    listed.foreign_clients = 2;
    let others = Warning::OtherClients { connections: 2, commands: Vec::new() };
    assert_eq!(reconcile(&seen(listed), ALL).warnings, [others]);
}

#[test]
fn own_connections_are_nobody_elses() {
    let mut after = counters(ALL, ALL, ALL);
    after.connections_received += 3;
    assert_eq!(reconcile(&RunOutcome { own_connections: 3, ..seen(after.clone()) }, ALL).warnings, []);
    assert_eq!(reconcile(&RunOutcome { own_connections: 2, ..seen(after) }, ALL).warnings.len(), 1);
}

#[test]
fn counters_that_went_another_way_prove_nothing() {
    let other_process = ServerCounters { run_id: Some("two".to_owned()), ..counters(1, 0, 0) };
    let no_commands = ServerCounters { commands: None, ..counters(ALL, ALL, ALL) };
    let reset = with_others(counters(3, 3, ALL), RESET);
    let mut warm = seen(counters(3, 3, ALL));
    warm.server_before = Some(counters(10, 10, 0));
    for (run, why) in [
        (seen(other_process), Impossible::Restarted),
        (seen(no_commands), Impossible::NotTold),
        (seen(reset), Impossible::Reset),
        (warm, Impossible::Reset),
        (RunOutcome { server_before: None, ..good_run() }, Impossible::Unreadable(Unread::Unknown)),
        (RunOutcome { server_after: None, ..good_run() }, Impossible::Unreadable(Unread::Unknown)),
    ] {
        let found = reconcile(&run, ALL);
        assert_eq!(found.result, Reconciled::NotPossible(why.clone()));
        assert!(found.warnings.contains(&Warning::NotReconciled(why)), "{:?}", found.warnings);
    }
}

#[test]
fn eviction_expiry_and_known_losses_explain_fewer_keys() {
    let mut evicted = counters(ALL, ALL, ALL - 5);
    (evicted.evicted, evicted.expired) = (3, 2);
    let found = reconcile(&seen(evicted), ALL);
    assert_eq!((found.result, found.warnings), (Reconciled::Yes, vec![Warning::Evicted(3), Warning::Expired(2)]));
    let mut run = seen(counters(ALL, ALL, ALL - 5));
    run.phases[2].record.keys.matched -= 5;
    run.phases[2].record.keys.lost += 5;
    if let Some(after) = &mut run.server_after {
        (after.keyspace_hits, after.keyspace_misses) = (ALL - 5, 5);
    }
    assert_eq!(
        reconcile(&run, ALL),
        Reconciliation { result: Reconciled::Yes, calls: Some(2 * ALL), warnings: vec![] }
    );
}

#[test]
fn refusals_count_where_the_server_counts_them() {
    let mut run = good_run();
    let write = &mut run.phases[1].record;
    (write.requests.ok, write.requests.failed) = (ALL - 10, 10);
    (write.keys.acknowledged, write.keys.refused) = (ALL - 10, 10);
    write.errors.count(Fault::new(Stage::Reply, Kind::Oom), 10, "OOM");
    let stat = |calls, rejected| CommandStat { calls, rejected, failed: Some(0) };
    let after = |set| ServerCounters {
        commands: Some(CommandCounts {
            load: [(Command::Set, set), (Command::Get, stat(ALL, Some(0)))].into(),
            ..CommandCounts::default()
        }),
        ..counters(ALL, ALL, ALL - 10)
    };
    run.server_after = Some(after(stat(ALL - 10, Some(10))));
    assert_eq!(result(&run), Reconciled::Yes);
    run.server_after = Some(after(stat(ALL - 10, Some(9))));
    assert!(matches!(result(&run), Reconciled::No(_)));
    run.server_after = Some(after(stat(ALL - 10, None)));
    assert_eq!(result(&run), Reconciled::Yes, "before Redis 6.2 refusals are not counted");
    run.phases[1].record.errors = Default::default();
    run.phases[1].record.errors.count(Fault::new(Stage::Reply, Kind::Other), 10, "ERR unknown command 'SET'");
    run.server_after = Some(after(stat(ALL - 10, Some(0))));
    assert_eq!(result(&run), Reconciled::Yes, "an unknown command is counted nowhere");
}

#[test]
fn keys_of_an_earlier_run_are_not_expected_twice() {
    let mut run = seen(counters(ALL, ALL, ALL));
    run.keys_were_fresh = false;
    run.server_before = Some(counters(0, 0, ALL));
    assert_eq!(result(&run), Reconciled::Yes);
    let mut again = good_run();
    again.phases.insert(2, write());
    again.server_after = Some(counters(2 * ALL, ALL, ALL));
    assert_eq!(result(&again), Reconciled::Yes, "a second pass writes the same keys");
}

#[test]
fn hits_and_misses_that_differ_are_a_warning() {
    let after = ServerCounters { keyspace_hits: ALL - 1, ..counters(ALL, ALL, ALL) };
    let found = reconcile(&seen(after), ALL);
    assert_eq!(found.result, Reconciled::Yes);
    assert_eq!(found.warnings, [Warning::Keyspace { what: "hits", server: ALL - 1, own: ALL }]);
}

proptest! {
    /// However a run went, and whatever of the unanswered requests the server executed: its counts reconcile.
    #[test]
    fn a_consistent_run_reconciles(
        parts in prop::array::uniform5(0_u64..500),
        executed in 0.0..=1.0_f64,
        before in 0_u64..1000,
        evicted in 0_u64..50,
    ) {
        let [ok, refused, timed_out, cut_off, unsent] = parts;
        let keys = parts.iter().sum();
        let mut run = good_run();
        run.phases.truncate(2);
        let record = &mut run.phases[1].record;
        record.requests.scheduled = keys;
        (record.requests.ok, record.requests.failed) = (ok, refused + cut_off);
        (record.requests.timed_out, record.requests.unsent) = (timed_out, unsent);
        record.errors.count(Fault::new(Stage::Reply, Kind::Oom), refused, "OOM");
        record.errors.count(Fault::new(Stage::Read, Kind::Reset), cut_off, "reset");
        record.keys = Keys {
            scheduled: keys, acknowledged: ok, refused, unknown: timed_out + cut_off, not_sent: unsent, ..Keys::default()
        };
        prop_assert!(record.conserved());
        let late = ((timed_out + cut_off) as f64 * executed) as u64;
        let evicted = evicted.min(before + ok + late);
        run.server_before = Some(counters(0, 0, before));
        let mut after = counters(ok + late, 0, before + ok + late - evicted);
        after.evicted = evicted;
        after.connections_received = 1 + u64::from(CLIENTS);
        if let Some(commands) = &mut after.commands {
            commands.load.entry(Command::Set).or_default().rejected = Some(refused);
        }
        run.server_after = Some(after);
        prop_assert_eq!(reconcile(&run, keys).result, Reconciled::Yes);
    }
}
