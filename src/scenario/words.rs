//! Names that were mistyped, and names that belong to a later version.

/// The name among `names` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.8;
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Names of keys: `a`, `b` and `c`, each in backticks.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    enumerated('`', names)
}

/// Words that a key may have: "a", "b" and "c", each in quotes as they are written.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    enumerated('"', words)
}

fn enumerated<'a>(mark: char, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("{mark}{name}{mark}")).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Keys by the table that will hold them one day. The top level is "".
const LATER: [(&str, &[&str]); 1] = [("sample", &["node_exporter"])];

/// Whether `name` is a key of `table` in a later version only.
pub fn comes_later(table: &str, name: &str) -> bool {
    LATER.iter().any(|(later, names)| *later == table && names.contains(&name))
}
