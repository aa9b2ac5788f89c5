//! What the pure parts of a request cost: `cargo bench`, or `cargo bench -- read` for those whose name has "read" in it.
//! How they do together, against a server, is what `scripts/bench` tells.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use keyswarm_pure::dataset::{Alphabet, Dataset, KeyPattern, Order, Place, Sizes, Template, ValuePattern, Walk};
use keyswarm_pure::wire::resp::{self, Scan};

fn main() {
    divan::main();
}

/// Requests of a full window.
const WINDOW: u64 = 64;
const KEYS: u64 = 1_000_000;

fn dataset(key: &str, value: &str) -> Dataset {
    let template = |source: &str| Template::parse_source(source).expect("a template");
    let key = if key == "uuid" { KeyPattern::Uuid } else { KeyPattern::Template(template(key)) };
    let bytes = |alphabet, bytes| ValuePattern::Bytes { sizes: Sizes::fixed(bytes), alphabet };
    let value = match value {
        "uuid" => ValuePattern::Uuid,
        "1 kB" => bytes(Alphabet::Alphanumeric, 1_000),
        "100 kB" => bytes(Alphabet::Alphanumeric, 100_000),
        "100 kB hex" => bytes(Alphabet::Hex, 100_000),
        "100 kB binary" => bytes(Alphabet::Binary, 100_000),
        other => ValuePattern::Template(template(other)),
    };
    Dataset::new(42, 4, KEYS, 0, key, value, Order::Shuffled)
}

fn places() -> impl Iterator<Item = Place> {
    (0..WINDOW).map(|n| Place { client: 1, index: n * 7919 })
}

#[divan::bench(args = ["uuid", "key:{n:012}", "{client}:{i}"])]
fn key(bencher: Bencher<'_, '_>, pattern: &str) {
    let (dataset, mut out) = (dataset(pattern, "uuid"), Vec::new());
    bencher.counter(ItemsCount::new(WINDOW)).bench_local(|| {
        out.clear();
        black_box(places()).for_each(|place| dataset.key(place, &mut out));
        black_box(&out);
    });
}

const VALUES: [&str; 6] = ["uuid", "value{n:07}", "1 kB", "100 kB", "100 kB hex", "100 kB binary"];

#[divan::bench(args = VALUES)]
fn write_value(bencher: Bencher<'_, '_>, pattern: &str) {
    let (dataset, mut out) = (dataset("uuid", pattern), Vec::new());
    let bytes: usize = places().map(|place| dataset.value_len(place)).sum();
    bencher.counter(ItemsCount::new(WINDOW)).counter(BytesCount::new(bytes)).bench_local(|| {
        for place in black_box(places()) {
            out.clear();
            dataset.value(place, 1, &mut out);
            black_box(&out);
        }
    });
}

#[divan::bench(args = VALUES)]
fn read_value(bencher: Bencher<'_, '_>, pattern: &str) {
    let (dataset, mut scratch) = (dataset("uuid", pattern), Vec::new());
    let values: Vec<(Place, Vec<u8>)> = places()
        .map(|place| {
            let mut value = Vec::new();
            dataset.value(place, 1, &mut value);
            (place, value)
        })
        .collect();
    let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
    bencher.counter(ItemsCount::new(WINDOW)).counter(BytesCount::new(bytes)).bench_local(|| {
        for (place, value) in black_box(&values) {
            black_box(dataset.read(*place, 1, value, &mut scratch));
        }
    });
}

#[divan::bench(args = [1_000, 20_000, 1_000_000, 10_000_000])]
fn order(bencher: Bencher<'_, '_>, len: u64) {
    let walk = Walk::new(Order::Shuffled, 42, len);
    bencher.counter(ItemsCount::new(WINDOW)).bench_local(|| {
        for position in black_box(0..WINDOW) {
            black_box(walk.at(position));
        }
    });
}

/// As the socket driver does: straight into the send buffer.
#[divan::bench(args = ["SET", "GET"])]
fn encode_window(bencher: Bencher<'_, '_>, command: &str) {
    let (dataset, mut out) = (dataset("key:{n:012}", "uuid"), Vec::new());
    bencher.counter(ItemsCount::new(WINDOW)).bench_local(|| {
        out.clear();
        for place in black_box(places()) {
            out.extend_from_slice(if command == "SET" { b"*3\r\n$3\r\nSET\r\n" } else { b"*2\r\n$3\r\nGET\r\n" });
            resp::length(dataset.key_len(place), &mut out);
            dataset.key(place, &mut out);
            if command == "SET" {
                out.extend_from_slice(b"\r\n");
                resp::length(dataset.value_len(place), &mut out);
                dataset.value(place, 1, &mut out);
            }
            out.extend_from_slice(b"\r\n");
        }
        black_box(&out);
    });
}

#[divan::bench(args = ["+OK", "36 B", "1 kB", "array"])]
fn scan_window(bencher: Bencher<'_, '_>, reply: &str) {
    let reply = match reply {
        "+OK" => "+OK\r\n".to_owned(),
        "36 B" => format!("$36\r\n{}\r\n", "v".repeat(36)),
        "1 kB" => format!("$1000\r\n{}\r\n", "v".repeat(1000)),
        _ => "*2\r\n$5\r\nhello\r\n:1\r\n".to_owned(),
    };
    let window = reply.repeat(WINDOW as usize).into_bytes();
    bencher.counter(ItemsCount::new(WINDOW)).counter(BytesCount::new(window.len())).bench_local(|| {
        let mut rest = black_box(window.as_slice());
        while let Ok(Scan::Reply { reply, used }) = resp::scan(rest) {
            black_box(reply);
            rest = &rest[used..];
        }
    });
}
