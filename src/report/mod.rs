//! What people and programs get to see: live view, time line, summary, result, and how numbers are written.

mod build;
pub mod check;
mod folder;
pub mod format;
mod limit;
pub mod progress;
pub mod result;
mod summary;
pub mod timeline;
mod wording;

pub use build::document;
pub use folder::{FolderError, JsonOutput, ResultFolder};
pub use limit::{LimitLive, LimitVerdict, Story, limit_document, write_limit_summary};
pub use summary::{Look, write_summary};
pub use wording::{generator_bound, reasons};
