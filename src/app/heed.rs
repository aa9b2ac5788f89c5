//! A command on a thread of its own, so that signals are heeded even while it is stuck in writing its output.

use std::future::Future;
use std::io;

use tokio::sync::oneshot;

use super::signals::Signals;
use super::{Exit, complain};
use crate::client::Stop;

/// Runs a command to its end, or until the second signal. The first one asks `stop`.
pub fn until_done<F>(stop: &Stop, command: impl FnOnce() -> F + Send + 'static) -> Exit
where
    F: Future<Output = Exit>,
{
    watched(stop, command).unwrap_or_else(|error| {
        complain(&format!("the system gives no thread, event loop or signal handler: {error}"));
        Exit::Bug
    })
}

fn watched<F>(stop: &Stop, command: impl FnOnce() -> F + Send + 'static) -> io::Result<Exit>
where
    F: Future<Output = Exit>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let signals = Signals::listen()?;
        let (done, exit) = oneshot::channel();
        let urgent = stop.clone();
        std::thread::Builder::new().name("command".into()).spawn(move || {
            let exit = block_on(command, &urgent).unwrap_or(Exit::Bug);
            // If nobody waits any more, the process is ending.
            let _ = done.send(exit);
        })?;
        Ok(signals.watch(stop, exit).await)
    })
}

fn block_on<F>(command: impl FnOnce() -> F, stop: &Stop) -> io::Result<Exit>
where
    F: Future<Output = Exit>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = command() => exit,
            () = stop.urgent() => Exit::Interrupted,
        }
    });
    // A name look-up may still block a thread of the pool; it ends with the process.
    runtime.shutdown_background();
    Ok(exit)
}
