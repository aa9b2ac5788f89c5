//! Reads the tree into a [`Scenario`]: which keys there are, and of which type.

use super::fault::Faults;
use super::search::search;
use super::section::{self, Section, Trouble, array, integer, text, wrong};
use super::source::Written;
use super::tree::{Content, Entry, Node, Table};
use super::written::{
    Clients, Cpus, Dataset, Depth, Fields, GeneratedValue, Key, LimitTable, Limits, Phase, Sample, Scenario,
    SizeWeight, Spawn, Target, Text, Timeouts, Tls, Value,
};

/// Reads the whole file. `stem`, `folder` and `notes` are the caller's to fill in.
pub fn scenario(root: &Table, faults: &mut Faults) -> Scenario {
    let mut top = Section::new("", Some(root), faults);
    let scenario = Scenario {
        stem: String::new(),
        folder: Default::default(),
        name: top.text("name"),
        description: top.text("description"),
        seed: top.integer("seed"),
        repeat: top.integer("repeat"),
        between: top.text("between"),
        target: target(top.entry("target").map(|entry| &entry.node), top.faults()),
        clients: clients(top.entry("clients").map(|entry| &entry.node), top.faults()),
        timeouts: timeouts(top.entry("timeouts").map(|entry| &entry.node), top.faults()),
        dataset: dataset(top.entry("dataset").map(|entry| &entry.node), top.faults()),
        phases: phases(&mut top),
        limits: limits(top.entry("limits").map(|entry| &entry.node), top.faults()),
        sample: sample(top.entry("sample").map(|entry| &entry.node), top.faults()),
        search: search(top.entry("search").map(|entry| &entry.node), top.faults()),
        notes: Vec::new(),
    };
    // Taken apart by `cases`; here they only have to be known.
    let _ = (top.entry("case"), top.entry("ladder"));
    top.finish(&[]);
    scenario
}

fn target(node: Option<&Node>, faults: &mut Faults) -> Target {
    let mut section = Section::of("target", node, faults);
    let target = Target {
        span: node.map(|node| node.span),
        url: section.text("url"),
        spawn: table(&mut section, "spawn", spawn),
        tls: table(&mut section, "tls", tls),
        protocol: section.integer("protocol"),
        flush: section.text("flush"),
        cleanup: section.text("cleanup"),
    };
    section.finish(&[]);
    target
}

/// Asks `section` for a table and reads it.
fn table<T>(section: &mut Section<'_, '_>, name: &'static str, read: fn(&Node, &mut Faults) -> T) -> Key<T> {
    let key = section.key(name, |node| match node.content {
        Content::Table(_) => Ok(node),
        _ => Err(wrong(node, &format!("a table, `{name} = {{ … }}`,"))),
    });
    key.map(|node| read(node, section.faults()))
}

fn spawn(node: &Node, faults: &mut Faults) -> Spawn {
    let mut section = Section::of("target.spawn", Some(node), faults);
    let spawn = Spawn {
        program: section.text("program"),
        cpus: section.key("cpus", cpus),
        cpu_quota: section.percent("cpu_quota"),
        maxmemory: section.size("maxmemory"),
        maxclients: section.integer("maxclients"),
        tcp_backlog: section.integer("tcp_backlog"),
        password: section.text("password"),
        args: section.key("args", |node| array(node, "an array of strings", text)),
    };
    section.finish(&[]);
    spawn
}

fn tls(node: &Node, faults: &mut Faults) -> Tls {
    let mut section = Section::of("target.tls", Some(node), faults);
    let tls = Tls {
        ca: section.text("ca"),
        cert: section.text("cert"),
        key: section.text("key"),
        server_name: section.text("server_name"),
        insecure: section.boolean("insecure"),
    };
    section.finish(&[]);
    tls
}

fn cpus(node: &Node) -> Result<Cpus, Trouble> {
    match node.as_text() {
        Some(text) if text.value == "auto" => Ok(Cpus::Auto),
        _ => array(node, "a list of cores such as `[0, 1]`, or \"auto\",", integer).map(Cpus::List),
    }
}

fn clients(node: Option<&Node>, faults: &mut Faults) -> Clients {
    let mut section = Section::of("clients", node, faults);
    let clients = Clients {
        count: section.integer("count"),
        connections: section.integer("connections"),
        driver: section.text("driver"),
        stagger: section.duration("stagger"),
        threads: section.integer("threads"),
        cpus: section.key("cpus", cpus),
        spin: section.boolean("spin"),
    };
    section.finish(&[]);
    clients
}

fn timeouts(node: Option<&Node>, faults: &mut Faults) -> Timeouts {
    let mut section = Section::of("timeouts", node, faults);
    let timeouts = Timeouts {
        connect: section.duration("connect"),
        setup: section.duration("setup"),
        command: section.duration("command"),
        silence: section.duration("silence"),
    };
    section.finish(&[]);
    timeouts
}

fn dataset(node: Option<&Node>, faults: &mut Faults) -> Dataset {
    let mut section = Section::of("dataset", node, faults);
    let dataset = Dataset {
        keys: section.integer("keys"),
        key: section.text("key"),
        first: section.integer("first"),
        value: value(&mut section, "value"),
        fields: fields(&mut section),
        expire: section.duration("expire"),
        expire_as: section.text("expire_as"),
        order: section.text("order"),
    };
    section.finish(&[]);
    dataset
}

fn value(section: &mut Section<'_, '_>, name: &'static str) -> Key<Value> {
    let key = section.key(name, value_node);
    key.map(|(node, text)| value_of(node, text, section.faults()))
}

/// A number of fields, or a table of names with their values.
fn fields(section: &mut Section<'_, '_>) -> Key<Fields> {
    let key = section.key("fields", |node| match &node.content {
        Content::Integer(count) => Ok(Err(*count)),
        Content::Text(text) if text.from_environment => integer(node).map(Err),
        Content::Table(table) => Ok(Ok(table)),
        _ => Err(wrong(node, "a number of fields, or a table such as `{ foo = \"1\" }`,")),
    });
    key.map(|fields| match fields {
        Err(count) => Fields::Count(count),
        Ok(table) => {
            let field = |entry: &Entry| {
                let name = Written::new(entry.name.clone(), entry.at);
                let value = match value_node(&entry.node) {
                    _ if matches!(entry.node.content, Content::Faulty) => Key::Faulty,
                    Ok((node, text)) => Key::Written(Written::new(value_of(node, text, section.faults()), node.span)),
                    Err((span, what)) => {
                        section.faults().at(span, what);
                        Key::Faulty
                    }
                };
                (name, value)
            };
            Fields::Named(table.entries.iter().map(field).collect())
        }
    })
}

/// A value that is a string, or a table.
fn value_node(node: &Node) -> Result<(&Node, Option<Text>), Trouble> {
    match &node.content {
        Content::Table(_) => Ok((node, None)),
        _ => match text(node) {
            Ok(text) => Ok((node, Some(text))),
            Err(_) => Err(wrong(node, "\"uuid\", a template, a constant, or a table such as `{ size = \"1kB\" }`,")),
        },
    }
}

fn value_of(node: &Node, text: Option<Text>, faults: &mut Faults) -> Value {
    match text {
        Some(text) => Value::Text(text),
        None => Value::Generated(generated(node, faults)),
    }
}

fn generated(node: &Node, faults: &mut Faults) -> GeneratedValue {
    let mut section = Section::of("dataset.value", Some(node), faults);
    let value = GeneratedValue {
        random: section.size("random"),
        size: section.size("size"),
        sizes: section.key("sizes", |node| array(node, "an array such as `[[\"100B\", 9], [\"10kB\", 1]]`", weighted)),
        alphabet: section.text("alphabet"),
    };
    section.finish(&[]);
    value
}

/// `["100B", 9]`
fn weighted(node: &Node) -> Result<SizeWeight, Trouble> {
    match &node.content {
        Content::Array(pair) if pair.len() == 2 => Ok(SizeWeight {
            size: Written::new(section::size(&pair[0])?, pair[0].span),
            weight: Written::new(integer(&pair[1])?, pair[1].span),
        }),
        _ => Err(wrong(node, "a size and its weight, such as `[\"100B\", 9]`,")),
    }
}

fn phases(top: &mut Section<'_, '_>) -> Key<Vec<Phase>> {
    let nodes = top.key("phase", |node| match &node.content {
        Content::Array(nodes) => Ok(nodes.as_slice()),
        Content::Table(_) => Err((node.span, "phases are a list: write `[[phase]]`".to_owned())),
        _ => Err(wrong(node, "a list of phases, `[[phase]]`,")),
    });
    match nodes {
        Key::Written(Written { value: [], .. }) => Key::Absent,
        nodes => nodes.map(|nodes| nodes.iter().map(|node| phase(node, top.faults())).collect()),
    }
}

fn phase(node: &Node, faults: &mut Faults) -> Phase {
    let mut section = Section::of("phase", Some(node), faults);
    let phase = Phase {
        span: node.span,
        name: section.text("name"),
        run: section.text("run"),
        keys: section.integer("keys"),
        pipeline: section.key("pipeline", |node| match (&node.content, node.as_text()) {
            (Content::Integer(window), _) => Ok(Depth::Window(*window)),
            (_, Some(text)) if text.value == "all" => Ok(Depth::All),
            (_, Some(text)) if text.from_environment => integer(node).map(Depth::Window),
            _ => Err(wrong(node, "a number of requests, or \"all\",")),
        }),
        rate: section.rate("rate"),
        arrivals: section.text("arrivals"),
        duration: section.duration("duration"),
        reads: section.part("reads"),
        pick: section.text("pick"),
        times: section.integer("times"),
        warmup: section.integer("warmup"),
        concurrency: section.integer("concurrency"),
        pool: section.boolean("pool"),
        batch: section.integer("batch"),
        replies: section.text("replies"),
        close: section.text("close"),
    };
    section.finish(&[]);
    phase
}

fn limits(node: Option<&Node>, faults: &mut Faults) -> Limits {
    let mut section = Section::of("limits", node, faults);
    let run = limit_keys(&mut section);
    let mut phases = Vec::new();
    let mut strangers = Table::default();
    for entry in section.others() {
        if matches!(entry.node.content, Content::Table(_)) {
            let mut inner = Section::of("limits.PHASE", Some(&entry.node), section.faults());
            let table = limit_keys(&mut inner);
            inner.finish(&[]);
            phases.push((Written::new(entry.name.clone(), entry.at), table));
        } else {
            strangers.entries.push(entry.clone());
        }
    }
    // Only what is no table can be a mistyped key; a table is a phase, known or not.
    let mut rest = Section::new("limits", Some(&strangers), section.faults());
    limit_keys(&mut rest);
    rest.finish(&[]);
    Limits { run, phases }
}

fn limit_keys(section: &mut Section<'_, '_>) -> LimitTable {
    LimitTable {
        timeouts: section.integer("timeouts"),
        errors: section.integer("errors"),
        lost: section.integer("lost"),
        absent: section.integer("absent"),
        mismatched: section.integer("mismatched"),
        p50: section.latency("p50"),
        p90: section.latency("p90"),
        p99: section.latency("p99"),
        p999: section.latency("p999"),
        max: section.latency("max"),
    }
}

fn sample(node: Option<&Node>, faults: &mut Faults) -> Sample {
    let mut section = Section::of("sample", node, faults);
    let sample = Sample { interval: section.duration("interval") };
    section.finish(&[]);
    sample
}

#[cfg(test)]
mod tests;
