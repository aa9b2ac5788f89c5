//! A small blocking RESP2 client and reader, independent of the code under test: it plays the person with a redis-cli,
//! and reads requests for the scripted server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What a server says; a request has the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Text(String),
    Error(String),
    Integer(i64),
    Nil,
    List(Vec<Reply>),
}

impl Reply {
    /// As redis-cli prints it to a pipe: nothing for nil, one line for each element.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) | Self::Error(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Nil => String::new(),
            Self::List(items) => items.iter().map(Self::plain).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// What a connection runs over.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// One connection, if possible over a unix socket, so that it takes no port and needs no TLS.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

/// The longest that a client waits for the next byte, or to be rid of it.
const PATIENCE: Duration = Duration::from_secs(10);

impl Client {
    /// Connects, and logs in if there is a password.
    pub fn connect(socket: &Path, password: Option<&str>) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut client = Self { stream: BufReader::new(Box::new(stream)) };
        if let Some(password) = password {
            match client.call(&["AUTH", password])? {
                Reply::Error(text) => return Err(io::Error::other(text)),
                _ => return Ok(client),
            }
        }
        Ok(client)
    }

    /// Connects to a port of this host, for a server that was not started by a test.
    pub fn connect_port(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(Box::new(stream)) })
    }

    /// One command, one reply.
    pub fn call(&mut self, command: &[&str]) -> io::Result<Reply> {
        Ok(self.call_all(&[command])?.remove(0))
    }

    /// Many commands in one go, and all their replies.
    pub fn call_all(&mut self, commands: &[&[&str]]) -> io::Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        for command in commands {
            encode(command, &mut bytes);
        }
        self.stream.get_mut().write_all(&bytes)?;
        commands.iter().map(|_| read(&mut self.stream)).collect()
    }
}

/// Appends a command as an array of bulk strings.
pub fn encode(command: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
    for arg in command {
        out.extend_from_slice(&bulk(arg));
    }
}

/// A bulk string.
pub fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Reads one reply, or one request.
pub fn read(stream: &mut impl BufRead) -> io::Result<Reply> {
    let line = read_line(stream)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| odd(&line))?;
    let number = || rest.parse::<i64>().map_err(|_| odd(&line));
    Ok(match kind {
        "+" => Reply::Text(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Integer(number()?),
        "$" | "*" if number()? < 0 => Reply::Nil,
        "$" => {
            let mut bytes = vec![0; usize::try_from(number()?).map_err(io::Error::other)? + 2];
            stream.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => Reply::List((0..number()?).map(|_| read(stream)).collect::<io::Result<_>>()?),
        _ => return Err(odd(&line)),
    })
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    // A limit, so that a peer that never ends a line cannot take all memory.
    stream.take(1 << 16).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn odd(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no RESP: {line:?}"))
}
