use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use tokio::sync::mpsc::error::TryRecvError;

use super::*;
use crate::record::LoadThread;
use crate::wire::fault::Fault;
use crate::wire::testserver::TestServer;

const SECOND: Duration = Duration::from_secs(1);

/// A server that answers by a script: after so long, with this. When the script is over it answers at once.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<(Duration, Result<String, Broken>)>>,
    asked: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = (Duration, Result<String, Broken>)>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }
}

impl Ask for Arc<Script> {
    async fn info(&self) -> Result<String, Broken> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(self.under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let next = self.answers.lock().expect("no test panics while it holds this").pop_front();
        let (delay, answer) = next.unwrap_or_else(|| (Duration::ZERO, info("a", asked)));
        tokio::time::sleep(delay).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        answer
    }
}

fn info(run_id: &str, commands: usize) -> Result<String, Broken> {
    Ok(format!("run_id:{run_id}\r\ntotal_commands_processed:{commands}\r\n"))
}

fn broken(stage: Stage, kind: Kind) -> Result<String, Broken> {
    Err(Broken { fault: Fault::new(stage, kind), text: "as scripted".into() })
}

/// Runs the sampler until so many samples came; returns them, the last one included, and what it all came to.
async fn sampled(ask: &Arc<Script>, count: usize) -> (Vec<Arc<Sample>>, Outcome) {
    let (out, mut samples) = mpsc::channel(64);
    let began = Instant::now().into_std();
    let (sampler, handle) = Sampler::new(SECOND, began, Some(Arc::clone(ask)), 0, out);
    handle.phase("write");
    handle.threads(vec![LoadThread { tid: nix::unistd::gettid().as_raw(), ..LoadThread::default() }]);
    let task = tokio::spawn(sampler.run());
    let mut taken = Vec::new();
    while taken.len() < count {
        taken.push(samples.recv().await.expect("the sampler runs"));
    }
    handle.stop();
    let outcome = task.await.expect("the sampler does not panic");
    taken.extend(std::iter::from_fn(|| samples.try_recv().ok()));
    (taken, outcome)
}

/// Per sample: when, and how many commands the server had counted.
fn commands(samples: &[Arc<Sample>]) -> Vec<(u128, Option<u64>)> {
    samples.iter().map(|s| (s.at.as_millis(), s.server.as_ref().and_then(|server| server.commands))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_sample_goes_out_every_interval_and_once_more_at_the_end() {
    let (samples, outcome) = sampled(&Script::new([]), 3).await;
    let at: Vec<_> = samples.iter().map(|sample| sample.at.as_secs()).collect();
    assert_eq!(at, [1, 2, 3, 3]);
    assert!(samples.iter().all(|sample| sample.phase == "write" && sample.server.is_some()));
    assert_eq!((outcome.peaks.samples, outcome.warnings), (4, vec![]));
    assert!(outcome.peaks.generator.rss_bytes_max > Some(1 << 20));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_delays_nothing_and_its_late_answer_is_used() {
    let ms = Duration::from_millis;
    let script = Script::new([(ms(0), info("a", 1)), (ms(2400), info("a", 2)), (ms(300), info("a", 3))]);
    let (samples, outcome) = sampled(&script, 5).await;
    // Asked at 1 s, answered at 3.4 s. At 4 s it is asked again, and the fresh answer comes too late for that sample.
    let expected = [(1250, None), (2250, None), (3250, None), (4250, Some(2)), (5000, Some(4)), (5000, Some(5))];
    assert_eq!(commands(&samples), expected);
    assert_eq!(outcome.warnings, [Warning::Overdue { samples: 3, of: 6 }]);
    assert_eq!(script.most_under_way.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_always_late_still_shows_at_every_sample() {
    let ms = Duration::from_millis;
    let script = Script::new((1..20).map(|n| (ms(600), info("a", n))));
    let (samples, _) = sampled(&script, 3).await;
    assert_eq!(commands(&samples[..3]), [(1250, None), (2250, Some(2)), (3250, Some(3))]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_ends_nothing_late() {
    let script = Script::new([(Duration::from_secs(3600), info("a", 1))]);
    let began = Instant::now();
    let (samples, outcome) = sampled(&script, 2).await;
    assert!(samples.iter().all(|sample| sample.server.is_none()));
    assert!(began.elapsed() < Duration::from_millis(3500), "{:?}", began.elapsed());
    assert_eq!(outcome.peaks.server, None);
    assert_eq!(outcome.warnings, [Warning::Overdue { samples: 3, of: 3 }]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_said_once_and_the_server_is_not_asked_again() {
    let script = Script::new([(Duration::ZERO, broken(Stage::Reply, Kind::NoPerm))]);
    let (samples, outcome) = sampled(&script, 3).await;
    assert_eq!(commands(&samples), [(1000, None), (2000, None), (3000, None), (3000, None)]);
    assert_eq!(script.asked.load(Ordering::Relaxed), 1);
    assert!(matches!(&outcome.warnings[..], [Warning::InfoRefused { .. }]), "{:?}", outcome.warnings);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_counted_and_a_restart_noticed() {
    let lost = || (Duration::ZERO, broken(Stage::Read, Kind::Reset));
    let script = Script::new([(Duration::ZERO, info("a", 90)), lost(), lost(), (Duration::ZERO, info("b", 7))]);
    let (samples, outcome) = sampled(&script, 3).await;
    assert_eq!(commands(&samples[..3]), [(1000, None), (2000, None), (3000, Some(7))]);
    let [Warning::Restarted { at }, .., Warning::Unreachable { times: 2, .. }] = &outcome.warnings[..] else {
        panic!("{:?}", outcome.warnings);
    };
    assert_eq!(at.as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn samples_that_nobody_takes_are_counted_and_peaks_stay_whole() {
    let (out, mut samples) = mpsc::channel(1);
    let (sampler, handle) = Sampler::new(SECOND, Instant::now().into_std(), Some(Script::new([])), 0, out);
    let task = tokio::spawn(sampler.run());
    tokio::time::advance(SECOND * 5).await;
    tokio::time::sleep(SECOND * 5).await;
    handle.stop();
    let outcome = task.await.expect("the sampler does not panic");
    assert!(samples.try_recv().is_ok());
    assert_eq!(samples.try_recv().map(|_| ()), Err(TryRecvError::Disconnected));
    let dropped = outcome.peaks.samples - 1;
    assert_eq!(outcome.warnings, [Warning::Dropped { samples: dropped }]);
}

#[tokio::test(start_paused = true)]
async fn without_a_server_to_ask_there_are_samples_all_the_same() {
    let (out, mut samples) = mpsc::channel(8);
    let (sampler, handle) = Sampler::<Arc<Script>>::new(SECOND, Instant::now().into_std(), None, 0, out);
    handle.server(i32::try_from(std::process::id()).ok(), None);
    let task = tokio::spawn(sampler.run());
    let sample = samples.recv().await.expect("the sampler runs");
    handle.stop();
    let outcome = task.await.expect("the sampler does not panic");
    assert!(sample.server.is_none() && sample.server_process.is_some_and(|process| process.rss_bytes > 0));
    assert!(outcome.peaks.server_process.is_some() && outcome.warnings.is_empty());
}

/// `INFO` over a unix socket, in the fewest words.
struct Redis {
    socket: std::path::PathBuf,
}

impl Redis {
    async fn text(&self) -> std::io::Result<String> {
        use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
        let mut stream = BufReader::new(tokio::net::UnixStream::connect(&self.socket).await?);
        stream.write_all(b"INFO\r\n").await?;
        let mut head = String::new();
        stream.read_line(&mut head).await?;
        let mut text = vec![0; head.trim_start_matches('$').trim_end().parse().unwrap_or(0)];
        stream.read_exact(&mut text).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Ask for Redis {
    async fn info(&self) -> Result<String, Broken> {
        self.text().await.map_err(|e| Broken { fault: Fault::from_io(Stage::Read, &e), text: e.to_string() })
    }
}

#[tokio::test]
async fn a_real_server_is_seen_working_stopped_and_back() {
    let server = TestServer::start(&[]);
    let (socket, pid) = (server.socket(), i32::try_from(server.pid()).expect("pids are small"));
    let (out, mut samples) = mpsc::channel(64);
    let (sampler, handle) =
        Sampler::new(Duration::from_millis(40), std::time::Instant::now(), Some(Redis { socket }), 0, out);
    handle.server(Some(pid), None);
    let task = tokio::spawn(sampler.run());
    let mut until = async |wanted: fn(&Sample) -> bool| {
        let patience = Duration::from_secs(20);
        let found = tokio::time::timeout(patience, async {
            while !samples.recv().await.is_some_and(|sample| wanted(&sample)) {}
        });
        found.await.expect("a sample like that comes soon");
    };
    until(|s| s.server.as_ref().is_some_and(|server| server.cpu_percent.is_some() && server.keys == Some(0))).await;
    until(|s| s.server_process.is_some_and(|process| process.rss_bytes > 1 << 20 && process.fds > Some(3))).await;
    server.signal(Signal::SIGSTOP);
    until(|s| s.server.is_none()).await;
    server.signal(Signal::SIGCONT);
    until(|s| s.server.is_some()).await;
    handle.stop();
    let outcome = task.await.expect("the sampler does not panic");
    let peaks = outcome.peaks.server.expect("it answered");
    assert!(peaks.main_thread && peaks.memory_bytes_max > Some(500_000) && peaks.restarts == 0);
    assert_eq!((peaks.evicted, peaks.rejected_connections, peaks.keys_last), (Some(0), Some(0), Some(0)));
    assert!(
        outcome.warnings.iter().any(|warning| matches!(warning, Warning::Overdue { .. })),
        "{:?}",
        outcome.warnings
    );
}
