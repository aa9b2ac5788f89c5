//! What the run ran on: machine, kernel, limits and settings that decide what a load can do.

use std::collections::BTreeMap;
use std::fs;

/// The machine that keyswarm ran on, and the server's settings. `None` where it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The processor's model.
    pub cpu: Option<String>,
    /// Logical cores.
    pub cores: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Scaling governor of the first core; virtual machines have none.
    pub governor: Option<String>,
    /// Open files that this process may have.
    pub fd_limit: Option<u64>,
    /// keyswarm was built without optimisation.
    pub debug_build: bool,
    /// Kernel settings by their path below `/proc/sys`, with dots.
    pub sysctls: BTreeMap<String, String>,
    /// The server's settings (`CONFIG GET *`) without secrets; empty if they could not be read.
    pub server_config: BTreeMap<String, String>,
}

/// Kernel settings that decide how many connections a machine can open or accept, and how long a lost SYN costs.
const SYSCTLS: [&str; 7] = [
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syn_linear_timeouts",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_tw_reuse",
    "vm.overcommit_memory",
];

impl Environment {
    /// Reads the machine's part; `server_config` stays empty. Takes less than a millisecond and cannot fail.
    pub fn read() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        Self {
            cpu: cpu_model(&cpuinfo),
            cores: Some(cores(&cpuinfo)).filter(|&cores| cores > 0),
            memory_bytes: read("/proc/meminfo").as_deref().and_then(memory_bytes),
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            fd_limit: rlimit::Resource::NOFILE.get_soft().ok(),
            debug_build: cfg!(debug_assertions),
            sysctls: SYSCTLS.iter().filter_map(|&name| Some((name.to_owned(), sysctl(name)?))).collect(),
            server_config: BTreeMap::new(),
        }
    }
}

/// A server's settings without those that hold a secret.
pub fn without_secrets(config: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    config.into_iter().filter(|(name, _)| !is_secret(name)).collect()
}

/// `requirepass`, `masterauth`, `primaryauth`, `tls-key-file-pass`, `sentinel-pass`, ...
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "auth", "secret", "token"].iter().any(|word| name.contains(word)) && name != "tls-auth-clients"
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn sysctl(name: &str) -> Option<String> {
    let words = read(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first core's model: "model name" on x86, "Model" or "Hardware" on some ARM machines.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "Hardware"].iter().find_map(|wanted| {
        let (_, model) = cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| k.trim() == *wanted)?;
        Some(model.trim().to_owned()).filter(|model| !model.is_empty())
    })
}

fn cores(cpuinfo: &str) -> u64 {
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u64
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_read_as_the_kernel_tells_it() {
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(cpu_model(info).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(cores(info), 2);
        assert_eq!(memory_bytes("MemTotal:       24684092 kB\nMemFree: 1 kB\n"), Some(24_684_092 * 1024));
        assert_eq!((cpu_model(""), memory_bytes("MemTotal: x")), (None, None));
    }

    #[test]
    fn this_machine_can_be_read() {
        let here = Environment::read();
        assert!(here.kernel.is_some() && here.memory_bytes.is_some() && here.fd_limit.is_some());
        assert!(here.sysctls.contains_key("net.core.somaxconn"));
    }

    #[test]
    fn secrets_are_left_out_of_the_settings() {
        let pair = |name: &str| (name.to_owned(), "x".to_owned());
        let config = ["maxmemory", "requirepass", "masterauth", "tls-key-file-pass", "tls-auth-clients", "save"];
        let kept = without_secrets(config.map(pair));
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), ["maxmemory", "save", "tls-auth-clients"]);
    }
}
