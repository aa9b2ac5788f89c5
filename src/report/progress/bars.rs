//! The live view on a terminal: a bar per client, or per group of them, and lines of figures, redrawn in place.

use std::time::Duration;

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::View;
use super::line::{Item, Line, Paint};
use super::state::State;
use super::text::{self, BarLine, LINES_WITHOUT_BARS, ScreenLine};

/// Above this many clients they are grouped.
const MOST_BARS: usize = 20;
/// A bar is drawn in so many steps; more than any terminal has columns.
const STEPS: u64 = 10_000;
/// What indicatif draws of itself, per second; the whole screen is drawn by [`View::draw`], five times per second.
const OWN_REDRAWS: u8 = 1;

/// Draws on a terminal.
pub struct Bars {
    multi: MultiProgress,
    rows: Vec<(ProgressBar, Form)>,
    size: Box<dyn Fn() -> (usize, usize) + Send>,
    colour: bool,
}

/// How a row is to be drawn; a style is built only when this changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Bar { width: usize, paint: Paint },
}

impl Form {
    fn style(self, colour: bool) -> ProgressStyle {
        let template = match self {
            Self::Text => "{msg}".to_owned(),
            Self::Bar { width: 0, .. } => "  {prefix}  {msg}".to_owned(),
            Self::Bar { width, paint } => {
                let colours = match paint {
                    _ if !colour => "",
                    Paint::Good => ".green/dim",
                    Paint::Warn | Paint::Bad => ".yellow/dim",
                    _ => ".cyan/dim",
                };
                format!("  {{prefix}}  {{bar:{width}{colours}}}{{msg}}")
            }
        };
        // The templates are ours and valid; a plain bar would still say how far it is.
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("█░")
    }
}

impl Bars {
    /// Draws on standard error.
    pub fn stderr(colour: bool) -> Self {
        let term = Term::buffered_stderr();
        let size = Term::stderr();
        let size = move || {
            let (height, width) = size.size();
            (height.into(), width.into())
        };
        Self::on(ProgressDrawTarget::term(term, OWN_REDRAWS), size, colour)
    }

    /// Draws on any target, whose (height, width) `size` tells.
    pub fn on(target: ProgressDrawTarget, size: impl Fn() -> (usize, usize) + Send + 'static, colour: bool) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        Self { multi, rows: Vec::new(), size: Box::new(size), colour }
    }

    /// Brings the number of rows to `count`.
    fn resize(&mut self, count: usize) {
        while self.rows.len() > count {
            if let Some((bar, _)) = self.rows.pop() {
                bar.finish_and_clear();
                self.multi.remove(&bar);
            }
        }
        while self.rows.len() < count {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
            let bar = bar.with_style(Form::Text.style(self.colour));
            self.rows.push((self.multi.add(bar), Form::Text));
        }
    }
}

/// An empty line above all others. The terminal shows `^C` where it is typed, at the end of the last line, and that moves
/// everything down by one row: what is then left behind at the top had better be empty.
fn blank() -> ScreenLine {
    // A space, since a bar without any text has no line.
    ScreenLine::Text(Line::of(&[Item::new(0, "", Paint::Plain, " ")]))
}

fn show(row: &mut (ProgressBar, Form), line: &ScreenLine, colour: bool) {
    let (bar, drawn) = row;
    let form = match line {
        ScreenLine::Text(_) => Form::Text,
        ScreenLine::Bar(line) => Form::Bar { width: line.width, paint: line.paint },
    };
    if *drawn != form {
        bar.set_style(form.style(colour));
        *drawn = form;
    }
    match line {
        ScreenLine::Text(line) => bar.set_message(line.render(colour)),
        ScreenLine::Bar(BarLine { label, share, figures, .. }) => {
            bar.set_position((share * STEPS as f64) as u64);
            bar.set_prefix(label.render(colour));
            bar.set_message(figures.render(colour));
        }
    }
}

impl View for Bars {
    fn every(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn begin(&mut self, _: &State) {}

    fn most_rows(&self) -> usize {
        let (height, _) = (self.size)();
        MOST_BARS.min(height.saturating_sub(LINES_WITHOUT_BARS + 2)).max(1)
    }

    fn draw(&mut self, state: &State, now: Duration) {
        let (_, width) = (self.size)();
        let mut lines = vec![blank()];
        lines.extend(text::screen(state, now, width));
        self.resize(lines.len());
        for (row, line) in self.rows.iter_mut().zip(&lines) {
            show(row, line, self.colour);
        }
        if let Some((bar, _)) = self.rows.last() {
            bar.force_draw();
        }
    }

    fn phase_ended(&mut self, _: &State) {}

    fn end(&mut self) {
        self.resize(0);
        let _ = self.multi.clear();
    }
}

#[cfg(test)]
mod tests;
