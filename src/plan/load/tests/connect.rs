//! Connect phases.

use super::{right, wrong};
use crate::plan::{Churn, Run, Sockets};

fn churn(phase: &str) -> Churn {
    let plan = right(&format!("target.spawn = {{}}\n[[phase]]\nrun = \"connect\"\n{phase}"));
    assert_eq!(right(&plan.resolved).resolved, plan.resolved, "it can be run again");
    assert_eq!(plan.phases[0].name, "connect-2", "the admission is called connect");
    match plan.phases[0].run {
        Run::Connect(churn) => churn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_small() {
    let one = Churn { times: 7, warmup: 7, concurrency: 1, sockets: Sockets::Fresh };
    assert_eq!(churn("times = 7"), one);
    assert_eq!(churn("times = 10_000").warmup, 100);
    let given = Churn { times: 9, warmup: 20, concurrency: 9, sockets: Sockets::Pooled };
    assert_eq!(churn("times = 9\nwarmup = 20\nconcurrency = 9\npool = true"), given);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = r#"
target.spawn = {}
[[phase]]
name = "none"
run = "connect"
pipeline = 4
[[phase]]
name = "few"
run = "connect"
times = 5
concurrency = 6
[[phase]]
run = "write"
pool = true
[limits.few]
lost = 0
"#;
    let told = wrong(text);
    for what in [
        "5 errors",
        "a connect phase needs its `times`, such as 10_000",
        "so `pipeline` has no",
        "above `times` = 5",
        "so `pool` has no",
        "a connect phase reads nothing back",
    ] {
        let joined = told.replace(['│', '·'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(what), "{what}\n{told}");
    }
}

#[test]
fn what_fred_cannot_tell_is_said_before() {
    let text = |driver: &str| {
        format!("target.spawn = {{}}\nclients.driver = {driver:?}\nphase = [{{ run = \"connect\", times = 5 }}]")
    };
    assert!(right(&text("fred")).advice.iter().any(|advice| advice.contains("fred opens a connection")));
    assert!(right(&text("socket")).advice.is_empty());
}
