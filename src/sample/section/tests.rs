use super::super::Server;
use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// At `at`: one thread that has been busy and has waited so long, and a server whose main thread has been busy so long.
fn moment(at: u64, busy: u64, waiting: u64, server: u64) -> Moment {
    let usage = |busy, waiting| ThreadUsage { busy: ms(busy), waiting: Some(ms(waiting)) };
    let local = Local { main: Some(usage(server, 0)), queue: Some(at / 1000), overflows: Some(at), ..Local::default() };
    Moment { at: ms(at), threads: vec![(7, usage(busy, waiting))], local: Some(local), ..Moment::default() }
}

fn reading(cpu: u64, clock: u64) -> Reading {
    let server = Server { run_id: "a".into(), memory_bytes: Some(cpu), ..Server::default() };
    Reading { server, cpu: Some(ms(cpu)), main_thread: true, clock: Some(ms(clock)) }
}

#[test]
fn each_phase_has_what_was_used_within_its_borders() {
    let mut sections = Sections::default();
    sections.look(moment(500, 5, 5, 5));
    sections.open(0, "write", moment(1_000, 100, 10, 400));
    sections.look(moment(2_000, 900, 20, 1_390));
    sections.close(moment(2_500, 1_000, 60, 1_590));
    sections.look(moment(9_000, 2_000, 90, 9_000));
    sections.open(1, "verify", moment(10_000, 2_000, 100, 9_000));
    sections.open(1, "again", moment(10_100, 2_050, 100, 9_050));
    let done = sections.finish();
    assert_eq!(done.len(), 2, "the third is under way");
    let write = &done[0];
    assert_eq!((write.run, write.phase.as_str(), write.wall), (0, "write", ms(1_500)));
    assert_eq!(write.threads, [ThreadUsage { busy: ms(900), waiting: Some(ms(50)) }]);
    let local = write.local.expect("it was read");
    let main = Busy { cpu: ms(1_190), observed: ms(1_500), busy: ms(1_000), saturated: ms(1_000) };
    assert_eq!((local.main, local.queue_max, local.overflows), (main, Some(2), Some(1_500)));
    assert_eq!((done[1].run, done[1].wall, done[1].server().and_then(|main| main.share())), (1, ms(100), Some(0.5)));
}

#[test]
fn the_servers_own_figures_count_for_the_phase_in_which_it_was_asked() {
    let mut sections = Sections::default();
    sections.answer(None, ms(0), ms(1), &reading(0, 50_000));
    sections.open(0, "write", Moment { at: ms(100), ..Moment::default() });
    let write = sections.under_way();
    sections.answer(write, ms(100), ms(101), &reading(60, 50_100));
    sections.answer(write, ms(600), ms(900), &reading(560, 50_600));
    sections.open(0, "verify", Moment { at: ms(1_100), ..Moment::default() });
    let verify = sections.under_way();
    sections.answer(verify, ms(1_100), ms(1_101), &reading(660, 51_100));
    sections.close(Moment { at: ms(2_000), ..Moment::default() });
    let [write, verify] = &sections.finish()[..] else { panic!("two phases") };
    let told = Busy { cpu: ms(600), observed: ms(1_000), busy: ms(500), saturated: ms(500) };
    assert_eq!((write.told, write.silence, write.memory_bytes_max), (told, ms(300), Some(560)));
    assert_eq!(write.server(), Some(told), "nothing was seen from here");
    assert_eq!((verify.told, verify.server(), verify.silence), (Busy::default(), None, ms(1)));
}

#[test]
fn a_server_that_is_stopped_or_started_anew_is_not_miscounted() {
    let mut sections = Sections::default();
    sections.open(0, "write", moment(0, 0, 0, 0));
    let mut stopped = moment(1_000, 0, 0, 10);
    stopped.local.as_mut().expect("there").stopped = true;
    sections.look(stopped);
    sections.look(Moment { at: ms(2_000), ..Moment::default() });
    sections.look(moment(3_000, 0, 0, 5));
    let here = sections.under_way();
    sections.answer(here, ms(100), ms(100), &reading(900, 100));
    let other = Reading { server: Server { run_id: "b".into(), ..Server::default() }, ..reading(5, 1_000) };
    sections.answer(here, ms(1_000), ms(1_000), &other);
    sections.waited(here, ms(1_500), ms(2_900));
    sections.close(moment(3_000, 0, 0, 5));
    let section = sections.finish().remove(0);
    let local = section.local.expect("it was read");
    assert_eq!((local.stopped, local.main.observed), (ms(1_000), ms(1_000)));
    assert_eq!((section.told, section.silence), (Busy::default(), ms(1_400)));
}
