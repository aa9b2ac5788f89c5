//! Lines of text that fit: pieces in order of worth, dropped from the least when there is no room.

use std::fmt::Write as _;

use console::measure_text_width;
use owo_colors::OwoColorize;

/// How a piece looks where colours are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As it is.
    Plain,
    /// What stays the same all the time.
    Dim,
    /// What one looks for.
    Bold,
    /// Over, and well.
    Good,
    /// Timeouts.
    Warn,
    /// Errors.
    Bad,
}

/// A piece of text in one paint; free of control characters, whoever wrote it.
#[derive(Clone, Debug)]
pub struct Piece {
    text: String,
    paint: Paint,
}

impl Piece {
    /// A piece.
    pub fn new(paint: Paint, text: impl Into<String>) -> Self {
        let mut text = text.into();
        // Names come from a file, and errors from a server.
        if text.contains(char::is_control) {
            text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        }
        Self { text, paint }
    }
}

/// Pieces that belong together, with the gap before them and their worth.
#[derive(Clone, Debug)]
pub struct Item {
    /// 0 is dropped last.
    pub rank: u8,
    /// What sets it apart from what comes before it.
    pub gap: &'static str,
    /// What it says.
    pub pieces: Vec<Piece>,
}

impl Item {
    /// An item of one piece.
    pub fn new(rank: u8, gap: &'static str, paint: Paint, text: impl Into<String>) -> Self {
        Self { rank, gap, pieces: vec![Piece::new(paint, text)] }
    }

    /// An item of a name that stays and a number that changes.
    pub fn named(rank: u8, gap: &'static str, name: &str, paint: Paint, value: impl Into<String>) -> Self {
        Self { rank, gap, pieces: vec![Piece::new(Paint::Dim, format!("{name} ")), Piece::new(paint, value)] }
    }
}

/// A line of pieces.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pieces: Vec<Piece>,
}

impl Line {
    /// As many of the items as fit into `width` columns, most worthy first, in their own order; cut if none does.
    pub fn fit(mut items: Vec<Item>, width: usize) -> Self {
        loop {
            let line = Self::of(&items);
            let least =
                items.iter().enumerate().max_by_key(|(place, item)| (item.rank, *place)).map(|(place, _)| place);
            match least {
                Some(place) if items.len() > 1 && line.width() > width => {
                    items.remove(place);
                }
                _ => return line.cut(width),
            }
        }
    }

    /// All of the items, however long.
    pub fn of(items: &[Item]) -> Self {
        let mut pieces = Vec::new();
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                pieces.push(Piece::new(Paint::Plain, item.gap));
            }
            pieces.extend(item.pieces.iter().cloned());
        }
        Self { pieces }
    }

    /// Both, with the room between them; the right one alone is dropped if there is none.
    pub fn justified(self, right: Self, width: usize) -> Self {
        let used = self.width() + right.width();
        if used + 2 > width {
            return self.cut(width);
        }
        let mut pieces = self.pieces;
        pieces.push(Piece::new(Paint::Plain, " ".repeat(width - used)));
        pieces.extend(right.pieces);
        Self { pieces }
    }

    /// The same with something before it.
    pub fn indented(mut self, indent: &str) -> Self {
        self.pieces.insert(0, Piece::new(Paint::Plain, indent));
        self
    }

    /// Columns on a terminal.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|piece| measure_text_width(&piece.text)).sum()
    }

    fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut pieces = Vec::new();
        for piece in self.pieces {
            let mut text = String::new();
            let whole = piece.text.chars().all(|c| {
                let columns = measure_text_width(c.encode_utf8(&mut [0; 4]));
                let fits = columns <= left;
                if fits {
                    left -= columns;
                    text.push(c);
                }
                fits
            });
            pieces.push(Piece { text, paint: piece.paint });
            if !whole {
                break;
            }
        }
        if width > 0 {
            pieces.push(Piece::new(Paint::Dim, "…"));
        }
        Self { pieces }
    }

    /// The text, with colours if they are wanted.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for Piece { text, paint } in &self.pieces {
            // Writing into a String cannot fail.
            let _ = match paint {
                _ if !colour => write!(out, "{text}"),
                Paint::Plain => write!(out, "{text}"),
                Paint::Dim => write!(out, "{}", text.dimmed()),
                Paint::Bold => write!(out, "{}", text.bold()),
                Paint::Good => write!(out, "{}", text.green()),
                Paint::Warn => write!(out, "{}", text.yellow()),
                Paint::Bad => write!(out, "{}", text.red()),
            };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        vec![
            Item::named(0, "", "keys", Paint::Bold, "6,912,004"),
            Item::named(2, "  ", "p99", Paint::Plain, "2.1 ms"),
            Item::named(1, "   ", "errors", Paint::Bad, "7"),
        ]
    }

    fn fit(width: usize) -> String {
        Line::fit(items(), width).render(false)
    }

    #[test]
    fn the_least_worthy_goes_first_and_the_last_one_is_cut() {
        assert_eq!(fit(40), "keys 6,912,004  p99 2.1 ms   errors 7");
        assert_eq!(fit(30), "keys 6,912,004   errors 7");
        assert_eq!(fit(20), "keys 6,912,004");
        assert_eq!(fit(9), "keys 6,9…");
        assert_eq!(fit(0), "");
    }

    #[test]
    fn no_line_is_ever_wider_than_it_may_be() {
        for width in 0..60 {
            let wide = Line::of(&[Item::new(0, "", Paint::Plain, "名前は日本語です\u{1b}[31m red\n")]);
            let right = || Line::of(&[Item::new(0, "", Paint::Plain, "00:19")]);
            for line in [Line::fit(items(), width), wide.clone().cut(width), wide.justified(right(), width)] {
                assert!(line.width() <= width, "{width}: {line:?}");
                assert!(!line.render(false).contains(char::is_control));
            }
        }
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let line = Line::fit(items(), 80);
        assert!(line.render(true).contains("\u{1b}[31m7\u{1b}[39m"));
        assert_eq!(console::strip_ansi_codes(&line.render(true)), line.render(false));
    }
}
