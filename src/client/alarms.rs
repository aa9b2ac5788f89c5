//! Wakes connections at intended moments, more finely than the event loop's timer, which counts in milliseconds.
//!
//! One timer of the system for all connections of a thread: they leave their moments here and are woken.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;
use std::task::Waker;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// The timer goes off no more often than this: at 50,000 requests per second, one of their own for each would cost as much as
/// the requests. So many microseconds are added to their send lag at most, which is measured.
const QUANTUM: Duration = Duration::from_micros(100);

/// The alarms of one thread.
pub struct Alarms {
    timer: TimerFd,
    /// The same timer, read like a pipe: that is the event loop's way to wait for it.
    rings: pipe::Receiver,
    set: RefCell<Set>,
}

#[derive(Default)]
struct Set {
    waiting: BinaryHeap<Reverse<Entry>>,
    /// When the timer will go off.
    armed: Option<Instant>,
    /// When it went off last.
    rang: Option<Instant>,
}

struct Entry {
    at: Instant,
    waker: Waker,
}

impl Alarms {
    /// None are set yet. Belongs to the runtime in which it is made.
    ///
    /// # Errors
    /// The system has no timer or no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let rings = pipe::Receiver::from_owned_fd_unchecked(timer.as_fd().try_clone_to_owned()?)?;
        Ok(Self { timer, rings, set: RefCell::default() })
    }

    /// Wakes `waker` at `at`, or a little later.
    pub fn set(&self, at: Instant, waker: &Waker) {
        let mut set = self.set.borrow_mut();
        set.waiting.push(Reverse(Entry { at, waker: waker.clone() }));
        if set.armed.is_none_or(|armed| at < armed) {
            self.arm(&mut set, at);
        }
    }

    /// Wakes whoever is due, for as long as it is polled.
    pub async fn ring(&self) {
        // Without a timer nobody is woken here; each connection has a coarse timer of its own beside it.
        while self.rings.readable().await.is_ok() {
            // How often it went off since the last look.
            let mut times = [0; size_of::<u64>()];
            if self.rings.try_read(&mut times).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                continue;
            }
            let mut set = self.set.borrow_mut();
            let now = Instant::now();
            (set.armed, set.rang) = (None, Some(now));
            while set.waiting.peek().is_some_and(|Reverse(entry)| entry.at <= now) {
                if let Some(Reverse(entry)) = set.waiting.pop() {
                    entry.waker.wake();
                }
            }
            if let Some(at) = set.waiting.peek().map(|Reverse(entry)| entry.at) {
                self.arm(&mut set, at);
            }
        }
    }

    fn arm(&self, set: &mut Set, at: Instant) {
        let at = set.rang.map_or(at, |rang| at.max(rang + QUANTUM));
        // A timer of zero would never go off.
        let wait = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(wait));
        if self.timer.set(once, TimerSetTimeFlags::empty()).is_ok() {
            set.armed = Some(at);
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    async fn woken_at(alarms: &Alarms, at: Instant) -> Instant {
        let mut set = false;
        poll_fn(|cx| {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            if !set {
                alarms.set(at, cx.waker());
                set = true;
            }
            Poll::Pending
        })
        .await;
        Instant::now()
    }

    #[tokio::test]
    async fn everybody_is_woken_and_nobody_early() {
        let alarms = Alarms::new().expect("a timer");
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let all = async {
            tokio::join!(
                woken_at(&alarms, at(5_000)),
                woken_at(&alarms, at(300)),
                woken_at(&alarms, at(2_000)),
                woken_at(&alarms, at(0))
            )
        };
        let (late, early, middle, now) = tokio::select! {
            woken = all => woken,
            () = alarms.ring() => panic!("the timer failed"),
        };
        // On a busy machine several are due at once, and then in no order.
        assert!(now >= at(0) && early >= at(300) && middle >= at(2_000) && late >= at(5_000));
    }
}
