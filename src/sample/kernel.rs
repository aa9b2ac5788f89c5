//! What the kernel counts of this machine: time that it did not get, memory that it did not have, segments sent twice.

use std::time::Duration;

use super::pseudo::{Pseudo, number};

/// Counts since this machine started, or over a while. What the kernel does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Time in which a hypervisor ran somebody else, over all cores; in steps of a clock tick.
    pub steal: Option<Duration>,
    /// Time in which some thread of this machine waited for a core (`/proc/pressure/cpu`).
    pub cpu_pressure: Option<Duration>,
    /// Time in which some thread waited for memory (`/proc/pressure/memory`).
    pub memory_pressure: Option<Duration>,
    /// Processes killed for want of memory.
    pub oom_kills: Option<u64>,
    /// Pages that were swapped in or out.
    pub swapped_pages: Option<u64>,
    /// TCP segments sent by this network namespace.
    pub segments: Option<u64>,
    /// ... of these, segments that had been sent before.
    pub retransmits: Option<u64>,
    /// ... of these, connection requests (SYN, or SYN and ACK).
    pub syn_retransmits: Option<u64>,
    /// Retransmission timers that ran out.
    pub tcp_timeouts: Option<u64>,
}

impl Kernel {
    /// What was counted since `earlier`; `None` where either is not known, or the count fell.
    pub fn since(&self, earlier: &Self) -> Self {
        fn time(now: Option<Duration>, then: Option<Duration>) -> Option<Duration> {
            now?.checked_sub(then?)
        }
        fn count(now: Option<u64>, then: Option<u64>) -> Option<u64> {
            now?.checked_sub(then?)
        }
        Self {
            steal: time(self.steal, earlier.steal),
            cpu_pressure: time(self.cpu_pressure, earlier.cpu_pressure),
            memory_pressure: time(self.memory_pressure, earlier.memory_pressure),
            oom_kills: count(self.oom_kills, earlier.oom_kills),
            swapped_pages: count(self.swapped_pages, earlier.swapped_pages),
            segments: count(self.segments, earlier.segments),
            retransmits: count(self.retransmits, earlier.retransmits),
            syn_retransmits: count(self.syn_retransmits, earlier.syn_retransmits),
            tcp_timeouts: count(self.tcp_timeouts, earlier.tcp_timeouts),
        }
    }
}

/// Reads them.
#[derive(Debug)]
pub struct KernelProbe {
    stat: Pseudo,
    cpu: Pseudo,
    memory: Pseudo,
    vmstat: Pseudo,
    snmp: Pseudo,
    netstat: Pseudo,
}

impl KernelProbe {
    /// A probe of this machine and of this process's network namespace.
    pub fn new() -> Self {
        Self {
            stat: Pseudo::open("/proc/stat"),
            cpu: Pseudo::open("/proc/pressure/cpu"),
            memory: Pseudo::open("/proc/pressure/memory"),
            vmstat: Pseudo::open("/proc/vmstat"),
            snmp: Pseudo::open("/proc/self/net/snmp"),
            netstat: Pseudo::open("/proc/self/net/netstat"),
        }
    }

    /// A reading.
    pub fn read(&mut self) -> Kernel {
        let vmstat = self.vmstat.read();
        let swapped = number(vmstat, "pswpin").zip(number(vmstat, "pswpout"));
        let oom_kills = number(vmstat, "oom_kill");
        let snmp = self.snmp.read();
        let (segments, retransmits) = (field(snmp, "Tcp:", "OutSegs"), field(snmp, "Tcp:", "RetransSegs"));
        let netstat = self.netstat.read();
        Kernel {
            steal: steal(self.stat.read()),
            cpu_pressure: pressure(self.cpu.read()),
            memory_pressure: pressure(self.memory.read()),
            oom_kills,
            swapped_pages: swapped.map(|(pages_in, pages_out)| pages_in + pages_out),
            segments,
            retransmits,
            syn_retransmits: field(netstat, "TcpExt:", "TCPSynRetrans"),
            tcp_timeouts: field(netstat, "TcpExt:", "TCPTimeouts"),
        }
    }
}

/// The eighth figure of the first line of `/proc/stat`, in ticks.
fn steal(stat: &str) -> Option<Duration> {
    let mut words = stat.lines().next()?.split_whitespace();
    (words.next()? == "cpu").then_some(())?;
    words.nth(7)?.parse().ok().map(super::process::from_ticks)
}

/// `total=` of the line `some`, in microseconds.
fn pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok().map(Duration::from_micros)
}

/// A field of `/proc/net/snmp` or `/proc/net/netstat`: a line of names, and below it a line of numbers, both after `group`.
pub fn field(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|known| known == name)?;
    numbers.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            steal("cpu  5 0 7 100 1 0 2 150 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"),
            Some(Duration::from_millis(1500))
        );
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=250\nfull avg10=0.00 total=7\n";
        assert_eq!(pressure(text), Some(Duration::from_micros(250)));
        let snmp = "Udp: A B\nUdp: 1 2\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 1566 3\n";
        assert_eq!((field(snmp, "Tcp:", "OutSegs"), field(snmp, "Tcp:", "RetransSegs")), (Some(1566), Some(3)));
        assert_eq!((field(snmp, "Tcp:", "Absent"), field("", "Tcp:", "OutSegs"), steal("")), (None, None, None));
    }

    #[test]
    fn this_machine_tells_and_its_counts_do_not_fall() {
        let mut probe = KernelProbe::new();
        let first = probe.read();
        let passed = probe.read().since(&first);
        assert!(first.segments.is_some() && passed.segments.is_some() && passed.steal.is_some());
        assert_eq!(Kernel::default().since(&first), Kernel::default());
    }
}
