//! What a person sees, kept as snapshots. `INSTA_UPDATE=always` writes them anew; read them before they are committed.

use crate::run::Keyswarm;
use crate::scenario::{ALL, Scenario};

/// Numbers that depend on the machine stand before these words.
fn masked(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(String::from).collect();
    for at in 1..words.len() {
        let of_machine = ["fds", "ports"].iter().any(|word| words[at].trim_end_matches([',', '.', '\n']) == *word);
        if of_machine && words[at - 1].chars().all(|digit| digit.is_ascii_digit() || digit == ',') {
            words[at - 1] = "#".into();
        }
    }
    words.join(" ")
}

/// What a narrow terminal shows.
fn narrow(args: &[&str]) -> String {
    let shown = Keyswarm::new(args).env("COLUMNS", "80").finish().expect(0).stdout;
    let longest = shown.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{shown}");
    shown
}

#[test]
fn help() {
    insta::assert_snapshot!(narrow(&["--help"]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(narrow(&["run", "--help"]));
}

#[test]
fn help_of_limit() {
    insta::assert_snapshot!(narrow(&["limit", "--help"]));
}

#[test]
fn help_of_check() {
    insta::assert_snapshot!(narrow(&["check", "--help"]));
}

#[test]
fn a_valid_scenario() {
    let scenario = Scenario::new()
        .text("name", "ten-clients")
        .size(10, 1_000_000)
        .waits("5s")
        .target("redis://loader:secret@192.168.56.101:6379/0")
        .write(ALL)
        .wait("10s")
        .verify(64);
    insta::assert_snapshot!(masked(&Keyswarm::on_file("check", &scenario.toml()).finish().expect(0).stdout));
}

#[test]
fn three_errors_in_one_file() {
    let scenario = Scenario::new()
        .set("clients.cuont", 6)
        .set("timeouts.command", 5)
        .text("dataset.key", "same")
        .target("redis://127.0.0.1:6379/0")
        .write(64);
    insta::assert_snapshot!(Keyswarm::on_file("check", &scenario.toml()).finish().expect(2).stderr);
}

#[test]
fn a_file_that_is_no_toml() {
    insta::assert_snapshot!(Keyswarm::on_file("check", "name = \"x\"\nseed = \n").finish().expect(2).stderr);
}
