//! The task that takes a sample once per interval, on whichever runtime it is given, and never waits for anybody.
//!
//! One `INFO` is under way at a time. If its answer is still due shortly after a tick, the sample goes out without it;
//! when it comes it is used for the next one. Samples go out through a bounded channel and are dropped, and counted, when
//! nobody takes them. Peaks are kept here, so that they are whole even then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use super::crowd::Crowd;
use super::host::HostProbe;
use super::peaks::{PeakKeeper, Peaks};
use super::process::{ProcessProbe, ThreadProbe};
use super::rates::Rates;
use super::server::{Ask, Reading};
use super::warning::Warning;
use super::{Generator, Process, Sample};
use crate::wire::fault::{Broken, Kind, Stage};

/// After a tick the answer may take so long (or half the interval) to be part of that very sample.
const GRACE: Duration = Duration::from_millis(250);
/// At the end of the run the last answer may take so long.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// What the sampler must be told while the run goes on.
#[derive(Clone, Debug, Default)]
struct Watched {
    phase: Arc<str>,
    threads: Vec<i32>,
    server_pid: Option<i32>,
}

/// Tells the sampler what to watch, and when to end. It also ends when this is dropped.
#[derive(Debug)]
pub struct Handle {
    watched: watch::Sender<Watched>,
}

impl Handle {
    /// The phase that is under way from now on.
    pub fn phase(&self, name: &str) {
        self.watched.send_modify(|watched| watched.phase = name.into());
    }

    /// The loading threads (their ids, as the kernel counts threads) from now on.
    pub fn threads(&self, tids: Vec<i32>) {
        self.watched.send_modify(|watched| watched.threads = tids);
    }

    /// The server's process on this machine.
    pub fn server_pid(&self, pid: Option<i32>) {
        self.watched.send_modify(|watched| watched.server_pid = pid);
    }

    /// Takes a last sample, and lets [`Sampler::run`] return.
    pub fn stop(self) {}
}

/// What sampling came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Maxima and sums.
    pub peaks: Peaks,
    /// What was noticed, in the order in which it was.
    pub warnings: Vec<Warning>,
}

/// Takes the samples of a run.
pub struct Sampler<A> {
    began: Instant,
    interval: Duration,
    db: u32,
    ask: Option<Arc<A>>,
    asked: Option<Asked>,
    /// The server has answered once, before the samples.
    based: bool,
    /// The answer that came since the last sample, and when.
    answer: Option<(Duration, Reading)>,
    /// A sample is to go out at this moment, with or without the answer.
    due: Option<Instant>,
    watched: watch::Receiver<Watched>,
    probes: Probes,
    rates: Rates,
    peaks: PeakKeeper,
    notes: Notes,
    out: mpsc::Sender<Arc<Sample>>,
}

/// An `INFO` under way.
type Asked = Pin<Box<dyn Future<Output = Result<String, Broken>> + Send>>;

/// What is read on this machine.
struct Probes {
    host: HostProbe,
    own: Option<ProcessProbe>,
    server: Option<(i32, ProcessProbe)>,
    threads: Vec<(i32, ThreadProbe)>,
}

/// What was noticed so far.
#[derive(Default)]
struct Notes {
    warnings: Vec<Warning>,
    unreachable: Option<(Duration, Broken, u64)>,
    samples: u64,
    overdue: u64,
    dropped: u64,
}

impl<A: Ask> Sampler<A> {
    /// A sampler that takes a sample every `interval`; times count from `began`. `ask` reaches the server (`None`: it is
    /// not asked), whose selected database is `db`. Samples go to `out`.
    pub fn new(
        interval: Duration,
        began: std::time::Instant,
        ask: Option<A>,
        db: u32,
        out: mpsc::Sender<Arc<Sample>>,
    ) -> (Self, Handle) {
        // A period of zero would make the timer panic; the plan has none.
        let interval = interval.max(Duration::from_millis(1));
        let (handle, watched) = watch::channel(Watched::default());
        let sampler = Self {
            began: Instant::from_std(began),
            interval,
            db,
            ask: ask.map(Arc::new),
            asked: None,
            based: false,
            answer: None,
            due: None,
            watched,
            probes: Probes { host: HostProbe::new(), own: ProcessProbe::own(), server: None, threads: Vec::new() },
            rates: Rates::new((interval / 4).min(GRACE)),
            peaks: PeakKeeper::default(),
            notes: Notes::default(),
            out,
        };
        (sampler, Handle { watched: handle })
    }

    /// Samples until the handle is stopped or dropped, at most about a second longer.
    pub async fn run(mut self) -> Outcome {
        self.begin();
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                changed = self.watched.changed() => match changed {
                    Ok(()) => self.watch(),
                    Err(_) => break,
                },
                answer = answer_of(&mut self.asked) => self.answered(answer),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.emit(),
                _ = ticks.tick(), if due.is_none() => self.tick(),
            }
        }
        self.finish().await
    }

    fn at(&self) -> Duration {
        Instant::now().saturating_duration_since(self.began)
    }

    /// Reads everything once, so that the first sample has something to differ from.
    fn begin(&mut self) {
        let at = self.at();
        if let Some(usage) = self.probes.own.as_ref().and_then(ProcessProbe::read) {
            let own = self.rates.own(at, &usage);
            self.peaks.begin(&own);
        }
        self.watch();
        self.put_question();
    }

    /// Takes over what the handle said.
    fn watch(&mut self) {
        let at = self.at();
        let watched = self.watched.borrow_and_update().clone();
        if self.probes.server.as_ref().map(|(pid, _)| *pid) != watched.server_pid {
            self.probes.server = watched.server_pid.and_then(|pid| ProcessProbe::of(pid).map(|probe| (pid, probe)));
            self.rates.server_process_changed();
            self.peaks.server_process_changed();
            self.server_process(at);
        }
        self.rates.keep_threads(&watched.threads);
        self.probes.threads.retain(|(tid, _)| watched.threads.contains(tid));
        for tid in watched.threads {
            let known = self.probes.threads.iter().any(|(known, _)| *known == tid);
            if let (false, Some(own)) = (known, &self.probes.own)
                && let Some(probe) = own.thread(tid)
            {
                if let Some(usage) = probe.read() {
                    self.rates.thread(at, tid, &usage);
                }
                self.probes.threads.push((tid, probe));
            }
        }
    }

    fn tick(&mut self) {
        self.put_question();
        let grace = if self.asked.is_some() { GRACE.min(self.interval / 2) } else { Duration::ZERO };
        self.due = Some(Instant::now() + grace);
    }

    /// Asks the server, unless it still owes an answer.
    fn put_question(&mut self) {
        if let (None, Some(ask)) = (&self.asked, &self.ask) {
            let ask = Arc::clone(ask);
            self.asked = Some(Box::pin(async move { ask.info().await }));
        }
    }

    fn answered(&mut self, answer: Result<String, Broken>) {
        let at = self.at();
        match answer {
            Ok(info) => {
                let reading = Reading::parse(&info, self.db);
                if self.peaks.answer(&reading) {
                    self.notes.warnings.push(Warning::Restarted { at });
                }
                self.keep(at, reading);
            }
            Err(why) if is_refusal(&why) => {
                self.ask = None;
                self.notes.warnings.push(Warning::InfoRefused { why });
            }
            Err(why) => self.notes.unreachable(at, why),
        }
        if self.due.is_some() {
            self.emit();
        }
    }

    /// Keeps an answer for the sample to come. The very first one only says where the counters stood.
    fn keep(&mut self, at: Duration, reading: Reading) {
        if self.based {
            self.answer = Some((at, reading));
        } else {
            self.rates.server(at, &reading);
            self.based = true;
        }
    }

    fn emit(&mut self) {
        self.due = None;
        let at = self.at();
        let server = self.answer.take().map(|(at, reading)| self.rates.server(at, &reading));
        self.notes.samples += 1;
        if server.is_none() && self.asked.is_some() {
            self.notes.overdue += 1;
        }
        let phase = self.watched.borrow().phase.to_string();
        let sample = Sample {
            at,
            phase,
            host: self.probes.host.read(),
            generator: self.generator(at),
            server,
            server_process: self.server_process(at),
        };
        self.peaks.sample(&sample);
        if self.out.try_send(Arc::new(sample)).is_err() {
            self.notes.dropped += 1;
        }
    }

    fn generator(&mut self, at: Duration) -> Generator {
        let usage = self.probes.own.as_ref().and_then(ProcessProbe::read);
        let mut generator = Generator {
            process: usage.map(|usage| self.rates.own(at, &usage)).unwrap_or_default(),
            ..Generator::default()
        };
        for (tid, probe) in &self.probes.threads {
            let Some(usage) = probe.read() else { continue };
            let Some((busy, pressed)) = self.rates.thread(at, *tid, &usage) else { continue };
            generator.threads_percent.push(busy);
            generator.threads_pressed_percent.extend(pressed);
        }
        generator
    }

    fn server_process(&mut self, at: Duration) -> Option<Process> {
        let usage = self.probes.server.as_ref()?.1.read()?;
        Some(self.rates.server_process(at, &usage))
    }

    /// The last sample: waits for the server as long as is decent, then reads everything once more.
    async fn finish(mut self) -> Outcome {
        let deadline = Instant::now() + LAST_ANSWER;
        // What it owes first, then how it stands now.
        let answers = if self.asked.is_some() { 2 } else { 1 };
        self.due = None;
        for _ in 0..answers {
            self.put_question();
            if self.asked.is_none() {
                break;
            }
            match timeout_at(deadline, answer_of(&mut self.asked)).await {
                Ok(answer) => self.answered(answer),
                Err(_) => break,
            }
        }
        self.emit();
        if let Some(usage) = self.probes.own.as_ref().and_then(ProcessProbe::read) {
            self.peaks.high_water(usage.rss_peak_bytes);
        }
        let (peaks, mut warnings) = (self.peaks.finish(), self.notes.finish());
        warnings.extend(peaks.crowd.own_percent().map(|ours_percent| {
            let Crowd { crowded: samples, samples: of, .. } = peaks.crowd;
            Warning::Crowded { samples, of, ours_percent }
        }));
        Outcome { peaks, warnings }
    }
}

/// The answer under way, once; pends for ever if there is none.
async fn answer_of(asked: &mut Option<Asked>) -> Result<String, Broken> {
    let answer = match asked {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    };
    *asked = None;
    answer
}

/// The server answered, and will not change its mind: it may not be asked.
fn is_refusal(why: &Broken) -> bool {
    why.fault.stage == Stage::Reply && !matches!(why.fault.kind, Kind::Loading | Kind::Busy | Kind::TimedOut)
}

impl Notes {
    fn unreachable(&mut self, at: Duration, why: Broken) {
        self.unreachable.get_or_insert((at, why, 0)).2 += 1;
    }

    fn finish(self) -> Vec<Warning> {
        let Self { mut warnings, unreachable, samples, overdue, dropped } = self;
        warnings.extend(unreachable.map(|(at, why, times)| Warning::Unreachable { at, why, times }));
        if overdue > 0 {
            warnings.push(Warning::Overdue { samples: overdue, of: samples });
        }
        if dropped > 0 {
            warnings.push(Warning::Dropped { samples: dropped });
        }
        warnings
    }
}

#[cfg(test)]
mod tests;
