//! Control groups, version 1 or 2: where the CPU of a process is counted and bounded.

use std::fs;
use std::path::{Path, PathBuf};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A tree of its own for the CPU.
    One,
    /// One tree for everything.
    Two,
}

/// The tree of groups that bounds the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Which version it is of.
    pub version: Version,
    /// Where it is mounted.
    mount: PathBuf,
    /// The group that is seen there; not the topmost one in a container.
    root: PathBuf,
}

impl Hierarchy {
    /// The one of this machine; `None` if there is none to be seen.
    pub fn of_cpu() -> Option<Self> {
        Self::find(&fs::read_to_string("/proc/self/mountinfo").ok()?)
    }

    /// Version 1 bounds the CPU wherever it is mounted for that; else version 2.
    fn find(mounts: &str) -> Option<Self> {
        let mounts = || mounts.lines().filter_map(mount);
        let one = mounts().find(|mount| mount.kind == "cgroup" && mount.options.split(',').any(|word| word == "cpu"));
        let (version, found) = match one {
            Some(one) => (Version::One, one),
            None => (Version::Two, mounts().find(|mount| mount.kind == "cgroup2")?),
        };
        Some(Self { version, mount: found.at.into(), root: found.root.into() })
    }

    /// The folders of the groups that the process `pid` is in, its own first, the one at the mount last; `None` if it cannot be told.
    pub fn groups_of(&self, pid: i32) -> Option<Vec<PathBuf>> {
        self.groups(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
    }

    fn groups(&self, memberships: &str) -> Option<Vec<PathBuf>> {
        let path = memberships.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let ours = match self.version {
                Version::One => controllers.split(',').any(|word| word == "cpu"),
                Version::Two => number == "0" && controllers.is_empty(),
            };
            ours.then_some(path)
        })?;
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        Some(
            below
                .ancestors()
                .map(|group| if group == Path::new("") { self.mount.clone() } else { self.mount.join(group) })
                .collect(),
        )
    }
}

struct Mount<'a> {
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    options: &'a str,
}

/// A line of `/proc/self/mountinfo`: `36 35 0:30 ROOT AT options [more …] - KIND source OPTIONS`.
fn mount(line: &str) -> Option<Mount<'_>> {
    let (first, second) = line.split_once(" - ")?;
    let mut first = first.split(' ').skip(3);
    let (root, at) = (first.next()?, first.next()?);
    let mut second = second.split(' ');
    let (kind, options) = (second.next()?, second.nth(1)?);
    Some(Mount { root, at, kind, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "30 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        31 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
        32 25 0:29 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";

    fn paths(found: Option<Vec<PathBuf>>) -> Vec<String> {
        found.unwrap_or_default().iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn version_one_is_found_with_the_groups_of_a_process() {
        let hierarchy = Hierarchy::find(BOTH).expect("mounted");
        assert_eq!(hierarchy.version, Version::One);
        let groups = hierarchy.groups("3:cpuset:/x\n2:cpu,cpuacct:/a/b\n0::/unified\n");
        let at = "/sys/fs/cgroup/cpu,cpuacct";
        assert_eq!(paths(groups), [format!("{at}/a/b"), format!("{at}/a"), at.to_owned()]);
    }

    #[test]
    fn version_two_is_found_also_within_a_container() {
        let hierarchy = Hierarchy::find("32 25 0:29 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n").expect("mounted");
        assert_eq!(hierarchy.version, Version::Two);
        assert_eq!(paths(hierarchy.groups("0::/box\n")), ["/sys/fs/cgroup"]);
        assert_eq!(paths(hierarchy.groups("0::/box/a\n")), ["/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(hierarchy.groups("0::/elsewhere\n"), None);
        assert_eq!(Hierarchy::find("25 1 0:3 / /proc rw - proc proc rw\n"), None);
    }
}
