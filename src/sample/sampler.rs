//! The task that takes a sample once per interval, on whichever runtime it is given, and never waits for anybody.
//!
//! One `INFO` is under way at a time. If its answer is still due shortly after a tick, the sample goes out without it;
//! when it comes it is used for the next one. Samples go out through a bounded channel and are dropped, and counted, when
//! nobody takes them. Peaks are kept here, so that they are whole even then.

mod handle;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

pub use handle::Handle;
use handle::Watched;

use super::crowd::Crowd;
use super::peaks::{PeakKeeper, Peaks};
use super::probes::Probes;
use super::rates::Rates;
use super::section::{Moment, Section, Sections};
use super::server::{Ask, Reading};
use super::warning::Warning;
use super::{Generator, Process, Sample};
use crate::wire::fault::{Broken, Kind, Stage};

/// After a tick the answer may take so long (or half the interval) to be part of that very sample.
const GRACE: Duration = Duration::from_millis(250);
/// At the end of the run the last answer may take so long.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// What sampling came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Maxima and sums.
    pub peaks: Peaks,
    /// What was noticed, in the order in which it was.
    pub warnings: Vec<Warning>,
    /// What was seen of each phase, in their order.
    pub sections: Vec<Section>,
    /// Files that the server's process may have open; `None` if that could not be read.
    pub server_fd_limit: Option<u64>,
}

/// Takes the samples of a run.
pub struct Sampler<A> {
    began: Instant,
    interval: Duration,
    db: u32,
    ask: Option<Arc<A>>,
    asked: Option<Asked>,
    /// When that was, and in which section.
    asked_at: (Duration, Option<usize>),
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
    sections: Sections,
    /// The border that was seen last.
    border: u64,
    notes: Notes,
    out: mpsc::Sender<Arc<Sample>>,
}

/// An `INFO` under way.
type Asked = Pin<Box<dyn Future<Output = Result<String, Broken>> + Send>>;

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
        let (handle, watched) = Handle::new();
        let sampler = Self {
            began: Instant::from_std(began),
            interval,
            db,
            ask: ask.map(Arc::new),
            asked: None,
            asked_at: Default::default(),
            based: false,
            answer: None,
            due: None,
            watched,
            probes: Probes::new(),
            rates: Rates::new((interval / 4).min(GRACE)),
            peaks: PeakKeeper::default(),
            sections: Sections::default(),
            border: 0,
            notes: Notes::default(),
            out,
        };
        (sampler, handle)
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
        if let Some(usage) = self.probes.own() {
            let own = self.rates.own(at, &usage);
            self.peaks.begin(&own);
        }
        self.put_question();
        self.watch();
    }

    /// Takes over what the handle said.
    fn watch(&mut self) {
        let at = self.at();
        let watched = self.watched.borrow_and_update().clone();
        if self.probes.watch_server(watched.server_pid, watched.server_port) {
            self.rates.server_process_changed();
            self.peaks.server_process_changed();
            self.server_process(at);
        }
        self.rates.keep_threads(&watched.threads);
        for (tid, usage) in self.probes.watch_threads(&watched.threads) {
            self.rates.thread(at, tid, &usage);
        }
        if watched.border != self.border {
            self.cross_border(at, &watched);
        }
    }

    /// A phase began or ended: everything is read, and the server is asked.
    fn cross_border(&mut self, at: Duration, watched: &Watched) {
        self.border = watched.border;
        let moment = self.probes.moment(at);
        if self.asked.is_some() {
            let (asked, section) = self.asked_at;
            self.sections.waited(section, asked, at);
        }
        if watched.border % 2 == 1 {
            self.sections.open(watched.run, &watched.phase, moment);
        } else {
            self.sections.close(moment);
        }
        self.put_question();
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
            self.asked_at = (self.at(), self.sections.under_way());
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
                let (asked, section) = self.asked_at;
                self.sections.answer(section, asked, at, &reading);
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
        let (run, phase) = {
            let watched = self.watched.borrow();
            (watched.run, watched.phase.to_string())
        };
        let moment = self.probes.moment(at);
        let sample = Sample {
            at,
            run,
            phase,
            host: self.probes.host.read(),
            generator: self.generator(&moment),
            server,
            server_process: self.server_process(at),
            local: moment.local,
            kernel: moment.kernel,
        };
        self.sections.look(moment);
        self.peaks.sample(&sample);
        if self.out.try_send(Arc::new(sample)).is_err() {
            self.notes.dropped += 1;
        }
    }

    fn generator(&mut self, moment: &Moment) -> Generator {
        let usage = self.probes.own();
        let mut generator = Generator {
            process: usage.map(|usage| self.rates.own(moment.at, &usage)).unwrap_or_default(),
            throttled: moment.throttled,
            ..Generator::default()
        };
        for (tid, usage) in &moment.threads {
            let Some((busy, pressed)) = self.rates.thread(moment.at, *tid, usage) else { continue };
            generator.threads_percent.push(busy);
            generator.threads_pressed_percent.extend(pressed);
        }
        generator
    }

    fn server_process(&mut self, at: Duration) -> Option<Process> {
        let usage = self.probes.server()?;
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
        let moment = self.probes.moment(self.at());
        self.sections.close(moment);
        if let Some(usage) = self.probes.own() {
            self.peaks.high_water(usage.rss_peak_bytes);
        }
        let (peaks, mut warnings) = (self.peaks.finish(), self.notes.finish());
        warnings.extend(peaks.crowd.own_percent().map(|ours_percent| {
            let Crowd { crowded: samples, samples: of, .. } = peaks.crowd;
            Warning::Crowded { samples, of, ours_percent }
        }));
        let server_fd_limit = self.probes.server_fd_limit();
        Outcome { peaks, warnings, sections: self.sections.finish(), server_fd_limit }
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
