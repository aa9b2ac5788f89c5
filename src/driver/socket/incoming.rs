//! The receive buffer: what arrived and was not understood yet.

use super::spare;

/// So few bytes are moved out of the buffer, so that others can have it meanwhile: what a reply that is understood as a whole
/// may have, if it is no error.
const SHORT: usize = super::replies::LONG;

/// Bytes that arrived and were not understood yet.
#[derive(Default)]
pub struct Incoming {
    /// Where reads go; empty between reads, if it can be.
    buffer: Vec<u8>,
    /// The bytes are `buffer[start..end]`,
    start: usize,
    end: usize,
    /// or these, while there is no buffer.
    rest: Vec<u8>,
}

impl Incoming {
    /// Where the next bytes go; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = spare::for_reading();
            self.buffer[..self.rest.len()].copy_from_slice(&self.rest);
            (self.start, self.end) = (0, self.rest.len());
            self.rest.clear();
        }
        if self.end == self.buffer.len() {
            self.close_up();
            if self.end == self.buffer.len() {
                self.buffer.resize(2 * self.end, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put there.
    pub fn arrived(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// What was not understood yet. Only between [`Self::space`] and [`Self::rest`].
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// So many bytes of it were understood.
    pub fn advance(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Drops all of it.
    pub fn clear(&mut self) {
        self.start = self.end;
    }

    /// Makes room for a reply of `need` bytes, so that a long one is moved once at most.
    pub fn want(&mut self, need: usize) {
        if need > self.buffer.len() - self.start {
            self.close_up();
            if need > self.buffer.len() {
                // The server's word for a length is believed only as fast as bytes arrive.
                let larger = need.min((4 * self.end).max(self.buffer.len()));
                self.buffer.resize(larger, 0);
            }
        }
    }

    /// Nothing is read for a while: leaves the buffer to others, unless too much is in it.
    pub fn rest(&mut self) {
        let left = &self.buffer[self.start..self.end];
        if left.len() > SHORT {
            return;
        }
        self.rest.extend_from_slice(left);
        (self.start, self.end) = (0, 0);
        spare::done_reading(&mut self.buffer);
    }

    fn close_up(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }

    /// What it holds of memory, in bytes.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity() + self.rest.capacity()
    }
}
