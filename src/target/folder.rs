//! The private folder of a spawned server: its configuration and its log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::plan::{Secret, Spawn};

const CONFIG: &str = "server.conf";
const LOG: &str = "server.log";

/// The folder; nobody else can look into it, and it is removed when dropped.
#[derive(Debug)]
pub(super) struct Folder {
    folder: TempDir,
    password: Option<Secret>,
}

impl Folder {
    /// Makes it within `root`, with the configuration in it; also finds a free port and opens the log.
    ///
    /// # Errors
    /// The folder or a file cannot be made, or there is no port.
    pub(super) fn furnish(spec: &Spawn, root: &Path) -> io::Result<(Self, u16, File)> {
        let owner_only = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("keyswarm-").permissions(owner_only).tempdir_in(root)?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut private = OpenOptions::new();
        private.write(true).create_new(true).mode(0o600);
        private.open(folder.path().join(CONFIG))?.write_all(config(spec, port, folder.path()).as_bytes())?;
        let log = private.open(folder.path().join(LOG))?;
        Ok((Self { folder, password: spec.password.clone() }, port, log))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration's file.
    pub(super) fn config(&self) -> PathBuf {
        self.path().join(CONFIG)
    }

    /// Lines of the log, of its last megabyte, in which these words stand.
    pub(super) fn log_lines_with(&self, words: &str) -> u64 {
        let text = end(&self.path().join(LOG), 1 << 20).unwrap_or_default();
        text.lines().filter(|line| line.contains(words)).count() as u64
    }

    /// The last lines of the log, without the password; empty if it cannot be read.
    pub(super) fn log_tail(&self) -> String {
        let text = tail(&self.path().join(LOG)).unwrap_or_default();
        redact(text, self.password.as_ref())
    }
}

/// Settings go through a file, since everybody can read the arguments of a process.
fn config(spec: &Spawn, port: u16, folder: &Path) -> String {
    let mut text = format!("bind 127.0.0.1\nport {port}\nsave \"\"\nappendonly no\ndaemonize no\n");
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{name} {value}\n"));
        }
    };
    set("dir", Some(quoted(folder.as_os_str().as_encoded_bytes())));
    set("maxmemory", spec.maxmemory.map(|bytes| bytes.to_string()));
    set("maxclients", spec.maxclients.map(|clients| clients.to_string()));
    set("tcp-backlog", spec.tcp_backlog.map(|backlog| backlog.to_string()));
    set("requirepass", spec.password.as_ref().map(|password| quoted(password.reveal().as_bytes())));
    text
}

/// As the configuration file wants it: anything but plain letters and digits as `\xHH` within double quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

/// The last ten lines of a file, of its last 4 kB.
fn tail(path: &Path) -> io::Result<String> {
    let text = end(path, 4096)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(10)..].join("\n"))
}

/// The last `most` bytes of a file.
fn end(path: &Path, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A server that does not like its configuration quotes the line.
fn redact(text: String, password: Option<&Secret>) -> String {
    match password.map(Secret::reveal) {
        Some(password) if !password.is_empty() => {
            text.replace(password, "***").replace(&quoted(password.as_bytes()), "***")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_password_fits_on_a_line_and_none_is_shown() {
        assert_eq!(quoted(b"aZ9-"), "\"aZ9-\"");
        assert_eq!(quoted(b"a \"\\\n\xc3"), "\"a\\x20\\x22\\x5c\\x0a\\xc3\"");
        let secret = Secret::new("pass word");
        let log = format!(">>> requirepass {}\nand pass word", quoted(b"pass word"));
        assert_eq!(redact(log, Some(&secret)), ">>> requirepass ***\nand ***");
        assert_eq!(redact("x".to_owned(), Some(&Secret::new(""))), "x");
    }
}
