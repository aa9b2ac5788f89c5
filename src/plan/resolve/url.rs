//! URLs of servers: `redis://`, `rediss://` and `redis+unix://`, to and fro. No message repeats any part of a URL, since
//! what was meant as a password may stand anywhere in it.

use std::ops::Range;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::super::{Endpoint, Protocol, Secret, Tls, Transport};

const DEFAULT_PORT: u16 = 6379;
const SOCKET: &str = "redis+unix://:PASSWORD@/run/redis.sock?db=0";
const LONE_USER: &str = "a user without a password: a password alone is written redis://:PASSWORD@HOST, and a user who \
    needs none redis://USER:@HOST";
const SCHEMES: &str = "redis://HOST:PORT, rediss://HOST:PORT (TLS) or redis+unix:///PATH";
/// What stays as it is in a user name or a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'*');

const ENCODED_PATH: &AsciiSet = &ENCODED.remove(b'/');

/// Reads the URL of a server. TLS settings other than that there is TLS, and the protocol, are the caller's to set.
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn parse(text: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("no URL; write {SCHEMES}"))?;
    match scheme {
        "redis" | "rediss" => over_tcp(text, scheme == "rediss"),
        "redis+unix" | "unix" => over_unix(rest),
        "redis-cluster" | "redis-sentinel" | "rediss-cluster" | "rediss-sentinel" => {
            Err(format!("{scheme}:// is not available in this version; write {SCHEMES}"))
        }
        _ => Err(format!("no scheme of a Redis server; write {SCHEMES}")),
    }
}

fn over_tcp(text: &str, tls: bool) -> Result<Endpoint, String> {
    const ENCODE: &str =
        "write `/`, `@`, `:`, `#`, `?` and `%` in a user name or password as %2F, %40, %3A, %23, %3F and %25";
    let hint = |what: String| if text.contains('@') { format!("{what}; {ENCODE}") } else { what };
    let url = Url::parse(text).map_err(|error| hint(format!("no URL: {error}")))?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("no host; write redis://HOST:PORT")?;
    let host = decoded(host.trim_start_matches('[').trim_end_matches(']'))?;
    let port = url.port().unwrap_or(DEFAULT_PORT);
    if port == 0 {
        return Err("port 0 cannot be connected to".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(hint("nothing goes behind `?` or `#` here; `protocol` and `tls` are keys of [target]".into()));
    }
    let db = match url.path() {
        "" | "/" => 0,
        path => database(&path[1..]).map_err(hint)?,
    };
    if !url.username().is_empty() && password_at(text).is_none() {
        return Err(LONE_USER.into());
    }
    let (user, password) = credentials(url.username(), url.password())?;
    let tls = tls.then(Tls::default);
    Ok(Endpoint { transport: Transport::Tcp { host, port }, tls, user, password, db, protocol: Protocol::Resp2 })
}

/// `rest` is what follows the `://`.
fn over_unix(rest: &str) -> Result<Endpoint, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (user_info, path) = match login_before_path(rest) {
        Some(login) => (login, &rest[login.len() + 1..]),
        None => ("", rest),
    };
    if !path.starts_with('/') || path.len() < 2 {
        return Err(format!("no absolute path of a socket; write {SOCKET}, with three slashes where nobody logs in"));
    }
    let db = match query.split_once('=') {
        None if query.is_empty() => 0,
        Some(("db", number)) => database(number).map_err(|_| "`?db=` wants the number of a database, such as ?db=0")?,
        _ => return Err(format!("only `?db=N` may follow the path of a socket, a password goes before it: {SOCKET}")),
    };
    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None if user_info.is_empty() => ("", None),
        None => return Err(LONE_USER.into()),
    };
    let (user, password) = credentials(user, password)?;
    let transport = Transport::Unix { path: PathBuf::from(decoded(path)?) };
    Ok(Endpoint { transport, tls: None, user, password, db, protocol: Protocol::Resp2 })
}

/// The `user:password` before the path of a socket. A path may hold an `@`, but only a user may stand before the `/` that
/// begins it.
fn login_before_path(rest: &str) -> Option<&str> {
    rest.find("@/").filter(|_| !rest.starts_with('/')).map(|at| &rest[..at])
}

/// The bytes of `text`, a URL that [`parse`] takes, in which its password is written, if there is one.
pub fn password_at(text: &str) -> Option<Range<usize>> {
    let (scheme, rest) = text.split_once("://")?;
    let login = if scheme.ends_with("unix") {
        login_before_path(rest.split('?').next()?)?
    } else {
        let authority = rest.split(['/', '?', '#']).next()?;
        &authority[..authority.rfind('@')?]
    };
    let start = scheme.len() + "://".len();
    Some(start + login.find(':')? + 1..start + login.len())
}

/// A user with an empty password logs in with that, as `nopass` users do: to log in as somebody else instead would be
/// wrong. An empty password without a user is none.
fn credentials(user: &str, password: Option<&str>) -> Result<(Option<String>, Option<Secret>), String> {
    let user = Some(decoded(user)?).filter(|user| !user.is_empty());
    let password = decoded(password.unwrap_or_default())?;
    let password = (user.is_some() || !password.is_empty()).then(|| Secret::new(password));
    Ok((user, password))
}

fn decoded(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| "a %-escape in it is no UTF-8")?;
    Ok(text.into_owned())
}

fn database(number: &str) -> Result<u32, String> {
    match number.parse::<u32>() {
        Ok(db) if db <= i32::MAX as u32 && number.bytes().all(|b| b.is_ascii_digit()) => Ok(db),
        _ => Err("the number of a database is wanted there, such as /0".into()),
    }
}

/// `text` as it stands in a URL.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The URL that [`parse`] turns into `endpoint`, with `password` as it stands in URLs in the place of its own if it has one.
pub fn text(endpoint: &Endpoint, password: impl FnOnce(&Secret) -> String) -> String {
    let mut login = endpoint.user.as_deref().map(encoded).unwrap_or_default();
    match endpoint.password.as_ref() {
        Some(secret) if !secret.reveal().is_empty() => login.push_str(&format!(":{}", password(secret))),
        // The colon tells a user from a password that stands alone.
        _ if !login.is_empty() => login.push(':'),
        _ => {}
    }
    if !login.is_empty() {
        login.push('@');
    }
    match &endpoint.transport {
        Transport::Tcp { host, port } => {
            let scheme = if endpoint.tls.is_some() { "rediss" } else { "redis" };
            let host = if host.contains(':') { format!("[{host}]") } else { encoded(host) };
            format!("{scheme}://{login}{host}:{port}/{}", endpoint.db)
        }
        Transport::Unix { path } => {
            let path = utf8_percent_encode(&path.to_string_lossy(), ENCODED_PATH).to_string();
            format!("redis+unix://{login}{path}?db={}", endpoint.db)
        }
    }
}

impl Endpoint {
    /// Its URL with the password covered, for people.
    pub fn url_shown(&self) -> String {
        text(self, Secret::to_string)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(url: &str) -> String {
        match parse(url) {
            Err(what) => what,
            Ok(Endpoint { transport, tls, user, password, db, protocol: _ }) => {
                let way = match transport {
                    Transport::Tcp { host, port } => format!("{host} {port}"),
                    Transport::Unix { path } => path.display().to_string(),
                };
                let tls = if tls.is_some() { " tls" } else { "" };
                let user = user.map(|user| format!(" user={user}")).unwrap_or_default();
                let password = password.map(|secret| format!(" password={}", secret.reveal())).unwrap_or_default();
                format!("{way} db={db}{tls}{user}{password}")
            }
        }
    }

    #[test]
    fn urls_say_where_and_as_whom() {
        for (url, meaning) in [
            ("redis://127.0.0.1", "127.0.0.1 6379 db=0"),
            ("redis://example:7000/3", "example 7000 db=3"),
            ("redis://:secret@example", "example 6379 db=0 password=secret"),
            ("redis://me:se%40cr%3Aet@example/", "example 6379 db=0 user=me password=se@cr:et"),
            ("redis://me:@example", "example 6379 db=0 user=me password="),
            ("redis://:@example", "example 6379 db=0"),
            ("rediss://[::1]:6380/1", "::1 6380 db=1 tls"),
            ("redis+unix:///run/redis.sock", "/run/redis.sock db=0"),
            ("unix:///run/a%20b@c/redis.sock?db=2", "/run/a b@c/redis.sock db=2"),
            ("redis+unix://me:pw@/run/redis.sock?db=1", "/run/redis.sock db=1 user=me password=pw"),
            ("redis+unix://:pw@/run/redis.sock", "/run/redis.sock db=0 password=pw"),
        ] {
            assert_eq!(shown(url), meaning, "{url}");
        }
    }

    #[test]
    fn what_may_follow_a_socket_is_said() {
        insta::assert_snapshot!(shown("redis+unix:///run/redis.sock?password=x"), @"only `?db=N` may follow the path of a socket, a password goes before it: redis+unix://:PASSWORD@/run/redis.sock?db=0");
        insta::assert_snapshot!(shown("redis+unix:///run/redis.sock?db=x"), @"`?db=` wants the number of a database, such as ?db=0");
    }

    #[test]
    fn a_user_alone_is_mostly_a_password() {
        insta::assert_snapshot!(shown("redis://hunter2@example"), @"a user without a password: a password alone is written redis://:PASSWORD@HOST, and a user who needs none redis://USER:@HOST");
        assert_eq!(shown("redis+unix://hunter2@/run/redis.sock"), shown("redis://hunter2@example"));
        assert_eq!(
            parse("redis://me:@example").map(|endpoint| endpoint.url_shown()).as_deref(),
            Ok("redis://me:@example:6379/0")
        );
    }

    #[test]
    fn a_wrong_url_is_explained_without_its_password() {
        for url in [
            "127.0.0.1:6379",
            "http://hunter2@x",
            "redis://",
            "redis://:hunter2@",
            "redis://:hunter2/@host",
            "redis://:hunter2#@host",
            "redis://:hunter2@host:port",
            "redis://:hunter2@host:0",
            "redis://:hunter2@host/one",
            "redis://:hunter2@host/1?x=hunter2",
            "redis://:hunter2%ff@host",
            "redis://hunter2@host",
            "redis+unix://hunter2@/run/redis.sock",
            "redis://:hunter2",
            "redis://u:hunter2127.0.0.1",
            "redis-cluster://:hunter2@host",
            "redis+unix://:hunter2@run/redis.sock",
            "redis+unix:///run/redis.sock?password=hunter2",
        ] {
            let what = parse(url).expect_err(url);
            assert!(!what.contains("hunter2"), "{url}: {what}");
        }
    }

    proptest! {
        #[test]
        fn urls_come_back(user in "[a-z@:/ %é]{0,6}", password in "[a-z@:/?#%é]{0,6}", db in 0u32..20, unix: bool) {
            let user = Some(user).filter(|user| !user.is_empty());
            let password = (user.is_some() || !password.is_empty()).then(|| Secret::new(password));
            let transport = if unix {
                Transport::Unix { path: "/tmp/a b@c?#%.sock".into() }
            } else {
                Transport::Tcp { host: "::1".into(), port: 7000 }
            };
            let endpoint = Endpoint { transport, tls: None, user, password, db, protocol: Protocol::Resp2 };
            let url = text(&endpoint, |secret| encoded(secret.reveal()));
            let written = password_at(&url).map(|range| url[range].to_owned()).filter(|written| !written.is_empty());
            let password = endpoint.password.as_ref().map(Secret::reveal).filter(|password| !password.is_empty());
            prop_assert_eq!(written, password.map(encoded));
            let back = parse(&url).expect("a URL of our own");
            prop_assert_eq!(back.transport, endpoint.transport);
            prop_assert_eq!((back.user, back.db), (endpoint.user, endpoint.db));
            prop_assert_eq!(back.password.map(|s| s.reveal().to_owned()), endpoint.password.map(|s| s.reveal().to_owned()));
        }

        #[test]
        fn nothing_that_is_typed_panics(rest in ".{0,20}") {
            for scheme in ["", "redis://", "redis+unix://"] {
                let url = format!("{scheme}{rest}");
                let _ = (parse(&url), password_at(&url));
            }
        }
    }
}
