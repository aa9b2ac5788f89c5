//! A loading thread, as others see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Who it is, and how much of its time on a core was no work.
#[derive(Clone, Debug, Default)]
pub struct LoadThread {
    /// As the kernel counts threads.
    pub tid: i32,
    /// What it spent on looking for replies in vain.
    pub idled: Idled,
}

/// Time on a core that was no work, since the thread began: counted by the thread, read by others.
#[derive(Clone, Debug, Default)]
pub struct Idled(Arc<AtomicU64>);

impl Idled {
    /// So much in all.
    pub fn read(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// So much more. Only the thread itself says that.
    pub fn add(&self, time: Duration) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + time.as_nanos() as u64, Ordering::Relaxed);
    }
}
