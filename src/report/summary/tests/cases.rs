//! Cases and repeats, side by side.

use super::*;

#[test]
fn repeats_show_their_spread() {
    let mut slower = fixture::good_run();
    (slower.repeat, slower.phases[1].seconds) = (2, 0.8);
    let mut outcome = fixture::outcome(fixture::good_run());
    outcome.runs.push(slower);
    insta::assert_snapshot!(printed(&outcome, NARROW), @r"
    PASS  four-clients: 2 runs, each: 1,000 keys written, 1,000 read back, every
          byte right

      load      4 clients × 250 keys   driver socket   seed 42

      write: closed loop, pipeline 64; latency from sending to the reply
      run   elapsed   keys     rate     p50     p99     max   cpu   memory
        1  0:00.500  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB
        2  0:00.800  1,000  1.2 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB

      verify: closed loop, pipeline 64; latency from sending to the reply
      run   elapsed   keys     rate     p50     p99     max  lost   cpu   memory
        1  0:00.500  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms     0  97 %  2.0 MiB
        2  0:00.500  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms     0  97 %  2.0 MiB

      server
      run  keys before  after  B per key   cpu   memory      counts
        1            0  1,000        160  97 %  2.0 MiB  reconciled
        2            0  1,000        160  97 %  2.0 MiB  reconciled

      keys per second: median (lowest – highest)
      write   1.6 k/s  (1.2 k/s – 2.0 k/s)
      verify  2.0 k/s  (2.0 k/s – 2.0 k/s)

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

/// Two cases with two runs each, the second three times as fast; one of its runs lost a key.
fn cases() -> Outcome {
    let run = |case: &str, repeat: u32, seconds: f64| {
        let mut run = RunOutcome { case: Some(case.to_owned()), repeat, ..fixture::good_run() };
        run.phases.iter_mut().skip(1).for_each(|phase| phase.seconds = seconds);
        run
    };
    let (slow, fast) = ("one request at a time", "sixty-four requests in flight on each connection");
    let mut lost = run(fast, 2, 0.12);
    lost.phases[2].record.keys.matched -= 1;
    lost.phases[2].record.keys.lost += 1;
    Outcome {
        runs: vec![run(slow, 1, 0.4), run(slow, 2, 0.5), run(fast, 1, 0.1), lost],
        ..fixture::outcome(fixture::good_run())
    }
}

#[test]
fn cases_stand_side_by_side() {
    insta::assert_snapshot!(printed(&cases(), NARROW), @r"
    FAIL  four-clients: sixty-four requests in flight on each connection, run 2: 1
          key lost (limit 0)

      load      2 cases, 4 runs   driver socket   seed 42

      write: closed loop, pipeline 64; latency from sending to the reply
      case                      run   elapsed   keys     rate     p99   cpu   memory
      one request at a time       1  0:00.400  1,000  2.5 k/s  0.5 ms  97 %  2.0 MiB
      one request at a time       2  0:00.500  1,000  2.0 k/s  0.5 ms  97 %  2.0 MiB
      sixty-four requests in …    1  0:00.100  1,000   10 k/s  0.5 ms  97 %  2.0 MiB
      sixty-four requests in …    2  0:00.120  1,000  8.3 k/s  0.5 ms  97 %  2.0 MiB

      verify: closed loop, pipeline 64; latency from sending to the reply
      case                       run   elapsed     rate     p99  lost   cpu   memory
      one request at a time        1  0:00.400  2.5 k/s  0.5 ms     0  97 %  2.0 MiB
      one request at a time        2  0:00.500  2.0 k/s  0.5 ms     0  97 %  2.0 MiB
      sixty-four requests in f…    1  0:00.100   10 k/s  0.5 ms     0  97 %  2.0 MiB
      sixty-four requests in f…    2  0:00.120  8.3 k/s  0.5 ms     1  97 %  2.0 MiB

      server
      case                         run  keys before  after  B per key   cpu   memory
      one request at a time          1            0  1,000        160  97 %  2.0 MiB
      one request at a time          2            0  1,000        160  97 %  2.0 MiB
      sixty-four requests in fli…    1            0  1,000        160  97 %  2.0 MiB
      sixty-four requests in fli…    2            0  1,000        160  97 %  2.0 MiB

      keys per second: median (lowest – highest), and against the first case
      write   one request at a…  2.2 k/s  (2.0 k/s – 2.5 k/s)       –
      write   sixty-four reque…  9.2 k/s   (8.3 k/s – 10 k/s)  × 4.07  (3.33 – 5.00)
      verify  one request at a…  2.2 k/s  (2.0 k/s – 2.5 k/s)       –
      verify  sixty-four reque…  9.2 k/s   (8.3 k/s – 10 k/s)  × 4.07  (3.33 – 5.00)

      sixty-four requests in flight on each connection, run 2 of 2
      phase   seconds   keys     rate     p50     p99     max  timeouts  errors
      write      0.12  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      verify     0.12  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms         0       0
      closed loop, pipeline 64; latency from sending to the reply

      keys      write: 1,000 of 1,000 acknowledged
                verify: 999 of 1,000 matched
                1 lost   0 stale   0 foreign   0 corrupt
      loss      verify: 1 of 1,000 missing (0.1 %)
                nothing was seen that explains it
      requests  2,000 = 2,000 ok + 0 failed + 0 timed out + 0 unsent
                server counted 2,000: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      warning   The server counted 0 misses where keyswarm made 1 such readings.

      results   results/four-clients-20261130T084012Z/
                result.json · timeline.jsonl · scenario.toml
    ");
}

#[test]
fn on_a_wide_terminal_cases_show_more() {
    insta::assert_snapshot!(printed(&cases(), Look { width: 140, colour: false }), @r"
    FAIL  four-clients: sixty-four requests in flight on each connection, run 2: 1 key lost (limit 0)

      load      2 cases, 4 runs   driver socket   seed 42

      write: closed loop, pipeline 64; latency from sending to the reply
      case                                              run   elapsed   keys     rate     p50     p99     max   cpu   memory
      one request at a time                               1  0:00.400  1,000  2.5 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB
      one request at a time                               2  0:00.500  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB
      sixty-four requests in flight on each connection    1  0:00.100  1,000   10 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB
      sixty-four requests in flight on each connection    2  0:00.120  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms  97 %  2.0 MiB

      verify: closed loop, pipeline 64; latency from sending to the reply
      case                                              run   elapsed   keys     rate     p50     p99     max  lost   cpu   memory
      one request at a time                               1  0:00.400  1,000  2.5 k/s  0.5 ms  0.5 ms  2.0 ms     0  97 %  2.0 MiB
      one request at a time                               2  0:00.500  1,000  2.0 k/s  0.5 ms  0.5 ms  2.0 ms     0  97 %  2.0 MiB
      sixty-four requests in flight on each connection    1  0:00.100  1,000   10 k/s  0.5 ms  0.5 ms  2.0 ms     0  97 %  2.0 MiB
      sixty-four requests in flight on each connection    2  0:00.120  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms     1  97 %  2.0 MiB

      server
      case                                              run  keys before  after  B per key   cpu   memory      counts
      one request at a time                               1            0  1,000        160  97 %  2.0 MiB  reconciled
      one request at a time                               2            0  1,000        160  97 %  2.0 MiB  reconciled
      sixty-four requests in flight on each connection    1            0  1,000        160  97 %  2.0 MiB  reconciled
      sixty-four requests in flight on each connection    2            0  1,000        160  97 %  2.0 MiB  reconciled

      keys per second: median (lowest – highest), and against the first case
      write   one request at a time                             2.2 k/s  (2.0 k/s – 2.5 k/s)       –
      write   sixty-four requests in flight on each connection  9.2 k/s   (8.3 k/s – 10 k/s)  × 4.07  (3.33 – 5.00)
      verify  one request at a time                             2.2 k/s  (2.0 k/s – 2.5 k/s)       –
      verify  sixty-four requests in flight on each connection  9.2 k/s   (8.3 k/s – 10 k/s)  × 4.07  (3.33 – 5.00)

      sixty-four requests in flight on each connection, run 2 of 2
      phase   seconds   keys     rate     p50     p99   p99.9     max  timeouts  errors
      write      0.12  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms  2.0 ms         0       0
      verify     0.12  1,000  8.3 k/s  0.5 ms  0.5 ms  2.0 ms  2.0 ms         0       0
      closed loop, pipeline 64; latency from sending to the reply

      keys      write: 1,000 of 1,000 acknowledged
                verify: 999 of 1,000 matched   1 lost   0 stale   0 foreign   0 corrupt
      loss      verify: 1 of 1,000 missing (0.1 %)   nothing was seen that explains it
      requests  2,000 = 2,000 ok + 0 failed + 0 timed out + 0 unsent   server counted 2,000: reconciled
      connect   4 of 4 admitted   tcp p99 0.1 ms   setup p99 0.3 ms

      server    redis 7.0.15 at 127.0.0.1:6379   cpu max 100 % of 1 core   1.0 GiB
      left      1,000 keys in db 0
      loader    cpu max 34 % of 1 core   18 MiB   host cpu max 71 % of 2 cores

      warning   The server counted 0 misses where keyswarm made 1 such readings.

      results   results/four-clients-20261130T084012Z/   result.json · timeline.jsonl · scenario.toml
    ");
}
