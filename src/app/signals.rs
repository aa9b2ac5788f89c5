//! Signals: the first asks to stop, the second ends the process, whatever the rest of it is doing.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::Exit;
use crate::client::Stop;

/// After the second signal, a spawned server is still stopped; that takes two seconds at most.
const LAST_WORDS: Duration = Duration::from_millis(2_500);
/// A file grew past `ulimit -f`. It has no name in tokio; without a handler it ends the process before anything is written.
const SIGXFSZ: i32 = 25;

/// The signals that keyswarm heeds.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
    /// Heard and not heeded: without a listener they would end the process and leave a spawned server behind.
    _ignored: Vec<Signal>,
}

impl Signals {
    /// Begins to listen; from here on no signal but `SIGKILL` ends the process by itself.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        let ignored = [SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::from_raw(SIGXFSZ)];
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            _ignored: ignored.into_iter().map(signal).collect::<io::Result<_>>()?,
        })
    }

    /// Waits for the command's exit. A first signal asks it to stop; after a second it is waited for only briefly, since it
    /// may be stuck in writing to somebody who does not read.
    pub async fn watch(mut self, stop: &Stop, mut exit: oneshot::Receiver<Exit>) -> Exit {
        for _ in 0..2 {
            tokio::select! {
                // A command thread that panicked has printed itself.
                exit = &mut exit => return exit.unwrap_or(Exit::Bug),
                () = self.next() => stop.ask(),
            }
        }
        // Whatever it says now, it was interrupted.
        let _ = tokio::time::timeout(LAST_WORDS, exit).await;
        Exit::Interrupted
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}
