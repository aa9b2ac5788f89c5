//! What can go wrong on a connection, as small `Copy` kinds: they are counted under load, never formatted there.
//!
//! A fault has a *stage* (where in the life of a connection or request it happened) and a *kind* (what happened).
//! Timeouts are faults too; the record keeps them apart from errors, since they have counts of their own.

use std::fmt;
use std::io;
use std::time::Duration;

/// Where in the life of a connection, or of a request on it, a fault happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Resolving the host's name.
    Dns,
    /// The TCP (or unix socket) connect itself.
    Connect,
    /// The TLS handshake.
    Tls,
    /// `AUTH`, or the authentication inside `HELLO`.
    Auth,
    /// Everything else until the server has answered on the connection: `HELLO`, `SELECT`, `CLIENT ID`, `PING`.
    Setup,
    /// Sending requests.
    Write,
    /// Receiving replies.
    Read,
    /// A reply arrived, and it was an error or made no sense.
    Reply,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Nobody listens there (`ECONNREFUSED`), or the unix socket's file is missing.
    Refused,
    /// No route, host or network unreachable.
    Unreachable,
    /// The connection was reset by the peer, or a pipe broke.
    Reset,
    /// The peer closed the connection in good order.
    Eof,
    /// A limit of `[timeouts]` passed.
    TimedOut,
    /// No byte moved for `timeouts.silence` with requests in flight: given up.
    Silent,
    /// The run was interrupted with the request still in flight.
    Interrupted,
    /// The name could not be resolved.
    Unresolved,
    /// The TLS handshake failed: certificate, name or protocol version.
    Handshake,
    /// "max number of clients reached".
    MaxClients,
    /// This process (`EMFILE`) or machine (`ENFILE`) is out of file descriptors.
    TooManyFiles,
    /// No ephemeral port is left (`EADDRNOTAVAIL`).
    NoPort,
    /// The server wants a password, and none was given.
    NoAuth,
    /// The server knows no such user or password.
    WrongPass,
    /// The user may not run this command or touch this key.
    NoPerm,
    /// The server is at `maxmemory` and evicts nothing.
    Oom,
    /// The server is still loading its data.
    Loading,
    /// The server is a read-only replica.
    ReadOnly,
    /// The server refuses writes since it cannot persist.
    Misconf,
    /// A script or module blocks the server.
    Busy,
    /// The key lives on another node of a cluster.
    Moved,
    /// Keys of one command live in different hash slots.
    CrossSlot,
    /// The cluster is down.
    ClusterDown,
    /// The slot is being moved.
    TryAgain,
    /// The key holds another type (`WRONGTYPE`).
    WrongType,
    /// A command, or an argument of it, is longer than the server takes (`proto-max-bulk-len`).
    TooLong,
    /// An `EXPIRE` found no key.
    NoKey,
    /// A key that should expire never will, or later than it should.
    NoExpiry,
    /// Bytes that are no RESP, a reply of a shape that the command cannot have, or a reply that nobody asked for.
    Protocol,
    /// Anything else; the example in the result has the text.
    Other,
}

/// A fault: where and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fault {
    /// Where it happened.
    pub stage: Stage,
    /// What happened.
    pub kind: Kind,
}

impl Fault {
    /// A fault of `kind` in `stage`.
    pub const fn new(stage: Stage, kind: Kind) -> Self {
        Self { stage, kind }
    }

    /// The fault that an I/O error in `stage` stands for.
    pub fn from_io(stage: Stage, error: &io::Error) -> Self {
        Self::new(stage, Kind::from_io(error))
    }
}

/// Why a connection could not be opened, or cannot be used any more. Nothing in flight on it will be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where and what.
    pub fault: Fault,
    /// For people; never holds a secret.
    pub text: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Broken {}

/// How long the stages of connecting took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTimes {
    /// The TCP (or unix) connect, name resolution included; `None` if it could not be told from the handshake.
    pub tcp: Option<Duration>,
    /// The TLS handshake, and the connect before it if `tcp` is `None`; `None` without TLS.
    pub tls: Option<Duration>,
    /// From there to the server's first answer.
    pub setup: Duration,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.kind.name(), self.stage.name())
    }
}

impl Stage {
    /// The stage's name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Auth => "auth",
            Self::Setup => "setup",
            Self::Write => "write",
            Self::Read => "read",
            Self::Reply => "reply",
        }
    }
}

impl Kind {
    /// The kind's name in results: the server's or the system's own word where there is one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::Eof => "eof",
            Self::TimedOut => "timed out",
            Self::Silent => "silent",
            Self::Interrupted => "interrupted",
            Self::Unresolved => "unresolved",
            Self::Handshake => "handshake",
            Self::MaxClients => "maxclients",
            Self::TooManyFiles => "EMFILE",
            Self::NoPort => "EADDRNOTAVAIL",
            Self::NoAuth => "NOAUTH",
            Self::WrongPass => "WRONGPASS",
            Self::NoPerm => "NOPERM",
            Self::Oom => "OOM",
            Self::Loading => "LOADING",
            Self::ReadOnly => "READONLY",
            Self::Misconf => "MISCONF",
            Self::Busy => "BUSY",
            Self::Moved => "MOVED",
            Self::CrossSlot => "CROSSSLOT",
            Self::ClusterDown => "CLUSTERDOWN",
            Self::TryAgain => "TRYAGAIN",
            Self::WrongType => "WRONGTYPE",
            Self::TooLong => "too long",
            Self::NoKey => "no key",
            Self::NoExpiry => "no expiry",
            Self::Protocol => "protocol",
            Self::Other => "other",
        }
    }

    /// Classifies an error reply (`-OOM command not allowed ...`, without the dash) by its first word.
    pub fn from_reply(text: &[u8]) -> Self {
        let word = text.split(|&b| b == b' ').next().unwrap_or(text);
        match word {
            b"NOAUTH" => Self::NoAuth,
            b"WRONGPASS" => Self::WrongPass,
            b"NOPERM" => Self::NoPerm,
            b"OOM" => Self::Oom,
            b"LOADING" => Self::Loading,
            b"READONLY" => Self::ReadOnly,
            b"MISCONF" => Self::Misconf,
            b"BUSY" => Self::Busy,
            b"MOVED" | b"ASK" => Self::Moved,
            b"CROSSSLOT" => Self::CrossSlot,
            b"CLUSTERDOWN" => Self::ClusterDown,
            b"TRYAGAIN" => Self::TryAgain,
            b"WRONGTYPE" => Self::WrongType,
            b"ERR" if text.starts_with(b"ERR max number of clients") => Self::MaxClients,
            b"ERR" if text.starts_with(b"ERR invalid password") => Self::WrongPass,
            b"ERR" if too_long(text) => Self::TooLong,
            _ => Self::Other,
        }
    }

    /// Classifies an I/O error.
    pub fn from_io(error: &io::Error) -> Self {
        use io::ErrorKind as E;
        match error.kind() {
            E::ConnectionRefused | E::NotFound => Self::Refused,
            E::ConnectionReset | E::ConnectionAborted | E::BrokenPipe | E::NotConnected => Self::Reset,
            E::UnexpectedEof => Self::Eof,
            E::TimedOut => Self::TimedOut,
            E::HostUnreachable | E::NetworkUnreachable | E::NetworkDown => Self::Unreachable,
            E::AddrNotAvailable => Self::NoPort,
            E::InvalidData => Self::Protocol,
            _ => match error.raw_os_error() {
                // EMFILE and ENFILE have no `ErrorKind` of their own.
                Some(24 | 23) => Self::TooManyFiles,
                // A full backlog of a unix socket: EAGAIN from connect().
                Some(11) => Self::Refused,
                _ => Self::Other,
            },
        }
    }
}

/// What servers say of a bulk string above `proto-max-bulk-len`, or of a command of too many words.
fn too_long(text: &[u8]) -> bool {
    [&b"ERR Protocol error: invalid bulk length"[..], b"ERR Protocol error: invalid multibulk length"]
        .iter()
        .any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_replies_are_told_apart_by_their_first_word() {
        assert_eq!(Kind::from_reply(b"OOM command not allowed when used memory > 'maxmemory'."), Kind::Oom);
        assert_eq!(Kind::from_reply(b"ERR max number of clients reached"), Kind::MaxClients);
        assert_eq!(Kind::from_reply(b"ERR unknown command"), Kind::Other);
        assert_eq!(Kind::from_reply(b"ERR Protocol error: invalid bulk length"), Kind::TooLong);
        assert_eq!(Kind::from_reply(b"OOMPH"), Kind::Other);
        assert_eq!(Kind::from_reply(b""), Kind::Other);
    }

    #[test]
    fn descriptors_run_out_under_their_own_name() {
        assert_eq!(Kind::from_io(&io::Error::from_raw_os_error(24)), Kind::TooManyFiles);
        assert_eq!(Kind::from_io(&io::Error::from_raw_os_error(99)), Kind::NoPort);
        assert_eq!(Kind::from_io(&io::Error::from_raw_os_error(111)), Kind::Refused);
    }
}
