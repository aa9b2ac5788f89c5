use std::sync::Arc;

use super::*;
use crate::client::progress::{ClientProgress, Snapshot, Window};
use crate::report::progress::{Title, Update};
use crate::sample::{Generator, Host, Process};

/// The example of the sketches, twenty seconds after its second phase began.
pub fn scene(clients: u32, most_rows: usize) -> (State, Duration) {
    let title = Title {
        scenario: "ten-clients".into(),
        load: format!("{clients} × 1,000,000 keys  socket ×1, pipeline 64"),
        target: "redis 7.0.15 127.0.0.1:40211 (spawned, core 0)".into(),
    };
    let mut state = State::new(title, most_rows);
    state.apply(started("write", 1, clients), Duration::ZERO);
    for second in 0..28 {
        state.apply(fleet(clients, second), Duration::from_secs(second));
    }
    state.apply(fleet(clients, 60), Duration::from_millis(28_400));
    state.apply(started("verify", 2, clients), Duration::from_millis(28_400));
    for quarter in 0..=80 {
        let at = Duration::from_millis(28_400 + 250 * quarter);
        state.apply(fleet(clients, quarter / 4), at);
    }
    state.apply(Update::Sample(Arc::new(sample())), Duration::from_secs(48));
    (state, Duration::from_millis(48_450))
}

fn started(name: &str, phase: usize, clients: u32) -> Update {
    let run = if name == "write" { "write" } else { "verify" };
    Update::PhaseStarted { name: name.into(), run, phase, phases: 2, keys_per_client: 1_000_000, clients, lasts: None }
}

/// After so many seconds: the later clients are slower, the first is done early, the last has troubles.
fn fleet(clients: u32, seconds: u64) -> Update {
    let progress = |client: u32| ClientProgress {
        client,
        done: (seconds * (52_000 - 30_000 * u64::from(client) / u64::from(clients))).min(1_000_000),
        timeouts: if client + 1 == clients { seconds * 3 } else { 0 },
        errors: if client + 1 == clients { seconds / 20 } else { 0 },
    };
    let window = Window { count: 10, p50_us: Some(812), p99_us: Some(2_130) };
    Update::Fleet(Snapshot { thread: 0, clients: (0..clients).map(progress).collect(), window })
}

fn sample() -> Sample {
    let process = Process { cpu_percent: Some(36.0), cpu_seconds: 9.0, rss_bytes: 18 << 20, fds: Some(20) };
    Sample {
        host: Host { cpu_percent: vec![50.0, 32.0], memory_used_bytes: 1, memory_total_bytes: 2 },
        generator: Generator {
            threads_percent: vec![34.2, 20.0],
            threads_pressed_percent: vec![],
            throttled: None,
            process,
        },
        server: Some(Server {
            cpu_percent: Some(99.8),
            memory_bytes: Some(1_181_116_006),
            keys: Some(6_912_004),
            clients: Some(12),
            ..Server::default()
        }),
        server_process: Some(Process { cpu_percent: Some(98.0), rss_bytes: 1_200_000_000, ..process }),
        ..Sample::default()
    }
}

/// The lines of the screen, a bar as its number of columns.
fn lines(state: &State, now: Duration, width: usize) -> Vec<(String, usize)> {
    let line = |line: &ScreenLine| match line {
        ScreenLine::Text(line) => (line.render(false), line.width()),
        ScreenLine::Bar(BarLine { label, width, figures, .. }) => (
            format!("  {}  [{width}]{}", label.render(false), figures.render(false)),
            2 + label.width() + 2 + width + figures.width(),
        ),
    };
    screen(state, now, width).iter().map(line).collect()
}

#[test]
fn no_line_ever_reaches_the_edge() {
    for (clients, most_rows) in [(1, 20), (10, 20), (200, 20), (4_000_000_000, 1)] {
        let (state, now) = if clients > 1000 { scene_of_many(clients) } else { scene(clients, most_rows) };
        for columns in 1..=200 {
            for (line, width) in lines(&state, now, columns) {
                assert!(width < columns, "{width} of {columns}: {line}");
            }
        }
    }
}

fn scene_of_many(clients: u32) -> (State, Duration) {
    let mut state = State::new(Title::default(), 4);
    state.apply(started("write", 1, clients), Duration::ZERO);
    (state, Duration::from_secs(1))
}

#[test]
fn a_narrow_terminal_keeps_what_matters_most() {
    let (state, now) = scene(2, 20);
    let text: Vec<_> = lines(&state, now, 40).into_iter().map(|(line, _)| line).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    ten-clients
      → redis 7.0.15 127.0.0.1:40211 (spaw…
    write  28.40 s
    verify  87 %           00:20  ETA 00:04
      client 0  [15] 100 %
      client 1  [15]  74 %  ⚠ 61
      keys 1,739,939  now 69 k/s
      server  cpu 100 %  mem 1.1 GiB
      this host  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn a_server_that_is_too_busy_to_answer_is_said_to_be() {
    let (mut state, now) = scene(1, 20);
    state.apply(Update::Sample(Arc::new(Sample { server: None, ..sample() })), now);
    let text: Vec<_> = lines(&state, now, 80).into_iter().map(|(line, _)| line).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    ten-clients  1 × 1,000,000 keys  socket ×1, pipeline 64
      → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)
    write  28.40 s  999,817 of 1,000,000 keys  35 k/s   timeouts 180  errors 3
    verify  phase 2 of 2  100 %                                    00:20  ETA 00:00
      client 0  [25] 100 %       done   ⚠ 60 timeouts, 1 error
      keys 999,939  now 32 k/s   p50 0.8 ms  p99 2.1 ms   timeouts 60  errors 1
      server  cpu 98 % of 1 core  mem 1.1 GiB  INFO not answered
      this host  cpu 41 %  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn a_plain_line_says_the_same_in_one() {
    let (mut state, now) = scene(10, 20);
    insta::assert_snapshot!(plain(&state, now).expect("a phase is under way").render(false), @"verify 2/2  76 %  00:20  ETA 00:07   keys 7,659,939  now 365 k/s   p50 0.8 ms  p99 2.1 ms   timeouts 60  errors 1   server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns   this host  cpu 41 %  loader 34 %  rss 18 MiB");
    insta::assert_snapshot!(title(&state).render(false), @"ten-clients  10 × 1,000,000 keys  socket ×1, pipeline 64   → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)");
    insta::assert_snapshot!(ended(&state.ended[0]).render(false), @"write  28.40 s  9,999,817 of 10,000,000 keys  352 k/s   timeouts 180  errors 3");
    state.apply(Update::PhaseEnded, now);
    insta::assert_snapshot!(ended(&state.ended[1]).render(false), @"verify  20.05 s  7,659,939 of 10,000,000 keys  382 k/s   timeouts 60  errors 1");
    assert!(plain(&state, now).is_none());
    let wait = Update::PhaseStarted {
        name: "pause".into(),
        run: "wait",
        phase: 3,
        phases: 3,
        keys_per_client: 0,
        clients: 10,
        lasts: None,
    };
    state.apply(wait, now);
    insta::assert_snapshot!(plain(&state, now + Duration::from_secs(5)).expect("it waits").render(false), @"pause 3/3  00:05   server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns   this host  cpu 41 %  loader 34 %  rss 18 MiB");
}

#[test]
fn a_connect_phase_counts_connections() {
    let mut state = State::new(Title::default(), 4);
    let begun = Update::ConnectStarted { name: "no-pool".into(), phase: 2, phases: 3, times: 10_000 };
    state.apply(begun, Duration::ZERO);
    let client = |done| ClientProgress { client: 0, done, timeouts: 0, errors: 0 };
    let window = Window { count: 1, p50_us: Some(180), p99_us: Some(400) };
    for (at, done) in [(250, 500), (500, 1000), (1000, 2500)] {
        let snapshot = Snapshot { thread: 0, clients: vec![client(done)], window };
        state.apply(Update::Fleet(snapshot), Duration::from_millis(at));
    }
    let now = Duration::from_secs(1);
    insta::assert_snapshot!(plain(&state, now).expect("it is under way").render(false), @"no-pool 2/3  25 %  00:01  ETA 00:03   connections 2,500  now 2.5 k/s   p50 0.2 ms  p99 0.4 ms   timeouts 0  errors 0");
    state.apply(Update::PhaseEnded, now);
    insta::assert_snapshot!(ended(&state.ended[0]).render(false), @"no-pool  1.00 s  2,500 of 10,000 connections  2.5 k/s   timeouts 0  errors 0");
}
