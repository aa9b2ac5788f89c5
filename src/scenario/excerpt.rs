//! A line that is longer than anybody reads is cut to what surrounds its marks, so that a file of one line does not fill
//! the terminal.

use std::ops::Range;

/// The longest line, in bytes, that is shown whole.
const WIDEST: usize = 200;
/// What is kept of a longer one before the beginning of each mark, and from there on.
const BEFORE: usize = 60;
const AFTER: usize = 120;
/// Stands for what is left out.
const LEFT_OUT: &str = "…";

/// `text` with its long lines cut. The `marks`, in bytes, are moved along; what stood in a part that is left out stands at
/// its `…` then.
pub fn cut(text: &str, marks: &mut [Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len().min(1 << 16));
    // What is kept, and where it stands in `out`; ascending.
    let mut kept: Vec<(Range<usize>, usize)> = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let whole = begin..begin + line.len();
        let windows = if line.len() > WIDEST { windows(text, &whole, marks) } else { vec![whole.clone()] };
        let mut end = whole.start;
        for window in windows {
            if window.start > end {
                out.push_str(LEFT_OUT);
            }
            end = window.end;
            kept.push((window.clone(), out.len()));
            out.push_str(&text[window]);
        }
        if end < whole.end {
            out.push_str(LEFT_OUT);
            if line.ends_with('\n') {
                out.push('\n');
            }
        }
        begin = whole.end;
    }
    let moved = |at: usize| {
        let before = kept.partition_point(|(part, _)| part.start <= at);
        let Some((part, start)) = before.checked_sub(1).and_then(|last| kept.get(last)) else { return 0 };
        start + (at - part.start).min(part.len())
    };
    for mark in marks {
        // A mark behind the end stays there.
        let beyond = mark.start.saturating_sub(text.len());
        *mark = moved(mark.start) + beyond..moved(mark.end).max(moved(mark.start)) + beyond;
    }
    out
}

/// What to keep of a long line: what surrounds the beginning of each mark that touches it, or else its beginning.
fn windows(text: &str, line: &Range<usize>, marks: &[Range<usize>]) -> Vec<Range<usize>> {
    let inside = |mark: &&Range<usize>| mark.start < line.end && mark.end.max(mark.start + 1) > line.start;
    let mut starts: Vec<usize> = marks.iter().filter(inside).map(|mark| mark.start.max(line.start)).collect();
    starts.sort_unstable();
    if starts.is_empty() {
        starts.push(line.start);
    }
    let mut windows: Vec<Range<usize>> = Vec::new();
    for start in starts {
        let from = text.floor_char_boundary(start.saturating_sub(BEFORE).max(line.start));
        let to = text.ceil_char_boundary((start + AFTER).min(line.end));
        match windows.last_mut() {
            Some(last) if last.end >= from => last.end = to,
            _ => windows.push(from..to),
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_surrounds_the_marks_is_kept() {
        let text = format!("short\n{}AB{}CD{}\nlast", "é".repeat(500), "x".repeat(5000), "y".repeat(500));
        let at = |part: &str| text.find(part).map(|at| at..at + part.len()).expect("a part");
        let mut marks = [at("last"), at("CD"), at("AB"), at("short")];
        let shown = cut(&text, &mut marks);
        assert_eq!(marks.map(|mark| shown[mark].to_owned()), ["last", "CD", "AB", "short"]);
        let (e, x, y) = ("é".repeat(30), "x".repeat(118), "y".repeat(118));
        assert_eq!(shown, format!("short\n…{e}AB{x}…{}CD{y}…\nlast", "x".repeat(60)));
        let text = "z".repeat(1_000_000);
        assert_eq!(cut(&text, &mut []), format!("{}…", "z".repeat(120)));
        let mut whole = 0..text.len();
        assert_eq!(cut(&text, std::slice::from_mut(&mut whole)), format!("{}…", "z".repeat(120)));
        assert_eq!(whole, 0..120);
    }

    proptest! {
        #[test]
        fn marks_stay_within_what_is_shown(text in "([aé]{0,400}\n){0,3}", marks in prop::collection::vec((0usize..900, 0usize..900), 0..5)) {
            let floor = |at: usize| text.floor_char_boundary(at.min(text.len()));
            let mut marks: Vec<_> = marks.into_iter().map(|(from, len)| floor(from)..floor(from + len)).collect();
            let shown = cut(&text, &mut marks);
            prop_assert_eq!(shown.lines().count(), text.lines().count());
            for mark in marks {
                prop_assert!(shown.get(mark).is_some());
            }
        }
    }
}
