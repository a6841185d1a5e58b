//! Tests of metrics over HTTP, and of their table in the manual.

use crate::common::volume;
use frit_core::{Hints, Sink};
use frit_engine::InOrder;
use frit_serve::ctl::{ControlTarget, DeviceTarget, VolumeInfo};
use frit_serve::metrics::{MetricsAddress, MetricsOptions, MetricsServer, Stat};
use frit_serve::pace::{PaceMeter, PacedBackend, PendingReply};
use frit_serve::{Device, DeviceOptions, Logger};
use frit_volume::{OpenOptions, Volume};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts a metrics server of a volume that has served some requests, on a free port of 127.0.0.1.
fn server() -> (tempfile::TempDir, MetricsServer) {
    server_with(|options| options)
}

/// Starts a metrics server with other options.
fn server_with(more: impl FnOnce(MetricsOptions) -> MetricsOptions) -> (tempfile::TempDir, MetricsServer) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    volume(&path).close().unwrap();
    let mut modelled = None;
    let volume = Volume::open_with(&path, &OpenOptions::default(), |hardware| {
        modelled = Some(hardware.clone());
        Sink::new(InOrder::new(hardware))
    });
    let meter = Arc::new(PaceMeter::default());
    let now = Instant::now();
    meter.admitted(PendingReply { op: 0, admitted: now, due: now });
    meter.replied(now, now);
    let about = VolumeInfo { stack: "test".into(), pace: Some(meter), ..VolumeInfo::default() };
    let backend = PacedBackend::new(volume.unwrap(), modelled.unwrap(), Arc::default());
    let device = Device::new(Box::new(backend), DeviceOptions::default());
    let _ = device.lock().write(0, &[1; 8192], Hints::NONE).unwrap();
    let _ = device.lock().write(1 << 20, &[1; 512], Hints::NONE).unwrap();
    let _ = device.lock().read(0, &mut [0; 4096]).unwrap();
    let control_target: Arc<dyn ControlTarget> = Arc::new(DeviceTarget::new(device, about));
    let options = more(MetricsOptions::at("0".parse().unwrap()));
    (dir, MetricsServer::start(options, &control_target, &Logger::none()).unwrap())
}

fn connect(server: &MetricsServer) -> TcpStream {
    match server.address() {
        MetricsAddress::Tcp(address) => TcpStream::connect(address).unwrap(),
        MetricsAddress::Unix(path) => panic!("{} is not TCP", path.display()),
    }
}

fn ask(server: &MetricsServer, request: &str) -> (String, String) {
    let mut stream = connect(server);
    // A server that refuses a request may close the connection before everything is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or("").into(), body.into())
}

fn get(server: &MetricsServer, path: &str) -> (String, String) {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

#[test]
fn pages_are_served_and_nothing_else() {
    let (_dir, server) = server();
    assert!(server.address().is_local());
    let (status, body) = get(&server, "/metrics");
    assert!(status.contains("200") && body.ends_with("# EOF\n"), "{status}");
    let (status, body) = get(&server, "/visible?x=1");
    let stat: Stat = serde_json::from_str(&body).unwrap();
    assert!(status.contains("200") && stat.op("write").unwrap().bytes == 8704);
    assert!(get(&server, "/").1.contains("/metrics"));
    assert!(get(&server, "/etc/passwd").0.contains("404"));
    assert!(ask(&server, "POST /metrics HTTP/1.1\r\n\r\n").0.contains("405"));
    assert!(ask(&server, "nonsense\r\n\r\n").0.contains("400"));
    for end in ["\n", "\r\n"] {
        let request = format!("GET / HTTP/1.1\nHost: localhost{end}{end}");
        assert!(ask(&server, &request).0.contains("200"), "{end:?}");
    }
    assert_eq!(ask(&server, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").1, "");
    let refused = ask(&server, "HEAD /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(refused.0.contains("421") && refused.1.is_empty(), "{refused:?}");
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let refused = ask(&server, &long).0;
    assert!(refused.is_empty() || refused.contains("431"), "{refused}");
}

#[test]
fn half_requests_keep_nobody_out() {
    let (_dir, server) = server();
    let mut halves: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut half = connect(&server);
            half.write_all(b"GET /metrics HTTP/1.1\r\nHos").unwrap();
            half
        })
        .collect();
    let mut stream = connect(&server);
    // Incomplete requests time out after 5 s. The shorter timeout here proves that the answer does
    // not wait for that.
    stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).expect("an answer despite incomplete requests");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    // The last connections were not evicted, and can complete their requests.
    let last = halves.last_mut().unwrap();
    last.write_all(b"t: localhost\r\n\r\n").unwrap();
    last.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}

/// Runs a function as another user of this machine, in a thread of its own. Returns `None` without root.
fn as_user<T: Send>(user: u32, f: impl FnOnce() -> T + Send) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: acting as another user needs root");
        return None;
    }
    let run = || {
        let user = rustix::thread::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        f()
    };
    Some(std::thread::scope(|scope| scope.spawn(run).join().unwrap()))
}

#[test]
fn hosts_of_others_are_refused() {
    let (_dir, server) = server_with(|o| MetricsOptions { hosts: vec!["box.example".parse().unwrap()], ..o });
    let asks = |host: &str| ask(&server, &format!("GET /visible HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let (status, why) = asks("evil.example");
    assert!(status.contains("421") && why.contains("--metrics-host evil.example"), "{status} {why}");
    assert!(asks("evil.example:80\r\nHost: localhost").0.contains("400"));
    let MetricsAddress::Tcp(address) = server.address() else { panic!("not TCP") };
    for host in [address.to_string(), "localhost".into(), "box.example:99".into()] {
        assert!(asks(&host).0.contains("200"), "{host}");
    }
    assert!(ask(&server, "GET /visible HTTP/1.1\r\n\r\n").0.contains("400"), "no host");
    assert!(ask(&server, "GET /metrics HTTP/1.0\r\n\r\n").0.contains("200"), "HTTP/1.0 needs none");
    assert!(ask(&server, "GET http://evil.example/metrics HTTP/1.0\r\n\r\n").0.contains("421"));
}

#[test]
fn other_users_read_counters_and_no_placement() {
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let address: MetricsAddress = address.parse().unwrap();
        if let MetricsAddress::Tcp(tcp) = &address
            && std::net::TcpListener::bind(tcp).is_err()
        {
            eprintln!("skipped: this machine has no {address}");
            continue;
        }
        let (_dir, server) = server_with(|o| MetricsOptions { address: address.clone(), ..o });
        assert!(get(&server, "/visible").0.contains("200"), "the owner");
        let Some((visible, metrics)) =
            as_user(65534, || (get(&server, "/visible"), get(&server, "/metrics")))
        else {
            return;
        };
        assert!(visible.0.contains("403") && visible.1.contains("user 65534 may not"), "{visible:?}");
        assert!(visible.1.contains("--metrics-read-all"), "{visible:?}");
        assert!(metrics.0.contains("200") && metrics.1.ends_with("# EOF\n"), "{metrics:?}");
        let (_dir, server) = server_with(|o| MetricsOptions { address, read_all: true, ..o });
        assert!(as_user(65534, || get(&server, "/visible")).unwrap().0.contains("200"));
    }
}

#[test]
fn a_socket_has_the_rights_of_its_mode() {
    use std::os::unix::net::UnixStream;
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = place.path().join("metrics.sock");
    let visible = || {
        let mut stream = UnixStream::connect(&path).ok()?;
        stream.write_all(b"GET /visible HTTP/1.1\r\nHost: any\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Some(answer[9..12].to_owned())
    };
    for (read_all, others) in [(false, None), (true, Some("200".into()))] {
        let address = MetricsAddress::Unix(path.clone());
        let (_dir, server) = server_with(|o| MetricsOptions { address, read_all, ..o });
        assert_eq!(visible(), Some("200".into()));
        if let Some(seen) = as_user(65534, visible) {
            assert_eq!(seen, others);
        }
        drop(server);
        assert!(!path.exists(), "the server removes it");
    }
}

/// Another user opens as many connections as possible, which send half a request, or read no answer.
#[test]
fn another_user_keeps_neither_the_owner_nor_third_users_out() {
    let (_dir, server) = server();
    let half = b"GET /metrics HTTP/1.1\r\nHos";
    let whole = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let attack = || {
        let open = |sent: &[u8]| {
            let mut stream = connect(&server);
            let _ = stream.write_all(sent);
            stream
        };
        (0..200).map(|i| open(if i % 2 == 0 { half } else { whole })).collect::<Vec<_>>()
    };
    // A client that came before keeps its connection.
    let mut waiting = connect(&server);
    waiting.write_all(half).unwrap();
    let Some(held) = as_user(65534, attack) else { return };
    let begun = Instant::now();
    waiting.write_all(b"t: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    waiting.read_exact(&mut answer).expect("not evicted for another user");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert!(get(&server, "/visible").0.contains("200"));
    assert!(as_user(65533, || get(&server, "/metrics")).unwrap().0.contains("200"));
    assert!(begun.elapsed() < Duration::from_secs(4), "without a wait for timeouts");
    drop(held);
}

#[test]
fn a_request_that_arrives_byte_by_byte_ends_after_its_time() {
    let (_dir, server) = server();
    let mut slow = connect(&server);
    let begun = Instant::now();
    let request = "GET /metrics HTTP/1.1\r\nX: ".bytes().chain(std::iter::repeat(b'x'));
    for byte in request.take(200) {
        if slow.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = slow.read_to_end(&mut Vec::new());
    assert!(begun.elapsed() < Duration::from_secs(9), "each byte must not begin the time anew");
}

#[test]
fn values_are_those_of_the_device() {
    let (_dir, server) = server();
    let (_, body) = get(&server, "/metrics");
    for line in [
        "frit_client_requests_total{op=\"write\"} 2",
        "frit_client_data_bytes_total{op=\"write\"} 8704",
        "frit_client_latency_seconds_count{op=\"read\"} 1",
        "frit_client_latency_seconds_bucket{le=\"+Inf\",op=\"read\"} 1",
        "frit_volume_poisoned_flag 0",
        "frit_channel_busy_units{medium=\"pcm\",channel=\"1\"} 0.0",
    ] {
        assert!(body.lines().any(|l| l == line), "{line} is not in\n{body}");
    }
    assert!(body.contains(
        "frit_media_commands_total{medium=\"nand\",kind=\"nand\",op=\"nand-program\",cause=\"host\"}"
    ));
}

/// Returns name, type, unit and help of each metric of the text.
fn described(text: &str) -> BTreeMap<String, [String; 3]> {
    let mut all: BTreeMap<String, [String; 3]> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [_, what, name, value] = words[..] else { continue };
        let at = match what {
            "TYPE" => 0,
            "UNIT" => 1,
            "HELP" => 2,
            _ => continue,
        };
        all.entry(name.into()).or_default()[at] = value.trim_end_matches('.').into();
    }
    all
}

#[test]
fn the_manual_lists_all_metrics() {
    let (_dir, server) = server();
    let metrics = described(&get(&server, "/metrics").1);
    assert!(metrics.len() > 40, "{}", metrics.len());
    let table: String = metrics
        .iter()
        .map(|(name, [kind, unit, help])| format!("| `{name}` | {kind} | {unit} | {help} |\n"))
        .collect();
    for (name, [kind, unit, help]) in &metrics {
        assert!(!help.is_empty(), "{name} has no help");
        assert!(!unit.is_empty() || kind == "info", "{name} has no unit");
        assert!(name.ends_with(unit.as_str()), "{name} does not end with its unit {unit}");
    }
    let manual = include_str!("../../../../docs/guide/control.md");
    assert!(manual.contains(&table), "docs/guide/control.md should have this table:\n{table}");
}
