//! What people and programs get to see of a search for a limit: a line per trial, the answer, `limit` in the result.
//!
//! `stored` is the wire format, `build` makes it out of the working types, `answer` finds the words, `row` writes a trial as a
//! line, `live` shows them as they come and `summary` all together.

mod answer;
mod build;
mod live;
mod row;
mod stored;
mod summary;

pub use answer::LimitVerdict;
pub use build::{Story, limit_document};
pub use live::LimitLive;
pub use stored::Limit;
pub use summary::write_limit_summary;
