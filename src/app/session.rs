//! What all repeats of a run share.

use std::sync::Arc;

use super::watch::Watch;
use crate::client::Stop;
use crate::dataset::Dataset;
use crate::plan::Plan;
use crate::target::Target;

/// A plan on its way to be carried out on a prepared target.
pub struct Session<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// To which server.
    pub target: &'a Target,
    /// The plan's data.
    pub dataset: Arc<Dataset>,
    /// Asks to stop what is loading.
    pub stop: Stop,
    /// Somebody wants to go home: cleaning up and counting are cut short, too.
    pub home: Stop,
    /// Everything that watches.
    pub watch: &'a Watch,
}
