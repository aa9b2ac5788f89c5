//! `[search]`: what `keyswarm limit` varies, and how far.

use std::time::Duration;

use super::fault::Faults;
use super::section::{Section, Trouble, integer, wrong};
use super::source::Span;
use super::tree::Node;
use super::units::{parse_rate, parse_share};
use super::written::{Key, Text};

/// `[search]`
#[derive(Clone, Debug)]
pub struct Search {
    /// Where the table stands, if there is one.
    pub span: Option<Span>,
    /// `vary`
    pub vary: Key<Text>,
    /// `from`
    pub from: Key<Amount>,
    /// `to`
    pub to: Key<Amount>,
    /// `trial`
    pub trial: Key<Duration>,
    /// `confirm`
    pub confirm: Key<i128>,
    /// `width`, in percent
    pub width: Key<f64>,
}

/// A level: of something that is counted, or of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many.
    Count(i128),
    /// So many per second.
    Rate(f64),
}

/// Reads the table.
pub(super) fn search(node: Option<&Node>, faults: &mut Faults) -> Search {
    let mut section = Section::of("search", node, faults);
    let search = Search {
        span: node.map(|node| node.span),
        vary: section.text("vary"),
        from: section.key("from", amount),
        to: section.key("to", amount),
        trial: section.duration("trial"),
        confirm: section.integer("confirm"),
        width: section.key("width", width),
    };
    section.finish(&[]);
    search
}

fn amount(node: &Node) -> Result<Amount, Trouble> {
    match node.as_text() {
        Some(text) if text.value.contains('/') => {
            parse_rate(&text.value).map(Amount::Rate).map_err(|what| (node.span, what.to_owned()))
        }
        _ => integer(node).map(Amount::Count),
    }
}

fn width(node: &Node) -> Result<f64, Trouble> {
    match node.as_text() {
        Some(text) => parse_share(&text.value).map_err(|what| (node.span, what.to_owned())),
        None => Err(wrong(node, "a share such as \"2%\"")),
    }
}
