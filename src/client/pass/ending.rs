//! How a pass leaves its connection: open for the next one, or, where replies are not waited for, closed.

use std::future::poll_fn;
use std::task::Poll;

use tokio::time::{Instant, sleep_until};

use super::{DRAIN_AFTER_STOP, Pass};
use crate::driver::Driver;
use crate::plan::Close;
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// What is left of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is as good as before.
    Open,
    /// The server has taken everything in and closed it: it must be dropped.
    Drained,
    /// It must be dropped, and the server may not have read all that was sent.
    CutOff,
}

impl Pass<'_> {
    pub(super) fn leaves_at_once(&self) -> bool {
        self.spec.load.replies.close() == Some(Close::AtOnce)
    }

    /// Ends the connection as the phase wants it.
    ///
    /// # Errors
    /// It is lost, or nothing moves any more.
    pub(super) async fn end<D: Driver>(&mut self, driver: &mut D) -> Result<Ending, Broken> {
        match self.spec.load.replies.close() {
            None => Ok(Ending::Open),
            Some(Close::AtOnce) => {
                self.discard_rest();
                Ok(Ending::CutOff)
            }
            Some(Close::AfterDrain) => {
                let drained = self.drain(driver).await;
                self.now = Instant::now();
                // Until here the phase went on: all has arrived only now.
                self.settled = Some(self.now);
                drained.map(|()| Ending::Drained)
            }
        }
    }

    /// Says that nothing more comes, then reads to the end. Bounded by silence, and by a stop.
    async fn drain<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
        let stop = self.around.stop.clone();
        let mut stopped = std::pin::pin!(stop.asked());
        (self.now, self.moved) = (Instant::now(), Instant::now());
        let mut until = None;
        loop {
            let silent = self.moved + self.spec.silence;
            let deadline = until.map_or(silent, |until: Instant| silent.min(until));
            let mut timer = std::pin::pin!(sleep_until(deadline));
            let closed = poll_fn(|cx| {
                if let Poll::Ready(closed) = driver.poll_close(cx) {
                    return Poll::Ready(Some(closed));
                }
                let stop = until.is_none() && stopped.as_mut().poll(cx).is_ready();
                if stop || timer.as_mut().poll(cx).is_ready() { Poll::Ready(None) } else { Poll::Pending }
            })
            .await;
            if let Some(closed) = closed {
                return closed;
            }
            self.now = Instant::now();
            self.watch_traffic(driver.traffic());
            if self.around.stop.is_asked() && until.is_none() {
                until = Some(self.now + DRAIN_AFTER_STOP);
            }
            let give_up = |kind, text| Err(Broken { fault: Fault::new(Stage::Read, kind), text });
            if until.is_some_and(|until| self.now >= until) {
                return give_up(Kind::Interrupted, "the run was interrupted before the server closed".to_owned());
            }
            if self.now >= self.moved + self.spec.silence {
                let silence = self.spec.silence.as_secs_f64();
                return give_up(Kind::Silent, format!("no byte moved for {silence} s, and the server did not close"));
            }
        }
    }
}
