use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid, getpgrp};

use super::*;
use crate::plan::{Protocol, Secret};
use crate::target::tests::redis;
use crate::wire::resp::Value;
use crate::wire::testserver::TIMEOUTS;

async fn start(spec: &Spawn) -> (SpawnedServer, Control) {
    SpawnedServer::start(spec, &TIMEOUTS).await.expect("redis-server is installed (`apt-get install redis-server`)")
}

async fn error(spec: &Spawn) -> String {
    match SpawnedServer::start(spec, &TIMEOUTS).await {
        Err(error) => error.to_string(),
        Ok((server, _)) => panic!("it runs: {server:?}"),
    }
}

fn process(pid: u32) -> Pid {
    Pid::from_raw(pid as i32)
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn setting(control: &Control, name: &str) -> String {
    let reply = control.call(&[b"CONFIG", b"GET", name.as_bytes()], TIMEOUTS.command).await.expect("a reply");
    let Value::Array(pair) = reply else { panic!("{reply:?}") };
    pair[1].text().expect("text").into_owned()
}

#[tokio::test]
async fn a_server_is_started_as_the_scenario_says() {
    let secret = "s3cret \"of\" ours\\";
    let spec = Spawn {
        cpus: Some(vec![0]),
        maxmemory: Some(64 << 20),
        maxclients: Some(77),
        tcp_backlog: Some(99),
        password: Some(Secret::new(secret)),
        args: ["--appendonly", "yes"].map(str::to_owned).to_vec(),
        protocol: Protocol::Resp3,
        ..redis()
    };
    let (server, control) = start(&spec).await;
    let folder = server.folder.path().to_owned();
    for (name, value) in [
        ("maxmemory", "67108864"),
        ("maxclients", "77"),
        ("tcp-backlog", "99"),
        ("requirepass", secret),
        ("appendonly", "yes"),
        ("save", ""),
        ("bind", "127.0.0.1"),
        ("dir", folder.to_str().expect("text")),
    ] {
        assert_eq!(setting(&control, name).await, value, "{name}");
    }
    let mut one = CpuSet::new();
    one.set(0).expect("core 0");
    let main = process(server.pid());
    assert_eq!(sched_getaffinity(main), Ok(one));
    assert_eq!(getpgid(Some(main)), Ok(main));
    assert_ne!(getpgid(Some(main)), Ok(getpgrp()));
    let public = |file: &str| fs::read(format!("/proc/{}/{file}", server.pid())).expect("ours");
    for file in ["cmdline", "environ"] {
        assert!(!String::from_utf8_lossy(&public(file)).contains("s3cret"), "{file}");
    }
    assert_eq!(fs::metadata(&folder).expect("it is there").permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(folder.join("server.conf")).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(!format!("{server:?}{control:?}").contains("s3cret"));

    let pid = server.pid();
    server.stop().await;
    assert!(!runs(pid) && !folder.exists());
}

#[tokio::test]
async fn it_ends_with_its_owner_even_if_that_panics_or_it_is_stopped() {
    let (server, _control) = start(&redis()).await;
    let (pid, folder) = (server.pid(), server.folder.path().to_owned());
    kill(process(pid), Signal::SIGSTOP).expect("ours");
    let panicked = std::thread::spawn(move || {
        let _owned = server;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(!runs(pid) && !folder.exists());
}

#[tokio::test]
async fn what_will_not_end_is_killed() {
    let script = "#!/bin/sh\ntrap '' TERM\nredis-server \"$@\" &\nwait\nsleep 60\n";
    let folder = tempfile::tempdir().expect("a folder");
    let program = executable(&folder, script);
    let (server, _control) = start(&Spawn { program, ..redis() }).await;
    // The wrapper's child is the server.
    let (leader, pid) = (server.group.pid(), server.pid());
    assert_ne!(leader, pid);
    drop(server);
    assert!(!runs(leader));
    // Nobody here can wait for a grandchild, so that its end may be seen a little later, or as a zombie.
    let alive = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let deadline = Instant::now() + Duration::from_secs(5);
    while alive() && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    assert!(!alive());
}

#[tokio::test]
async fn a_server_that_dies_is_noticed() {
    let (server, control) = start(&redis()).await;
    assert_eq!(server.ended(), None);
    kill(process(server.pid()), Signal::SIGKILL).expect("ours");
    assert!(control.call(&[b"PING"], TIMEOUTS.command).await.is_err());
    let deadline = Instant::now() + Duration::from_secs(5);
    while server.ended().is_none() && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.ended().as_deref(), Some("SIGKILL"));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let text = error(&Spawn { program: "no-such-server".to_owned(), ..redis() }).await;
    assert_eq!(text, "`no-such-server` is not there: is it on PATH?");
    assert!(advice("redis-server").contains("apt-get install redis-server"));
    let text = error(&Spawn { args: vec!["--appendonly".to_owned(), "perhaps".to_owned()], ..redis() }).await;
    assert!(text.contains("ended before it had answered (exit code 1)") && text.contains("appendonly"), "{text}");
    let text = error(&Spawn { program: "/etc/hostname".to_owned(), ..redis() }).await;
    assert!(text.starts_with("`/etc/hostname` cannot be started: "), "{text}");
    let text = error(&Spawn { cpus: Some(vec![1000]), ..redis() }).await;
    assert!(text.starts_with("`redis-server` cannot be pinned to the cores [1000]: "), "{text}");
}

#[tokio::test]
async fn a_log_that_quotes_the_password_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = executable(&folder, "#!/bin/sh\ncat \"$1\"\nexit 3\n");
    let text = error(&Spawn { program, password: Some(Secret::new("s3cret!")), ..redis() }).await;
    assert!(text.contains("(exit code 3)") && text.contains("requirepass ***"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_port_taken_meanwhile_is_no_reason_to_give_up() {
    let folder = tempfile::tempdir().expect("a folder");
    // Fails once as redis-server does, then is redis-server.
    let mark = folder.path().join("mark");
    let script = format!(
        "#!/bin/sh\nif [ ! -e {0} ]; then touch {0}; echo 'bind: Address already in use'; exit 1; fi\nexec redis-server \"$@\"\n",
        mark.display()
    );
    let (server, _control) = start(&Spawn { program: executable(&folder, &script), ..redis() }).await;
    assert!(mark.exists());
    server.stop().await;
}

/// Writes a script through a child, since a file that this process has open for writing while another test forks
/// cannot be executed (ETXTBSY).
fn executable(folder: &tempfile::TempDir, script: &str) -> String {
    let path = folder.path().join("program");
    let mut writer = Command::new("sh");
    writer.arg("-c").arg("printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"").arg("sh").arg(script).arg(&path);
    assert!(writer.status().expect("a shell").success());
    path.to_str().expect("text").to_owned()
}
