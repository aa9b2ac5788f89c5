//! How long a CPU quota kept a process off the cores: the groups (cgroup v1 or v2) that it is in.

use std::time::Duration;

use super::pseudo::{Pseudo, number};
use crate::target::cgroup::{Hierarchy, Version};

/// The groups of a process, from its own up to the root: any of them may have a quota.
#[derive(Debug)]
pub struct Throttle {
    groups: Vec<Pseudo>,
    version: Version,
}

impl Throttle {
    /// Those of the process `pid`; `None` where there are no groups, or they cannot be seen from here.
    pub fn of(pid: i32) -> Option<Self> {
        let hierarchy = Hierarchy::of_cpu()?;
        let folders = hierarchy.groups_of(pid)?;
        let groups: Vec<Pseudo> = folders.iter().map(|folder| Pseudo::open(folder.join("cpu.stat"))).collect();
        groups.iter().any(Pseudo::is_there).then_some(Self { groups, version: hierarchy.version })
    }

    /// Time since the groups were made, added up over the cores and the groups that have a quota.
    pub fn read(&mut self) -> Option<Duration> {
        let version = self.version;
        // A root has no quota, and so no such line.
        Some(self.groups.iter_mut().filter_map(|group| throttled(group.read(), version)).sum())
    }
}

fn throttled(stat: &str, version: Version) -> Option<Duration> {
    match version {
        Version::One => number(stat, "throttled_time").map(Duration::from_nanos),
        Version::Two => number(stat, "throttled_usec").map(Duration::from_micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_tell_in_units_of_their_own() {
        let one = "nr_periods 4\nnr_throttled 3\nthrottled_time 225000000\n";
        assert_eq!(throttled(one, Version::One), Some(Duration::from_millis(225)));
        let two = "usage_usec 5\nnr_periods 4\nnr_throttled 3\nthrottled_usec 225000\n";
        assert_eq!(throttled(two, Version::Two), Some(Duration::from_millis(225)));
        assert_eq!(throttled("usage_usec 5\n", Version::Two), None);
    }
}
