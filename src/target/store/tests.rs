use proptest::prelude::*;

use super::*;
use crate::dataset::{KeyPattern, Order, Template, ValuePattern};
use crate::wire::dial::Dialer;
use crate::wire::testserver::{TIMEOUTS, TestServer};

const LIMIT: Duration = TIMEOUTS.command;

fn template(text: &str) -> Template {
    Template::parse_source(text).expect("a template")
}

fn dataset(clients: u32, keys: u64, key: KeyPattern, value: ValuePattern) -> Dataset {
    Dataset::new(42, clients, keys, 1, key, value, Order::Written)
}

fn uuids(clients: u32, keys: u64) -> Dataset {
    dataset(clients, keys, KeyPattern::Uuid, ValuePattern::Uuid)
}

async fn control(server: &TestServer) -> Control {
    let dialer = Dialer::new(&server.unix(), &TIMEOUTS).expect("no TLS");
    let dialed = dialer.dial().await.expect("admitted");
    Control::adopt(dialer, dialed)
}

async fn number(control: &Control, args: &[&[u8]]) -> i64 {
    match control.call(args, LIMIT).await {
        Ok(Value::Integer(number)) => number,
        other => panic!("{other:?}"),
    }
}

async fn write(control: &Control, dataset: &Dataset, version: Version) {
    for client in 0..dataset.clients() {
        for index in 0..dataset.keys() {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            dataset.key(Place { client, index }, &mut key);
            dataset.value(Place { client, index }, version, &mut value);
            let reply = control.call(&[b"SET", &key, &value], LIMIT).await;
            assert_eq!(reply, Ok(Value::Simple("OK".to_owned())));
        }
    }
}

#[tokio::test]
async fn flushing_empties_one_database_and_waits_for_the_memory() {
    let server = TestServer::start(&[]);
    let control = control(&server).await;
    let script = b"for i = 1, 50000 do redis.call('SET', 'k' .. i, i) end redis.call('SELECT', 1) return redis.call('SET', 'other', 1)";
    control.call(&[b"EVAL", script, b"0"], LIMIT).await.expect("a reply");
    assert_eq!(number(&control, &[b"DBSIZE"]).await, 50_000);
    flush(&control, LIMIT).await.expect("emptied");
    assert_eq!(number(&control, &[b"DBSIZE"]).await, 0);
    control.call(&[b"SELECT", b"1"], LIMIT).await.expect("a reply");
    assert_eq!(number(&control, &[b"DBSIZE"]).await, 1);
}

#[tokio::test]
async fn a_refused_flush_says_so() {
    let server = TestServer::start(&["--rename-command", "FLUSHDB", ""]);
    let broken = flush(&control(&server).await, LIMIT).await.expect_err("refused");
    assert!(broken.text.starts_with("FLUSHDB: ERR unknown command"), "{broken}");
}

#[tokio::test]
async fn a_probe_tells_what_an_earlier_run_left() {
    let server = TestServer::start(&[]);
    let control = control(&server).await;
    let data = uuids(3, 100);
    let found = probe(&control, &data, LIMIT).await.expect("looked up");
    assert_eq!(found, Probe { looked_up: 300, ..Probe::default() });
    assert_eq!((found.base(), found.common()), (None, None));
    write(&control, &data, 2).await;
    let found = probe(&control, &data, LIMIT).await.expect("looked up");
    assert_eq!((found.existing, found.base(), found.common()), (300, Some(2), Some(2)));
    // One client was cut short in an earlier version.
    write(&control, &uuids(1, 100), 1).await;
    let found = probe(&control, &data, LIMIT).await.expect("looked up");
    assert_eq!((found.existing, found.base(), found.common()), (300, Some(2), None));
    // Another seed's keys are others.
    let stranger = Dataset::new(7, 3, 100, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written);
    assert_eq!(probe(&control, &stranger, LIMIT).await.expect("looked up").existing, 0);
}

#[tokio::test]
async fn values_without_a_version_count_as_the_first() {
    let server = TestServer::start(&[]);
    let control = control(&server).await;
    let data = dataset(1, 3, KeyPattern::Template(template("k{n}")), ValuePattern::Template(template("same")));
    write(&control, &data, 1).await;
    control.call(&[b"SET", b"k2", b"somebody's"], LIMIT).await.expect("a reply");
    control.call(&[b"DEL", b"k3"], LIMIT).await.expect("a reply");
    control.call(&[b"LPUSH", b"k3", b"a list"], LIMIT).await.expect("a reply");
    let found = probe(&control, &data, LIMIT).await.expect("looked up");
    assert_eq!((found.existing, found.base(), found.common()), (3, Some(1), Some(1)));
}

#[tokio::test]
async fn cleaning_up_removes_our_keys_and_no_others() {
    let server = TestServer::start(&[]);
    let control = control(&server).await;
    let data = uuids(3, 450);
    write(&control, &data, 1).await;
    control.call(&[b"SET", b"somebody's", b"1"], LIMIT).await.expect("a reply");
    // All but the last key of each client, in batches of 200.
    for expected in [1_347, 0] {
        let (sender, written) = tokio::sync::mpsc::channel(1);
        let told = async {
            for client in 0..3 {
                let places: Vec<Place> = (0..449).map(|index| Place { client, index }).collect();
                for batch in places.chunks(200) {
                    sender.send(batch.to_vec()).await.expect("somebody listens");
                }
            }
            drop(sender);
        };
        let ((), removed) = tokio::join!(told, unlink(&control, &data, written, LIMIT));
        assert_eq!(removed, Ok(expected));
        assert_eq!(number(&control, &[b"DBSIZE"]).await, 4);
    }
}

#[test]
fn somebody_elses_database_is_left_alone() {
    let named = dataset(1, 1, KeyPattern::Template(template("k{n}")), ValuePattern::Uuid);
    let uuids = uuids(1, 1);
    let holding = |keys| Holding { server: "10.0.0.7:6379".into(), db: 3, keys };
    for (spawned, keys, allowed, free) in [
        (true, Some(5), false, true),
        (false, Some(0), false, true),
        (false, Some(5), true, true),
        (false, Some(5), false, false),
        (false, None, false, false),
    ] {
        assert_eq!(may_flush(spawned, holding(keys), allowed).is_ok(), free);
        assert_eq!(may_write(spawned, holding(keys), &named, allowed).is_ok(), free);
        assert!(may_write(spawned, holding(keys), &uuids, allowed).is_ok());
    }
    let text = may_flush(false, holding(Some(1)), false).expect_err("guarded").to_string();
    assert_eq!(text, "db 3 of 10.0.0.7:6379 holds 1 key that keyswarm may not own; --allow-flush lets it be emptied");
    assert!(
        may_write(false, holding(None), &named, false).expect_err("guarded").to_string().contains("--allow-overwrite")
    );
}

proptest! {
    #[test]
    fn a_sample_is_within_the_data_and_spread_from_end_to_end(clients in 1u32..=10_000, keys in 1u64..=1 << 30) {
        let data = uuids(clients, keys);
        let places: Vec<Place> = sample(&data).collect();
        prop_assert_eq!(places.len() as u64, (u64::from(clients) * keys).min(PROBES));
        prop_assert!(places.iter().all(|place| place.client < clients && place.index < keys));
        prop_assert!(places.is_sorted_by(|a, b| (a.client, a.index) < (b.client, b.index)));
        prop_assert_eq!(places[0], Place { client: 0, index: 0 });
        if places.len() > 1 {
            prop_assert_eq!(places[places.len() - 1], Place { client: clients - 1, index: keys - 1 });
        }
    }
}
