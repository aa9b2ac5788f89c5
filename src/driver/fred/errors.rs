//! What fred's errors mean. Their kinds are coarse: a refusal by the server and a lost connection can share one, and an
//! I/O error is there as text only. So a refusal is known by its kind and by not being one of fred's own sentences, and
//! an I/O error by the number inside its text.

use std::io;

use ::fred::error::{Error, ErrorKind};

use crate::plan::{Secret, Timeouts};
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// Sentences of fred itself under [`ErrorKind::Unknown`], where the server's error replies are too.
const OWN_SENTENCES: [&str; 6] = [
    "channel closed",
    "Client is not initialized.",
    "Failed to send command to router.",
    "Failed to route command.",
    "Missing expected connection.",
    "Too many failed write attempts.",
];
/// What fred calls a connection that ended in good order.
const ENDED: &str = "Connection closed.";
/// What fred says if the connection ended instead of an answer to `AUTH`: it takes the end for an empty answer.
const NO_ANSWER: &str = "Expected string.";
/// Servers that do not know a command repeat its arguments, and those of `HELLO` and `AUTH` hold the password.
const ECHO: &str = ", with args beginning with";

/// How far a connection had come when it failed.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// TCP, and TLS if asked for, were done.
    pub connected: bool,
    /// TLS was asked for.
    pub tls: bool,
}

/// The server's refusal of a request; `None` if the error says that the connection is lost.
pub fn refusal(error: &Error) -> Option<Fault> {
    let text = error.details();
    let refused = match error.kind() {
        ErrorKind::Auth | ErrorKind::InvalidArgument | ErrorKind::InvalidCommand | ErrorKind::Config => true,
        ErrorKind::Unknown => !OWN_SENTENCES.contains(&text),
        // fred drops the connection at the first CLUSTERDOWN, and gives that error to everything in flight.
        ErrorKind::Cluster => !text.starts_with("CLUSTERDOWN"),
        _ => false,
    };
    refused.then(|| Fault::new(Stage::Reply, Kind::from_reply(text.as_bytes())))
}

/// Whether the error only says that nothing comes any more, not why.
pub fn is_vague(error: &Error) -> bool {
    error.is_canceled() || OWN_SENTENCES.contains(&error.details())
}

/// Why an open connection was lost.
pub fn lost(error: &Error) -> Broken {
    let text = error.details();
    match error.kind() {
        ErrorKind::IO if text == ENDED => ended(),
        ErrorKind::IO => broken(Stage::Read, io_kind(text), io_text(text)),
        ErrorKind::Canceled => ended(),
        ErrorKind::Cluster => broken(Stage::Reply, Kind::ClusterDown, text.to_owned()),
        ErrorKind::Protocol | ErrorKind::Parse | ErrorKind::NotFound => {
            broken(Stage::Reply, Kind::Protocol, format!("not a reply that makes sense: {text}"))
        }
        _ => broken(Stage::Read, Kind::Other, format!("fred gave the connection up: {text}")),
    }
}

/// The server closed the connection in good order.
pub fn ended() -> Broken {
    broken(Stage::Read, Kind::Eof, "the server closed the connection".to_owned())
}

/// A connection that was not admitted within its limits.
pub fn too_late(progress: Progress, timeouts: &Timeouts) -> Broken {
    if progress.connected {
        broken(Stage::Setup, Kind::TimedOut, format!("connected, but no answer within {:?}", timeouts.setup))
    } else {
        broken(Stage::Connect, Kind::TimedOut, format!("no connection within {:?}", timeouts.connect))
    }
}

/// Why a connection could not be opened. `password` is kept out of the text.
pub fn unopened(error: &Error, progress: Progress, timeouts: &Timeouts, password: Option<&Secret>) -> Broken {
    let text = error.details();
    match error.kind() {
        // One text for all of fred's timeouts: the limit that passed is the one that was running.
        ErrorKind::Timeout => too_late(progress, timeouts),
        ErrorKind::Tls => broken(Stage::Tls, Kind::Handshake, text.to_owned()),
        ErrorKind::IO if text == ENDED => Broken { fault: Fault::new(Stage::Setup, Kind::Eof), ..ended() },
        ErrorKind::Protocol if text == NO_ANSWER => Broken { fault: Fault::new(Stage::Auth, Kind::Eof), ..ended() },
        ErrorKind::IO => unopened_by_io(text, progress),
        ErrorKind::Canceled => Broken { fault: Fault::new(Stage::Setup, Kind::Eof), ..ended() },
        ErrorKind::Protocol | ErrorKind::Parse => broken(Stage::Setup, Kind::Protocol, text.to_owned()),
        _ => {
            let kind = Kind::from_reply(text.as_bytes());
            let stage = if matches!(kind, Kind::NoAuth | Kind::WrongPass) { Stage::Auth } else { Stage::Setup };
            broken(stage, kind, redacted(text, password))
        }
    }
}

fn unopened_by_io(text: &str, progress: Progress) -> Broken {
    let kind = io_kind(text);
    // With TLS 1.3 the server's verdict on our certificate arrives after the handshake is done on this side.
    let handshake = progress.tls && (text.contains("InvalidCertificate") || text.contains("AlertReceived"));
    let (stage, kind) = match kind {
        _ if handshake => (Stage::Tls, Kind::Handshake),
        _ if progress.connected => (Stage::Setup, kind),
        Kind::Unresolved => (Stage::Dns, kind),
        Kind::Protocol if progress.tls => (Stage::Tls, Kind::Handshake),
        Kind::Eof | Kind::Reset if progress.tls => (Stage::Tls, kind),
        _ => (Stage::Connect, kind),
    };
    broken(stage, kind, io_text(text))
}

fn broken(stage: Stage, kind: Kind, text: String) -> Broken {
    Broken { fault: Fault::new(stage, kind), text }
}

fn redacted(text: &str, password: Option<&Secret>) -> String {
    let text = text.split_once(ECHO).map_or(text, |(before, _)| before);
    match password.map(Secret::reveal) {
        Some(password) if !password.is_empty() => text.replace(password, "***"),
        _ => text.to_owned(),
    }
}

/// The kind of an I/O error of which only the `Debug` text is left.
fn io_kind(text: &str) -> Kind {
    if let Some(code) = os_code(text) {
        return Kind::from_io(&io::Error::from_raw_os_error(code));
    }
    let has = |word| text.contains(word);
    if has("failed to lookup address") || has("Failed to resolve") {
        Kind::Unresolved
    } else if has("UnexpectedEof") || has("bytes remaining on stream") {
        Kind::Eof
    } else if has("WriteZero") || has("BrokenPipe") || has("ConnectionReset") {
        Kind::Reset
    } else if has("InvalidData") {
        Kind::Protocol
    } else {
        Kind::Other
    }
}

/// The same text for people: the system's own, or the innermost message.
fn io_text(text: &str) -> String {
    if let Some(code) = os_code(text) {
        return io::Error::from_raw_os_error(code).to_string();
    }
    let inner = ["error: ", "message: "].iter().find_map(|field| text.split_once(field));
    match inner {
        Some((_, rest)) => rest.trim_end_matches([' ', '}']).trim_matches('"').to_owned(),
        None => text.to_owned(),
    }
}

/// The number in `Os { code: 111, kind: ... }`.
fn os_code(text: &str) -> Option<i32> {
    let (_, rest) = text.split_once("Os { code: ")?;
    rest.split_once(',')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Timeouts = Timeouts {
        connect: Duration::from_secs(1),
        setup: Duration::from_secs(2),
        command: Duration::from_secs(3),
        silence: Duration::from_secs(4),
    };

    fn io_error(error: io::Error) -> Error {
        Error::from(error)
    }

    fn opening(error: &Error, connected: bool, tls: bool) -> Broken {
        unopened(error, Progress { connected, tls }, &LIMITS, None)
    }

    #[test]
    fn an_io_error_is_known_by_its_number() {
        let refused = io_error(io::Error::from_raw_os_error(111));
        let broken = opening(&refused, false, false);
        assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
        assert_eq!(broken.text, "Connection refused (os error 111)");
        assert_eq!(lost(&io_error(io::Error::from_raw_os_error(104))).fault, Fault::new(Stage::Read, Kind::Reset));
        assert_eq!(opening(&io_error(io::Error::from_raw_os_error(24)), false, false).fault.kind, Kind::TooManyFiles);
    }

    #[test]
    fn io_errors_without_a_number_are_known_by_their_words() {
        let tail = io_error(io::Error::other("bytes remaining on stream"));
        assert_eq!(lost(&tail), broken(Stage::Read, Kind::Eof, "bytes remaining on stream".to_owned()));
        let end = io_error(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(opening(&end, false, true).fault, Fault::new(Stage::Tls, Kind::Eof));
        assert_eq!(opening(&end, true, true).fault, Fault::new(Stage::Setup, Kind::Eof));
        let name = io_error(io::Error::other("failed to lookup address information: Name or service not known"));
        let broken = opening(&name, false, false);
        assert_eq!(broken.fault, Fault::new(Stage::Dns, Kind::Unresolved));
        assert_eq!(broken.text, "failed to lookup address information: Name or service not known");
    }

    #[test]
    fn a_timeout_is_that_of_the_stage_that_was_running() {
        let error = Error::new(ErrorKind::Timeout, "Request timed out.");
        assert_eq!(opening(&error, false, false).text, "no connection within 1s");
        assert_eq!(opening(&error, true, false).text, "connected, but no answer within 2s");
    }

    #[test]
    fn the_server_refuses_and_fred_gives_up_under_the_same_kind() {
        let error = |kind, text: &'static str| Error::new(kind, text);
        let oom = error(ErrorKind::Unknown, "OOM command not allowed when used memory > 'maxmemory'.");
        assert_eq!(refusal(&oom), Some(Fault::new(Stage::Reply, Kind::Oom)));
        let moved = error(ErrorKind::Cluster, "MOVED 1 127.0.0.1:1");
        assert_eq!(refusal(&moved), Some(Fault::new(Stage::Reply, Kind::Moved)));
        for own in OWN_SENTENCES {
            assert_eq!(refusal(&error(ErrorKind::Unknown, own)), None, "{own}");
        }
        let down = error(ErrorKind::Cluster, "CLUSTERDOWN Hash slot not served");
        assert_eq!(refusal(&down), None);
        assert_eq!(lost(&down).fault, Fault::new(Stage::Reply, Kind::ClusterDown));
        assert_eq!(refusal(&error(ErrorKind::IO, ENDED)), None);
    }

    #[test]
    fn passwords_stay_out_of_the_text() {
        let echo = "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `hunter2`, ";
        let progress = Progress { connected: true, tls: false };
        let secret = Secret::new("hunter2");
        let broken = unopened(&Error::new(ErrorKind::Unknown, echo), progress, &LIMITS, Some(&secret));
        assert_eq!(broken.text, "ERR unknown command `HELLO`");
        let other = Error::new(ErrorKind::Unknown, "ERR no hunter2 here");
        assert_eq!(unopened(&other, progress, &LIMITS, Some(&secret)).text, "ERR no *** here");
    }
}
