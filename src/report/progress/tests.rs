use std::sync::Mutex;

use super::*;

/// Somewhere to write to, and to read from afterwards.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn started(phase: usize) -> Update {
    let name = if phase == 1 { "write" } else { "verify" };
    Update::PhaseStarted {
        name: name.into(),
        run: "write",
        phase,
        phases: 2,
        keys_per_client: 1000,
        clients: 2,
        lasts: None,
    }
}

#[test]
fn without_a_terminal_there_are_plain_lines_and_one_per_phase() {
    let paper = Paper::default();
    let title = Title { scenario: "ten".into(), load: "2 × 1,000 keys".into(), target: "redis 7.0.15".into() };
    let progress = Progress::start(title, Mode::Lines(Box::new(paper.clone())));
    let feed = progress.feed();
    feed.send(started(1));
    feed.send(started(2));
    feed.send(Update::PhaseEnded);
    progress.finish();
    feed.send(Update::PhaseEnded);
    let text = String::from_utf8(paper.0.lock().expect("no writer panics").clone()).expect("UTF-8");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "ten  2 × 1,000 keys   → redis 7.0.15");
    assert!(lines[1].starts_with("write  0.0") && lines[1].contains("0 of 2,000 keys"), "{text}");
    assert!(lines[2].starts_with("verify  0.0"), "{text}");
    assert_eq!(lines.len(), 3);
}

#[test]
fn quiet_is_quiet() {
    let progress = Progress::start(Title::default(), Mode::Quiet);
    assert!(progress.thread.is_none());
    progress.feed().send(Update::PhaseEnded);
    progress.finish();
}

#[test]
fn whoever_tells_something_never_waits_even_if_nobody_listens() {
    let (sender, updates) = sync_channel(1);
    let feed = Feed { sender: Some(sender) };
    for _ in 0..10 {
        feed.send(Update::PhaseEnded);
    }
    assert!(updates.try_recv().is_ok());
    assert!(updates.try_recv().is_err());
    drop(updates);
    feed.send(Update::PhaseEnded);
}

#[test]
fn a_view_ends_with_the_last_of_those_who_could_tell_it_something() {
    let (sender, updates) = sync_channel(8);
    drop(sender);
    watch(Title::default(), &updates, Lines::new(Vec::new()));
}
