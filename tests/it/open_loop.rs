//! Requests that are due at moments of their own: nothing is skipped, a halt shows, and what cannot be kept up ends in time.

use std::time::{Duration, Instant};

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

fn half_of_what_it_takes(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().driver(driver).size(4, 250).target(server.url());
    let outcome = Keyswarm::run(
        &scenario
            .phase_of("write", "rate = \"2_000/s\"\narrivals = \"uniform\"")
            .phase_of("verify", "rate = \"2_000/s\"\nduration = \"1s\""),
    )
    .finish()
    .expect(0);
    outcome.counts("write", &[("requests.scheduled", 1_000), ("requests.ok", 1_000), ("keys.acknowledged", 1_000)]);
    // About 2,000 readings of 1,000 keys, each of them right.
    let read = outcome.count("verify", "requests.scheduled");
    assert!((1_700..2_300).contains(&read), "{outcome}");
    outcome.counts("verify", &[("keys.checked", read), ("keys.matched", read), ("latency_us.response.count", read)]);
    outcome.counts("verify", &[("send_lag_us.count", read)]);
    let write = outcome.phase("write");
    assert_eq!((&write["loop"], &write["arrivals"]), (&"open".into(), &"uniform".into()), "{outcome}");
    assert_eq!(write["offered_per_second"], 2_000.0, "{outcome}");
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert_eq!(outcome.json()["generator"]["send_lag_us"]["count"], 1_000 + read, "{outcome}");
    assert!(outcome.said().contains("2,000 requests/s offered (poisson)"), "{outcome}");
}

/// The server halts for longer than most requests have to wait: those that became due meanwhile tell of it, although few
/// were on their way.
fn a_halt_shows_in_the_response_times(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().driver(driver).size(2, 1_000).target(server.url());
    let phase = "pipeline = 1\nrate = \"1_000/s\"\narrivals = \"uniform\"\nduration = \"4s\"";
    let mut running = Keyswarm::run(&scenario.phase_of("write", phase)).start();
    running.until("the midst of the phase", || (server.calls("set") >= 500).then_some(()));
    server.stop();
    // The halt itself is what is tested.
    std::thread::sleep(Duration::from_secs(1));
    server.cont();
    let outcome = running.finish().expect(0);
    outcome.counts("write", &[("requests.scheduled", 4_000), ("requests.ok", 4_000)]);
    let p99 = |latency: &str| outcome.count("write", &format!("latency_us.{latency}.p99"));
    assert!(p99("response") > 500_000, "a quarter of the requests was due while the server stood\n{outcome}");
    assert!(p99("service") < 500_000, "two requests were on their way\n{outcome}");
}

fn more_than_it_takes(driver: &str) {
    let scenario = Scenario::new()
        .driver(driver)
        .size(4, 1_000)
        .spawned("")
        .text("timeouts.command", "300ms")
        .text("timeouts.silence", "20s")
        .without("limits.timeouts")
        .phase_of("write", "rate = \"5_000_000/s\"\nduration = \"1s\"")
        .verify(64);
    let begun = Instant::now();
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    // Bounded: the duration, the limit of a request, and what start and end take.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}\n{outcome}", begun.elapsed());
    let scheduled = outcome.count("write", "requests.scheduled");
    assert!((4_900_000..5_100_000).contains(&scheduled), "{outcome}");
    assert!(outcome.count("write", "timeouts.command") > 100_000, "{outcome}");
    assert!(outcome.warnings().contains("write fell short: 5,000,000 requests/s wanted"), "{outcome}");
    // Every key was written again and again; whatever is there is what was written last, or may have been.
    let present = outcome.count("verify", "keys.matched");
    assert_eq!(present + outcome.count("verify", "keys.absent"), 4_000, "{outcome}");
    assert!(present > 0, "{outcome}");
}

for_both_drivers!(half_of_what_it_takes, a_halt_shows_in_the_response_times, more_than_it_takes);
