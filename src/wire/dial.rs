//! Opening a connection in timed stages: name, TCP (or unix), TLS, set-up.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::fault::{Broken, ConnectTimes, Fault, Kind, Stage};
use super::setup::Setup;
use super::stream::Stream;
use super::tls::{self, TlsSetup};
use crate::plan::{Endpoint, Timeouts, Transport};

/// Opens connections to one server, as one user. Cheap to clone.
#[derive(Clone)]
pub struct Dialer(Arc<Route>);

/// The way, and what is said at its end.
pub(super) struct Route {
    transport: Transport,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    setup: Setup,
    /// What a visit says, in two steps; see `visit`.
    pub(super) login: Setup,
    pub(super) ping: Setup,
    pub(super) timeouts: Timeouts,
    pub(super) address: String,
}

/// An open connection on which the server has answered. Nothing is in flight on it, and nothing is left to read.
#[derive(Debug)]
pub struct Dialed {
    /// The connection.
    pub stream: Stream,
    /// How long each stage took.
    pub times: ConnectTimes,
    /// The server's name for it (`CLIENT ID`), if it told.
    pub client_id: Option<u64>,
    /// Worth telling a person once.
    pub notes: Vec<&'static str>,
}

/// Shows where it leads, and no secret.
impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialer").field(&self.0.address).finish()
    }
}

impl Dialer {
    /// A dialer to `endpoint`. Reads the files of its TLS settings; touches no server.
    ///
    /// # Errors
    /// TLS cannot be set up as the scenario says.
    pub fn new(endpoint: &Endpoint, timeouts: &Timeouts) -> Result<Self, TlsSetup> {
        let tls = match (&endpoint.tls, &endpoint.transport) {
            (None, _) => None,
            (Some(_), Transport::Unix { .. }) => return Err(TlsSetup::OverUnix),
            (Some(tls), Transport::Tcp { host, .. }) => Some((tls::client_config(tls)?, tls::server_name(tls, host)?)),
        };
        Ok(Self(Arc::new(Route {
            transport: endpoint.transport.clone(),
            tls,
            setup: Setup::of(endpoint),
            login: Setup::login(endpoint),
            ping: Setup::ping(),
            timeouts: *timeouts,
            address: address(&endpoint.transport),
        })))
    }

    /// `host:port` or the socket's path, for people.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// The way, for others in this room.
    pub(super) fn route(&self) -> &Route {
        &self.0
    }

    /// How long anything may take.
    pub fn timeouts(&self) -> &Timeouts {
        &self.0.timeouts
    }

    /// The TLS settings in use, for a client library that brings its own connections.
    pub fn tls_config(&self) -> Option<Arc<ClientConfig>> {
        self.0.tls.as_ref().map(|(config, _)| Arc::clone(config))
    }

    /// Opens a connection and waits until the server has answered on it.
    ///
    /// Name, TCP and TLS share `timeouts.connect`; everything after has `timeouts.setup`.
    ///
    /// # Errors
    /// The stage that failed, and how. A limit that passed is [`Kind::TimedOut`] in the stage under way.
    pub async fn dial(&self) -> Result<Dialed, Broken> {
        let route = &*self.0;
        let (mut stream, mut times) = route.reach().await?;
        let began = Instant::now();
        let admitted = route.setup.run(&mut stream, &route.address, route.timeouts.setup).await?;
        times.setup = began.elapsed();
        Ok(Dialed { stream, times, client_id: admitted.client_id, notes: admitted.notes })
    }
}

impl Route {
    /// Opens a stream: the stages up to the set-up, which is not begun.
    pub(super) async fn reach(&self) -> Result<(Stream, ConnectTimes), Broken> {
        let began = Instant::now();
        let deadline = began + self.timeouts.connect;
        let mut times = ConnectTimes::default();
        let stream = match &self.transport {
            Transport::Unix { path } => {
                let unix = self.connect_unix(path, deadline).await?;
                times.tcp = Some(began.elapsed());
                Stream::Unix(unix)
            }
            Transport::Tcp { host, port } => {
                let tcp = self.connect_tcp(host, *port, deadline).await?;
                times.tcp = Some(began.elapsed());
                match &self.tls {
                    None => Stream::Tcp(tcp),
                    Some((config, name)) => {
                        let began = Instant::now();
                        let tls = self.shake_hands(config, name, tcp, deadline).await?;
                        times.tls = Some(began.elapsed());
                        tls
                    }
                }
            }
        };
        Ok((stream, times))
    }

    async fn connect_unix(&self, path: &Path, deadline: Instant) -> Result<UnixStream, Broken> {
        let connecting = timeout_at(deadline, UnixStream::connect(path)).await;
        self.within(connecting, Stage::Connect, &format!("connect to {}", self.address))
    }

    /// Tries every address that the name has, in the resolver's order.
    async fn connect_tcp(&self, host: &str, port: u16, deadline: Instant) -> Result<TcpStream, Broken> {
        let resolving = timeout_at(deadline, lookup_host((host, port))).await;
        let doing = format!("resolve {host}");
        let addresses: Vec<SocketAddr> = match resolving {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(error)) => return Err(unresolved(&doing, &error)),
            Err(_) => return Err(Broken::timed_out(Stage::Dns, &doing, self.timeouts.connect)),
        };
        let mut worst: Option<Broken> = None;
        for (tried, address) in addresses.iter().enumerate() {
            let doing = if host.parse::<std::net::IpAddr>().is_ok() {
                format!("connect to {}", self.address)
            } else {
                format!("connect to {} ({})", self.address, address.ip())
            };
            // An address that never answers must leave time for the others.
            let now = Instant::now();
            let share = deadline.saturating_duration_since(now) / (addresses.len() - tried) as u32;
            let connecting = timeout_at(now + share, TcpStream::connect(address)).await;
            match self.within(connecting, Stage::Connect, &doing) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(|error| Broken::from_io(Stage::Connect, &doing, &error))?;
                    return Ok(stream);
                }
                // That nobody listens on one of a name's addresses says less than anything else.
                Err(broken) => {
                    let tells_more = worst.as_ref().is_none_or(|worst| worst.fault.kind == Kind::Refused);
                    if tells_more {
                        worst = Some(broken);
                    }
                }
            }
        }
        Err(worst.unwrap_or_else(|| unresolved(&doing, &io::Error::other("the name has no address"))))
    }

    async fn shake_hands(
        &self,
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
        tcp: TcpStream,
        deadline: Instant,
    ) -> Result<Stream, Broken> {
        let connector = TlsConnector::from(Arc::clone(config));
        let shaking = timeout_at(deadline, connector.connect(name.clone(), tcp)).await;
        let doing = format!("TLS handshake with {}", self.address);
        Ok(Stream::Tls(Box::new(self.within(shaking, Stage::Tls, &doing)?)))
    }

    /// What became of something that `timeouts.connect` limits.
    fn within<T>(
        &self,
        outcome: Result<io::Result<T>, tokio::time::error::Elapsed>,
        stage: Stage,
        doing: &str,
    ) -> Result<T, Broken> {
        match outcome {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(Broken::from_io(stage, doing, &error)),
            Err(_) => Err(Broken::timed_out(stage, doing, self.timeouts.connect)),
        }
    }
}

fn unresolved(doing: &str, error: &io::Error) -> Broken {
    let fault = Fault::new(Stage::Dns, Kind::Unresolved);
    Broken { fault, ..Broken::from_io(Stage::Dns, doing, error) }
}

/// `host:port`, with brackets round an IPv6 address, or the socket's path.
pub fn address(transport: &Transport) -> String {
    match transport {
        Transport::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
        Transport::Tcp { host, port } => format!("{host}:{port}"),
        Transport::Unix { path } => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
