//! Opening connections with the driver that the scenario names.

use std::sync::Arc;

use super::{FredDriver, SocketDriver};
use crate::dataset::Dataset;
use crate::plan::{DriverKind, Endpoint, Timeouts};
use crate::wire::dial::Dialer;
use crate::wire::fault::{Broken, ConnectTimes};
use crate::wire::stream::Stream;

/// Opens connections to one server, all with the same driver.
#[derive(Clone)]
pub struct Connector {
    pub(super) kind: DriverKind,
    pub(super) dialer: Dialer,
    pub(super) endpoint: Endpoint,
    pub(super) timeouts: Timeouts,
    pub(super) dataset: Arc<Dataset>,
}

/// A connection's driver. The loop is generic over [`super::Driver`]; this tells once per pass which one it is.
pub enum AnyDriver {
    /// RESP on a plain stream.
    Socket(Box<SocketDriver<Stream>>),
    /// The client library.
    Fred(Box<FredDriver>),
}

impl Connector {
    /// A connector of `kind` drivers.
    pub fn new(
        kind: DriverKind,
        dialer: Dialer,
        endpoint: Endpoint,
        timeouts: Timeouts,
        dataset: Arc<Dataset>,
    ) -> Self {
        Self { kind, dialer, endpoint, timeouts, dataset }
    }

    /// Opens a connection; it counts only once the server has answered on it.
    ///
    /// # Errors
    /// The stage and kind of what went wrong, within `timeouts.connect` and `timeouts.setup`.
    pub async fn open(&self) -> Result<(AnyDriver, ConnectTimes), Broken> {
        match self.kind {
            DriverKind::Socket => {
                let dialed = self.dialer.dial().await?;
                let driver = SocketDriver::new(dialed.stream, dialed.client_id, Arc::clone(&self.dataset));
                Ok((AnyDriver::Socket(Box::new(driver)), dialed.times))
            }
            DriverKind::Fred => {
                let dataset = Arc::clone(&self.dataset);
                let tls = self.dialer.tls_config();
                let (driver, times) = FredDriver::connect(&self.endpoint, &self.timeouts, tls, dataset).await?;
                Ok((AnyDriver::Fred(Box::new(driver)), times))
            }
        }
    }

    /// How long opening a connection may take.
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The data that the drivers write and compare.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }
}
