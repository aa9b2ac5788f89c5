//! Looks out for replies instead of falling asleep.
//!
//! Falling asleep and being woken takes longer than a server needs for a reply. Where a thread has so little in flight
//! that this would be most of what is measured, it looks for replies a little longer before it sleeps; with `spin` it never
//! sleeps. What was spent on looking in vain is counted, since it is no work.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::record::Idled;

/// So long is looked for the next reply: about what falling asleep and being woken costs on a virtual machine.
const BRIEFLY: Duration = Duration::from_micros(100);
/// With more requests in flight on the thread, replies come without being looked for,
const FEW_REQUESTS: u64 = 8;
/// unless they are those of so few connections: their windows are answered as a whole, and the thread would sleep in between.
const FEW_CONNECTIONS: u64 = 2;
/// A look that takes longer was interrupted by somebody else on the core.
const LONGEST_LOOK: Duration = Duration::from_micros(20);

/// How long a thread looks before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// A little.
    Brief,
    /// For ever.
    Endless,
}

/// One thread's.
#[derive(Debug)]
pub struct Lookout {
    idled: Idled,
    spin: bool,
    /// Whether something came since the last look.
    seen: Cell<bool>,
    /// Wakes the lookout when it has given up.
    resting: RefCell<Option<Waker>>,
}

impl Lookout {
    /// Counts in `idled`. With `spin` the thread never sleeps.
    pub fn new(idled: Idled, spin: bool) -> Self {
        Self { idled, spin, seen: Cell::new(false), resting: RefCell::default() }
    }

    /// How long to look in a phase in which every one of the thread's `connections` has at most so many requests in flight;
    /// `None`: any number.
    pub fn patience(&self, connections: u64, window: Option<u64>) -> Patience {
        // On a machine with one core, looking would only keep the others from running.
        let alone = || sysconf(SysconfVar::_NPROCESSORS_ONLN).is_ok_and(|cores| cores == Some(1));
        let few = |window| connections <= FEW_CONNECTIONS || connections * window <= FEW_REQUESTS;
        match window {
            _ if self.spin => Patience::Endless,
            Some(window) if few(window) && !alone() => Patience::Brief,
            _ => Patience::None,
        }
    }

    /// Runs a connection's work. It is polled only when something came, or is due.
    pub async fn notice<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            self.saw();
            work.as_mut().poll(cx)
        })
        .await
    }

    fn saw(&self) {
        self.seen.set(true);
        if let Some(waker) = self.resting.take() {
            waker.wake();
        }
    }

    /// Keeps the thread awake, for as long as it is polled: every turn of the event loop looks at all connections once.
    pub async fn keep(&self, patience: Patience) {
        if patience == Patience::None {
            std::future::pending::<()>().await;
        }
        let mut looked = Instant::now();
        let mut came = looked;
        loop {
            // Others on the same core go first; on a core of its own this costs next to nothing.
            std::thread::yield_now();
            yield_now().await;
            let now = Instant::now();
            if self.seen.take() {
                came = now;
            } else {
                self.idled.add((now - looked).min(LONGEST_LOOK));
            }
            looked = now;
            if patience == Patience::Brief && now - came > BRIEFLY {
                self.rest().await;
                looked = Instant::now();
                came = looked;
            }
        }
    }

    /// Ends when something comes.
    async fn rest(&self) {
        poll_fn(|cx| {
            if self.seen.take() {
                return Poll::Ready(());
            }
            self.resting.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_few_exchanges_are_looked_for() {
        let patience = |spin, connections, window| Lookout::new(Idled::default(), spin).patience(connections, window);
        assert_eq!(patience(true, 50, None), Patience::Endless);
        assert_eq!(patience(false, 1, None), Patience::None);
        for (connections, window) in [(9, 1), (3, 3), (50, 64)] {
            assert_eq!(patience(false, connections, Some(window)), Patience::None, "{connections} × {window}");
        }
        for (connections, window) in [(8, 1), (4, 2), (2, 1000)] {
            assert_ne!(patience(false, connections, Some(window)), Patience::Endless, "{connections} × {window}");
        }
    }

    /// Runs a lookout until `enough` says so, asked at every turn of the event loop.
    async fn keep_until(lookout: &Lookout, patience: Patience, mut enough: impl FnMut() -> bool) {
        let watch = async {
            while !enough() {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = watch => {}
            () = lookout.keep(patience) => unreachable!("it never ends"),
        }
    }

    #[tokio::test]
    async fn looking_in_vain_is_counted_and_replies_are_not() {
        let idled = Idled::default();
        let lookout = Lookout::new(idled.clone(), false);
        let mut turns = 0;
        keep_until(&lookout, Patience::Endless, || {
            lookout.saw();
            turns += 1;
            turns > 1000
        })
        .await;
        assert_eq!(idled.read(), Duration::ZERO);
        keep_until(&lookout, Patience::Endless, || idled.read() > Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn work_is_noticed_whenever_it_goes_on() {
        let lookout = Lookout::new(Idled::default(), false);
        lookout.notice(yield_now()).await;
        assert!(lookout.seen.take());
    }

    #[tokio::test]
    async fn a_brief_look_ends_and_begins_anew() {
        let idled = Idled::default();
        let lookout = Lookout::new(idled.clone(), false);
        let resting = || lookout.resting.borrow().is_some();
        keep_until(&lookout, Patience::Brief, resting).await;
        let before = idled.read();
        assert!(before > Duration::ZERO);
        keep_until(&lookout, Patience::Brief, resting).await;
        lookout.saw();
        assert!(!resting());
        keep_until(&lookout, Patience::Brief, resting).await;
        assert!(idled.read() > before);
    }
}
