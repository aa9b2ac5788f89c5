//! A resolved plan, written as a scenario, resolves to itself.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::plan::{Surroundings, load};
use crate::scenario::Overrides;

fn plan(text: &str, folder: &Path) -> Plan {
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).expect("a file");
    let surroundings = Surroundings { environment: &|_| None, cores: (0..8).collect() };
    match load(&path, &Overrides::default(), &surroundings) {
        Ok(cases) => cases.first().clone(),
        Err(faults) => panic!("{faults}\n{text}"),
    }
}

/// All of a plan, except for the advice, part of which is about defaults.
fn shown(mut plan: Plan) -> String {
    plan.advice.clear();
    format!("{plan:#?}")
}

#[test]
fn the_least_scenario_has_every_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan("target.spawn = {}\n[[phase]]\nrun = \"write\"\n", folder.path());
    insta::assert_snapshot!(plan.resolved, @r#"
    name = "scenario"
    seed = 42
    repeat = 1
    between = "flush"

    [target]
    spawn = { program = "redis-server", args = [] }
    protocol = 2
    flush = "never"
    cleanup = "keep"

    [clients]
    count = 1
    connections = 1
    driver = "socket"
    stagger = "0s"
    threads = 1
    spin = false

    [timeouts]
    connect = "5s"
    setup = "5s"
    command = "5s"
    silence = "15s"

    [dataset]
    keys = 1000000
    key = "uuid"
    first = 1
    value = "uuid"
    order = "written"

    [[phase]]
    name = "write"
    run = "write"
    pipeline = 1
    batch = 1
    replies = "await"

    [limits]

    [sample]
    interval = "1s"
    "#);
}

/// The page about scenarios tells the defaults that the plan has.
#[test]
fn the_page_about_scenarios_tells_the_defaults() {
    let folder = tempfile::tempdir().expect("a folder");
    let resolved = plan("target.spawn = {}\n[[phase]]\nrun = \"write\"\n", folder.path()).resolved;
    let resolved = toml_edit::Document::parse(resolved).expect("TOML");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/README.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut compared = 0;
    for row in page.lines() {
        let [_, key, _, default, ..] = row.split('|').collect::<Vec<_>>()[..] else { continue };
        let Some((key, default)) = bare(key).zip(bare(default)) else { continue };
        let key = key.replace("phase.", "phase.0.");
        let found = key.split('.').try_fold(resolved.as_item(), |item, name| match name.parse::<usize>() {
            Ok(number) => item.get(number),
            Err(_) => item.get(name),
        });
        // Tables such as `tls` are not in every scenario.
        let Some(value) = found.and_then(toml_edit::Item::as_value) else { continue };
        assert_eq!(value.to_string().trim(), default.replace('_', ""), "{row}");
        compared += 1;
    }
    assert!(compared >= 20, "{compared}");
}

/// What stands in backticks, alone in its cell.
fn bare(cell: &str) -> Option<&str> {
    cell.trim().strip_prefix('`')?.strip_suffix('`').filter(|text| !text.contains('`'))
}

#[test]
fn tls_files_are_found_from_the_scenario_s_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["ca.pem", "c.pem", "c.key"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    let text = r#"
phase = [{ run = "verify" }]
[target]
url = "rediss://example"
tls = { ca = "ca.pem", cert = "c.pem", key = "c.key", server_name = "other" }
"#;
    let first = plan(text, folder.path());
    let elsewhere = tempfile::tempdir().expect("a folder");
    assert_eq!(shown(plan(&first.resolved, elsewhere.path())), shown(first));
}

/// One of some lines for a key, or none.
fn line(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::option::of(prop::sample::select(lines)).prop_map(|line| line.unwrap_or_default().to_owned() + "\n")
}

fn scenario() -> impl Strategy<Value = String> {
    let top = (
        line(&["name = \"a ${NONE:-b}.$${c}\"", "name = 'größe \"1\"'", "description = \"two\\nlines\""]),
        line(&["seed = 0", "seed = 9_223_372_036_854_775_807"]),
        line(&["repeat = 3"]),
    );
    let target = (
        prop::sample::select(vec![
            "url = 'redis://me:@h:1/2'",
            "url = 'redis+unix://me:@/tmp/a%20b.sock?db=1'",
            "url = 'rediss://[::1]'\ntls = { insecure = true, server_name = 'x' }",
            "spawn = {}",
            "spawn = { cpus = 'auto', maxmemory = '4GB', maxclients = 100, tcp_backlog = 5, args = ['--save', ''] }",
        ]),
        line(&["protocol = 3", "flush = 'before'", "cleanup = 'unlink'"]),
    );
    let clients = (
        line(&["count = 5\nthreads = 2"]),
        line(&["connections = 3"]),
        line(&["driver = 'fred'", "driver = 'socket'"]),
        line(&["stagger = '1.5s'", "spin = true", "cpus = [3]", "cpus = 'auto'"]),
    );
    let timeouts = line(&["command = '90s'", "command = '1ms'\nsilence = '2h'", "connect = '500us'\nsetup = '1m'"]);
    let dataset = (
        line(&["keys = 7", "keys = 1_000\nfirst = 0"]),
        line(&["key = '{client}:{i}'", "key = 'k{n:07}{{}}$${i}'", "key = 'uuid'"]),
        line(&[
            "value = 'constant'",
            "value = { random = '100kB' }",
            "value = { random = '1KiB', alphabet = 'hex' }",
            "value = { size = '100001B' }",
            "value = { sizes = [['100B', 9], ['10kB', 1]], alphabet = 'alphanumeric' }",
            "value = { sizes = [['100B', 9]] }",
        ]),
        line(&["order = 'shuffled'"]),
    );
    let phases = prop::collection::vec(
        prop::sample::select(vec![
            "run = 'write'",
            "run = 'write'\npipeline = 64",
            "run = 'verify'\npipeline = 'all'",
            "run = 'wait'\nduration = '3s'",
        ]),
        1..5,
    );
    let limits = (
        line(&["timeouts = 0", "errors = 5\nlost = 0\nmismatched = 1"]),
        line(&["p50 = '1ms'\np999 = '2s'", "max = '1m'"]),
    );
    (top, target, clients, timeouts, dataset, phases, limits).prop_map(
        |(top, target, clients, timeouts, dataset, phases, limits)| {
            let phases: String = phases.iter().map(|phase| format!("[[phase]]\n{phase}\n")).collect();
            let named = "[[phase]]\nname = 'a.b \"c'\nrun = 'verify'\n[limits.'a.b \"c']\np99 = '1s'\n";
            format!(
                "{}{}{}[target]\n{}\n{}[clients]\n{}{}{}{}[timeouts]\n{timeouts}[dataset]\n{}{}{}{}{phases}[limits]\n{}{}{named}",
                top.0, top.1, top.2, target.0, target.1, clients.0, clients.1, clients.2, clients.3, dataset.0,
                dataset.1, dataset.2, dataset.3, limits.0, limits.1
            )
        },
    )
}

/// The table of a search, or none. Every scenario can have it.
fn search() -> impl Strategy<Value = String> {
    let tables = vec![
        "",
        "\n[search]\nvary = 'clients.count'\nto = 9\n",
        "\n[search]\nvary = 'clients.connections'\nfrom = 2\nto = 300\nconfirm = 5\nwidth = '0.5%'\n",
        "\n[search]\nvary = 'connect.burst'\nto = 1_000\nwidth = '0%'\n",
    ];
    prop::sample::select(tables).prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn a_resolved_scenario_resolves_to_the_same_plan(text in (scenario(), search()).prop_map(|(text, search)| text + &search)) {
        let folder = tempfile::tempdir().expect("a folder");
        let first = plan(&text, folder.path());
        let second = plan(&first.resolved, folder.path());
        prop_assert_eq!(&second.resolved, &first.resolved);
        prop_assert_eq!(shown(second), shown(first));
    }

    #[test]
    fn no_file_makes_it_panic(text in "(\\[[a-z.]{0,9}\\]\n|[a-z]{1,5} = [\"'0-9a-z{}\\[\\]$=,é]{0,9}\n|target.spawn.|password|url = \"redis://){0,9}") {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.toml");
        std::fs::write(&path, &text).expect("a file");
        let surroundings = Surroundings { environment: &|_| None, cores: Vec::new() };
        let overrides = Overrides { set: vec![text], ..Overrides::default() };
        if let Err(faults) = load(&path, &overrides, &surroundings) {
            prop_assert!(!faults.render(true, 10).is_empty());
        }
    }
}
