use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn dataset(key: &str, value: ValuePattern, order: Order) -> Dataset {
    let key = if key == "uuid" {
        KeyPattern::Uuid
    } else {
        KeyPattern::Template(Template::parse_source(key).expect("a template"))
    };
    Dataset::new(42, 3, 100, 1, key, value, order)
}

fn uuids() -> Dataset {
    dataset("uuid", ValuePattern::Uuid, Order::Written)
}

fn key(data: &Dataset, client: u32, index: u64) -> String {
    let mut out = Vec::new();
    data.key(Place { client, index }, &mut out);
    String::from_utf8(out).expect("keys here are text")
}

fn value(data: &Dataset, client: u32, index: u64, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    data.value(Place { client, index }, version, &mut out);
    out
}

fn template(source: &str) -> ValuePattern {
    ValuePattern::Template(Template::parse_source(source).expect("a template"))
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_ever() {
    let data = uuids();
    assert_eq!(key(&data, 0, 0), "ddabd15f-222c-4a59-8f2f-7566f1f06591");
    assert_eq!(value(&data, 2, 99, 7), b"da8d2d1c-c822-494f-a306-c2a3f43d91c1");
}

#[test]
fn places_that_differ_in_one_bit_have_keys_that_share_nothing() {
    let data = Dataset::new(42, 1 << 20, 1 << 40, 0, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written);
    let digits = |client, index| {
        let key = key(&data, client, index).replace('-', "");
        u128::from_str_radix(&key, 16).expect("a UUID")
    };
    for from in [(0, 0), (7, 123_456_789)] {
        let (client, index) = from;
        let others = (0..20).map(|bit| (client ^ 1 << bit, index)).chain((0..40).map(|bit| (client, index ^ 1 << bit)));
        let differing: Vec<u32> = others.map(|(c, i)| (digits(c, i) ^ digits(client, index)).count_ones()).collect();
        // 61 of the 122 bits are expected, with a deviation of 5.5.
        let mean = f64::from(differing.iter().sum::<u32>()) / differing.len() as f64;
        assert!((58.0..64.0).contains(&mean), "{mean}");
        assert!(differing.iter().all(|bits| (35..90).contains(bits)), "{differing:?}");
    }
}

#[test]
fn no_two_places_share_a_key_and_n_counts_on() {
    for pattern in ["uuid", "key{n:07}", "{client}:{i}"] {
        let data = dataset(pattern, ValuePattern::Uuid, Order::Written);
        let keys: HashSet<_> =
            (0..3).flat_map(|c| (0..100).map(move |i| (c, i))).map(|(c, i)| key(&data, c, i)).collect();
        assert_eq!(keys.len(), 300, "{pattern}");
    }
    let data = dataset("key{n:07}", template("value{n:07}"), Order::Written);
    assert_eq!(key(&data, 0, 0), "key0000001");
    assert_eq!(key(&data, 1, 0), "key0000101");
    assert_eq!(value(&data, 1, 0, 1), b"value0000101");
}

#[test]
fn a_wrong_value_is_told_by_its_author() {
    let long = ValuePattern::Bytes { sizes: Sizes::fixed(1000), alphabet: Alphabet::Alphanumeric };
    let binary = ValuePattern::Bytes { sizes: Sizes::fixed(100), alphabet: Alphabet::Binary };
    let hex = ValuePattern::Bytes { sizes: Sizes::fixed(40), alphabet: Alphabet::Hex };
    for pattern in [ValuePattern::Uuid, long, binary, hex] {
        let data = dataset("uuid", pattern, Order::Written);
        let here = Place { client: 1, index: 5 };
        let read = |got: &[u8]| data.read(here, 2, got, &mut Vec::new());
        assert_eq!(read(&value(&data, 1, 5, 2)), Reading::Matched);
        assert_eq!(read(&value(&data, 1, 5, 1)), Reading::OtherVersion(1));
        let owner = Owner { client: 2, index: Some(5), version: Some(2) };
        assert_eq!(read(&value(&data, 2, 5, 2)), Reading::Foreign(owner));
        assert_eq!(read(b"something else"), Reading::Corrupt);
        assert_eq!(read(b""), Reading::Corrupt);
        // One bit anywhere makes it nobody's: not this key's older version, not another key's.
        let right = value(&data, 1, 5, 2);
        for at in 0..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert_eq!(read(&wrong), Reading::Corrupt, "bit at {at}");
        }
    }
}

#[test]
fn template_values_are_foreign_if_they_parse_to_another_place() {
    let data = dataset("key{n}", template("value{n:07}"), Order::Written);
    let here = Place { client: 1, index: 5 };
    let read = |got: &[u8]| data.read(here, 1, got, &mut Vec::new());
    assert_eq!(read(b"value0000106"), Reading::Matched);
    assert_eq!(read(b"value0000206"), Reading::Foreign(Owner { client: 2, index: Some(5), version: None }));
    assert_eq!(read(b"value106"), Reading::Corrupt);
    assert_eq!(read(b"value0000000"), Reading::Corrupt);
}

/// The first generation, and the one after it.
fn generations(pattern: &str, value: ValuePattern) -> [Dataset; 2] {
    let first = dataset(pattern, value, Order::Written);
    let next = first.shifted(first.next().expect("numbers are left"));
    [first, next]
}

#[test]
fn the_next_generation_has_other_keys_and_goes_on() {
    for pattern in ["uuid", "key{n:07}", "{client}:{i}"] {
        let all = generations(pattern, ValuePattern::Uuid);
        let keys: HashSet<_> =
            all.iter().flat_map(|data| (0..3).flat_map(move |c| (0..100).map(move |i| key(data, c, i)))).collect();
        assert_eq!(keys.len(), 600, "{pattern}");
    }
    let [_, next] = generations("key{n:07}", template("value{n:07}"));
    assert_eq!((key(&next, 0, 0), key(&next, 2, 99)), ("key0000301".to_owned(), "key0000600".to_owned()));
    assert_eq!(value(&next, 0, 0, 1), b"value0000301");
    let [_, next] = generations("{client}:{i}", ValuePattern::Uuid);
    assert_eq!(key(&next, 1, 0), "1:101");
    let last = Dataset::new(1, 1, Dataset::MAX_KEYS, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written);
    assert_eq!(last.shifted(last.next().expect("they end with these")).next(), None);
}

#[test]
fn a_value_of_an_earlier_generation_is_foreign() {
    let hex =
        ValuePattern::Bytes { sizes: Sizes::weighted(&[(40, 1), (90, 1)]).expect("sizes"), alphabet: Alphabet::Hex };
    for pattern in [ValuePattern::Uuid, hex, template("v{n}"), template("v{client}-{i}")] {
        let [first, next] = generations("uuid", pattern.clone());
        let here = Place { client: 1, index: 5 };
        let read = |got: &[u8]| next.read(here, 2, got, &mut Vec::new());
        assert_eq!(read(&value(&next, 1, 5, 2)), Reading::Matched, "{pattern:?}");
        // The same place, and another one.
        for (client, index) in [(1, 5), (2, 7)] {
            match read(&value(&first, client, index, 1)) {
                Reading::Foreign(Owner { client: owner, index: None, .. }) => assert_eq!(owner, client),
                other => panic!("{pattern:?}: {other:?}"),
            }
        }
        let of_this = read(&value(&next, 2, 7, 2));
        assert!(matches!(of_this, Reading::Foreign(Owner { client: 2, index: Some(7), .. })), "{of_this:?}");
    }
}

#[test]
fn keys_of_a_later_generation_are_recognised_and_those_before_are_not() {
    for pattern in ["uuid", "key{n:07}", "{client}:{i}", "{i}-{n}-{client}"] {
        let [first, next] = generations(pattern, ValuePattern::Uuid);
        for (client, index) in [(0, 0), (1, 99), (2, 5)] {
            let (before, now) = (key(&first, client, index), key(&next, client, index));
            assert_eq!(next.place_of(now.as_bytes()), Some(Place { client, index }), "{pattern}");
            assert_eq!(next.place_of(before.as_bytes()), None, "{pattern}");
            assert_eq!(first.place_of(now.as_bytes()), None, "{pattern}");
        }
    }
}

#[test]
fn fields_and_long_values_belong_to_their_generation() {
    let hex = ValuePattern::Bytes { sizes: Sizes::fixed(600), alphabet: Alphabet::Hex };
    let mixed = ValuePattern::Bytes {
        sizes: Sizes::weighted(&[(400, 1), (900, 1)]).expect("sizes"),
        alphabet: Alphabet::Binary,
    };
    let field = |name: &str, value| Field { name: name.to_owned(), value };
    let fields =
        vec![field("a", hex), field("b", mixed), field("c", template("{n}:{i}")), field("d", ValuePattern::Uuid)];
    let first = uuids().with_fields(fields);
    let next = first.shifted(first.next().expect("numbers are left"));
    let (here, mut scratch) = (Place { client: 1, index: 5 }, Vec::new());
    for number in 0..4 {
        let written = |data: &Dataset, version| {
            let mut out = Vec::new();
            data.field_value(here, version, number, &mut out);
            assert_eq!(data.field_len(here, number), out.len());
            out
        };
        let (now, before) = (written(&next, 2), written(&first, 2));
        assert_ne!(now, before);
        let mut pieces = Vec::new();
        next.field_piece(here, 2, number, (0, 3), &mut pieces);
        next.field_piece(here, 2, number, (3, now.len()), &mut pieces);
        assert_eq!(pieces, now);
        assert_eq!(next.read_field(here, 2, number, &now, &mut scratch), Reading::Matched);
        let foreign = next.read_field(here, 2, number, &before, &mut scratch);
        assert!(matches!(foreign, Reading::Foreign(Owner { client: 1, index: None, .. })), "{number}: {foreign:?}");
        // Long values are told apart just so; shorter ones never come in pieces.
        if number < 2 {
            let mut long = |value: &[u8]| {
                let mut long = LongReading::new(&next, here, 2, number, value.len());
                value.chunks(100).for_each(|piece| long.feed(&next, piece, &mut scratch));
                long.finish(&next)
            };
            assert_eq!((long(&now), long(&before)), (Reading::Matched, foreign));
        }
    }
}

#[test]
fn keys_must_differ_over_generations_too() {
    let first = dataset("{client:02}{i:03}", ValuePattern::Uuid, Order::Written);
    assert_eq!(first.ambiguity(), None);
    let narrow = dataset("{i:03}{client}", ValuePattern::Uuid, Order::Written);
    assert_eq!(narrow.ambiguity(), None);
    let later = narrow.shifted(Shift { numbers: 3_000, indexes: 1_000 });
    assert!(later.ambiguity().is_some_and(|what| what.contains("touch")));
}

#[test]
fn templates_that_do_not_tell_keys_apart_are_found() {
    let ambiguity = |source: &str| Template::parse_source(source).expect("a template").ambiguity(12, 100, 1);
    for good in ["{n}", "key{n:07}", "{client}:{i}", "{i}-{client}", "{client:02}{i}", "{{{n}}}"] {
        assert_eq!(ambiguity(good), None, "{good}");
    }
    for bad in ["", "key", "{i}", "{client}", "{client}{i}", "{client}0{i}", "{i}{client}"] {
        assert!(ambiguity(bad).is_some(), "{bad}");
    }
}

#[test]
fn templates_with_faults_say_where() {
    for (source, at) in [("ab{n", 2), ("ab}", 2), ("{x}", 0), ("a{n:x}", 1), ("{n:99}", 0), ("{n:}", 0)] {
        assert_eq!(Template::parse_source(source).expect_err(source).at, at, "{source}");
    }
}

#[test]
fn sizes_keep_their_weights() {
    let sizes = Sizes::weighted(&[(100, 9), (10_000, 1), (7, 0)]).expect("two sizes");
    let large = (0..10_000).filter(|&index| sizes.of(1, Place { client: 0, index }) == 10_000).count();
    assert!((800..1200).contains(&large), "{large}");
    assert_eq!((sizes.smallest(), sizes.largest(), sizes.mean()), (100, 10_000, 1090.0));
    assert_eq!(Sizes::weighted(&[(1, 0)]), None);
}

#[test]
fn values_too_short_for_a_name_are_known_by_their_versions() {
    for bytes in [1, 2, 7, 8, 15] {
        let value = ValuePattern::Bytes { sizes: Sizes::fixed(bytes), alphabet: Alphabet::Binary };
        let data = dataset("uuid", value, Order::Written);
        let place = Place { client: 1, index: 7 };
        let mut value = Vec::new();
        data.value(place, 2, &mut value);
        let read = |version, value: &[u8]| data.read(place, version, value, &mut Vec::new());
        assert_eq!(read(2, &value), Reading::Matched);
        if bytes > 2 {
            assert_eq!(read(3, &value), Reading::OtherVersion(2), "{bytes}");
            assert_eq!(read(1, &value), Reading::Corrupt, "nobody looks ahead");
            assert_eq!(Dataset::find_version(|version| read(version, &value)), Some(2));
            value[0] ^= 1;
            assert_eq!(read(3, &value), Reading::Corrupt, "{bytes}");
        }
        value.push(0);
        assert_eq!(read(2, &value), Reading::Corrupt);
    }
}

#[test]
fn a_field_that_is_always_the_same_says_nothing_of_the_version() {
    let field = |name: &str, value| Field { name: name.to_owned(), value };
    let short = ValuePattern::Bytes { sizes: Sizes::fixed(10), alphabet: Alphabet::Binary };
    let fields = vec![field("a", template("1")), field("b", ValuePattern::Uuid), field("c", short)];
    let data = dataset("uuid", ValuePattern::Uuid, Order::Written).with_fields(fields);
    let place = Place { client: 0, index: 3 };
    let read = |expected, versions: [Version; 3]| {
        let (mut hash, mut scratch) = (HashReading::new(place, expected), Vec::new());
        for (name, number) in [("c", 2), ("a", 0), ("b", 1)] {
            let mut value = Vec::new();
            data.field_value(place, versions[usize::from(number)], number, &mut value);
            let field = hash.name(&data, name.as_bytes()).expect("its name");
            hash.value(&data, field, &value, &mut scratch);
        }
        hash.finish(&data).0
    };
    assert_eq!(read(2, [2, 2, 2]), Reading::Matched);
    assert_eq!(read(3, [2, 2, 2]), Reading::OtherVersion(2));
    assert_eq!(read(3, [1, 3, 3]), Reading::Matched, "the constant is the same");
    assert_eq!(read(3, [3, 2, 3]), Reading::Corrupt, "half of it is old");
    assert!(data.blind_spot().is_none(), "one field tells");
}

proptest! {
    #[test]
    fn an_author_is_opened_as_it_was_sealed(seed: u64, client in 0u32..1 << 20, index in 0u64..1 << 40, version: u16) {
        let mix = Mix::new(seed, 1);
        let author = Author::of(Place { client, index }, version);
        let sealed = mix.seal(author);
        prop_assert_eq!(mix.open(sealed), Some(author));
        prop_assert_eq!(sealed >> 122, 0);
        let mut text = Vec::new();
        author::write_uuid(sealed, &mut text);
        prop_assert_eq!(author::parse_uuid(&text), Some(sealed));
    }

    #[test]
    fn nobody_wrote_random_bits(seed: u64, bits in 0u128..1 << 122) {
        prop_assert_eq!(Mix::new(seed, 1).open(bits), None);
    }

    #[test]
    fn a_key_names_its_place(client in 0u32..3, index in 0u64..100, letter: u8, at: prop::sample::Index) {
        let place = Place { client, index };
        for source in ["uuid", "{client}:{i}", "v{n:07}x{client}", "{client:03}{i}", "{n}"] {
            let data = dataset(source, ValuePattern::Uuid, Order::Written);
            let mut key = key(&data, client, index).into_bytes();
            prop_assert_eq!(data.place_of(&key), Some(place), "{}", source);
            // A garbled one is another place's, letter by letter, or nobody's.
            let at = at.index(key.len());
            key[at] = letter;
            if let Some(Place { client, index }) = data.place_of(&key) {
                prop_assert_eq!(self::key(&data, client, index).into_bytes(), key, "{}", source);
            }
        }
    }

    #[test]
    fn keys_beyond_the_dataset_are_nobodys(client in 3u32..1 << 20, index in 100u64..1 << 40) {
        let data = uuids();
        for place in [Place { client, index: 0 }, Place { client: 0, index }] {
            let mut key = Vec::new();
            data.key(place, &mut key);
            prop_assert_eq!(data.place_of(&key), None);
        }
        let data = dataset("{n}", ValuePattern::Uuid, Order::Written);
        for (n, place) in [("0", None), ("1", Some((0, 0))), ("300", Some((2, 99))), ("301", None)] {
            prop_assert_eq!(data.place_of(n.as_bytes()).map(|place| (place.client, place.index)), place);
        }
    }

    #[test]
    fn numbers_are_written_as_everybody_writes_them(digits in 0u32..20, mantissa: u64) {
        // Of every length alike.
        let number = mantissa % 10u64.pow(digits).saturating_mul(10);
        let numbers = template::Numbers { n: number, i: number, client: number };
        for (source, expected) in [("{n}", format!("{number}")), ("a{i:07}", format!("a{number:07}")), ("{client:020}!", format!("{number:020}!"))] {
            let template = Template::parse_source(source).expect("a template");
            let mut out = Vec::new();
            template.write(numbers, &mut out);
            prop_assert_eq!(String::from_utf8_lossy(&out), expected.as_str());
            prop_assert_eq!(template.len(numbers), expected.len());
        }
    }

    #[test]
    fn a_template_reads_what_it_wrote(client in 0u32..3, index in 0u64..100) {
        for source in ["{client}:{i}", "v{n:07}x{client}", "{client:03}{i}", "{n}"] {
            let data = dataset("uuid", template(source), Order::Written);
            let got = value(&data, client, index, 1);
            prop_assert_eq!(got.len(), data.value_len(Place { client, index }));
            let elsewhere = Place { client: (client + 1) % 3, index };
            let owner = Owner { client, index: Some(index), version: None };
            prop_assert_eq!(data.read(elsewhere, 1, &got, &mut Vec::new()), Reading::Foreign(owner));
        }
    }
}
