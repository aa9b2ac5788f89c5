//! Buffers that nobody uses at the moment, for all connections of a thread.
//!
//! A connection needs a buffer only from the first byte of a window to its last, mostly within one turn of the event loop.
//! Handed on from one to the next, it stays in the core's cache, and ten thousand idle connections need none.

use std::cell::RefCell;

/// A larger read saves no system calls worth having.
const READ_BYTES: usize = 128 * 1024;
/// A larger buffer for writing is not kept.
const WRITE_BYTES: usize = 256 * 1024;
/// More are not kept: they were needed while a server was slow.
const KEPT: usize = 64;

thread_local! {
    static READING: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static WRITING: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer to read into, of any contents; the one that was used last.
pub fn for_reading() -> Vec<u8> {
    READING.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; READ_BYTES])
}

/// An empty buffer to write to; the one that was used last.
pub fn for_writing() -> Vec<u8> {
    WRITING.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Gives a buffer back that was read into, unless it had to grow. An empty one is left behind.
pub fn done_reading(buffer: &mut Vec<u8>) {
    let buffer = std::mem::take(buffer);
    if buffer.len() == READ_BYTES {
        READING.with_borrow_mut(|spare| keep(spare, buffer));
    }
}

/// Gives a buffer back that was written to. An empty one is left behind.
pub fn done_writing(buffer: &mut Vec<u8>) {
    let mut buffer = std::mem::take(buffer);
    if (1..=WRITE_BYTES).contains(&buffer.capacity()) {
        buffer.clear();
        WRITING.with_borrow_mut(|spare| keep(spare, buffer));
    }
}

fn keep(spare: &mut Vec<Vec<u8>>, buffer: Vec<u8>) {
    if spare.len() < KEPT {
        spare.push(buffer);
    }
}
