//! Once its buffers have grown, the driver allocates nothing.

use std::hint::black_box;
use std::task::Waker;

use allocation_counter::measure;

use super::*;
use crate::wire::resp;

/// A server in this process, which allocates nothing itself once its buffer has grown.
struct Echo {
    dataset: Arc<Dataset>,
    replies: Vec<u8>,
    read: usize,
}

impl AsyncWrite for Echo {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { dataset, replies, read } = self.get_mut();
        replies.drain(..*read);
        *read = 0;
        // Whole commands: the driver was let send all that it had.
        for command in bytes.split(|&byte| byte == b'*').skip(1) {
            if command.starts_with(b"3\r\n$3\r\nSET\r\n") {
                replies.extend_from_slice(b"+OK\r\n");
                continue;
            }
            let key = command.rsplit(|&byte| byte == b'k').next().expect("a key");
            let n = key.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |n, d| 10 * n + u64::from(d - b'0'));
            let place = Place { client: 0, index: n - 1 };
            resp::length(dataset.value_len(place), replies);
            dataset.value(place, 1, replies);
            replies.extend_from_slice(b"\r\n");
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Echo {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let echo = self.get_mut();
        // In pieces that cut replies anywhere.
        let bytes = (echo.replies.len() - echo.read).min(1009).min(buffer.remaining());
        if bytes == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&echo.replies[echo.read..echo.read + bytes]);
        echo.read += bytes;
        Poll::Ready(Ok(()))
    }
}

/// `windows` windows of 64 requests, every answer the right one.
fn load(driver: &mut SocketDriver<Echo>, done: &mut Vec<Completion>, op: Op, windows: u64) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = |driver: &mut SocketDriver<Echo>, done: &mut Vec<Completion>| {
        assert!(matches!(driver.poll(&mut cx, done), Poll::Ready(Ok(()))));
    };
    for ticket in 0..64 * windows {
        while !driver.has_room() {
            poll(driver, done);
        }
        driver.submit(request(op, ticket % 1000), &[]);
        if ticket % 64 < 63 {
            continue;
        }
        while answers(done) < 64 {
            poll(driver, done);
        }
        let right = if op == Op::Write { Outcome::Stored } else { Outcome::Read(Reading::Matched) };
        assert!(done.drain(..).all(|completion| completion.outcome == right));
    }
}

#[test]
fn a_steady_phase_allocates_nothing() {
    assert!(measure(|| drop(black_box(Box::new(1)))).count_total > 0, "allocations are seen");
    // The longer one is compared as it arrives.
    let bytes = |len| ValuePattern::Bytes { sizes: Sizes::fixed(len), alphabet: Alphabet::Alphanumeric };
    for value in [ValuePattern::Uuid, bytes(10_000), bytes(20_000)] {
        let dataset = dataset(value);
        for op in [Op::Write, Op::Read] {
            let echo = Echo { dataset: Arc::clone(&dataset), replies: Vec::new(), read: 0 };
            let mut driver = SocketDriver::new(echo, None, Arc::clone(&dataset));
            let mut done = Vec::new();
            // Every key once, so that no later window is longer than all before.
            load(&mut driver, &mut done, op, 16);
            let steady = measure(|| load(&mut driver, &mut done, op, 48));
            assert_eq!(steady.count_total, 0, "{op:?} {steady:?}");
        }
    }
}
