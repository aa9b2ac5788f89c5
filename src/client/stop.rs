//! A request to stop, seen by every loading thread. Asked twice, it means at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Asks everything that loads to stop. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Shared>,
    /// Asking it asks this one, too.
    parent: Option<Arc<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicBool,
    urgent: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// A request that can be made by itself, and that is made when this one is. It has no children of its own.
    pub fn child(&self) -> Self {
        Self { shared: Arc::default(), parent: Some(Arc::clone(&self.shared)) }
    }

    /// Asks. The first time, what is in flight is still waited for, briefly.
    pub fn ask(&self) {
        if self.shared.asked.swap(true, Ordering::AcqRel) {
            self.shared.urgent.store(true, Ordering::Release);
        }
        self.shared.notify.notify_waiters();
    }

    /// Whether it was asked more than once: nothing is waited for any more.
    pub fn is_urgent(&self) -> bool {
        self.either(|shared| shared.urgent.load(Ordering::Acquire))
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.either(|shared| shared.asked.load(Ordering::Acquire))
    }

    fn either(&self, is: impl Fn(&Shared) -> bool) -> bool {
        is(&self.shared) || self.parent.as_deref().is_some_and(is)
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
            let own = self.shared.notify.notified();
            // Whoever has no parent listens to itself twice.
            let parents = self.parent.as_ref().unwrap_or(&self.shared).notify.notified();
            tokio::pin!(own, parents);
            // Registered before the flag is read, so that a request in between is not missed.
            own.as_mut().enable();
            parents.as_mut().enable();
            if reached(self) {
                return;
            }
            tokio::select! {
                () = own => {}
                () = parents => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_is_asked_with_its_parent_and_alone() {
        let parent = Stop::default();
        let (child, other) = (parent.child(), parent.child());
        let waiting = tokio::spawn({
            let other = other.clone();
            async move { other.urgent().await }
        });
        tokio::task::yield_now().await;
        child.ask();
        assert!(child.is_asked() && !child.is_urgent() && !parent.is_asked() && !other.is_asked());
        child.asked().await;
        parent.ask();
        parent.ask();
        assert!(other.is_asked() && child.is_urgent());
        waiting.await.expect("woken");
    }
}
