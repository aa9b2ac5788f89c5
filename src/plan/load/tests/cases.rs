//! `[[case]]` and `[ladder]`: which plans they come to, and what is wrong with them.

use super::super::super::{Between, Server, Store};
use super::*;

const CASES: &str = r#"
repeat = 2
[target]
spawn = {}
[[phase]]
run = "write"
[[phase]]
run = "verify"
[[case]]
label = "loop"
[[case]]
label = "window"
set = { "phase.write.pipeline" = 64, "clients.count" = 3 }
[[case]]
label = "elsewhere"
set = { target = { url = "redis://127.0.0.1" } }
[[case]]
[case.set]
dataset.keys = 5
phase.verify.pipeline = "all"
"#;

fn cases(text: &str, flags: &[&str]) -> Result<Cases, String> {
    let set = flags.iter().map(|&text| text.to_owned()).collect();
    cases_with(text, &Overrides { set, ..Overrides::default() }, &[0, 1])
}

fn right_cases(text: &str) -> Cases {
    cases(text, &[]).unwrap_or_else(|faults| panic!("{faults}"))
}

fn labels(cases: &Cases) -> Vec<&str> {
    cases.plans().iter().map(|plan| plan.case.as_deref().unwrap_or("-")).collect()
}

#[test]
fn each_case_is_a_plan_of_its_own() {
    let cases = right_cases(CASES);
    assert_eq!(labels(&cases), ["loop", "window", "elsewhere", "keys 5, pipeline all"]);
    let [first, window, elsewhere, fewer] = cases.plans() else { panic!("{cases:?}") };
    assert_eq!((first.clients.count, window.clients.count, window.repeat), (1, 3, 2));
    assert!(matches!(elsewhere.target.server, Server::Remote(_)) && matches!(first.target.server, Server::Spawned(_)));
    assert_eq!((first.dataset.keys(), fewer.dataset.keys()), (1_000_000, 5));
    assert_eq!(labels(&cases_of_one()), ["-"]);
}

fn cases_of_one() -> Cases {
    right_cases(GOOD)
}

#[test]
fn a_ladder_is_one_case_per_value() {
    let text = format!("{GOOD}\n[ladder]\n\"dataset.keys\" = [10_000, 100_000]\n");
    let cases = right_cases(&text);
    assert_eq!(labels(&cases), ["keys 10,000", "keys 100,000"]);
    assert_eq!(cases.plans().iter().map(|plan| plan.dataset.keys()).collect::<Vec<_>>(), [10_000, 100_000]);
    // A rung that is so by default is a rung, too.
    let text = format!("{GOOD}\n[ladder]\nphase.write.pipeline = [1, 64, \"all\"]\n");
    assert_eq!(labels(&right_cases(&text)), ["pipeline 1", "pipeline 64", "pipeline all"]);
}

#[test]
fn what_is_wrong_with_cases_is_told_together() {
    let text = r#"
[target]
spawn = {}
[dataset]
kees = 4
[[phase]]
run = "write"
[[case]]
label = "as is"
[[case]]
label = "as is"
set = { "phase.wrte.pipeline" = 1, "clients.count" = 0, "name" = "x" }
[[case]]
label = ""
sett = {}
[[case]]
label = "more"
set = { "limits.write.p99" = "1ms", "dataset.key" = "key", "clients.connections" = 0 }
[[case]]
label = "deep"
set = { "clients.count.x" = 1 }
"#;
    insta::assert_snapshot!(cases(text, &[]).unwrap_err(), @r#"
     × 10 errors in DIR/six.toml
       ╭─[DIR/six.toml:5:1]
     4 │ [dataset]
     5 │ kees = 4
       · ──┬─
       ·   ╰── unknown key; did you mean `keys`?
     6 │ [[phase]]
     7 │ run = "write"
     8 │ [[case]]
     9 │ label = "as is"
    10 │ [[case]]
    11 │ label = "as is"
       ·         ───┬───
       ·            ╰─┤ an earlier case is called "as is" already; give it a
       ·              │ `label`
    12 │ set = { "phase.wrte.pipeline" = 1, "clients.count" = 0, "name" = "x" }
       ·                ──┬─                                  ┬   ──┬─
       ·                  │                                   │     ╰─┤ `name` is the whole scenario's, so
       ·                  │                                   │       │ no case can set it
       ·                  │                                   ╰── must be at least 1
       ·                  ╰── no such phase; did you mean `write`?
    13 │ [[case]]
    14 │ label = ""
       ·         ─┬
       ·          ╰─┤ a label cannot be empty; leave it away, and the case is
       ·            │ called after what it sets
    15 │ sett = {}
       · ──┬─
       ·   ╰── unknown key; did you mean `set`?
    16 │ [[case]]
    17 │ label = "more"
    18 │ set = { "limits.write.p99" = "1ms", "dataset.key" = "key", "clients.connections" = 0 }
       ·                                                     ──┬──                          ┬
       ·                                                       │                            ╰── must be at least 1
       ·                                                       ╰─┤ it does not tell keys apart: it
       ·                                                         │ names no number, so all keys would
       ·                                                         │ be one; add `{n}`
    19 │ [[case]]
    20 │ label = "deep"
    21 │ set = { "clients.count.x" = 1 }
       ·                  ──┬──
       ·                    ╰── an integer is wanted here, this is a table
       ╰────
    "#);
    let both = format!("{CASES}\n[ladder]\n\"dataset.keys\" = [1, 2]\n");
    insta::assert_snapshot!(cases(&both, &[]).unwrap_err(), @r#"
     × 1 error in DIR/six.toml
       ╭─[DIR/six.toml:22:2]
    21 │ 
    22 │ [ladder]
       ·  ───┬──
       ·     ╰─┤ a scenario has [[case]] or [ladder], not both: each case is
       ·       │ compared with the first, and should differ in one thing; write
       ·       │ the rungs as cases
    23 │ "dataset.keys" = [1, 2]
       ╰────
    "#);
    let two = format!("{GOOD}\n[ladder]\n\"dataset.keys\" = [1, 2]\n\"clients.count\" = [1, 2]\n");
    insta::assert_snapshot!(cases(&two, &[]).unwrap_err(), @r#"
     × 1 error in DIR/six.toml
       ╭─[DIR/six.toml:18:1]
    17 │ "dataset.keys" = [1, 2]
    18 │ "clients.count" = [1, 2]
       · ───────┬───────
       ·        ╰─┤ one key climbs at a time, these are `dataset.keys` and
       ·          │ `clients.count`; write them as [[case]]
       ╰────
    "#);
}

#[test]
fn two_cases_that_do_the_same_are_a_slip() {
    let text = format!("{GOOD}\n[[case]]\n[[case]]\nlabel = \"ten\"\nset = {{ \"clients.count\" = 10 }}\n");
    insta::assert_snapshot!(cases(&text, &[]).unwrap_err(), @r#"
     × 1 error in DIR/six.toml
       ╭─[DIR/six.toml:18:9]
    17 │ [[case]]
    18 │ label = "ten"
       ·         ──┬──
       ·           ╰─┤ this case does the same as "as is"; let it set something
       ·             │ else, or leave it away
    19 │ set = { "clients.count" = 10 }
       ╰────
    "#);
}

#[test]
fn what_is_wrong_in_some_cases_only_names_the_first() {
    let text = GOOD.replace("run = \"verify\"", "run = \"verify\"\nkeys = 1_000")
        + "[[case]]\n[[case]]\nlabel = \"few\"\nset = { \"dataset.keys\" = 10 }\n";
    insta::assert_snapshot!(cases(&text, &[]).unwrap_err(), @r#"
     × 1 error in DIR/six.toml
       ╭─[DIR/six.toml:12:8]
    11 │ run = "verify"
    12 │ keys = 1_000
       ·        ──┬──
       ·          ╰─┤ in case "few": each client has 10 keys only
       ·            │ (`dataset.keys`)
    13 │ pipeline = 64
       ╰────
    "#);
}

#[test]
fn flags_change_every_case_but_what_a_case_sets_itself() {
    let count = |flags: &[&str]| {
        let cases = cases(CASES, flags).unwrap_or_else(|faults| panic!("{faults}"));
        cases.plans().iter().map(|plan| plan.clients.count).collect::<Vec<_>>()
    };
    assert_eq!(count(&["clients.count=7"]), [7, 3, 7, 7]);
    assert_eq!(count(&["case.window.set.\"clients.count\"=9"]), [1, 9, 1, 1]);
    let ladder = format!("{GOOD}\n[ladder]\n\"dataset.keys\" = [10_000, 100_000]\n");
    let small = cases(&ladder, &["ladder.\"dataset.keys\"=[1, 2, 3]"]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(labels(&small), ["keys 1", "keys 2", "keys 3"]);
    insta::assert_snapshot!(cases(&ladder, &["dataset.keys=5"]).unwrap_err(), @r"
     × 1 error on the command line
      ╭─[command line:1:7]
    1 │ --set dataset.keys=5
      ·       ───────┬──────
      ·              ╰─┤ changes nothing: it is so already, or each case sets it
      ·                │ itself (`--set case.LABEL.set.…` changes a case)
      ╰────
    ");
    let target = Overrides { target: Some("redis://h".into()), ..Overrides::default() };
    insta::assert_snapshot!(cases_with(CASES, &target, &[0, 1]).unwrap_err(), @r#"
     × 1 error in DIR/six.toml
       ╭─[DIR/six.toml:16:26]
    15 │ label = "elsewhere"
    16 │ set = { target = { url = "redis://127.0.0.1" } }
       ·                          ─────────┬─────────
       ·                                   ╰─┤ with --target every case loads that
       ·                                     │ server: leave this away, or --target
    17 │ [[case]]
       ╰────
    "#);
}

#[test]
fn a_label_never_shows_a_secret() {
    let ladder =
        "[[phase]]\nrun = \"write\"\n[ladder]\n\"target.url\" = [\"redis://:hunter2@a\", \"redis://:hunter3@b\"]\n";
    let cases = right_cases(ladder);
    assert_eq!(labels(&cases), ["url redis://:***@a", "url redis://:***@b"]);
    assert!(!cases.resolved().contains("hunter"), "{}", cases.resolved());
    let password = "[target]\nspawn = {}\n[[phase]]\nrun = \"write\"\n[[case]]\nset = { \"target.spawn.password\" = \"hunter2\" }\n\
                    [[case]]\nset = { \"target.spawn.password\" = \"${PW}3\" }\n";
    assert_eq!(labels(&right_cases(password)), ["case 1", "case 2"]);
}

/// A resolved scenario with cases resolves to the same cases.
#[test]
fn cases_come_back() {
    let cases = right_cases(CASES);
    let again = right_cases(&cases.resolved());
    assert_eq!(labels(&again), labels(&cases));
    for (one, other) in cases.plans().iter().zip(again.plans()) {
        assert_eq!(one.resolved, other.resolved);
    }
    insta::assert_snapshot!(cases.resolved().split_once("[[case]]").map(|(_, rest)| rest).unwrap_or_default(), @r#"
    label = "loop"

    [[case]]
    label = "window"
    set = { "clients.count" = 3, "phase.write.pipeline" = 64 }

    [[case]]
    label = "elsewhere"
    set = { "target" = { url = "redis://127.0.0.1:6379/0", protocol = 2, flush = "never", cleanup = "keep" } }

    [[case]]
    label = "keys 5, pipeline all"
    set = { "dataset.keys" = 5, "phase.verify.pipeline" = "all" }
    "#);
}

fn turns(text: &str) -> Vec<(usize, u32, Store, u64, u64)> {
    let turns = right_cases(text).turns().expect("numbers suffice");
    turns.iter().map(|turn| (turn.case, turn.repeat, turn.store, turn.shift.indexes, turn.writes_before)).collect()
}

#[test]
fn runs_follow_on_each_other() {
    use Store::{Emptied, Kept};
    let text = |between: &str, rest: &str| {
        format!("repeat = 2\nbetween = \"{between}\"\n{GOOD}\n[ladder]\n\"dataset.keys\" = [10, 5]\n{rest}")
    };
    assert_eq!(
        turns(&text("flush", "")),
        [(0, 1, Kept, 0, 0), (0, 2, Emptied, 0, 0), (1, 1, Emptied, 0, 0), (1, 2, Emptied, 0, 0)]
    );
    assert_eq!(
        turns(&text("next", "")),
        [(0, 1, Kept, 0, 0), (0, 2, Kept, 10, 0), (1, 1, Kept, 20, 0), (1, 2, Kept, 25, 0)]
    );
    assert_eq!(
        turns(&text("again", "")),
        [(0, 1, Kept, 0, 0), (0, 2, Kept, 0, 1), (1, 1, Kept, 0, 2), (1, 2, Kept, 0, 3)]
    );
    // Another server begins anew, and `flush = "before"` lets each case do so.
    let servers = text("next", "").replace("\"dataset.keys\" = [10, 5]", "\"target.spawn.maxclients\" = [100, 200]");
    assert_eq!(turns(&servers).iter().map(|turn| turn.3).collect::<Vec<_>>(), [0, 1_000_000, 0, 1_000_000]);
    let before = text("next", "").replace("[target]", "[target]\nflush = \"before\"");
    assert_eq!(turns(&before), [(0, 1, Emptied, 0, 0), (0, 2, Kept, 10, 0), (1, 1, Emptied, 0, 0), (1, 2, Kept, 5, 0)]);
}

#[test]
fn numbers_and_versions_must_suffice_for_all_runs() {
    assert_eq!(right_cases(&format!("repeat = 3\nbetween = \"again\"\n{GOOD}")).first().between, Between::Again);
    for (top, fault) in [
        ("repeat = 1000\nbetween = \"next\"\ndataset.keys = 1099511627776", "the numbers of the keys would"),
        ("repeat = 2\nbetween = \"next\"\ndataset = { keys = 1, key = \"{client}\" }", "`{client}` alone is"),
        ("between = \"again\"\ntarget.cleanup = \"unlink\"", "the next would find none"),
    ] {
        let text = GOOD.replacen("[target]\n", "", 1);
        let text = text.replacen("spawn =", "target.spawn =", 1);
        let faults = cases(&format!("{top}\n{text}"), &[]).expect_err(fault);
        assert!(faults.contains(fault), "{faults}");
    }
    let many = format!("repeat = 6000\n{GOOD}\n[ladder]\n\"dataset.keys\" = [1, 2]\n");
    assert!(cases(&many, &[]).expect_err("too many").contains("12,000 runs"));
}
