//! `timeline.jsonl`: one line of JSON per sample, handed to the system as it is taken, so that a killed run keeps its data.
//!
//! The lines are a format of their own: working types may change, these only with [`SCHEMA`].

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::sample::kernel::Kernel;
use crate::sample::local::Local;
use crate::sample::process::ThreadUsage;
use crate::sample::{Generator, Host, Process, Sample, Server};

/// The version of a line.
const SCHEMA: u32 = 1;

/// Writes samples, line by line.
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    line: Vec<u8>,
}

impl Timeline<File> {
    /// Begins a new file at `path`; one that is there already is an error.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::create_new(path)?))
    }

    /// Goes on with the file at `path`, or begins it.
    pub fn resume(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::options().append(true).create(true).open(path)?))
    }
}

impl<W: Write> Timeline<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Writes one sample and flushes it. The whole line goes out in one piece, so a kill cuts between lines.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, &Line::from(sample))?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }
}

/// One line. What could not be read is null.
#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    /// Since the run began.
    seconds: Option<f64>,
    /// Which run, by its place in the result's `runs[]`.
    run: usize,
    phase: &'a str,
    host: HostLine,
    generator: GeneratorLine,
    server: Option<ServerLine<'a>>,
    server_process: Option<ServerProcessLine>,
    kernel: KernelLine,
}

/// Counts since this machine started.
#[derive(Serialize)]
struct KernelLine {
    /// All cores together.
    steal_seconds: Option<f64>,
    cpu_pressure_seconds: Option<f64>,
    memory_pressure_seconds: Option<f64>,
    oom_kills: Option<u64>,
    swapped_pages: Option<u64>,
    tcp_segments: Option<u64>,
    tcp_retransmits: Option<u64>,
    tcp_syn_retransmits: Option<u64>,
    tcp_timeouts: Option<u64>,
}

#[derive(Serialize)]
struct ServerProcessLine {
    #[serde(flatten)]
    process: ProcessLine,
    /// Its main thread since it began: on a core, and waiting for one.
    main_thread_cpu_seconds: Option<f64>,
    main_thread_waiting_seconds: Option<f64>,
    /// Kept off the cores by a quota.
    throttled_seconds: Option<f64>,
    stopped: Option<bool>,
    /// Of its network namespace, since it began.
    listen_overflows: Option<u64>,
    listen_drops: Option<u64>,
    /// Connections that wait to be accepted, now.
    accept_queue: Option<u64>,
}

#[derive(Serialize)]
struct HostLine {
    /// Each core.
    cpu_percent: Vec<Option<f64>>,
    memory_used_bytes: Option<u64>,
    memory_total_bytes: Option<u64>,
}

#[derive(Serialize)]
struct GeneratorLine {
    /// Each loading thread, of one core.
    threads_cpu_percent: Vec<Option<f64>>,
    /// Each loading thread, busy or waiting for a core.
    threads_pressed_percent: Vec<Option<f64>>,
    /// Kept off the cores by a quota.
    throttled_seconds: Option<f64>,
    #[serde(flatten)]
    process: ProcessLine,
}

#[derive(Serialize)]
struct ProcessLine {
    cpu_percent: Option<f64>,
    cpu_seconds: Option<f64>,
    rss_bytes: u64,
    fds: Option<u64>,
}

#[derive(Serialize)]
struct ServerLine<'a> {
    run_id: &'a str,
    cpu_percent: Option<f64>,
    cpu_seconds: Option<f64>,
    memory_bytes: Option<u64>,
    keys: Option<u64>,
    clients: Option<u64>,
    connections_received: Option<u64>,
    rejected_connections: Option<u64>,
    evicted: Option<u64>,
    expired: Option<u64>,
    oom_errors: Option<u64>,
    output_disconnections: Option<u64>,
    forks: Option<u64>,
    latest_fork_us: Option<u64>,
    saving: Option<bool>,
    aof_delayed_fsync: Option<u64>,
    maxmemory_bytes: Option<u64>,
    commands: Option<u64>,
    ops_per_second: Option<u64>,
}

impl<'a> From<&'a Sample> for Line<'a> {
    fn from(sample: &'a Sample) -> Self {
        let Sample { at, run, phase, host, generator, server, server_process, local, kernel } = sample;
        Self {
            schema: SCHEMA,
            seconds: rounded(at.as_secs_f64(), 3),
            run: *run,
            phase,
            host: HostLine::from(host),
            generator: GeneratorLine::from(generator),
            server: server.as_ref().map(ServerLine::from),
            server_process: server_process.as_ref().map(|process| server_process_line(process, local.as_ref())),
            kernel: KernelLine::from(kernel),
        }
    }
}

fn server_process_line(process: &Process, local: Option<&Local>) -> ServerProcessLine {
    let &Local { main, throttled, stopped, overflows, drops, queue } = local.unwrap_or(&Local::default());
    let ThreadUsage { busy, waiting } = main.unwrap_or_default();
    ServerProcessLine {
        process: ProcessLine::from(process),
        main_thread_cpu_seconds: main.and(seconds(Some(busy))),
        main_thread_waiting_seconds: seconds(waiting),
        throttled_seconds: seconds(throttled),
        stopped: local.map(|_| stopped),
        listen_overflows: overflows,
        listen_drops: drops,
        accept_queue: queue,
    }
}

impl From<&Kernel> for KernelLine {
    fn from(kernel: &Kernel) -> Self {
        let &Kernel {
            steal,
            cpu_pressure,
            memory_pressure,
            oom_kills,
            swapped_pages,
            segments,
            retransmits,
            syn_retransmits,
            tcp_timeouts,
        } = kernel;
        Self {
            steal_seconds: seconds(steal),
            cpu_pressure_seconds: seconds(cpu_pressure),
            memory_pressure_seconds: seconds(memory_pressure),
            oom_kills,
            swapped_pages,
            tcp_segments: segments,
            tcp_retransmits: retransmits,
            tcp_syn_retransmits: syn_retransmits,
            tcp_timeouts,
        }
    }
}

impl From<&Host> for HostLine {
    fn from(host: &Host) -> Self {
        let Host { cpu_percent, memory_used_bytes, memory_total_bytes } = host;
        // A machine without memory is one that could not be read.
        let readable = *memory_total_bytes > 0;
        Self {
            cpu_percent: cpu_percent.iter().map(|&percent| rounded(percent.into(), 1)).collect(),
            memory_used_bytes: readable.then_some(*memory_used_bytes),
            memory_total_bytes: readable.then_some(*memory_total_bytes),
        }
    }
}

impl From<&Generator> for GeneratorLine {
    fn from(generator: &Generator) -> Self {
        let Generator { threads_percent, threads_pressed_percent, throttled, process } = generator;
        let all = |percents: &[f64]| percents.iter().map(|&percent| rounded(percent, 1)).collect();
        Self {
            threads_cpu_percent: all(threads_percent),
            threads_pressed_percent: all(threads_pressed_percent),
            throttled_seconds: seconds(*throttled),
            process: ProcessLine::from(process),
        }
    }
}

impl From<&Process> for ProcessLine {
    fn from(process: &Process) -> Self {
        let &Process { cpu_percent, cpu_seconds, rss_bytes, fds } = process;
        Self {
            cpu_percent: cpu_percent.and_then(|percent| rounded(percent, 1)),
            cpu_seconds: rounded(cpu_seconds, 2),
            rss_bytes,
            fds,
        }
    }
}

impl<'a> From<&'a Server> for ServerLine<'a> {
    fn from(server: &'a Server) -> Self {
        let &Server {
            ref run_id,
            cpu_percent,
            cpu_seconds,
            memory_bytes,
            keys,
            clients,
            connections_received,
            rejected_connections,
            evicted,
            expired,
            oom_errors,
            output_disconnections,
            forks,
            latest_fork_us,
            saving,
            aof_delayed_fsync,
            maxmemory,
            commands,
            ops_per_second,
        } = server;
        Self {
            run_id,
            cpu_percent: cpu_percent.and_then(|percent| rounded(percent, 1)),
            cpu_seconds: cpu_seconds.and_then(|seconds| rounded(seconds, 3)),
            memory_bytes,
            keys,
            clients,
            connections_received,
            rejected_connections,
            evicted,
            expired,
            oom_errors,
            output_disconnections,
            forks,
            latest_fork_us,
            saving,
            aof_delayed_fsync,
            maxmemory_bytes: maxmemory,
            commands,
            ops_per_second,
        }
    }
}

/// To the millisecond.
fn seconds(time: Option<Duration>) -> Option<f64> {
    time.and_then(|time| rounded(time.as_secs_f64(), 3))
}

/// So many decimals, no more; `None` for what is no number.
fn rounded(value: f64, decimals: i32) -> Option<f64> {
    let scale = 10f64.powi(decimals);
    value.is_finite().then(|| (value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(samples: &[Sample]) -> String {
        let mut timeline = Timeline::new(Vec::new());
        for sample in samples {
            timeline.write(sample).expect("memory takes everything");
        }
        String::from_utf8(timeline.out).expect("JSON is UTF-8")
    }

    #[test]
    fn a_sample_is_one_line_and_what_was_not_read_is_null() {
        let process = Process { cpu_percent: Some(34.567), cpu_seconds: 12.3456, rss_bytes: 18 << 20, fds: None };
        let sample = Sample {
            at: Duration::from_micros(2_000_400),
            run: 0,
            phase: "write \"one\"\n".into(),
            host: Host { cpu_percent: vec![41.26, f32::NAN], memory_used_bytes: 1 << 30, memory_total_bytes: 1 << 32 },
            generator: Generator {
                threads_percent: vec![33.33, f64::INFINITY],
                threads_pressed_percent: vec![34.0],
                throttled: Some(Duration::from_millis(900)),
                process,
            },
            server: Some(Server { run_id: "a".into(), keys: Some(7), cpu_percent: Some(99.96), ..Server::default() }),
            server_process: Some(process),
            local: Some(Local { queue: Some(17), ..Local::default() }),
            kernel: Kernel { retransmits: Some(3), ..Kernel::default() },
        };
        let text = text(&[sample, Sample::default()]);
        assert_eq!(text.lines().count(), 2);
        // Broken for the eye only.
        insta::assert_snapshot!(text.replace("{\"", "{\n  \""), @r#"
        {
          "schema":1,"seconds":2.0,"run":0,"phase":"write \"one\"\n","host":{
          "cpu_percent":[41.3,null],"memory_used_bytes":1073741824,"memory_total_bytes":4294967296},"generator":{
          "threads_cpu_percent":[33.3,null],"threads_pressed_percent":[34.0],"throttled_seconds":0.9,"cpu_percent":34.6,"cpu_seconds":12.35,"rss_bytes":18874368,"fds":null},"server":{
          "run_id":"a","cpu_percent":100.0,"cpu_seconds":null,"memory_bytes":null,"keys":7,"clients":null,"connections_received":null,"rejected_connections":null,"evicted":null,"expired":null,"oom_errors":null,"output_disconnections":null,"forks":null,"latest_fork_us":null,"saving":null,"aof_delayed_fsync":null,"maxmemory_bytes":null,"commands":null,"ops_per_second":null},"server_process":{
          "cpu_percent":34.6,"cpu_seconds":12.35,"rss_bytes":18874368,"fds":null,"main_thread_cpu_seconds":null,"main_thread_waiting_seconds":null,"throttled_seconds":null,"stopped":false,"listen_overflows":null,"listen_drops":null,"accept_queue":17},"kernel":{
          "steal_seconds":null,"cpu_pressure_seconds":null,"memory_pressure_seconds":null,"oom_kills":null,"swapped_pages":null,"tcp_segments":null,"tcp_retransmits":3,"tcp_syn_retransmits":null,"tcp_timeouts":null}}
        {
          "schema":1,"seconds":0.0,"run":0,"phase":"","host":{
          "cpu_percent":[],"memory_used_bytes":null,"memory_total_bytes":null},"generator":{
          "threads_cpu_percent":[],"threads_pressed_percent":[],"throttled_seconds":null,"cpu_percent":null,"cpu_seconds":0.0,"rss_bytes":0,"fds":null},"server":null,"server_process":null,"kernel":{
          "steal_seconds":null,"cpu_pressure_seconds":null,"memory_pressure_seconds":null,"oom_kills":null,"swapped_pages":null,"tcp_segments":null,"tcp_retransmits":null,"tcp_syn_retransmits":null,"tcp_timeouts":null}}
        "#);
    }

    #[test]
    fn each_line_is_handed_over_at_once_and_an_older_file_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("timeline.jsonl");
        let mut timeline = Timeline::create(&path).expect("the folder is writable");
        for lines in 1..=3 {
            timeline.write(&Sample::default()).expect("the disk takes a line");
            let text = std::fs::read_to_string(&path).expect("it is there");
            assert_eq!(text.lines().count(), lines);
            assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        }
        assert!(Timeline::create(&path).is_err());
    }
}
