//! keyswarm: a verifying load generator for Redis-compatible servers.

mod client;
mod dataset;
mod driver;
mod plan;
mod record;
mod report;
mod sample;
mod scenario;
mod target;
mod verdict;
mod wire;

fn main() {}
