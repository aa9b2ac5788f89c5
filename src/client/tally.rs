//! What a loading thread counts: one recorder per phase for all of its connections, and what it tells of itself.

use std::time::Duration;

use crate::record::{ClientRecord, Latency, Recorder};

use super::progress::{ClientProgress, Snapshot, Window};

/// A thread's counts of one phase.
#[derive(Debug, Default)]
pub struct Tally {
    /// The phase so far, but for the judged latencies of the current window.
    pub recorder: Recorder,
    /// Judged latencies (response in an open loop, service in a closed one) since the last snapshot.
    window: Latency,
    /// Whether the judged latency is the response time.
    open: bool,
    clients: Vec<Row>,
}

#[derive(Debug, Default)]
struct Row {
    client: u32,
    record: ClientRecord,
}

impl Tally {
    /// An empty tally for a phase with these clients on this thread, in any order.
    pub fn new(open: bool, clients: impl IntoIterator<Item = u32>) -> Self {
        let mut clients: Vec<Row> =
            clients.into_iter().map(|client| Row { client, record: ClientRecord::default() }).collect();
        clients.sort_by_key(|row| row.client);
        clients.dedup_by_key(|row| row.client);
        Self { open, clients, ..Self::default() }
    }

    /// Records `count` answered requests: service time, and response time in an open loop.
    pub fn answered(&mut self, service: Duration, response: Duration, count: u64) {
        if self.open {
            self.recorder.service.record(service, count);
            self.window.record(response, count);
        } else {
            self.window.record(service, count);
        }
    }

    /// Records a request given up at these ages; `service` is `None` if it was never sent.
    pub fn given_up(&mut self, service: Option<Duration>, response: Duration, count: u64) {
        match (self.open, service) {
            (true, service) => {
                if let Some(age) = service {
                    self.recorder.service.record_censored(age, count);
                }
                self.window.record_censored(response, count);
            }
            (false, Some(age)) => self.window.record_censored(age, count),
            (false, None) => {}
        }
    }

    /// One client's record.
    pub fn client(&mut self, client: u32) -> &mut ClientRecord {
        let at = match self.clients.binary_search_by_key(&client, |row| row.client) {
            Ok(at) => at,
            Err(at) => {
                self.clients.insert(at, Row { client, record: ClientRecord::default() });
                at
            }
        };
        &mut self.clients[at].record
    }

    /// Closes the current window and tells of it.
    pub fn snapshot(&mut self, thread: u32) -> Snapshot {
        let percentile = |percent| self.window.percentile(percent).map(|p| p.us);
        let window = Window { count: self.window.count(), p50_us: percentile(50.0), p99_us: percentile(99.0) };
        self.close_window();
        let clients = self
            .clients
            .iter()
            .map(|Row { client, record }| ClientProgress {
                client: *client,
                done: record.settled,
                timeouts: record.requests.timed_out,
                errors: record.requests.failed,
            })
            .collect();
        Snapshot { thread, clients, window }
    }

    fn close_window(&mut self) {
        if self.window.count() > 0 {
            let total = if self.open { &mut self.recorder.response } else { &mut self.recorder.service };
            total.add(&self.window);
            self.window.clear();
        }
    }

    /// The phase's counts, and those of each client.
    pub fn finish(mut self) -> (Recorder, Vec<(u32, ClientRecord)>) {
        self.close_window();
        (self.recorder, self.clients.into_iter().map(|row| (row.client, row.record)).collect())
    }
}
