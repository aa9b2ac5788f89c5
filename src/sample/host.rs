//! This machine: each core's load, and memory.

use sysinfo::{MemoryRefreshKind, System};

use super::Host;

/// Reads the machine's load. Refreshes CPU times and RAM only: walking all processes would cost more than the load itself.
#[derive(Debug)]
pub struct HostProbe {
    /// `None` where the system cannot be read at all.
    system: Option<System>,
}

impl HostProbe {
    /// Reads once, so that the next reading has something to differ from.
    pub fn new() -> Self {
        let mut probe = Self { system: System::new().ok() };
        probe.read();
        probe
    }

    /// The load since the previous reading; empty and zero where nothing can be read. sysinfo keeps the CPU's previous
    /// values if it is asked again within 200 ms.
    pub fn read(&mut self) -> Host {
        let Some(system) = &mut self.system else { return Host::default() };
        system.refresh_cpu_usage();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        Host {
            cpu_percent: system.cpus().iter().map(|core| core.usage()).collect(),
            memory_used_bytes: system.used_memory(),
            memory_total_bytes: system.total_memory(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_cores_and_memory() {
        let host = HostProbe::new().read();
        assert!(!host.cpu_percent.is_empty());
        assert!(host.cpu_percent.iter().all(|percent| (0.0..=100.0).contains(percent)));
        assert!(0 < host.memory_used_bytes && host.memory_used_bytes < host.memory_total_bytes);
    }
}
