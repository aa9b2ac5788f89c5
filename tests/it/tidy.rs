//! The rules of the house, as tests: which way data flows, how long a file may be, who may print, who may end the process.

use std::fs;
use std::path::{Path, PathBuf};

/// A module imports only itself and what stands to its left.
const ROOMS: [&str; 15] = [
    "scenario", "dataset", "plan", "wire", "target", "driver", "record", "client", "sample", "verdict", "search",
    "report", "cli", "app", "main",
];

/// Past this, look for the seam.
const LONGEST: usize = 400;

struct Source {
    /// As in `wire/resp.rs`.
    path: String,
    text: String,
}

impl Source {
    /// The room that a file belongs to.
    fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Without the tests at its end, and without comments.
    fn code(&self) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        // `#[cfg(test)] mod tests;` names another file; only `mod tests {` begins the tests themselves.
        let tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
        let end = lines.windows(2).position(tests).unwrap_or(lines.len());
        lines[..end].iter().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }

    fn is_test(&self) -> bool {
        // `tests.rs`, `socket_tests.rs`, `testserver.rs`.
        self.path.rsplit('/').any(|part| part.contains("test"))
    }
}

fn sources() -> Vec<Source> {
    below("src")
}

/// These tests.
fn tests() -> Vec<Source> {
    below("tests")
}

fn below(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut sources: Vec<Source> = files(&root)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .map(|path| Source {
            text: fs::read_to_string(&path).expect("readable"),
            path: path.strip_prefix(&root).expect("below the folder").display().to_string(),
        })
        .collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Modules of this crate that a text names: `crate::x`, and every one of `crate::{x, y::z}`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(identifier(rest)),
            Some(group) => {
                let (mut depth, mut fresh) = (0, true);
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => fresh = true,
                        c if depth == 0 && fresh && !c.is_whitespace() => {
                            found.push(identifier(&group[at..]));
                            fresh = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    assert_eq!(imports("use crate::plan::Plan; crate::wire::dial(x)"), ["plan", "wire"]);
    assert_eq!(imports("use crate::{a, b::{c, d}, e as f,\n  g};"), ["a", "b", "e", "g"]);
}

#[test]
fn data_flows_one_way() {
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let Some(own) = place(source.room()) else {
            faults.push(format!("src/{}: a room that the plan of the house does not have", source.path));
            continue;
        };
        for import in imports(&source.code()) {
            match place(&import) {
                Some(other) if other <= own => {}
                Some(_) => faults.push(format!("src/{}: `{import}` is to its right", source.path)),
                None => faults.push(format!("src/{}: `{import}` is no room", source.path)),
            }
        }
    }
    none(&faults);
}

#[test]
fn files_are_of_a_readable_length() {
    let long = |source: &Source| {
        let lines = source.text.lines().count();
        (lines > LONGEST).then(|| format!("src/{}: {lines} lines, more than {LONGEST}", source.path))
    };
    none(&sources().iter().filter_map(long).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_over() {
    // In pieces, so that this file is not found itself.
    let left = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("todo", "!("), concat!("dbg", "!(")];
    let left = left.into_iter().chain([concat!("unimplemented", "!("), concat!("#[ign", "ore")]);
    let mut faults = Vec::new();
    for word in left {
        let found = sources().into_iter().filter(|source| source.text.contains(word));
        faults.extend(found.map(|source| format!("src/{}: {word}", source.path)));
    }
    none(&faults);
}

/// What silences a lint hides the next fault too.
#[test]
fn no_lint_is_silenced() {
    let mut faults = Vec::new();
    for source in sources().iter().chain(&tests()) {
        let lines = source.text.lines().enumerate().filter(|(_, line)| silences(line));
        faults.extend(lines.map(|(at, line)| format!("{}:{}: {line}", source.path, at + 1)));
    }
    none(&faults);
}

/// An attribute, inner or outer, plain or within `cfg_attr`, that allows or expects a lint.
fn silences(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("#[") || line.starts_with("#![")) && ["allow(", "expect("].iter().any(|word| line.contains(word))
}

#[test]
fn silenced_lints_are_found_in_every_form() {
    for silenced in ["#[allow(dead_code)]", "#![allow(dead_code)]", "  #[cfg_attr(test, expect(unused))]"] {
        assert!(silences(silenced), "{silenced}");
    }
    for loud in ["fn as_many_as_the_rows_allow() {", ".expect(\"a reason\")", "#[deny(dead_code)]"] {
        assert!(!silences(loud), "{loud}");
    }
}

#[test]
fn no_text_names_a_place_of_one_machine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = |path: &Path| path.extension().is_some_and(|ending| ["md", "toml"].iter().any(|ours| ending == *ours));
    let texts = fs::read_dir(root).expect("readable").map(|entry| entry.expect("readable").path());
    let texts =
        texts.filter(|path| ours(path)).chain(files(&root.join("scenarios"))).chain(files(&root.join("scripts")));
    let mut faults = Vec::new();
    for path in texts {
        let text = fs::read_to_string(&path).expect("readable");
        for (at, line) in text.lines().enumerate() {
            // This checkout itself, and the places in which checkouts and homes are.
            let homes = ["home", "root", "Users"].map(|home| format!("/{home}/"));
            if line.contains(root.to_str().expect("text")) || homes.iter().any(|home| line.contains(home)) {
                faults.push(format!("{}:{}: {line}", path.display(), at + 1));
            }
        }
    }
    none(&faults);
}

#[test]
fn nobody_prints_past_the_report_and_only_main_ends_the_process() {
    let mut faults = Vec::new();
    for source in sources() {
        let code = source.code();
        for word in ["println!", "print!(", "eprint!("] {
            if code.contains(word) {
                faults.push(format!("src/{}: {word}", source.path));
            }
        }
        if source.path != "main.rs" && (code.contains("process::exit") || code.contains("process::abort")) {
            faults.push(format!("src/{}: ends the process", source.path));
        }
    }
    none(&faults);
}

#[test]
fn some_rooms_do_without() {
    let rules: [(&[&str], &[&str], &str); 4] = [
        (
            &["dataset", "wire/resp", "search"],
            &["Instant::now", "SystemTime", "std::fs", "std::net", "tokio"],
            "no I/O, no clock",
        ),
        (&["plan"], &["Instant::now", "SystemTime", "tokio"], "no clock"),
        (
            &["client", "driver", "record", "wire", "dataset", "plan", "target"],
            &["serde"],
            "only report and scenario know serde",
        ),
        (
            &["client", "driver", "record", "wire", "dataset", "plan"],
            &["std::io::stdout", "std::io::stderr"],
            "never prints",
        ),
    ];
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (rooms, words, rule) in rules {
            if rooms.iter().any(|room| source.path.starts_with(room)) {
                let code = source.code();
                let found = words.iter().filter(|word| code.contains(**word));
                faults.extend(found.map(|word| format!("src/{}: {word} ({rule})", source.path)));
            }
        }
    }
    none(&faults);
}
