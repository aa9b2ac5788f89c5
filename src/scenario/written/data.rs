//! `[dataset]` as written.

use std::time::Duration;

use super::{Key, Text};
use crate::scenario::source::Written;

/// `[dataset]`
#[derive(Clone, Debug)]
pub struct Dataset {
    /// `keys`
    pub keys: Key<i128>,
    /// `key`
    pub key: Key<Text>,
    /// `first`
    pub first: Key<i128>,
    /// `value`
    pub value: Key<Value>,
    /// `fields`
    pub fields: Key<Fields>,
    /// `expire`
    pub expire: Key<Duration>,
    /// `expire_as`
    pub expire_as: Key<Text>,
    /// `order`
    pub order: Key<Text>,
}

/// `dataset.fields`
#[derive(Clone, Debug)]
pub enum Fields {
    /// So many, each with the `value` of the dataset.
    Count(i128),
    /// By name, each with a value of its own. The place is that of the name.
    Named(Vec<(Written<String>, Key<Value>)>),
}

/// `dataset.value`
#[derive(Clone, Debug)]
pub enum Value {
    /// `"uuid"`, a template or a constant.
    Text(Text),
    /// `{ random = … }`, `{ size = … }` or `{ sizes = … }`
    Generated(GeneratedValue),
}

/// A `dataset.value` that is a table.
#[derive(Clone, Debug)]
pub struct GeneratedValue {
    /// `random`, in bytes
    pub random: Key<u64>,
    /// `size`, in bytes
    pub size: Key<u64>,
    /// `sizes`: bytes and weights
    pub sizes: Key<Vec<Written<SizeWeight>>>,
    /// `alphabet`
    pub alphabet: Key<Text>,
}

/// `["100B", 9]`
#[derive(Clone, Copy, Debug)]
pub struct SizeWeight {
    /// In bytes.
    pub size: Written<u64>,
    /// How often, against the others.
    pub weight: Written<i128>,
}
