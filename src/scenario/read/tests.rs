//! The page about scenarios names the keys that are read, and no others.

use std::collections::BTreeSet;
use std::path::Path;

use crate::scenario::Draft;

/// Every table that is read, and a file with a key in it that nobody knows.
const TABLES: [(&str, &str); 13] = [
    ("", "zzzz = 1"),
    ("target", "[target]\nzzzz = 1"),
    ("target.spawn", "[target.spawn]\nzzzz = 1"),
    ("target.tls", "[target.tls]\nzzzz = 1"),
    ("clients", "[clients]\nzzzz = 1"),
    ("timeouts", "[timeouts]\nzzzz = 1"),
    ("dataset", "[dataset]\nzzzz = 1"),
    ("dataset.value", "[dataset.value]\nzzzz = 1"),
    ("phase", "[[phase]]\nzzzz = 1"),
    ("case", "[[case]]\nzzzz = 1"),
    ("limits", "[limits]\nzzzz = 1"),
    ("sample", "[sample]\nzzzz = 1"),
    ("search", "[search]\nzzzz = 1"),
];

/// The keys that the reader lists when it meets one that it does not know, with their tables.
fn known() -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path: &Path = &folder.path().join("x.toml");
    let mut known = BTreeSet::new();
    for (table, text) in TABLES {
        std::fs::write(path, text).expect("a file");
        let draft = Draft::open(path, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        let (cases, mut faults) = draft.cases();
        faults.gather(&cases.iter().map(|case| (None, &[][..], &case.faults)).collect::<Vec<_>>());
        let shown = faults.render(false, 10_000);
        let list = shown.split("unknown key; there are ").nth(1).and_then(|rest| rest.lines().next());
        let names = list.unwrap_or_else(|| panic!("no list of keys: {shown}")).split('`').skip(1).step_by(2);
        known.extend(names.map(|name| if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }));
    }
    known
}

#[test]
fn the_page_about_scenarios_names_every_key() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/README.md");
    let page = std::fs::read_to_string(page).expect("the page");
    // Tables of keys have four columns; the key stands in the first.
    let rows = page.lines().filter(|line| line.matches(" | ").count() == 3);
    let named: BTreeSet<String> =
        rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect();
    assert_eq!(named, known());
}
