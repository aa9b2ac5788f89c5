//! `[dataset]`: keys that are told apart, values that can be checked.

use std::time::Duration;

use super::super::Clients;
use super::judge::Judge;
use crate::dataset::{Alphabet, Dataset, Expiry, Field, KeyPattern, Order, Sizes, Template, ValuePattern};
use crate::scenario::units::number_shown;
use crate::scenario::{self, Fields, GeneratedValue, Key, SizeWeight, Span, Text, Value, Written};

/// The default of `keys`.
const KEYS: u64 = 1_000_000;
/// The longest value: what a server takes by default (`proto-max-bulk-len`).
const LONGEST_VALUE: u64 = 512 << 20;

/// The data of the run, if it is beyond doubt.
pub fn dataset(dataset: &scenario::Dataset, seed: u64, clients: &Clients, judge: &mut Judge<'_>) -> Option<Dataset> {
    let scenario::Dataset { keys, key, first, value, fields, expire, expire_as, order } = dataset;
    let count = judge.number(keys, KEYS, 1..=Dataset::MAX_KEYS);
    let start = judge.number(first, 1, 0..=i64::MAX as u64);
    let orders = [(Order::Written.name(), Order::Written), (Order::Shuffled.name(), Order::Shuffled)];
    let order = judge.word(order, "order", Order::Written, &orders, &[]);
    if !fit(clients.count.into(), count, start) {
        judge.fault_near(first.span().or(keys.span()), "the numbers of the keys would leave 63 bits; lower `first`");
        return None;
    }
    let key_pattern = match key.written() {
        None => Some(KeyPattern::Uuid),
        Some(written) if written.value.value == "uuid" => Some(KeyPattern::Uuid),
        Some(written) => template(written, judge)
            .inspect(|template| {
                if let Some(what) = template.ambiguity(clients.count, count, start) {
                    judge.fault(written.span, format!("it does not tell keys apart: {what}"));
                }
            })
            .map(KeyPattern::Template),
    };
    let value_pattern = value_pattern(value, judge);
    let fields = self::fields(fields, value, value_pattern.as_ref(), judge);
    let expiry = expiry(expire, expire_as, fields.as_ref().is_some_and(|fields| !fields.is_empty()), judge);
    let dataset = Dataset::new(seed, clients.count, count, start, key_pattern?, value_pattern?, order);
    Some(dataset.with_fields(fields?).with_expiry(expiry))
}

/// The fields of hashes; none for strings.
fn fields(
    fields: &Key<Fields>,
    value: &Key<Value>,
    each: Option<&ValuePattern>,
    judge: &mut Judge<'_>,
) -> Option<Vec<Field>> {
    let Some(written) = fields.written() else { return fields.is_absent().then(Vec::new) };
    let most = Dataset::MAX_FIELDS;
    match &written.value {
        Fields::Count(count) => match usize::try_from(*count) {
            Ok(count) if (1..=most).contains(&count) => {
                let field = |number| Some(Field { name: format!("field{number}"), value: each?.clone() });
                (1..=count).map(field).collect()
            }
            _ => {
                judge.fault(written.span, format!("from 1 to {} fields", number_shown(most as u64)));
                None
            }
        },
        Fields::Named(named) => {
            if let Some(span) = value.span() {
                judge.fault(span, "the fields have values of their own, so `value` has no effect; leave it away");
            }
            if named.is_empty() || named.len() > most {
                judge.fault(written.span, format!("from 1 to {} fields", number_shown(most as u64)));
            }
            let mut resolved = Vec::with_capacity(named.len());
            for (name, value) in named {
                if name.value.is_empty() {
                    judge.fault(name.span, "a field needs a name");
                }
                let value = value_pattern(value, judge);
                resolved.extend(value.map(|value| Field { name: name.value.clone(), value }));
            }
            // A value that was faulty has been reported.
            (!named.is_empty() && resolved.len() == named.len()).then_some(resolved)
        }
    }
}

/// How long keys live.
fn expiry(expire: &Key<Duration>, way: &Key<Text>, hashes: bool, judge: &mut Judge<'_>) -> Option<Expiry> {
    let as_option = judge.word(way, "way to expire", true, &[("option", true), ("command", false)], &[]);
    let Some(written) = expire.written() else {
        if let (true, Some(span)) = (expire.is_absent(), way.span()) {
            judge.fault(span, "without `expire` no key expires, so `expire_as` has no effect");
        }
        return None;
    };
    if let (true, true, Some(span)) = (hashes, as_option, way.span()) {
        judge.fault(span, "HSET has no such option; leave `expire_as` away, and an EXPIRE follows each HSET");
    }
    if written.value.subsec_nanos() > 0 || written.value.is_zero() {
        judge.fault(written.span, "keys expire after whole seconds, at least 1s");
    }
    Some(Expiry { seconds: written.value.as_secs(), as_option: as_option && !hashes })
}

/// Whether the numbers of all keys fit.
fn fit(clients: u64, keys: u64, first: u64) -> bool {
    let last = clients.checked_mul(keys).and_then(|all| all.checked_add(first));
    last.is_some_and(|last| i64::try_from(last).is_ok())
}

/// Whether `dataset` can be had for so many clients, too, which stand at `at`.
pub fn fits_clients(dataset: &Dataset, clients: u64, at: Span, judge: &mut Judge<'_>) {
    if !fit(clients, dataset.keys(), dataset.first()) {
        judge.fault(at, "with so many clients the numbers of the keys would leave 63 bits; lower `dataset.first`");
        return;
    }
    let clients = u32::try_from(clients).unwrap_or(u32::MAX);
    if let KeyPattern::Template(template) = dataset.key_pattern()
        && let Some(what) = template.ambiguity(clients, dataset.keys(), dataset.first())
    {
        judge.fault(at, format!("with so many clients `dataset.key` does not tell keys apart: {what}"));
    }
}

/// Parses a template; a fault is shown at its very place.
fn template(written: &Written<Text>, judge: &mut Judge<'_>) -> Option<Template> {
    let source = &written.value.value;
    if source.eq_ignore_ascii_case("uuid") {
        judge.fault(written.span, "a constant; did you mean \"uuid\"?");
        return None;
    }
    match Template::parse_source(source) {
        Ok(template) => Some(template),
        Err(_) if written.value.from_environment => {
            judge.fault(written.span, "with its variables filled in, this is no template");
            None
        }
        Err(error) => {
            // To the end of the placeholder, so that the caret shows all of it.
            let end = source[error.at..].find('}').map_or(source.len(), |len| error.at + len + 1);
            judge.fault(written.value.part(written.span, error.at..end), error.what);
            None
        }
    }
}

fn value_pattern(value: &Key<Value>, judge: &mut Judge<'_>) -> Option<ValuePattern> {
    let Some(written) = value.written() else { return Some(ValuePattern::Uuid) };
    match &written.value {
        Value::Text(text) if text.value == "uuid" => Some(ValuePattern::Uuid),
        Value::Text(text) => template(&Written::new(text.clone(), written.span), judge).map(ValuePattern::Template),
        Value::Generated(generated) => bytes(generated, written.span, judge),
    }
}

fn bytes(value: &GeneratedValue, span: Span, judge: &mut Judge<'_>) -> Option<ValuePattern> {
    let GeneratedValue { random, size, sizes, alphabet } = value;
    let named = [!random.is_absent(), !size.is_absent(), !sizes.is_absent()];
    if named.into_iter().filter(|named| *named).count() != 1 {
        judge.fault(span, "exactly one of `random`, `size` and `sizes` says how long values are");
        return None;
    }
    if let (Some(at), false) = (alphabet.span(), size.is_absent()) {
        judge.fault(at, "`size` gives binary values; write `random` to choose an alphabet");
    }
    let alphabets = [Alphabet::Alphanumeric, Alphabet::Hex, Alphabet::Binary].map(|a| (a.name(), a));
    let default = if random.is_absent() { Alphabet::Binary } else { Alphabet::Alphanumeric };
    let alphabet = judge.word(alphabet, "alphabet", default, &alphabets, &[]);
    let fixed = random.written().or(size.written());
    let sizes = match (fixed, sizes.written()) {
        (Some(fixed), _) => Sizes::fixed(length(fixed, judge)?),
        (_, Some(written)) => weighted(written, judge)?,
        (None, None) => return None,
    };
    Some(ValuePattern::Bytes { sizes, alphabet })
}

fn length(size: &Written<u64>, judge: &mut Judge<'_>) -> Option<usize> {
    match usize::try_from(size.value) {
        Ok(0) => judge.fault(size.span, "an empty value cannot be told from another; at least 1B"),
        Ok(length) if size.value <= LONGEST_VALUE => return Some(length),
        _ => judge.fault(size.span, "at most 512MiB, the longest value that a server takes"),
    }
    None
}

fn weighted(sizes: &Written<Vec<Written<SizeWeight>>>, judge: &mut Judge<'_>) -> Option<Sizes> {
    let mut weights = Vec::with_capacity(sizes.value.len());
    for pair in &sizes.value {
        let SizeWeight { size, weight } = &pair.value;
        let length = length(size, judge);
        match u32::try_from(weight.value) {
            Ok(weight) if weight > 0 => weights.extend(length.map(|length| (length, weight))),
            _ => judge.fault(weight.span, format!("a weight is a number from 1 to {}", u32::MAX)),
        }
    }
    if sizes.value.is_empty() {
        judge.fault(sizes.span, "no size at all; write `[[\"100B\", 9], [\"10kB\", 1]]`, for example");
    }
    // A size that was faulty has been reported; the rest would mean something else.
    if weights.len() < sizes.value.len() { None } else { Sizes::weighted(&weights) }
}
