use super::*;

#[test]
fn groups_are_round_and_no_larger_than_the_rows_demand() {
    let sizes = [1, 20, 21, 40, 41, 100, 101, 200, 201, 1000, 10_000, u32::MAX].map(|n| clients_per_row(n, 20));
    assert_eq!(sizes, [1, 1, 2, 2, 5, 5, 10, 10, 20, 50, 500, 500_000_000]);
    assert_eq!(clients_per_row(7, 1), 10);
}

fn snapshot(thread: u32, clients: &[(u32, u64)], p99_us: Option<u64>) -> Update {
    let clients = clients
        .iter()
        .map(|&(client, done)| ClientProgress { client, done, timeouts: done / 100, errors: 0 })
        .collect();
    let window = Window { count: u64::from(p99_us.is_some()), p50_us: p99_us.map(|us| us / 2), p99_us };
    Update::Fleet(Snapshot { thread, clients, window })
}

fn started(clients: u32) -> Update {
    Update::PhaseStarted {
        name: "write".into(),
        run: "write",
        phase: 1,
        phases: 2,
        keys_per_client: 1000,
        clients,
        lasts: None,
    }
}

fn state(clients: u32, most_rows: usize) -> State {
    let mut state = State::new(Title::default(), most_rows);
    state.apply(started(clients), Duration::ZERO);
    state
}

#[test]
fn a_client_on_two_threads_is_the_sum_of_both() {
    let mut state = state(4, 2);
    state.apply(snapshot(0, &[(0, 100), (3, 50)], Some(900)), Duration::from_millis(500));
    state.apply(snapshot(1, &[(0, 200)], Some(2100)), Duration::from_millis(500));
    state.apply(snapshot(0, &[(0, 300), (3, 60)], Some(800)), Duration::from_millis(1000));
    let phase = state.phase.expect("it began");
    assert_eq!(phase.all.tally, Tally { done: 560, timeouts: 5, errors: 0 });
    let rows: Vec<_> = phase.rows.iter().map(|row| (row.first, row.last, row.keys, row.tally.done)).collect();
    assert_eq!(rows, [(0, 1, 2000, 500), (2, 3, 2000, 60)]);
    let latencies = Latencies { p50_us: Some(1050), p99_us: Some(2100), at_most: true };
    assert_eq!(phase.latencies(Duration::from_secs(1)), latencies);
    assert_eq!(phase.latencies(Duration::from_secs(9)), Latencies::default());
    assert_eq!(phase.left(Duration::from_secs(1)).map(|left| left.as_millis()), Some(6142));
}

#[test]
fn another_height_deals_the_clients_out_anew_and_loses_nothing() {
    let mut state = state(30, 30);
    state.apply(snapshot(0, &[(0, 10), (7, 20), (29, 30)], None), Duration::from_secs(1));
    state.set_most_rows(6);
    let phase = state.phase.expect("it began");
    let done: Vec<_> = phase.rows.iter().map(|row| row.tally.done).collect();
    assert_eq!(done, [10, 20, 0, 0, 0, 30]);
    assert_eq!(phase.rows.last().map(|row| (row.first, row.last)), Some((25, 29)));
}

#[test]
fn phases_end_once_and_those_without_keys_have_no_rows() {
    let mut state = state(2, 20);
    state.apply(snapshot(0, &[(0, 1000), (1, 1200), (77, 5)], None), Duration::from_secs(1));
    assert!(state.phase.as_ref().is_some_and(|phase| phase.rows.iter().all(Row::is_done)));
    state.apply(Update::PhaseEnded, Duration::from_secs(2));
    state.apply(Update::PhaseEnded, Duration::from_secs(3));
    assert_eq!(state.ended.len(), 1);
    let wait = Update::PhaseStarted {
        name: "w".into(),
        run: "wait",
        phase: 2,
        phases: 2,
        keys_per_client: 9,
        clients: 2,
        lasts: None,
    };
    state.apply(wait, Duration::from_secs(3));
    assert!(state.phase.is_some_and(|phase| phase.rows.is_empty() && phase.all.share() == 0.0));
}
