//! Opening one connection with fred, in two stages that its own errors do not tell apart.
//!
//! fred asks for the credentials exactly when TCP and TLS are done and the set-up commands are about to begin. So the
//! credentials come from [`Login`], which keeps the moment of the question: that splits the time, and says which of the
//! two limits passed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{ClientInterface, ClientLike, FredResult, ServerInterface};
use ::fred::types::config::{
    Config, ConnectionConfig, CredentialProvider, PerformanceConfig, Server, ServerConfig, TcpConfig, TlsConfig,
    TlsConnector,
};
use ::fred::types::{ConnectHandle, RespVersion};
use tokio::task::JoinError;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls;

use super::errors::{self, Progress};
use crate::plan::{Endpoint, Protocol, Secret, Timeouts, Transport};
use crate::wire::fault::{Broken, ConnectTimes, Fault, Kind, Stage};
use crate::wire::identity::client_name;

/// Messages that fred keeps for those who listen to its events: nobody but [`open`], to one.
const EVENTS: usize = 2;

/// An open connection: the client, and the task that reads and writes for it.
pub struct Connection {
    /// fred's handle.
    pub client: Client,
    /// The connection itself.
    pub task: Task,
    /// How long the stages took.
    pub times: ConnectTimes,
}

/// fred's task for one connection. Its end is the only sure sign that the connection is lost. Dropping it closes the
/// connection, which dropping the client would not.
pub struct Task(pub ConnectHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a connection and waits until the server has answered on it.
///
/// # Errors
/// Which stage failed, and how. Bounded by `timeouts.connect` and `timeouts.setup` together.
pub async fn open(
    endpoint: &Endpoint,
    timeouts: &Timeouts,
    tls: Option<Arc<rustls::ClientConfig>>,
) -> Result<Connection, Broken> {
    let login = Arc::new(Login::of(endpoint));
    let config = config(endpoint, tls, &login)?;
    let client = Client::new(config, Some(performance()), Some(connection(timeouts)), None);

    let started = Instant::now();
    let mut task = Task(client.connect());
    let admitted = timeout(timeouts.connect + timeouts.setup, async {
        tokio::select! {
            biased;
            end = &mut task.0 => Err(Some(reason(end))),
            answer = admission(&client, &login, timeouts) => answer,
        }
    })
    .await;

    let progress = Progress { connected: login.asked.get().is_some(), tls: endpoint.tls.is_some() };
    match admitted {
        Ok(Ok(())) => {}
        Ok(Err(Some(error))) => {
            return Err(errors::unopened(&error, progress, timeouts, endpoint.password.as_ref()));
        }
        Ok(Err(None)) | Err(_) => return Err(errors::too_late(progress, timeouts)),
    }
    let asked = login.asked.get().copied().unwrap_or(started);
    let connect = asked.duration_since(started);
    let (tcp, tls) = if progress.tls { (None, Some(connect)) } else { (Some(connect), None) };
    Ok(Connection { client, task, times: ConnectTimes { tcp, tls, setup: asked.elapsed() } })
}

/// Why fred's task ended.
pub fn reason(end: Result<FredResult<()>, JoinError>) -> Error {
    match end {
        Ok(Ok(())) => Error::new_canceled(),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    }
}

/// Waits for fred's set-up, then for one answer to a command of our own: fred takes the end of the connection for an
/// answer to most of what it asks. `Err(None)` is a timeout.
async fn admission(client: &Client, login: &Login, timeouts: &Timeouts) -> Result<(), Option<Error>> {
    client.wait_for_connect().await.map_err(Some)?;
    let until = login.asked.get().map_or_else(Instant::now, |asked| *asked) + timeouts.setup;
    let last = async {
        if login.db > u32::from(u8::MAX) {
            client.select(i64::from(login.db)).await?;
        }
        match client.client_setname(client_name()).await {
            // Not allowed, or not known: an answer nevertheless.
            Err(error) if errors::refusal(&error).is_some_and(|fault| fault.kind != Kind::NoAuth) => Ok(()),
            other => other,
        }
    };
    match timeout_at(until, last).await {
        Ok(answer) => answer.map_err(Some),
        Err(_) => Err(None),
    }
}

fn config(endpoint: &Endpoint, tls: Option<Arc<rustls::ClientConfig>>, login: &Arc<Login>) -> Result<Config, Broken> {
    let server_name = endpoint.tls.as_ref().and_then(|tls| tls.server_name.clone());
    let server = match &endpoint.transport {
        Transport::Tcp { host, port } => {
            ServerConfig::Centralized { server: Server::new_with_tls(host.as_str(), *port, server_name) }
        }
        Transport::Unix { path } => ServerConfig::Unix { path: path.clone() },
    };
    let tls = match (&endpoint.tls, tls, &endpoint.transport) {
        (None, ..) => None,
        (Some(_), Some(rustls), Transport::Tcp { .. }) => {
            Some(TlsConfig::from(TlsConnector::Rustls(tokio_rustls::TlsConnector::from(rustls))))
        }
        // Never in plain text where TLS was asked for.
        _ => {
            let text = "fred speaks TLS over TCP only, with a configuration".to_owned();
            return Err(Broken { fault: Fault::new(Stage::Tls, Kind::Other), text });
        }
    };
    Ok(Config {
        fail_fast: true,
        server,
        version: match endpoint.protocol {
            Protocol::Resp2 => RespVersion::RESP2,
            Protocol::Resp3 => RespVersion::RESP3,
        },
        database: login.database(endpoint.protocol),
        tls,
        credential_provider: Some(login.clone()),
        ..Config::default()
    })
}

/// Nothing is tried twice, so that every failure is seen and counted once.
fn connection(timeouts: &Timeouts) -> ConnectionConfig {
    ConnectionConfig {
        connection_timeout: timeouts.connect,
        internal_command_timeout: timeouts.setup,
        max_command_attempts: 1,
        max_redirections: 0,
        reconnect_on_auth_error: false,
        // A bound here would break fred's flushing once it has been reached; ours is in `has_room`.
        max_command_buffer_len: 0,
        tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
        ..ConnectionConfig::default()
    }
}

fn performance() -> PerformanceConfig {
    PerformanceConfig {
        // The loop decides when a request has timed out.
        default_command_timeout: Duration::ZERO,
        broadcast_channel_capacity: EVENTS,
        ..PerformanceConfig::default()
    }
}

/// Who we are, and when fred asked.
struct Login {
    user: Option<String>,
    password: Option<Secret>,
    db: u32,
    asked: OnceLock<Instant>,
}

impl Login {
    fn of(endpoint: &Endpoint) -> Self {
        let user = endpoint.user.clone();
        // A user without a password still has to be named to the server.
        let unnamed = user.is_some().then(|| Secret::new(""));
        Self { password: endpoint.password.clone().or(unnamed), user, db: endpoint.db, asked: OnceLock::new() }
    }

    /// The database that fred selects; it knows no more than 256.
    ///
    /// Without `AUTH` and `HELLO`, `SELECT 0` is the first command whose answer fred looks at: it shows that a password
    /// is wanted, or that the server is full.
    fn database(&self, protocol: Protocol) -> Option<u8> {
        let silent = self.password.is_none() && protocol == Protocol::Resp2;
        let db = u8::try_from(self.db).unwrap_or(0);
        (silent || db != 0).then_some(db)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// User and password.
type Credentials = (Option<String>, Option<String>);

impl CredentialProvider for Login {
    // The signature that `async_trait` makes of `async fn fetch(&self, server: Option<&Server>)`.
    fn fetch<'this, 'server, 'both>(
        &'this self,
        _server: Option<&'server Server>,
    ) -> Pin<Box<dyn Future<Output = Result<Credentials, Error>> + Send + 'both>>
    where
        'this: 'both,
        'server: 'both,
        Self: 'both,
    {
        self.asked.get_or_init(Instant::now);
        let credentials = (self.user.clone(), self.password.as_ref().map(|secret| secret.reveal().to_owned()));
        Box::pin(std::future::ready(Ok(credentials)))
    }
}
