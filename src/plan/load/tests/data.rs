//! `[clients]` and `[dataset]`.

use super::wrong;

#[test]
fn data_must_be_told_apart_and_fit() {
    let text = r#"
target.spawn = { maxmemory = "1MB", args = ["--requirepass", "hunter2"] }
phase = [{ run = "write" }]
[clients]
count = 2
threads = 3
cpus = [0, 9, 0]
[dataset]
keys = 1_000_000_000_000_000
key = "{i}"
value = { sizes = [["100B", 9], ["1GB", 1], ["1kB", 0]], alphabet = "hexx" }
order = "shufled"
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 11 errors in DIR/six.toml
      ╭─[DIR/six.toml:2:30]
    1 │ 
    2 │ target.spawn = { maxmemory = "1MB", args = ["--requirepass", ***] }
      ·                              ──┬──          ───────┬───────
      ·                                │                   ╰─┤ not here: write `password = "…"` in
      ·                                │                     │ `spawn`
      ·                                ╰─┤ a server alone needs about 1 MB;
      ·                                  │ give it 2MB at least
    3 │ phase = [{ run = "write" }]
      ╰────
       ╭─[DIR/six.toml:6:11]
     5 │ count = 2
     6 │ threads = 3
       ·           ┬
       ·           ╰─┤ with 2 connections in all, further threads would have
       ·             │ nothing to do
     7 │ cpus = [0, 9, 0]
       ·            ┬  ┬
       ·            │  ╰── this core is named twice
       ·            ╰── no such core here; there are 0, 1
     8 │ [dataset]
     9 │ keys = 1_000_000_000_000_000
       ·        ──────────┬──────────
       ·                  ╰── must be at most 1,099,511,627,776
    10 │ key = "{i}"
       ·       ──┬──
       ·         ╰─┤ it does not tell keys apart: `{i}` starts anew for each
       ·           │ client, so two clients would share keys; use `{n}`, or add
       ·           │ `{client}`
    11 │ value = { sizes = [["100B", 9], ["1GB", 1], ["1kB", 0]], alphabet = "hexx" }
       ·                                  ──┬──              ┬               ───┬──
       ·                                    │                │                  ╰─┤ no such alphabet; did you mean
       ·                                    │                │                    │ "hex"? There are "alphanumeric",
       ·                                    │                │                    │ "hex" and "binary"
       ·                                    │                ╰─┤ a weight is a number from 1 to
       ·                                    │                  │ 4294967295
       ·                                    ╰─┤ at most 512MiB, the longest value
       ·                                      │ that a server takes
    12 │ order = "shufled"
       ·         ────┬────
       ·             ╰─┤ no such order; did you mean "shuffled"? There are
       ·               │ "written" and "shuffled"
       ╰────
    "#);
    let both = "target.spawn = {}\nphase = [{ run = 'write' }]\ndataset.key = '{i}'\nclients.count = 2";
    insta::assert_snapshot!(wrong(both), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:3:15]
    2 │ phase = [{ run = 'write' }]
    3 │ dataset.key = '{i}'
      ·               ──┬──
      ·                 ╰─┤ it does not tell keys apart: `{i}` starts anew for
      ·                   │ each client, so two clients would share keys; use
      ·                   │ `{n}`, or add `{client}`
    4 │ clients.count = 2
      ╰────
    ");
}
