//! `[[phase]]` and `[limits]`.

use super::wrong;

#[test]
fn phases_and_limits_must_mean_something() {
    let text = r#"
target.spawn = {}
[[phase]]
name = "a/b"
run = "write"
arrivals = "poisson"
reads = 0.5
[[phase]]
name = "p99"
run = "verifi"
[[phase]]
name = "pause"
run = "wait"
duration = "1s"
pipeline = 4
[[phase]]
name = "pause"
run = "mix"
reads = 1.5
rate = "0/s"
pick = "hottest"
[[phase]]
run = "verify"
pipeline = "all"
duration = "5s"
rate = 50
[limits]
p95 = "1ms"
max = "0s"
[limits.puase]
lost = 0
[limits.pause]
lost = -1
[limits."a/b"]
lost = 0
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 18 errors in DIR/six.toml
       ╭─[DIR/six.toml:4:8]
     3 │ [[phase]]
     4 │ name = "a/b"
       ·        ──┬──
       ·          ╰─┤ files are called after it, so it cannot hold `/` or
       ·            │ control characters
     5 │ run = "write"
     6 │ arrivals = "poisson"
       ·            ────┬────
       ·                ╰─┤ without a `rate` no request has a moment of its own,
       ·                  │ so `arrivals` has no effect
     7 │ reads = 0.5
       ·         ─┬─
       ·          ╰─┤ only a mix chooses, so `reads` has no effect here: use
       ·            │ `run = "mix"`
     8 │ [[phase]]
     9 │ name = "p99"
       ·        ──┬──
       ·          ╰─┤ this name means something else in results or [limits];
       ·            │ choose another
    10 │ run = "verifi"
       ·       ────┬───
       ·           ╰─┤ no such kind of phase; did you mean "verify"? There are
       ·             │ "write", "verify", "mix", "connect" and "wait"
    11 │ [[phase]]
    12 │ name = "pause"
    13 │ run = "wait"
    14 │ duration = "1s"
    15 │ pipeline = 4
       ·            ┬
       ·            ╰─┤ a wait phase sends nothing, so `pipeline` has no
       ·              │ effect
    16 │ [[phase]]
    17 │ name = "pause"
       ·        ───┬───
       ·           ╰── an earlier phase has this name already
    18 │ run = "mix"
       ·       ──┬──
       ·         ╰── this phase has no end without a `duration`, such as "10s"
    19 │ reads = 1.5
       ·         ─┬─
       ·          ╰── must lie between 0 and 1
    20 │ rate = "0/s"
       ·        ──┬──
       ·          ╰── a rate must be above zero
    21 │ pick = "hottest"
       ·        ────┬────
       ·            ╰─┤ no such way to pick keys; did you mean "hot"? There are
       ·              │ "uniform", "zipf", "gaussian" and "hot"
    22 │ [[phase]]
    23 │ run = "verify"
    24 │ pipeline = "all"
    25 │ duration = "5s"
    26 │ rate = 50
       ·        ─┬
       ·         ╰── a rate has a unit: write "50/s", for example
    27 │ [limits]
    28 │ p95 = "1ms"
       · ─┬─
       ·  ╰── unknown key; did you mean `p99`?
    29 │ max = "0s"
       ·       ──┬─
       ·         ╰── must be longer than nothing
    30 │ [limits.puase]
       ·         ──┬──
       ·           ╰── no phase has this name; did you mean `pause`?
    31 │ lost = 0
    32 │ [limits.pause]
       ·         ──┬──
       ·           ╰── a wait phase sends nothing, so its limits have no effect
    33 │ lost = -1
       ·        ─┬
       ·         ╰── must be at least 0
    34 │ [limits."a/b"]
    35 │ lost = 0
       ·        ┬
       ·        ╰── a write phase reads nothing back, so this has no effect
       ╰────
    "#);
}
