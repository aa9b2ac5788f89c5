use std::slice::from_ref;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::plan::Load;
use crate::record::Class;
use crate::verdict::{fixture, judge};
use crate::wire::fault::{Fault, Kind, Stage};

fn json_of(outcome: &Outcome) -> Value {
    let plan = fixture::plan();
    serde_json::to_value(document(from_ref(&plan), outcome, &judge(from_ref(&plan), outcome))).expect("serialisable")
}

/// Every path of the contract, `[]` for any element of an array. `?` at the end: null as long as nothing is known.
const CONTRACT: &str = "
    schema name seed version started verdict reasons warnings bottleneck? limit?
    runs[].case? runs[].repeat
    generator.cpu_seconds generator.cpu_percent_max generator.rss_bytes_max
    generator.send_lag_us? generator.ceiling? generator.bound?
    server.version server.cpu_seconds server.cpu_percent_max server.memory_bytes_max server.keys_before
    server.keys_after server.evicted server.rejected_connections server.commands server.reconciled?
    environment.cpu? environment.cores environment.memory_bytes? environment.kernel environment.server_config
    environment.sysctls environment.keyswarm environment.debug_build
";

/// The same below `runs[].phases[]`.
const PHASE: &str = "
    name run seconds loop
    requests.scheduled requests.ok requests.failed requests.timed_out requests.discarded requests.unsent
    keys.scheduled keys.acknowledged keys.refused keys.unknown keys.not_sent
    keys.checked keys.matched keys.lost keys.absent keys.stale keys.foreign keys.corrupt keys.undecided keys.unread
    keys.examples[].client keys.examples[].key keys.examples[].class keys.examples[].expected keys.examples[].got?
    keys.examples[].owner?
    timeouts.connect timeouts.setup timeouts.command
    errors[].stage errors[].kind errors[].count errors[].example
    requests_per_second keys_per_second bytes_sent bytes_received
    latency_us.service.count latency_us.service.censored latency_us.response.count latency_us.response.censored
    latency_us.service.p50? latency_us.service.p90? latency_us.service.p99? latency_us.service.p999?
    latency_us.service.p9999? latency_us.service.max? latency_us.response.p50? latency_us.response.p90?
    latency_us.response.p99? latency_us.response.p999? latency_us.response.p9999? latency_us.response.max?
    connect.admitted connect.refused connect.tcp_us.p99? connect.tls_us.p99? connect.setup_us.p99?
    connect.tcp_us.count connect.tls_us.count connect.setup_us.count
    clients[].id clients[].seconds clients[].ok clients[].failed clients[].timed_out clients[].lost
";

/// Walks one path and says where it ends: no such field, or null where a value is due.
fn walk(value: &Value, path: &str, may_be_null: bool) -> Result<(), String> {
    let Some((head, rest)) = path.split_once('.').map(|(head, rest)| (head, Some(rest))).or(Some((path, None))) else {
        return Ok(());
    };
    let (name, array) = head.strip_suffix("[]").map_or((head, false), |name| (name, true));
    let found = value.get(name).ok_or_else(|| format!("{head} is missing"))?;
    match (rest, array) {
        (None, _) if found.is_null() && !may_be_null => Err(format!("{head} is null")),
        (None, _) => Ok(()),
        (Some(rest), false) => walk(found, rest, may_be_null),
        (Some(rest), true) => {
            let elements = found.as_array().ok_or_else(|| format!("{head} is no array"))?;
            elements.iter().try_for_each(|element| walk(element, rest, may_be_null))
        }
    }
}

fn assert_contract(value: &Value, paths: &str) {
    for path in paths.split_whitespace() {
        let (path, may_be_null) = path.strip_suffix('?').map_or((path, false), |path| (path, true));
        walk(value, path, may_be_null).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

/// A run with one of everything.
fn eventful() -> Outcome {
    let mut run = fixture::good_run();
    let record = &mut run.phases[2].record;
    record.errors.count(Fault::new(Stage::Read, Kind::Reset), 2, "Connection reset by peer");
    record.service.record_censored(Duration::from_secs(5), 1);
    let owner = Owner { client: 3, index: Some(9), version: Some(1) };
    record.keep(WrongReading {
        client: 1,
        index: 7,
        version: 1,
        class: Class::Foreign,
        got: Some("x".into()),
        owner: Some(owner),
    });
    record.keep(WrongReading { client: 1, index: 8, version: 1, class: Class::Lost, got: None, owner: None });
    fixture::outcome(run)
}

#[test]
fn every_field_of_the_contract_is_there_in_every_phase() {
    let empty = RunOutcome { phases: vec![PhaseOutcome::default()], ..fixture::good_run() };
    for outcome in [fixture::outcome(fixture::good_run()), eventful(), fixture::outcome(empty)] {
        let value = json_of(&outcome);
        assert_contract(&value, CONTRACT);
        for phase in value["runs"][0]["phases"].as_array().expect("phases") {
            assert_contract(phase, PHASE);
        }
    }
}

#[test]
fn nothing_measured_is_null_and_nothing_counted_is_zero() {
    let value = json_of(&fixture::outcome(fixture::good_run()));
    let phases = &value["runs"][0]["phases"];
    assert_eq!(phases[0]["latency_us"]["service"]["p99"], Value::Null);
    assert_eq!(phases[0]["requests"]["scheduled"], 0);
    assert_eq!(phases[1]["connect"]["admitted"], 0);
    assert_eq!(phases[1]["connect"]["tls_us"]["max"], Value::Null);
    assert_eq!(
        (&value["runs"][0]["case"], &value["bottleneck"], &value["limit"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(value["server"]["reconciled"], true);
    assert_eq!(value["started"], "2026-11-30T08:40:12Z");
}

#[test]
fn a_phase_without_time_or_answers_has_no_endless_rate() {
    let mut run = fixture::good_run();
    run.phases[1].seconds = 0.0;
    run.phases[2].seconds = f64::NAN;
    let value = json_of(&fixture::outcome(run));
    for phase in 1..=2 {
        let phase = &value["runs"][0]["phases"][phase];
        assert_eq!((&phase["keys_per_second"], &phase["requests_per_second"]), (&json!(0.0), &json!(0.0)));
        assert_eq!(phase["seconds"], 0.0);
    }
}

#[test]
fn rates_count_successes_only() {
    let mut run = fixture::good_run();
    let record = &mut run.phases[1].record;
    (record.requests.ok, record.requests.timed_out) = (600, 400);
    (record.keys.acknowledged, record.keys.unknown) = (600, 400);
    let phase = &json_of(&fixture::outcome(run))["runs"][0]["phases"][1];
    assert_eq!((&phase["requests_per_second"], &phase["keys_per_second"]), (&json!(1200.0), &json!(1200.0)));
}

#[test]
fn response_is_service_in_a_closed_loop_and_its_own_in_an_open_one() {
    let mut outcome = fixture::outcome(fixture::good_run());
    let value = json_of(&outcome);
    let latency = &value["runs"][0]["phases"][1]["latency_us"];
    assert_eq!(latency["service"], latency["response"]);
    outcome.runs[0].phases[1].load = Some(Load::pass(Pipeline::All));
    let value = json_of(&outcome);
    let phase = &value["runs"][0]["phases"][1];
    assert_eq!(phase["latency_us"]["response"]["p50"], Value::Null);
    assert_eq!((&phase["loop"], &phase["pipeline"]), (&json!("open"), &json!("all")));
}

#[test]
fn an_example_has_its_key_and_value_generated_anew() {
    let value = json_of(&eventful());
    let examples = &value["runs"][0]["phases"][2]["keys"]["examples"];
    let dataset = fixture::plan().dataset;
    let key = |client, index| key(&dataset, Place { client, index });
    let mut expected = Vec::new();
    dataset.value(Place { client: 1, index: 7 }, 1, &mut expected);
    let expected = String::from_utf8(expected).expect("a UUID");
    let owner = json!({ "client": 3, "key": key(3, 9), "index": 9, "version": 1 });
    assert_eq!(
        examples[0],
        json!({ "client": 1, "key": key(1, 7), "class": "foreign", "expected": expected, "got": "x", "owner": owner })
    );
    assert_eq!(
        (&examples[1]["class"], &examples[1]["got"], &examples[1]["owner"]),
        (&json!("lost"), &Value::Null, &Value::Null)
    );
}

#[test]
fn an_owner_outside_of_the_dataset_has_no_key() {
    let dataset = fixture::plan().dataset;
    let stranger = owner(&dataset, Owner { client: 70_000, index: Some(u64::MAX), version: None });
    assert_eq!((stranger.client, stranger.key), (70_000, None));
}

#[test]
fn lower_bounds_are_named() {
    let value = json_of(&eventful());
    let service = &value["runs"][0]["phases"][2]["latency_us"]["service"];
    assert_eq!((&service["at_least"], &service["censored"]), (&json!(["p9999", "max"]), &json!(1)));
}

#[test]
fn what_is_stored_can_be_read_again() {
    let plan = fixture::plan();
    let outcome = eventful();
    let stored = document(from_ref(&plan), &outcome, &judge(from_ref(&plan), &outcome));
    let text = serde_json::to_string(&stored).expect("serialisable");
    assert_eq!(serde_json::from_str::<result::Document>(&text).expect("valid"), stored);
}

#[test]
fn a_secret_among_the_settings_is_left_out() {
    let mut outcome = fixture::outcome(fixture::good_run());
    outcome.environment.server_config.insert("requirepass".to_owned(), "hunter2".to_owned());
    assert!(!json_of(&outcome).to_string().contains("hunter2"));
}
