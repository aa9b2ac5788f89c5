//! Scenarios and command lines that are wrong: exit 2, told where and how to mend it, and nothing is touched.

use std::fs;

use crate::run::{Keyswarm, Outcome};
use crate::server::{RedisServer, free_port};

/// A scenario that is right, with a place for everything that can be wrong.
const RIGHT: &str = r#"name = "bad"
seed = 42

[target]
url = "redis://127.0.0.1:PORT/0"

[clients]
count = 2
driver = "socket"

[timeouts]
command = "5s"

[dataset]
keys = 100
key = "uuid"
value = "uuid"

[[phase]]
name = "write"
run = "write"
pipeline = 64

[[phase]]
name = "verify"
run = "verify"
pipeline = 64

[limits]
timeouts = 0
"#;

/// One way to be wrong: what is put in place of what, and the words that the message must have. The first line of the
/// replacement that is not right is the one to be named, found by its text.
struct Wrong(&'static str, &'static str, &'static str, &'static [&'static str]);

const WRONG: &[Wrong] = &[
    Wrong("seed = 42", "seed = ", "seed = ", &[]),
    Wrong("seed = 42", "seed = 42\nseed = 43", "seed = 43", &["seed"]),
    Wrong("seed = 42", "seed = -1", "seed = -1", &["-1"]),
    Wrong("seed = 42", "seed = \"many\"", "seed = \"many\"", &["many"]),
    Wrong("seed = 42", "sede = 42", "sede = 42", &["sede", "`seed`"]),
    Wrong("[clients]", "[client]", "[client]", &["client", "`clients`"]),
    Wrong("count = 2", "cuont = 6", "cuont = 6", &["cuont", "`count`"]),
    Wrong("count = 2", "count = 0", "count = 0", &["count", "1"]),
    Wrong("count = 2", "count = -3", "count = -3", &["-3"]),
    Wrong("count = 2", "count = 2.5", "count = 2.5", &["2.5"]),
    Wrong("count = 2", "count = 2\nconnections = 0", "connections = 0", &["connections"]),
    Wrong("count = 2", "count = 2\nthreads = 0", "threads = 0", &["threads"]),
    Wrong("count = 2", "count = 2\ncpus = [99999]", "cpus = [99999]", &["99999"]),
    Wrong(
        "driver = \"socket\"",
        "driver = \"sockets\"",
        "driver = \"sockets\"",
        &["sockets", "\"socket\"", "\"fred\""],
    ),
    Wrong("command = \"5s\"", "command = 5", "command = 5", &["\"5s\""]),
    Wrong("command = \"5s\"", "command = \"5 parsecs\"", "5 parsecs", &["parsecs"]),
    Wrong("command = \"5s\"", "command = \"0s\"", "command = \"0s\"", &["command"]),
    Wrong("command = \"5s\"", "command = \"-5s\"", "command = \"-5s\"", &["-5s"]),
    Wrong("keys = 100", "keys = 0", "keys = 0", &["keys"]),
    Wrong("keys = 100", "keys = \"all\"", "keys = \"all\"", &["all"]),
    Wrong("keys = 100", "keys = 9_000_000_000_000_000_000", "keys = 9", &["keys"]),
    Wrong("key = \"uuid\"", "key = \"same\"", "key = \"same\"", &["{n}"]),
    Wrong("key = \"uuid\"", "key = \"k{i}\"", "key = \"k{i}\"", &["{n}", "{client}"]),
    Wrong("key = \"uuid\"", "key = \"k{m}\"", "key = \"k{m}\"", &["{m}", "{n}"]),
    Wrong("key = \"uuid\"", "key = \"k{n\"", "key = \"k{n\"", &["{", "}"]),
    Wrong("key = \"uuid\"", "key = \"{i}{client}\"", "key = \"{i}{client}\"", &["`{i}`", "`{client}`", "touch"]),
    Wrong("key = \"uuid\"", "key = \"\"", "key = \"\"", &["key"]),
    Wrong("value = \"uuid\"", "value = { size = \"1 kilo\" }", "1 kilo", &["kilo"]),
    Wrong("value = \"uuid\"", "value = { sise = \"1kB\" }", "sise", &["sise", "`size`"]),
    Wrong("value = \"uuid\"", "value = { size = \"1kB\", random = \"1kB\" }", "random", &["random"]),
    Wrong("value = \"uuid\"", "value = { sizes = [] }", "sizes = []", &["sizes"]),
    Wrong("run = \"write\"", "run = \"wirte\"", "run = \"wirte\"", &["wirte", "write"]),
    Wrong("run = \"write\"\npipeline = 64", "run = \"write\"\npipeline = 0", "pipeline = 0", &["pipeline"]),
    Wrong("run = \"write\"\npipeline = 64", "run = \"write\"\npipeline = \"some\"", "\"some\"", &["some", "all"]),
    Wrong("run = \"write\"\npipeline = 64", "run = \"wait\"", "run = \"wait\"", &["duration"]),
    Wrong(
        "run = \"write\"\npipeline = 64",
        "run = \"wait\"\nduration = \"1s\"\npipeline = 3",
        "pipeline = 3",
        &["pipeline"],
    ),
    Wrong("name = \"verify\"", "name = \"write\"", "name = \"write\"", &["write"]),
    Wrong("url = \"redis://127", "url = \"http://127", "http://", &["http", "redis://"]),
    Wrong("url = \"redis://127.0.0.1:PORT/0\"", "url = \"redis://127.0.0.1:PORT/zero\"", "/zero", &["zero"]),
    Wrong("url = \"redis://127.0.0.1:PORT/0\"", "url = \"redis://127.0.0.1:99999/0\"", "99999", &["port"]),
    Wrong("url = \"redis://127.0.0.1:PORT/0\"", "url = \"redis://\"", "url = ", &["host"]),
    Wrong("url = \"redis://127.0.0.1:PORT/0\"", "flush = \"never\"", "[target]", &["url", "spawn"]),
    Wrong("[clients]", "spawn = { program = \"redis-server\" }\n[clients]", "spawn = ", &["url", "spawn"]),
    Wrong("[clients]", "flush = \"always\"\n[clients]", "flush = \"always\"", &["always", "before"]),
    Wrong("[clients]", "protocol = 4\n[clients]", "protocol = 4", &["2", "3"]),
    Wrong("timeouts = 0", "timeouts = -1", "timeouts = -1", &["-1"]),
    Wrong("timeouts = 0", "timeout = 0", "timeout = 0", &["`timeouts`"]),
    Wrong("timeouts = 0", "p99 = 50", "p99 = 50", &["\"50ms\""]),
    Wrong("timeouts = 0", "p99 = \"fast\"", "p99 = \"fast\"", &["fast", "ms"]),
    Wrong("timeouts = 0", "timeouts = 0\n[limits.veryfi]\np99 = \"1s\"", "[limits.veryfi]", &["veryfi", "verify"]),
    Wrong("name = \"bad\"", "name = \"a/../b\"", "a/../b", &["name"]),
    Wrong("name = \"bad\"", "name = \"${KEYSWARM_TEST_NEVER_SET}\"", "${KEY", &["KEYSWARM_TEST_NEVER_SET"]),
];

fn line_of(text: &str, file: &str) -> usize {
    // The last one: a name that is given twice is wrong at its second place.
    1 + file.lines().collect::<Vec<_>>().iter().rposition(|line| line.contains(text)).expect("the text is in the file")
}

/// The line is named as `scenario.toml:8:3`, or stands with its number before it.
fn names_line(stderr: &str, line: usize) -> bool {
    let number = line.to_string();
    let in_margin = stderr.lines().any(|shown| {
        let shown = shown.trim_start_matches([' ', '│', '|', '>', '×']);
        shown.strip_prefix(&number).is_some_and(|rest| rest.trim_start().starts_with(['│', '|', '·']))
    });
    in_margin || stderr.contains(&format!(":{number}:")) || stderr.contains(&format!("line {number}"))
}

#[test]
fn every_wrong_scenario_is_told_where_and_how_to_mend_it() {
    let server = RedisServer::start(&[]);
    let right = RIGHT.replace("127.0.0.1:PORT", server.url().trim_start_matches("redis://").trim_end_matches("/0"));
    Keyswarm::on_file("check", &right).finish().expect(0);
    let before = server.info("stats")["total_connections_received"].clone();

    let mut faults = Vec::new();
    for Wrong(from, to, text, words) in WRONG {
        let port = server.url().rsplit([':', '/']).nth(1).expect("a port").to_owned();
        let (from, to) = (from.replace("PORT", &port), to.replace("PORT", &port));
        assert!(right.contains(&from), "{from} is not in the right scenario");
        let file = right.replacen(&from, &to, 1);
        for command in ["run", "check"] {
            let outcome = Keyswarm::on_file(command, &file).finish();
            let mut wanting: Vec<String> =
                words.iter().filter(|word| !outcome.stderr.contains(*word)).map(|word| format!("no {word}")).collect();
            if !names_line(&outcome.stderr, line_of(text, &file)) {
                wanting.push(format!("line {} is not named", line_of(text, &file)));
            }
            if outcome.code != 2 || !outcome.stdout.is_empty() || outcome.results().is_some() {
                wanting.push(format!("exit {}, or output where none belongs", outcome.code));
            }
            if !wanting.is_empty() {
                faults.push(format!("--- {command}: {to}\n{}\n{}", wanting.join("\n"), outcome.stderr));
            }
        }
    }
    assert!(faults.is_empty(), "{} wrong scenarios are not told well:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(server.info("stats")["total_connections_received"], before, "no server is touched");
}

#[test]
fn all_errors_of_a_file_are_told_together() {
    let file = RIGHT
        .replace("PORT", "6379")
        .replace("count = 2", "cuont = 2")
        .replace("command = \"5s\"", "command = 5")
        .replace("key = \"uuid\"", "key = \"same\"");
    let outcome = Keyswarm::run_file(&file).finish().expect(2);
    for word in ["cuont", "\"5s\"", "{n}", "3 errors"] {
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    }
}

/// Calls that are wrong whatever the scenario says.
#[test]
fn wrong_command_lines_are_usage_errors() {
    let file = RIGHT.replace("PORT", &free_port().to_string());
    let on_file = |args: &[&str]| Keyswarm::on_file("run", &file).args(args).finish();
    let told = |outcome: Outcome, word: &str| {
        let outcome = outcome.expect(2);
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    };
    told(Keyswarm::new(&["chek"]).finish(), "'check'");
    told(Keyswarm::new(&["run"]).finish(), "SCENARIO");
    told(Keyswarm::new(&["run", "nowhere.toml"]).finish(), "nowhere.toml");
    told(Keyswarm::new(&["run", "."]).finish(), ".");
    told(on_file(&["--sed", "3"]), "--seed");
    told(on_file(&["--seed", "three"]), "three");
    told(on_file(&["--target", "127.0.0.1:6379"]), "redis://");
    told(on_file(&["--set", "clients.count"]), "clients.count");
    told(on_file(&["--set", "clients.cuont=3"]), "count");
    told(on_file(&["--set", "phase.wirte.pipeline=3"]), "wirte");
    told(on_file(&["--set", "clients.count=0"]), "count");
    told(on_file(&["--set", "clients.count=2"]), "clients.count");
    told(on_file(&["--out", "scenario.toml"]), "scenario.toml");
    told(on_file(&["--json", "no/such/folder/result.json"]), "no/such/folder");
}

#[test]
fn bytes_that_are_no_text_are_no_scenario() {
    let call = Keyswarm::on_file("run", "");
    let path = call.path("scenario.toml");
    fs::write(&path, b"name = \"\xff\xfe\"\n").expect("written");
    let outcome = call.finish().expect(2);
    assert!(outcome.stderr.contains("UTF-8"), "{outcome}");
}

#[test]
fn an_empty_file_names_what_is_missing() {
    let outcome = Keyswarm::run_file("").finish().expect(2);
    assert!(outcome.stderr.contains("phase"), "{outcome}");
}

#[test]
fn more_sockets_than_the_system_allows_are_refused() {
    let file = RIGHT.replace("PORT", &free_port().to_string());
    let too_many = ["--set", "clients.count=60000", "--set", "clients.connections=50000"];
    let outcomes = ["run", "check"].map(|command| Keyswarm::on_file(command, &file).args(&too_many).finish().expect(2));
    for outcome in &outcomes {
        assert!(outcome.stderr.contains("file descriptors") && outcome.stderr.contains("help:"), "{outcome}");
        assert!(outcome.stdout.is_empty(), "{outcome}");
    }
    assert_eq!(outcomes[0].stderr, outcomes[1].stderr);
}
