//! `[[phase]]` and `[limits]`.

use super::wrong;

#[test]
fn phases_and_limits_must_mean_something() {
    let text = r#"
target.spawn = {}
[[phase]]
name = "a/b"
run = "write"
duration = "5s"
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
     × 13 errors in DIR/six.toml
       ╭─[DIR/six.toml:4:8]
     3 │ [[phase]]
     4 │ name = "a/b"
       ·        ──┬──
       ·          ╰─┤ files are called after it, so it cannot hold `/` or
       ·            │ control characters
     5 │ run = "write"
     6 │ duration = "5s"
       ·            ──┬─
       ·              ╰─┤ not available in this version: a write or verify
       ·                │ phase passes over its keys once; only a wait has one
     7 │ [[phase]]
     8 │ name = "p99"
       ·        ──┬──
       ·          ╰─┤ this name means something else in results or [limits];
       ·            │ choose another
     9 │ run = "verifi"
       ·       ────┬───
       ·           ╰─┤ no such kind of phase; did you mean "verify"? There are
       ·             │ "write", "verify" and "wait"
    10 │ [[phase]]
    11 │ name = "pause"
    12 │ run = "wait"
    13 │ duration = "1s"
    14 │ pipeline = 4
       ·            ┬
       ·            ╰─┤ a wait phase sends nothing, so `pipeline` has no
       ·              │ effect
    15 │ [[phase]]
    16 │ name = "pause"
       ·        ───┬───
       ·           ╰── an earlier phase has this name already
    17 │ run = "mix"
       ·       ──┬──
       ·         ╰─┤ "mix" is not available in this version; there are "write",
       ·           │ "verify" and "wait"
    18 │ [limits]
    19 │ p95 = "1ms"
       · ─┬─
       ·  ╰── unknown key; did you mean `p99`?
    20 │ max = "0s"
       ·       ──┬─
       ·         ╰── must be longer than nothing
    21 │ [limits.puase]
       ·         ──┬──
       ·           ╰── no phase has this name; did you mean `pause`?
    22 │ lost = 0
    23 │ [limits.pause]
       ·         ──┬──
       ·           ╰── a wait phase sends nothing, so its limits have no effect
    24 │ lost = -1
       ·        ─┬
       ·         ╰── must be at least 0
    25 │ [limits."a/b"]
    26 │ lost = 0
       ·        ┬
       ·        ╰── a write phase reads nothing back, so this has no effect
       ╰────
    "#);
}
