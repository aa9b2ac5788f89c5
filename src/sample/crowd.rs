//! Whether others were in the way: what keyswarm and a server beside it had of a machine that was full. Pure.

use super::{Host, Process};

/// A machine that is at least so busy, in percent, has no time left.
const FULL_PERCENT: f64 = 95.0;

/// Of a full machine's time, keyswarm and a server on it have at least this share, or others are in the way.
const OWN_SHARE: f64 = 0.6;

/// One full sample may be anything, such as a compiler that came to its end.
const CROWDED_LEAST: u64 = 2;

/// What others took of this machine's CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crowd {
    /// Samples that could tell.
    pub samples: u64,
    /// Those in which the machine was full, and most of it was others.
    pub crowded: u64,
    /// In these: the sum of what keyswarm and a server on this machine had of it, as shares.
    own_shares: f64,
}

impl Crowd {
    /// Whether others were in the way more often than not; then the share that was ours meanwhile, in percent.
    pub fn own_percent(&self) -> Option<u64> {
        let often = self.crowded >= CROWDED_LEAST && self.crowded * 2 > self.samples;
        often.then(|| (100.0 * self.own_shares / self.crowded as f64).round() as u64)
    }

    /// Takes a sample: the machine, this process, and the server's if it runs here.
    pub fn sample(&mut self, host: &Host, own: &Process, server: Option<&Process>) {
        let (busy, cores) = (busy(host), host.cpu_percent.len() as f64);
        // What is not told of the server's process was too short a while, as for our own.
        let (Some(own), false) = (own.cpu_percent, host.cpu_percent.is_empty()) else { return };
        let share = (own + server.and_then(|server| server.cpu_percent).unwrap_or(0.0)) / busy.max(1.0);
        self.samples += 1;
        if busy >= FULL_PERCENT * cores && share < OWN_SHARE {
            self.crowded += 1;
            self.own_shares += share;
        }
    }
}

/// All cores together, in percent of one.
pub fn busy(host: &Host) -> f64 {
    host.cpu_percent.iter().map(|&percent| f64::from(percent)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_in_the_way_only_on_a_full_machine_and_more_often_than_not() {
        let crowd = |samples: &[(f32, f64, f64)]| {
            let mut crowd = Crowd::default();
            for &(core, own, server) in samples {
                let host = Host { cpu_percent: vec![core; 2], ..Host::default() };
                let [own, server] = [own, server].map(|cpu| Process { cpu_percent: Some(cpu), ..Process::default() });
                crowd.sample(&host, &own, Some(&server));
            }
            crowd.own_percent()
        };
        let starved = (99.0, 30.0, 40.0);
        assert_eq!(crowd(&[starved, starved, (20.0, 10.0, 20.0)]), Some(35));
        assert_eq!(crowd(&[starved, starved, (99.0, 90.0, 100.0), (50.0, 1.0, 1.0)]), None);
        assert_eq!(crowd(&[starved]), None, "once is nothing");
    }
}
