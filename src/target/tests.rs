use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use crate::plan::{Cleanup, Flush, Protocol, Spawn, Tls};
use crate::wire::testserver::{TIMEOUTS, TestServer, endpoint, free_port, login};

pub(super) fn redis() -> Spawn {
    Spawn {
        program: "redis-server".to_owned(),
        cpus: None,
        cpu_quota: None,
        maxmemory: None,
        maxclients: None,
        tcp_backlog: None,
        password: None,
        args: Vec::new(),
        protocol: Protocol::Resp2,
    }
}

fn remote(endpoint: Endpoint) -> TargetPlan {
    TargetPlan { server: Server::Remote(endpoint), flush: Flush::Never, cleanup: Cleanup::Keep }
}

async fn reach(endpoint: Endpoint) -> Target {
    Target::prepare(&remote(endpoint), &TIMEOUTS).await.expect("reached")
}

#[tokio::test]
async fn a_spawned_target_answers_and_knows_itself() {
    let spawn = Spawn { cpus: Some(vec![0]), maxmemory: Some(50 << 20), ..redis() };
    let plan = TargetPlan { server: Server::Spawned(spawn), ..remote(endpoint_nowhere()) };
    let target = Target::prepare(&plan, &TIMEOUTS).await.expect("redis-server is installed");
    assert!(target.spawned());
    let Transport::Tcp { port, .. } = target.endpoint.transport else { panic!("{target:?}") };
    let Facts { server, version, run_id, mode, dbsize, used_memory, config, warnings, .. } = &target.facts;
    let version = version.as_deref().expect("redis tells");
    assert_eq!((server.as_str(), mode.as_deref()), ("redis", Some("standalone")));
    assert!(run_id.as_ref().is_some_and(|id| id.len() == 40) && used_memory.is_some());
    assert_eq!((*dbsize, config.maxmemory), (Some(0), Some(50 << 20)));
    assert_eq!(config.maxmemory_policy.as_deref(), Some("noeviction"));
    assert!(config.maxclients.is_some() && config.tcp_backlog.is_some() && config.io_threads == Some(1));
    assert_eq!((config.save.as_deref(), config.appendonly.as_deref()), (Some(""), Some("no")));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(target.describe(), format!("redis {version} 127.0.0.1:{port} (spawned, core 0)"));
    assert_eq!(target.local_pid(), target.facts.process_id);
    target.dialer.dial().await.expect("admitted");
    assert_eq!(target.stop().await, None);
}

#[tokio::test]
async fn a_spawned_server_that_died_says_how() {
    let plan = TargetPlan { server: Server::Spawned(redis()), ..remote(endpoint_nowhere()) };
    let target = Target::prepare(&plan, &TIMEOUTS).await.expect("redis-server is installed");
    let server = target.server.as_ref().expect("spawned");
    kill(Pid::from_raw(server.pid() as i32), Signal::SIGKILL).expect("ours");
    let deadline = Instant::now() + Duration::from_secs(5);
    while server.ended().is_none() && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    let died = target.stop().await.expect("it died");
    assert!(died.starts_with("the server ended (SIGKILL); the end of its log:\n"), "{died}");
    assert!(died.contains("eady to accept connections"), "{died}");
}

#[tokio::test]
async fn a_remote_target_is_described_and_found_on_this_machine() {
    let server = TestServer::start(&[]);
    let target = reach(Endpoint { db: 2, ..login(server.unix(), None, "pw") }).await;
    assert!(!target.spawned());
    let socket = server.socket();
    let version = target.facts.version.clone().expect("redis tells");
    assert_eq!(target.describe(), format!("redis {version} {}, db 2 (unix socket)", socket.display()));
    assert_eq!(target.local_pid(), Some(server.pid()));
    assert_eq!(target.facts.warnings.len(), 1, "the password was not needed: {:?}", target.facts.warnings);
    target.stop().await;
    reach(server.unix()).await;
}

#[tokio::test]
async fn what_a_server_forbids_is_said() {
    let user = ["--user", "narrow", "on", ">pw", "~*", "+@all", "-info", "-config", "-dbsize", "-client"];
    let server = TestServer::start(&user);
    let target = reach(login(server.unix(), Some("narrow"), "pw")).await;
    assert_eq!(target.facts.title(), "server");
    assert_eq!(target.facts.config, facts::ServerConfig::default());
    assert_eq!(target.facts.dbsize, None);
    for word in ["CONFIG", "DBSIZE"] {
        assert!(target.facts.warnings.iter().any(|text| text.starts_with(word)), "{word}");
    }
    // INFO alone still tells the most.
    let server = TestServer::start(&["--rename-command", "CONFIG", "", "--maxmemory", "50mb"]);
    let target = reach(server.unix()).await;
    assert_eq!(target.facts.config.maxmemory, Some(50 << 20));
    assert_eq!(target.facts.warnings.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_loading_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = tokio::spawn(async move {
        let loading = &b"+OK\r\n:1\r\n-LOADING Redis is loading the dataset in memory\r\n"[..];
        for script in [loading, loading, b"+OK\r\n:3\r\n+PONG\r\n"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.write_all(script).await.expect("a connection");
        }
    });
    let endpoint = endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port });
    let dialer = Dialer::new(&endpoint, &TIMEOUTS).expect("no TLS");
    assert_eq!(wait_until_ready(&dialer).await.expect("ready").client_id, Some(3));
    server.await.expect("no panic");
}

#[tokio::test]
async fn the_scenario_is_told_from_the_server() {
    let tls = Tls { ca: Some("/no/such/file".into()), ..Tls::default() };
    let error = prepare_error(Endpoint { tls: Some(tls), ..endpoint_nowhere() }).await;
    assert!(error.is_usage() && error.to_string().starts_with("target.tls.ca: cannot read /no/such/file"), "{error}");
    let error = prepare_error(endpoint_nowhere()).await;
    assert!(!error.is_usage());
    assert!(error.to_string().ends_with("connection refused"), "{error}");
    let spawn = Spawn { program: "no-such-server".to_owned(), ..redis() };
    let plan = TargetPlan { server: Server::Spawned(spawn), ..remote(endpoint_nowhere()) };
    assert!(!Target::prepare(&plan, &TIMEOUTS).await.expect_err("no such program").is_usage());
}

async fn prepare_error(endpoint: Endpoint) -> TargetError {
    Target::prepare(&remote(endpoint), &TIMEOUTS).await.expect_err("not reached")
}

fn endpoint_nowhere() -> Endpoint {
    endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port: free_port() })
}
