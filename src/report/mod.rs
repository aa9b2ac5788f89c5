//! What people and programs get to see: live view, time line, and how numbers are written.

pub mod format;
pub mod timeline;
