//! A control group with a CPU quota, for a server that is to be weak on purpose. It is gone when its owner is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::cgroup::{Hierarchy, Version};

/// The kernel hands out a quota once in so many microseconds.
const PERIOD_US: u64 = 100_000;
/// How long the kernel may take to let go of processes that have ended.
const EMPTY_WITHIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// How our groups are called, so that what a killed keyswarm has left can be told and removed.
const PREFIX: &str = "keyswarm-";

/// Why there is no quota.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The kernel has no control groups for the CPU, or does not show them here.
    #[error("this system shows no control groups for the CPU (in a container, they may be hidden); leave it away")]
    Nowhere,
    /// A group cannot be made, or not bounded.
    #[error("{}: {source}; run as root, or where your user may make control groups (`systemd-run --user --scope -p Delegate=yes`)", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The group. Dropping it removes it; its processes must have ended.
#[derive(Debug)]
pub struct QuotaGroup {
    folder: PathBuf,
}

impl QuotaGroup {
    /// Makes a group that may use so many thousandths of a core.
    ///
    /// # Errors
    /// It is not permitted here, or not possible. Nothing is left of it.
    pub fn create(thousandths: u32) -> Result<Self, QuotaError> {
        let hierarchy = Hierarchy::of_cpu().ok_or(QuotaError::Nowhere)?;
        let own = i32::try_from(std::process::id()).ok().and_then(|pid| hierarchy.groups_of(pid));
        let mut groups = own.ok_or(QuotaError::Nowhere)?;
        if hierarchy.version == Version::Two {
            // A group with processes of its own cannot share out the CPU, so it is one above that already does.
            groups.retain(|group| shares_cpu(group));
        }
        let mut refused = QuotaError::Nowhere;
        for parent in groups {
            sweep(&parent);
            match Self::within(&parent, hierarchy.version, thousandths) {
                Ok(group) => return Ok(group),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn within(parent: &Path, version: Version, thousandths: u32) -> Result<Self, QuotaError> {
        let failed = |path: &Path, source| QuotaError::Refused { path: path.to_owned(), source };
        let group = Self { folder: make(parent).map_err(|(folder, source)| failed(&folder, source))? };
        let quota_us = u64::from(thousandths) * PERIOD_US / 1000;
        let settings = match version {
            Version::One => {
                vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota_us.to_string())]
            }
            Version::Two => vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))],
        };
        for (name, value) in settings {
            let file = group.folder.join(name);
            fs::write(&file, value).map_err(|error| failed(&file, error))?;
        }
        Ok(group)
    }

    /// Takes a process in, with all of its threads. What it starts from now on follows it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn admit(&self, pid: u32) -> Result<(), QuotaError> {
        let path = self.folder.join("cgroup.procs");
        fs::write(&path, pid.to_string()).map_err(|source| QuotaError::Refused { path, source })
    }
}

impl Drop for QuotaGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + EMPTY_WITHIN;
        // Busy as long as the kernel has not let go of what has just ended.
        while fs::remove_dir(&self.folder).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
            && Instant::now() < deadline
        {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Whether groups below this one may have a share of the CPU.
fn shares_cpu(group: &Path) -> bool {
    let shared = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    shared.split_whitespace().any(|controller| controller == "cpu")
}

/// Makes `keyswarm-PID-N` with the first N that is free.
fn make(parent: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut number = 0;
    loop {
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err((folder, error)),
        }
    }
}

/// Removes empty groups that a keyswarm which was killed has left behind.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<i32>().ok());
        // A group in which something still runs cannot be removed, so this cannot harm.
        if owner.is_some_and(|pid| pid > 0 && kill(Pid::from_raw(pid), None).is_err()) {
            fs::remove_dir(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The group, where this user may make one; else the refusal names the place and a way out.
    fn group(thousandths: u32) -> Option<QuotaGroup> {
        match QuotaGroup::create(thousandths) {
            Ok(group) => Some(group),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("control groups"), "{text}");
                None
            }
        }
    }

    #[test]
    fn a_group_bounds_what_is_in_it_and_goes_with_its_owner() {
        let Some(group) = group(250) else { return };
        let folder = group.folder.clone();
        let bound =
            ["cpu.cfs_quota_us", "cpu.max"].map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default());
        assert!(bound.concat().starts_with("25000"), "{bound:?}");
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        group.admit(child.id()).expect("a child of ours");
        let members = fs::read_to_string(folder.join("cgroup.procs")).expect("readable");
        assert_eq!(members.trim(), child.id().to_string());
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        drop(group);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_killed_one_has_left_is_swept_away() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new("true").spawn().expect("true is everywhere");
        child.wait().expect("a child of ours");
        let (left, ours) = (format!("{PREFIX}{}-0", child.id()), format!("{PREFIX}{}-0", std::process::id()));
        for name in [left.as_str(), ours.as_str(), "other-1"] {
            fs::create_dir(parent.path().join(name)).expect("the folder is writable");
        }
        sweep(parent.path());
        let names = fs::read_dir(parent.path()).expect("readable").map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        assert_eq!(names, [ours, "other-1".to_owned()]);
    }
}
