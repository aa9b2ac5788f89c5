//! A byte stream to a server, whatever carries it; and what an I/O error on one is called.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::fault::{Broken, Fault, Kind, Stage};

/// A connected stream.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
    /// TLS over TCP, without Nagle's delay.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Asks the system to report a peer whose *host* is gone, or cut off, after about `within`. A peer that is merely
    /// stopped or busy is left alone, since its system still acknowledges for it. Nothing to do on a unix socket.
    ///
    /// # Errors
    /// The system refuses the options.
    pub fn notice_dead_peer(&self, within: Duration) -> io::Result<()> {
        let Some(tcp) = self.tcp() else { return Ok(()) };
        let seconds = u32::try_from(within.as_secs()).unwrap_or(u32::MAX).clamp(1, 32_000);
        setsockopt(tcp, sockopt::KeepAlive, &true)?;
        setsockopt(tcp, sockopt::TcpKeepIdle, &seconds)?;
        setsockopt(tcp, sockopt::TcpKeepInterval, &(seconds / 4).max(1))?;
        setsockopt(tcp, sockopt::TcpUserTimeout, &(seconds * 1000))?;
        Ok(())
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Tls(tls) => Some(tls.get_ref().0),
            Self::Unix(_) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Broken {
    /// What an I/O error on a stream means. `doing` says what was attempted, and with whom: "connect to host:6379".
    pub fn from_io(stage: Stage, doing: &str, error: &io::Error) -> Self {
        let mut fault = Fault::from_io(stage, error);
        if is_tls_error(error) && matches!(stage, Stage::Tls | Stage::Auth | Stage::Setup) {
            // With TLS 1.3 a server that rejects the client's certificate says so only after the handshake.
            fault = Fault::new(Stage::Tls, Kind::Handshake);
        }
        Self { fault, text: format!("{doing}: {}", reason(error)) }
    }

    /// The peer closed the connection in good order.
    pub fn eof(stage: Stage, doing: &str) -> Self {
        Self { fault: Fault::new(stage, Kind::Eof), text: format!("{doing}: closed by the server") }
    }

    /// A limit passed.
    pub fn timed_out(stage: Stage, doing: &str, limit: Duration) -> Self {
        Self { fault: Fault::new(stage, Kind::TimedOut), text: format!("{doing}: not done within {limit:?}") }
    }

    /// The bytes, or the shape of a reply, make no sense.
    pub fn protocol(stage: Stage, doing: &str, what: &dyn std::fmt::Display) -> Self {
        Self { fault: Fault::new(stage, Kind::Protocol), text: format!("{doing}: {what}") }
    }
}

fn is_tls_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>())
}

/// The system's own words, without "(os error 111)" and without a capital in mid-sentence.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown error".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_reads_like_the_end_of_a_sentence() {
        let refused = io::Error::from_raw_os_error(111);
        let broken = Broken::from_io(Stage::Connect, "connect to 127.0.0.1:6379", &refused);
        assert_eq!(broken.text, "connect to 127.0.0.1:6379: connection refused");
        assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
    }

    #[test]
    fn a_tls_error_before_admission_is_a_failed_handshake() {
        let error = io::Error::new(io::ErrorKind::InvalidData, tokio_rustls::rustls::Error::DecryptError);
        assert_eq!(Broken::from_io(Stage::Setup, "x", &error).fault, Fault::new(Stage::Tls, Kind::Handshake));
        assert_eq!(Broken::from_io(Stage::Read, "x", &error).fault, Fault::new(Stage::Read, Kind::Protocol));
    }
}
