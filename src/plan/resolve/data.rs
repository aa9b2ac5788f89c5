//! `[dataset]`: keys that are told apart, values that can be checked.

use super::super::Clients;
use super::judge::Judge;
use crate::dataset::{Alphabet, Dataset, KeyPattern, Order, Sizes, Template, ValuePattern};
use crate::scenario::{self, GeneratedValue, Key, SizeWeight, Span, Text, Value, Written};

/// The default of `keys`.
const KEYS: u64 = 1_000_000;
/// The longest value: what a server takes by default (`proto-max-bulk-len`).
const LONGEST_VALUE: u64 = 512 << 20;

/// The data of the run, if it is beyond doubt.
pub fn dataset(dataset: &scenario::Dataset, seed: u64, clients: &Clients, judge: &mut Judge<'_>) -> Option<Dataset> {
    let scenario::Dataset { keys, key, first, value, order } = dataset;
    let count = judge.number(keys, KEYS, 1..=Dataset::MAX_KEYS);
    let start = judge.number(first, 1, 0..=i64::MAX as u64);
    let orders = [(Order::Written.name(), Order::Written), (Order::Shuffled.name(), Order::Shuffled)];
    let order = judge.word(order, "order", Order::Written, &orders, &[]);
    let numbers = u64::from(clients.count).checked_mul(count).and_then(|all| all.checked_add(start));
    if numbers.is_none_or(|last| last > i64::MAX as u64) {
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
    Some(Dataset::new(seed, clients.count, count, start, key_pattern?, value_pattern?, order))
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
