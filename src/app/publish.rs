//! Where a result goes: into a folder, and to whoever reads standard output.

use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;

use super::{check, colour_wanted};
use crate::cli::RunArgs;
use crate::report::{FolderError, Look, ResultFolder};

/// A new folder for a result, with the scenario in it as it was resolved.
///
/// # Errors
/// It cannot be made or written to.
pub fn folder(args: &RunArgs, name: &str, resolved: &str, started: SystemTime) -> Result<ResultFolder, FolderError> {
    let folder = ResultFolder::create(&args.out, name, started)?;
    folder.write_scenario(resolved)?;
    Ok(folder)
}

/// Shows something on standard output. A reader that has seen enough may close the pipe.
///
/// # Errors
/// It cannot be written to for any other reason, such as a full disk: a sentence.
pub fn print(write: impl FnOnce(Look, &mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let stdout = io::stdout();
    let look = Look { width: check::terminal_width(), colour: colour_wanted(stdout.is_terminal()) };
    let mut stdout = stdout.lock();
    match write(look, &mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
