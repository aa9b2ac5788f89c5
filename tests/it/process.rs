//! What /proc tells of processes that keyswarm started.

use std::fs;
use std::path::PathBuf;

/// A process, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
}

impl Process {
    /// The children of a process.
    pub fn children_of(parent: i32) -> Vec<Self> {
        let entries = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Self::look).filter(|process| process.parent == parent).collect()
    }

    /// `None` if it is gone, or only waits to be reaped.
    fn look(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: state, parent, group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        let process = Self { pid, parent: number()?, group: number()? };
        (state != "Z").then_some(process)
    }

    /// Whether it is still the same process.
    pub fn is_running(self) -> bool {
        // An orphan has another parent, and is running all the same.
        Self::look(self.pid).is_some_and(|now| now.group == self.group)
    }

    /// Its command line.
    pub fn cmdline(self) -> String {
        self.file("cmdline").replace('\0', " ")
    }

    /// Its environment.
    pub fn environ(self) -> String {
        self.file("environ").replace('\0', " ")
    }

    /// The cores on which it may run, as in `0` or `0-1`.
    pub fn cpus(self) -> String {
        let status = self.file("status");
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.expect("every kernel tells").trim().to_owned()
    }

    /// The folder that it works in.
    pub fn folder(self) -> PathBuf {
        fs::read_link(format!("/proc/{}/cwd", self.pid)).expect("a process of ours")
    }

    /// The TCP port on which a server listens, from its title: `redis-server 127.0.0.1:6379`.
    pub fn port(self) -> u16 {
        let title = self.cmdline();
        title.trim().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port: {title}"))
    }

    /// The folder of the control group that keyswarm made for it.
    pub fn quota_group(self) -> PathBuf {
        let groups = self.file("cgroup");
        let path =
            groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find(|path| path.contains("/keyswarm-"));
        let path = path.unwrap_or_else(|| panic!("in no group of its own: {groups}")).trim_start_matches('/');
        let mounts = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
        let found = mounts.iter().map(|mount| PathBuf::from(mount).join(path)).find(|folder| folder.exists());
        found.unwrap_or_else(|| panic!("no folder of {path}"))
    }

    fn file(self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(format!("/proc/{}/{name}", self.pid)).expect("a process of ours"))
            .into_owned()
    }
}
