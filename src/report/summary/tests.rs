use std::time::Duration;

use super::*;
use crate::dataset::Owner;
use crate::plan::Pipeline;
use crate::record::{Class, Recorder, WrongReading};
use crate::report::document;
use crate::verdict::{Outcome, RunOutcome, fixture, judge};
use crate::wire::fault::{Fault, Kind, Stage};

const NARROW: Look = Look { width: 80, colour: false };

fn printed(outcome: &Outcome, look: Look) -> String {
    let plan = fixture::plan();
    let document = document(&plan, outcome, &judge(&plan, outcome));
    let files = ["result.json", "timeline.jsonl", "scenario.toml"].map(str::to_owned);
    let kept = Some((Path::new("results/four-clients-20261130T084012Z"), &files[..]));
    let mut out = Vec::new();
    write_summary(&document, kept, look, &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    if !look.colour {
        let longest = text.lines().map(page::columns).max().unwrap_or(0);
        assert!(longest <= look.width, "{longest} columns:\n{text}");
    }
    text
}

fn of_run(run: RunOutcome) -> String {
    printed(&fixture::outcome(run), NARROW)
}

fn wrong(class: Class, index: u64, got: Option<&str>, owner: Option<Owner>) -> WrongReading {
    WrongReading { client: 2, index, version: 1, class, got: got.map(Into::into), owner }
}

#[test]
fn a_pass() {
    insta::assert_snapshot!(of_run(fixture::good_run()), @"");
}

#[test]
fn a_wide_terminal_has_all_columns() {
    insta::assert_snapshot!(printed(&fixture::outcome(fixture::good_run()), Look { width: 120, colour: false }), @"");
}

#[test]
fn timeouts_loss_and_foreign_values() {
    let mut run = fixture::good_run();
    let write = &mut run.phases[1];
    (write.open_loop, write.pipeline) = (true, Some(Pipeline::All));
    let record = &mut write.record;
    record.response.record(Duration::from_millis(900), 990);
    record.response.record_censored(Duration::from_secs(5), 10);
    (record.requests.ok, record.requests.timed_out, record.timeouts.command) = (990, 10, 10);
    (record.keys.acknowledged, record.keys.unknown, record.keys.not_sent) = (990, 6, 4);
    let record = &mut run.phases[2].record;
    let keys = &mut record.keys;
    (keys.matched, keys.lost, keys.foreign, keys.corrupt, keys.absent) = (985, 7, 1, 1, 6);
    let owner = Owner { client: 3, index: Some(9), version: Some(1) };
    record.keep(wrong(Class::Foreign, 9, Some("83576968-ecb8-4308-b316-2784c4d2052f"), Some(owner)));
    record.keep(wrong(Class::Corrupt, 10, Some(&"x".repeat(150)), None));
    (20..27).for_each(|index| record.keep(wrong(Class::Lost, index, None, None)));
    if let Some(after) = &mut run.server_after {
        after.dbsize = Some(987);
        after.connections_received += 1;
        after.keyspace_misses = 13;
        after.commands.iter_mut().for_each(|commands| commands.others.push(("del".to_owned(), 7)));
    }
    insta::assert_snapshot!(of_run(run), @"");
}

#[test]
fn interrupted() {
    let mut run = fixture::good_run();
    run.phases.truncate(2);
    run.server_after = None;
    let record = &mut run.phases[1].record;
    (record.requests.ok, record.requests.failed, record.requests.unsent) = (400, 64, 536);
    (record.keys.acknowledged, record.keys.unknown, record.keys.not_sent) = (400, 64, 536);
    record.errors.count(Fault::new(Stage::Read, Kind::Interrupted), 64, "interrupted");
    let outcome = Outcome { interrupted: true, ..fixture::outcome(run) };
    insta::assert_snapshot!(printed(&outcome, NARROW), @"");
}

#[test]
fn nobody_admitted() {
    let mut admission = fixture::connect();
    admission.record = Recorder::default();
    admission.record.connects.refused = 4;
    let fault = Fault::new(Stage::Connect, Kind::Refused);
    admission.record.errors.count(fault, 4, "cannot connect to 127.0.0.1:6379: Connection refused (os error 111)");
    let run = RunOutcome { phases: vec![admission], server_before: None, server_after: None, ..fixture::good_run() };
    let mut outcome = fixture::outcome(run);
    outcome.server = Default::default();
    outcome.server.address = "127.0.0.1:6379".to_owned();
    outcome.generator = Default::default();
    insta::assert_snapshot!(printed(&outcome, NARROW), @"");
}

#[test]
fn repeats_show_their_spread() {
    let mut slower = fixture::good_run();
    (slower.repeat, slower.phases[1].seconds) = (2, 0.8);
    let mut outcome = fixture::outcome(fixture::good_run());
    outcome.runs.push(slower);
    insta::assert_snapshot!(printed(&outcome, NARROW), @"");
}

#[test]
fn big_numbers_fit_a_narrow_terminal() {
    let mut run = fixture::good_run();
    for phase in &mut run.phases[1..] {
        phase.record.timeouts.command = 1_702_331;
        phase.record.service = fixture::latencies(1000);
        phase.record.service.record_censored(Duration::from_millis(5_120), 900);
        phase.record.errors.count(Fault::new(Stage::Read, Kind::Reset), 1_000_000, "\u{1b}[31mreset\u{7}");
        phase.seconds = 1234.5;
    }
    run.phases[1].record.keys.acknowledged = 100_000_000;
    let text = of_run(run);
    assert!(text.contains("1,702,331") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn colours_only_when_asked() {
    let outcome = fixture::outcome(fixture::good_run());
    assert!(!printed(&outcome, NARROW).contains('\u{1b}'));
    assert!(printed(&outcome, Look { colour: true, ..NARROW }).starts_with("\u{1b}["));
}
