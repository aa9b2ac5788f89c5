//! A file of the kernel's that is read again and again: kept open, so that a reading costs no look-up of a path and a reused
//! pid is never mistaken for the process that was meant.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file; one that is not there reads as nothing.
#[derive(Debug)]
pub struct Pseudo {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Pseudo {
    /// Opens it.
    pub fn open(path: impl AsRef<Path>) -> Self {
        Self { file: File::open(path).ok(), bytes: Vec::new() }
    }

    /// Whether it was there.
    pub fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// Its text now; empty if it cannot be read, or is no text.
    pub fn read(&mut self) -> &str {
        /// Most of these files are shorter; one that is longer is read in several steps.
        const STEP: usize = 4096;
        let mut filled = 0;
        if let Some(file) = &self.file {
            loop {
                if self.bytes.len() < filled + STEP {
                    self.bytes.resize(filled + STEP, 0);
                }
                match file.read_at(&mut self.bytes[filled..], filled as u64) {
                    Ok(0) | Err(_) => break,
                    Ok(more) => filled += more,
                }
            }
        }
        std::str::from_utf8(&self.bytes[..filled]).unwrap_or_default()
    }
}

/// The number behind a name in lines of `name number`.
pub fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_each_time_and_what_is_not_there_is_empty() {
        let mut uptime = Pseudo::open("/proc/uptime");
        let first = uptime.read().to_owned();
        while uptime.read() == first {}
        assert!(uptime.is_there() && !first.is_empty());
        let mut long = Pseudo::open("/proc/self/smaps");
        assert!(long.read().len() > 4096 && long.read().ends_with('\n'));
        let mut none = Pseudo::open("/proc/no-such-file");
        assert_eq!((none.is_there(), none.read()), (false, ""));
    }

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let text = "oom_kill_x 7\noom_kill 3\nodd\npswpin x\n";
        assert_eq!((number(text, "oom_kill"), number(text, "pswpin"), number(text, "odd")), (Some(3), None, None));
    }
}
