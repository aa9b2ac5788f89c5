//! What one run needs.

use std::sync::Arc;

use super::watch::Watch;
use crate::client::Stop;
use crate::dataset::Dataset;
use crate::plan::{Plan, Turn};
use crate::target::Target;
use crate::wire::dial::Dialer;

/// A plan on its way to be carried out on a prepared target.
pub struct Session<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// Which case and repeat it is.
    pub turn: Turn,
    /// To which server.
    pub target: &'a Target,
    /// Opens connections to it within the plan's limits.
    pub dialer: &'a Dialer,
    /// The plan's data, in the generation of this run.
    pub dataset: Arc<Dataset>,
    /// Asks to stop what is loading.
    pub stop: Stop,
    /// Somebody wants to go home: cleaning up and counting are cut short, too.
    pub home: Stop,
    /// Everything that watches.
    pub watch: &'a Watch,
}
