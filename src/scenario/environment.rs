//! `${VAR}` and `${VAR:-default}` in strings; `$${` stands for a plain `${`.

use std::ops::Range;

/// A string with its variables filled in.
#[derive(Debug, PartialEq, Eq)]
pub struct Filled {
    /// The text.
    pub text: String,
    /// What of it came from the environment, and must not be shown; ascending.
    pub variables: Vec<Variable>,
}

/// A variable in a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The bytes of the filled text that it stands for; empty if its value is.
    pub bytes: Range<usize>,
    /// As it was written: `${NAME}` or `${NAME:-default}`.
    pub written: String,
    /// Whether a default is written there, which may be a secret.
    pub has_default: bool,
}

impl Variable {
    /// `NAME`
    pub fn name(&self) -> &str {
        let name = self.written.trim_start_matches("${").trim_end_matches('}');
        name.split_once(":-").map_or(name, |(name, _)| name)
    }
}

/// Why a string could not be filled in, and which bytes of it are to blame.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfilled {
    /// Bytes of the string.
    pub at: Range<usize>,
    /// What is wrong, and how to mend it.
    pub what: String,
}

/// Fills in the variables of `raw` through `lookup`.
///
/// # Errors
/// A variable that is neither set nor has a default, or a `${` that is no variable.
pub fn fill(raw: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Filled, Unfilled> {
    let mut filled = Filled { text: String::with_capacity(raw.len()), variables: Vec::new() };
    let mut rest = raw;
    while let Some(next) = rest.chars().next() {
        let at = raw.len() - rest.len();
        if let Some(after) = rest.strip_prefix("$${") {
            filled.text.push_str("${");
            rest = after;
        } else if let Some(inside) = rest.strip_prefix("${") {
            let fail = |len, what: String| Err(Unfilled { at: at..at + len, what });
            let Some(end) = inside.find('}') else {
                return fail(2, "a `${` without its `}`; write `$${` for a `${` of your own".into());
            };
            let (name, default) = match inside[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (&inside[..end], None),
            };
            if !is_name(name) {
                return fail(end + 3, "no name of a variable; write `${NAME}` or `${NAME:-default}`".into());
            }
            // As in a shell, `:-` stands in for an empty variable too.
            let set = lookup(name).filter(|value| default.is_none() || !value.is_empty());
            let start = filled.text.len();
            match (set, default) {
                (Some(value), _) => filled.text.push_str(&value),
                (None, Some(default)) => filled.text.push_str(default),
                (None, None) => {
                    let what =
                        format!("`{name}` is not set in the environment; set it, or write `${{{name}:-default}}`");
                    return fail(end + 3, what);
                }
            }
            filled.variables.push(Variable {
                bytes: start..filled.text.len(),
                written: raw[at..at + end + 3].to_owned(),
                has_default: default.is_some_and(|default| !default.is_empty()),
            });
            rest = &inside[end + 1..];
        } else {
            filled.text.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    Ok(filled)
}

/// The text that [`fill`] turns into `text`.
pub fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(raw: &str) -> Result<String, String> {
        let lookup = |name: &str| match name {
            "HOST" => Some("example".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        fill(raw, &lookup).map(|filled| filled.text).map_err(|why| format!("{:?} {}", why.at, why.what))
    }

    #[test]
    fn variables_come_from_the_environment_or_from_their_default() {
        for (raw, text) in [
            ("redis://${HOST}:1", "redis://example:1"),
            ("${NONE:-a}${HOST:-b}${EMPTY:-c}${EMPTY}", "aexamplec"),
            ("${NONE:-}", ""),
            ("$HOST $ {HOST} $", "$HOST $ {HOST} $"),
            ("$${HOST} $$${HOST}", "${HOST} $${HOST}"),
        ] {
            assert_eq!(filled(raw).as_deref(), Ok(text), "{raw}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        insta::assert_snapshot!(filled("a${NONE}b").unwrap_err(), @"1..8 `NONE` is not set in the environment; set it, or write `${NONE:-default}`");
        insta::assert_snapshot!(filled("${HOST").unwrap_err(), @"0..2 a `${` without its `}`; write `$${` for a `${` of your own");
        insta::assert_snapshot!(filled("x${2}").unwrap_err(), @"1..5 no name of a variable; write `${NAME}` or `${NAME:-default}`");
    }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back(text in "[$\\{\\}a]{0,12}") {
            prop_assert_eq!(filled(&escaped(&text)), Ok(text));
        }
    }
}
