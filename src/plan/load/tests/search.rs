//! `[search]`: what is varied, how far, and the plan of one trial.

use std::time::Duration;

use super::super::super::{Opening, Pipeline, Run, SearchPlan, Until, Vary};
use super::*;

/// A scenario with a search, given the lines of its table.
fn with(search: &str) -> String {
    let phases = r#"
[[phase]]
name = "load"
run = "verify"
rate = "100/s"
duration = "1s"
[[phase]]
run = "wait"
duration = "1s"
"#;
    format!("{GOOD}{phases}[search]\n{search}\n")
}

fn flags(text: &str, search: &[(&'static str, &str)]) -> Result<Plan, String> {
    let search = search.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    load_with(text, &Overrides { search, ..Overrides::default() }, &[0, 1])
}

/// What is wrong, as one line.
fn faults(text: &str) -> String {
    let words = wrong(text);
    words.split_whitespace().filter(|word| !word.starts_with(['│', '·', '╰', '─'])).collect::<Vec<_>>().join(" ")
}

fn search(plan: &Plan) -> &SearchPlan {
    plan.search.as_ref().expect("a search")
}

#[test]
fn what_is_left_out_has_a_default() {
    let plan = right(&with("vary = \"clients.count\"\nto = 256"));
    let wanted = SearchPlan { vary: Vary::Clients, from: 1, to: 256, trial: None, confirm: 3, width_percent: 2.0 };
    assert_eq!(search(&plan), &wanted);
    assert_eq!(right(GOOD).search, None);
}

#[test]
fn flags_say_the_same_as_the_table() {
    let table = with("vary = \"phase.load.rate\"\nfrom = \"1k/s\"\nto = \"50_000/s\"\nconfirm = 5\nwidth = \"0.5%\"");
    let by_flags = flags(
        &with("vary = \"clients.count\"\nto = 9"),
        &[("vary", "phase.load.rate"), ("from", "1k/s"), ("to", "50_000/s"), ("confirm", "5"), ("width", "0.5%")],
    )
    .unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(by_flags.search, right(&table).search);
    assert_eq!((search(&by_flags).from, search(&by_flags).to), (1_000, 50_000));
    // Without a table, too.
    let text = GOOD;
    let plan = flags(text, &[("vary", "connect.burst"), ("to", "64")]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((&search(&plan).vary, search(&plan).to), (&Vary::Burst, 64));
}

#[test]
fn a_flag_that_changes_nothing_is_an_error() {
    let text = with("vary = \"clients.count\"\nto = 256");
    for (name, value) in [("to", "256"), ("confirm", "3"), ("width", "2%"), ("vary", "clients.count")] {
        let shown = flags(&text, &[(name, value)]).expect_err("a fault");
        assert!(shown.contains("changes nothing") && shown.contains(&format!("--{name} {value}")), "{shown}");
    }
    let overrides =
        Overrides { set: vec!["search.to=9".to_owned()], search: vec![("to", "8".to_owned())], ..Overrides::default() };
    let shown = load_with(&text, &overrides, &[0, 1]).expect_err("a fault");
    assert!(shown.contains("set twice"), "{shown}");
}

#[test]
fn what_makes_no_search_is_told_with_its_mend() {
    for (lines, what) in [
        ("vary = \"clients.count\"", "a search needs `to`"),
        ("to = 9", "a search needs `vary`"),
        ("vary = \"clients.cuont\"\nto = 9", "did you mean \"clients.count\"?"),
        ("vary = \"phase.wirte.pipeline\"\nto = 9", "did you mean \"phase.write.pipeline\"?"),
        ("vary = \"phase.wait.pipeline\"\nto = 9", "a wait phase sends nothing"),
        ("vary = \"phase.write.rate\"\nfrom = \"1/s\"\nto = \"9/s\"", "has no `rate` that could be varied"),
        ("vary = \"phase.load.rate\"\nto = \"9/s\"", "needs `from`"),
        ("vary = \"phase.load.rate\"\nfrom = 1\nto = 9", "a rate has a unit"),
        ("vary = \"clients.count\"\nto = \"9/s\"", "a number is wanted here"),
        ("vary = \"clients.count\"\nfrom = 9\nto = 9", "`to` must be above `from`"),
        ("vary = \"clients.count\"\nfrom = 0\nto = 9", "a level is from 1 to 1,048,576"),
        ("vary = \"clients.connections\"\nto = 70_000", "a level is from 1 to 65,535"),
        ("vary = \"clients.count\"\nto = 9\nwidth = 2", "a share such as"),
        ("vary = \"clients.count\"\nto = 9\nwidth = \"60%\"", "at most 50%"),
        ("vary = \"clients.count\"\nto = 9\nconfirm = 0", "must be at least 1"),
        ("vary = \"clients.count\"\nto = 9\ntrial = \"0s\"", "longer than nothing"),
        ("vary = \"connect.burst\"\nto = 9\ntrial = \"5s\"", "`trial` has no effect"),
        ("vary = \"clients.count\"\nto = 9\nstep = 2", "unknown key"),
    ] {
        let shown = faults(&with(lines));
        assert!(shown.contains(what), "{lines}: {shown}");
    }
    let one_pass = GOOD.replacen("pipeline = 64", "pipeline = \"all\"", 1);
    let shown = faults(&format!("{one_pass}[search]\nvary = \"clients.count\"\nto = 9\ntrial = \"5s\""));
    assert!(shown.contains("in `write` everything is due at the start"), "{shown}");
}

#[test]
fn a_percentile_wants_requests_beyond_it() {
    let search = |limits: &str, from: &str, more: &str| {
        let table = format!("vary = \"phase.load.rate\"\nfrom = \"{from}/s\"\nto = \"9k/s\"\n{more}");
        format!("{}\n{limits}\n", with(&table))
    };
    for (limits, from, more) in [
        ("", "1", ""),
        ("[limits.load]\np50 = \"5ms\"", "1", ""),
        ("[limits.load]\np90 = \"5ms\"", "100", ""),
        ("[limits.load]\np99 = \"5ms\"", "1000", ""),
        ("[limits.load]\np99 = \"5ms\"", "100", "trial = \"10s\""),
        ("[limits.write]\np99 = \"5ms\"", "1", ""),
    ] {
        right(&search(limits, from, more));
    }
    let shown = faults(&search("[limits.load]\np99 = \"5ms\"", "40", ""));
    for part in ["40/s, has 40 requests in 1 s", "99th percentile: that takes 1,000", "\"1000/s\"", "last 25 s"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let low = search("[limits.load]\np99 = \"5ms\"", "40", "").replace("9k/s", "90/s");
    assert!(faults(&low).contains("1,000. Let a trial last 25 s"), "advice within the range");
    assert!(faults(&search("[limits.load]\np999 = \"5ms\"", "1000", "")).contains("10,000"));
    let of_all = faults(&search("", "999", "").replace("[limits]\n", "[limits]\np99 = \"1s\"\n"));
    assert!(of_all.contains("too few for a 99th"), "{of_all}");
}

#[test]
fn the_highest_level_must_make_a_plan() {
    let keys = |dataset: &str| format!("{GOOD}[dataset]\n{dataset}\n[search]\nvary = \"clients.count\"\nto = 20\n");
    let shown = faults(&keys("keys = 1000\nfirst = 9_223_372_036_854_764_000"));
    assert!(shown.contains("would leave 63 bits"), "{shown}");
    let one = keys("keys = 5\nkey = \"k{i}\"").replace("count = 10", "count = 1");
    let shown = faults(&one);
    assert!(shown.contains("two clients would share keys"), "{shown}");
}

#[test]
fn a_trial_is_the_scenario_with_one_thing_changed() {
    let plan = right(&with("vary = \"clients.count\"\nto = 256\ntrial = \"7s\""));
    let trial = plan.at(search(&plan), 41);
    assert_eq!((trial.clients.count, trial.dataset.clients(), trial.repeat), (41, 41, 1));
    let seconds: Vec<_> = trial.phases.iter().map(|phase| phase.run.lasts().map(|lasts| lasts.as_secs())).collect();
    assert_eq!(seconds, [Some(7), Some(7), Some(7), Some(1)], "a wait is no load");

    let plan = right(&with("vary = \"phase.write.pipeline\"\nto = 256"));
    let trial = plan.at(search(&plan), 41);
    let Run::Write(load) = trial.phases[0].run else { panic!("it writes") };
    assert_eq!((load.pipeline, load.until), (Pipeline::Window(41), Until::Pass));
    assert_eq!(trial.phases[1].run, plan.phases[1].run);

    let plan = right(&with("vary = \"phase.load.rate\"\nfrom = \"1/s\"\nto = \"256/s\""));
    assert!(plan.limits.run.p99.is_none(), "else a thousand requests were wanted");
    let trial = plan.at(search(&plan), 41);
    assert_eq!(trial.phases[2].run.load().and_then(|load| load.rate).map(|rate| rate.per_second), Some(41.0));
}

#[test]
fn a_burst_only_connects_and_few_connections_need_few_threads() {
    let text = with("vary = \"connect.burst\"\nto = 256").replace("cpus = \"auto\"\n[[", "threads = 4\n[[");
    let plan = right(&text);
    let trial = plan.at(search(&plan), 3);
    assert_eq!((trial.clients.count, trial.clients.connections, trial.clients.threads), (3, 1, 3));
    assert_eq!((trial.clients.opening, trial.clients.stagger), (Opening::AtOnce, Duration::ZERO));
    assert!(trial.phases.is_empty());
    assert_eq!(plan.clients.opening, Opening::Paced);
}
