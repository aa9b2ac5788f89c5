//! The live view where there is no terminal: one plain line every five seconds, and one per ended phase.

use std::io::Write;
use std::time::Duration;

use super::View;
use super::state::State;
use super::text;

/// Writes lines to anything.
pub struct Lines<W> {
    out: W,
}

impl<W: Write> Lines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// A log that cannot be written must not end the run; the results tell all of it anyway.
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }
}

impl<W: Write> View for Lines<W> {
    fn every(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn begin(&mut self, state: &State) {
        self.line(&text::title(state).render(false));
    }

    fn draw(&mut self, state: &State, now: Duration) {
        if let Some(line) = text::plain(state, now) {
            self.line(&line.render(false));
        }
    }

    fn phase_ended(&mut self, state: &State) {
        if let Some(phase) = state.ended.last() {
            self.line(&text::ended(phase).render(false));
        }
    }

    fn end(&mut self) {}
}
