//! What fred's answers mean: the values that it makes of replies, judged as the socket driver judges the replies.

use ::fred::error::{Error, ErrorKind};
use ::fred::types::{Key, Value};

use super::super::{Completion, Keyed, Outcome, Request, expire_answer, note, ttl_answer};
use super::{bulk_len, digits, line_len};
use crate::dataset::{Dataset, HashReading, Reading};
use crate::plan::Command;

/// Bytes of the reply that became this value.
pub fn len(value: &Value) -> u64 {
    match value {
        Value::Null => line_len("-1".len()),
        Value::Integer(number) => line_len(number.to_string().len()),
        Value::String(word) if &**word == "OK" => line_len(word.len()),
        Value::Array(items) => line_len(digits(items.len())) + items.iter().map(len).sum::<u64>(),
        Value::Map(map) => {
            let pairs = map.iter().map(|(name, value)| bulk_len(name.as_bytes().len()) + len(value));
            line_len(digits(map.len())) + pairs.sum::<u64>()
        }
        value => value.as_bytes().map_or(0, |bytes| bulk_len(bytes.len())),
    }
}

/// Appends what `value` says of a request, which was about `more` keys as well.
///
/// # Errors
/// It answers what nobody asked.
pub fn settle(
    request: &Request,
    more: &[Keyed],
    value: Value,
    dataset: &Dataset,
    scratch: &mut Vec<u8>,
    done: &mut Vec<Completion>,
) -> Result<(), Error> {
    let Request { ticket, place, version, .. } = *request;
    let first = Keyed { place, version };
    let mut push = |key, (outcome, note)| done.push(Completion::new(ticket, key, outcome, note));
    match (request.command, &value) {
        (Command::Set | Command::Mset, Value::String(word)) if &**word == "OK" => push(0, (Outcome::Stored, None)),
        (Command::Hset, Value::Integer(_)) => push(0, (Outcome::Stored, None)),
        (Command::Expire, Value::Integer(set)) => push(0, expire_answer(*set)),
        (Command::Ttl, Value::Integer(left)) => {
            push(0, ttl_answer(*left, dataset.expiry().map_or(0, |expiry| expiry.seconds)));
        }
        (Command::Get, value) => push(0, read(first, request, value, dataset, scratch)?),
        (Command::Mget, Value::Array(items)) if items.len() == 1 + more.len() => {
            let keys = std::iter::once(&first).chain(more);
            for ((keyed, item), key) in keys.zip(items).zip(0..) {
                push(key, read(*keyed, request, item, dataset, scratch)?);
            }
        }
        (Command::Hgetall, value) => {
            let fields = fields(value).ok_or_else(|| strange(request, value))?;
            if fields.is_empty() {
                push(0, (Outcome::Missing, None));
                return Ok(());
            }
            let mut hash = HashReading::new(place, version);
            for (name, value) in fields {
                if let Some(field) = hash.name(dataset, name) {
                    hash.value(dataset, field, value, scratch);
                }
            }
            let (reading, wrong) = hash.finish(dataset);
            push(0, (Outcome::Read(reading), wrong.map(|text| note(text.as_bytes()))));
        }
        (_, value) => return Err(strange(request, value)),
    }
    Ok(())
}

/// A key's value, or that there is none.
fn read(
    key: Keyed,
    request: &Request,
    value: &Value,
    dataset: &Dataset,
    scratch: &mut Vec<u8>,
) -> Result<(Outcome, Option<Box<str>>), Error> {
    if matches!(value, Value::Null) {
        return Ok((Outcome::Missing, None));
    }
    let got = value.as_bytes().ok_or_else(|| strange(request, value))?;
    let reading = dataset.read(key.place, key.version, got, scratch);
    Ok((Outcome::Read(reading), (reading != Reading::Matched).then(|| note(got))))
}

/// Names and values of a hash: a map in RESP3, a list in RESP2.
fn fields(value: &Value) -> Option<Vec<(&[u8], &[u8])>> {
    match value {
        Value::Map(map) => map.iter().map(|(name, value)| Some((Key::as_bytes(name), value.as_bytes()?))).collect(),
        Value::Array(items) if items.len().is_multiple_of(2) => {
            items.chunks_exact(2).map(|pair| Some((pair[0].as_bytes()?, pair[1].as_bytes()?))).collect()
        }
        _ => None,
    }
}

fn strange(request: &Request, value: &Value) -> Error {
    Error::new(ErrorKind::Protocol, format!("{:?} to {}", value.kind(), request.command.name()))
}
