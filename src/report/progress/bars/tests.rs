use std::io;
use std::sync::{Arc, Mutex};

use indicatif::TermLike;

use super::super::text::tests::scene;
use super::*;

/// A terminal of paper: what would be seen.
#[derive(Clone, Debug, Default)]
struct Paper {
    size: (u16, u16),
    grid: Arc<Mutex<Grid>>,
}

#[derive(Debug, Default)]
struct Grid {
    lines: Vec<String>,
    row: usize,
    frames: usize,
}

impl Paper {
    fn new(height: u16, width: u16) -> Self {
        Self { size: (height, width), grid: Arc::default() }
    }

    fn seen(&self) -> String {
        let grid = self.grid.lock().expect("nobody panics in between");
        let lines: Vec<_> = grid.lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    fn change(&self, change: impl FnOnce(&mut Grid)) -> io::Result<()> {
        let mut grid = self.grid.lock().expect("nobody panics in between");
        change(&mut grid);
        let row = grid.row;
        if grid.lines.len() <= row {
            grid.lines.resize(row + 1, String::new());
        }
        Ok(())
    }
}

impl TermLike for Paper {
    fn width(&self) -> u16 {
        self.size.1
    }

    fn height(&self) -> u16 {
        self.size.0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.row = grid.row.saturating_sub(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.row += n)
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.write_str(s)?;
        self.change(|grid| grid.row += 1)
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        let columns = usize::from(self.size.1);
        self.change(|grid| {
            for c in s.chars() {
                // A line that is full goes on in the next one, as soon as there is more to write.
                let full = grid.lines.get(grid.row).is_some_and(|line| line.chars().count() == columns);
                grid.row += usize::from(full);
                if grid.lines.len() <= grid.row {
                    grid.lines.resize(grid.row + 1, String::new());
                }
                let row = grid.row;
                grid.lines[row].push(c);
            }
        })
    }

    fn clear_line(&self) -> io::Result<()> {
        self.change(|grid| {
            let row = grid.row;
            if let Some(line) = grid.lines.get_mut(row) {
                line.clear();
            }
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.change(|grid| grid.frames += 1)
    }
}

fn bars(paper: &Paper) -> Bars {
    let (height, width) = paper.size;
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), OWN_REDRAWS);
    Bars::on(target, move || (height.into(), width.into()), false)
}

/// What is seen of so many clients on a terminal of this size.
fn seen(clients: u32, height: u16, width: u16) -> String {
    let paper = Paper::new(height, width);
    let mut bars = bars(&paper);
    let (state, now) = scene(clients, bars.most_rows());
    bars.draw(&state, now);
    paper.seen()
}

#[test]
fn ten_clients_at_80_columns() {
    insta::assert_snapshot!(seen(10, 40, 80), @r"
    ten-clients  10 × 1,000,000 keys  socket ×1, pipeline 64
      → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)
    write  28.40 s  9,999,817 of 10,000,000 keys  352 k/s   timeouts 180  errors 3
    verify  phase 2 of 2  76 %                                     00:20  ETA 00:07
      client 0  █████████████████████████ 100 %       done
      client 1  ████████████████████████░  98 %     49 k/s
      client 2  ███████████████████████░░  92 %     46 k/s
      client 3  █████████████████████░░░░  86 %     43 k/s
      client 4  ████████████████████░░░░░  80 %     40 k/s
      client 5  ██████████████████░░░░░░░  74 %     37 k/s
      client 6  █████████████████░░░░░░░░  68 %     34 k/s
      client 7  ███████████████░░░░░░░░░░  62 %     31 k/s
      client 8  ██████████████░░░░░░░░░░░  56 %     28 k/s
      client 9  ████████████░░░░░░░░░░░░░  50 %     25 k/s   ⚠ 60 timeouts, 1 error
      keys 7,659,939  now 365 k/s   p50 0.8 ms  p99 2.1 ms   timeouts 60  errors 1
      server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns
      this host  cpu 41 %  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn ten_clients_at_140_columns() {
    insta::assert_snapshot!(seen(10, 40, 140), @r"
    ten-clients  10 × 1,000,000 keys  socket ×1, pipeline 64   → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)
    write  28.40 s  9,999,817 of 10,000,000 keys  352 k/s   timeouts 180  errors 3
    verify  phase 2 of 2  76 %                                                                                                 00:20  ETA 00:07
      client 0  █████████████████████████████████████████████████████████████████████████████████████ 100 %       done
      client 1  ███████████████████████████████████████████████████████████████████████████████████░░  98 %     49 k/s
      client 2  ██████████████████████████████████████████████████████████████████████████████░░░░░░░  92 %     46 k/s
      client 3  █████████████████████████████████████████████████████████████████████████░░░░░░░░░░░░  86 %     43 k/s
      client 4  ████████████████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░  80 %     40 k/s
      client 5  ██████████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░  74 %     37 k/s
      client 6  █████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░  68 %     34 k/s
      client 7  ████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  62 %     31 k/s
      client 8  ███████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  56 %     28 k/s
      client 9  ██████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  50 %     25 k/s   ⚠ 60 timeouts, 1 error
      keys 7,659,939  now 365 k/s   p50 0.8 ms  p99 2.1 ms   timeouts 60  errors 1
      server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns   this host  cpu 41 %  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn two_hundred_clients_at_80_columns() {
    insta::assert_snapshot!(seen(200, 40, 80), @r"
    ten-clients  200 × 1,000,000 keys  socket ×1, pipeline 64
      → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)
    write  28.40 s  199,999,817 of 200,000,000 keys   timeouts 180  errors 3
    verify  phase 2 of 2  74 %                                     00:20  ETA 00:08
      clients 0–9      ██████████████████ 100 %       done
      clients 10–19    █████████████████░  99 %    487 k/s
      clients 20–29    █████████████████░  96 %    483 k/s
      clients 30–39    ████████████████░░  93 %    468 k/s
      clients 40–49    ████████████████░░  90 %    453 k/s
      clients 50–59    ███████████████░░░  87 %    438 k/s
      clients 60–69    ███████████████░░░  84 %    423 k/s
      clients 70–79    ██████████████░░░░  81 %    408 k/s
      clients 80–89    ██████████████░░░░  78 %    393 k/s
      clients 90–99    █████████████░░░░░  75 %    378 k/s
      clients 100–109  █████████████░░░░░  72 %    363 k/s
      clients 110–119  ████████████░░░░░░  69 %    348 k/s
      clients 120–129  ███████████░░░░░░░  66 %    333 k/s
      clients 130–139  ███████████░░░░░░░  63 %    318 k/s
      clients 140–149  ██████████░░░░░░░░  60 %    303 k/s
      clients 150–159  ██████████░░░░░░░░  57 %    288 k/s
      clients 160–169  █████████░░░░░░░░░  54 %    273 k/s
      clients 170–179  █████████░░░░░░░░░  51 %    258 k/s
      clients 180–189  ████████░░░░░░░░░░  48 %    243 k/s
      clients 190–199  ████████░░░░░░░░░░  45 %    228 k/s   ⚠ 60 timeouts, 1 error
      keys 148,012,939  now 7.3 M/s  p99 2.1 ms   timeouts 60  errors 1
      server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns
      this host  cpu 41 %  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn two_hundred_clients_at_140_columns() {
    insta::assert_snapshot!(seen(200, 40, 140), @r"
    ten-clients  200 × 1,000,000 keys  socket ×1, pipeline 64   → redis 7.0.15 127.0.0.1:40211 (spawned, core 0)
    write  28.40 s  199,999,817 of 200,000,000 keys  7.0 M/s   timeouts 180  errors 3
    verify  phase 2 of 2  74 %                                                                                                 00:20  ETA 00:08
      clients 0–9      ██████████████████████████████████████████████████████████████████████████████ 100 %       done
      clients 10–19    █████████████████████████████████████████████████████████████████████████████░  99 %    487 k/s
      clients 20–29    ███████████████████████████████████████████████████████████████████████████░░░  96 %    483 k/s
      clients 30–39    █████████████████████████████████████████████████████████████████████████░░░░░  93 %    468 k/s
      clients 40–49    ██████████████████████████████████████████████████████████████████████░░░░░░░░  90 %    453 k/s
      clients 50–59    ████████████████████████████████████████████████████████████████████░░░░░░░░░░  87 %    438 k/s
      clients 60–69    ██████████████████████████████████████████████████████████████████░░░░░░░░░░░░  84 %    423 k/s
      clients 70–79    ███████████████████████████████████████████████████████████████░░░░░░░░░░░░░░░  81 %    408 k/s
      clients 80–89    █████████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░  78 %    393 k/s
      clients 90–99    ██████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░  75 %    378 k/s
      clients 100–109  ████████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░  72 %    363 k/s
      clients 110–119  ██████████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░  69 %    348 k/s
      clients 120–129  ███████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░  66 %    333 k/s
      clients 130–139  █████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  63 %    318 k/s
      clients 140–149  ███████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  60 %    303 k/s
      clients 150–159  ████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  57 %    288 k/s
      clients 160–169  ██████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  54 %    273 k/s
      clients 170–179  ████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  51 %    258 k/s
      clients 180–189  █████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  48 %    243 k/s
      clients 190–199  ███████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  45 %    228 k/s   ⚠ 60 timeouts, 1 error
      keys 148,012,939  now 7.3 M/s   p50 0.8 ms  p99 2.1 ms   timeouts 60  errors 1
      server  cpu 100 % of 1 core  mem 1.1 GiB  6.9 M keys  12 conns   this host  cpu 41 %  loader 34 %  rss 18 MiB
    ");
}

#[test]
fn a_low_terminal_groups_more_so_that_the_figures_stay_in_sight() {
    let seen = seen(200, 16, 80);
    assert!(seen.lines().count() <= 16, "{seen}");
    assert!(seen.contains("clients 0–49") && seen.contains("this host"), "{seen}");
}

#[test]
fn it_is_redrawn_in_place_and_leaves_nothing_behind() {
    let paper = Paper::new(40, 80);
    let mut bars = bars(&paper);
    let (mut state, now) = scene(3, bars.most_rows());
    bars.draw(&state, now);
    let before = paper.seen();
    bars.draw(&state, now);
    assert_eq!(paper.seen(), before);
    state.apply(crate::report::progress::Update::PhaseEnded, now);
    bars.draw(&state, now);
    let after = paper.seen();
    assert!(after.trim_start().starts_with("ten-clients"), "{after}");
    assert!(!after.contains("client 0"), "{after}");
    bars.end();
    drop(bars);
    assert_eq!(paper.seen(), "");
}
