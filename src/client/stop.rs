//! A request to stop, seen by every loading thread. Asked twice, it means at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Asks everything that loads to stop. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    urgent: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Asks. The first time, what is in flight is still waited for, briefly.
    pub fn ask(&self) {
        if self.shared.asked.swap(true, Ordering::AcqRel) {
            self.shared.urgent.store(true, Ordering::Release);
        }
        self.shared.notify.notify_waiters();
    }

    /// Whether it was asked more than once: nothing is waited for any more.
    pub fn is_urgent(&self) -> bool {
        self.shared.urgent.load(Ordering::Acquire)
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.shared.asked.load(Ordering::Acquire)
    }

    /// Waits until it is asked.
    pub async fn asked(&self) {
        self.until(Self::is_asked).await;
    }

    /// Waits until it is asked a second time.
    pub async fn urgent(&self) {
        self.until(Self::is_urgent).await;
    }

    async fn until(&self, reached: fn(&Self) -> bool) {
        loop {
            let notified = self.shared.notify.notified();
            tokio::pin!(notified);
            // Registered before the flag is read, so that a request in between is not missed.
            notified.as_mut().enable();
            if reached(self) {
                return;
            }
            notified.await;
        }
    }
}
