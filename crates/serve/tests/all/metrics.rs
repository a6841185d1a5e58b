//! Tests of metrics over HTTP, and of their table in the manual.

use crate::common::volume;
use frit_core::Hints;
use frit_engine::InOrder;
use frit_serve::ctl::{ControlTarget, DeviceTarget, VolumeInfo};
use frit_serve::metrics::{MetricsServer, Stat};
use frit_serve::pace::{PaceMeter, PacedBackend, PendingReply};
use frit_serve::{Device, DeviceOptions, Logger};
use frit_volume::{OpenOptions, Volume};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts a metrics server of a volume that has served some requests.
fn server() -> (tempfile::TempDir, MetricsServer) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    volume(&path).close().unwrap();
    let mut modelled = None;
    let volume = Volume::open_with(&path, &OpenOptions::default(), |hardware| {
        modelled = Some(hardware.clone());
        InOrder::new(hardware)
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
    (dir, MetricsServer::start(0, &control_target, &Logger::none()).unwrap())
}

fn ask(server: &MetricsServer, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // A server that refuses a request may close the connection before everything is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or("").into(), body.into())
}

fn get(server: &MetricsServer, path: &str) -> (String, String) {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

#[test]
fn pages_are_served_and_nothing_else() {
    let (_dir, server) = server();
    assert!(server.address().ip().is_loopback());
    let (status, body) = get(&server, "/metrics");
    assert!(status.contains("200") && body.ends_with("# EOF\n"), "{status}");
    let (status, body) = get(&server, "/visible?x=1");
    let stat: Stat = serde_json::from_str(&body).unwrap();
    assert!(status.contains("200") && stat.op("write").unwrap().bytes == 8704);
    assert!(get(&server, "/").1.contains("/metrics"));
    assert!(get(&server, "/etc/passwd").0.contains("404"));
    assert!(ask(&server, "POST /metrics HTTP/1.1\r\n\r\n").0.contains("405"));
    assert!(ask(&server, "nonsense\r\n\r\n").0.contains("400"));
    assert_eq!(ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n").1, "");
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let refused = ask(&server, &long).0;
    assert!(refused.is_empty() || refused.contains("431"), "{refused}");
}

#[test]
fn half_requests_keep_nobody_out() {
    let (_dir, server) = server();
    let mut halves: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut half = TcpStream::connect(server.address()).unwrap();
            half.write_all(b"GET /metrics HTTP/1.1\r\nHos").unwrap();
            half
        })
        .collect();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // Incomplete requests time out after 5 s. The shorter timeout here proves that the answer does
    // not wait for that.
    stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).expect("an answer despite incomplete requests");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    // The last connections were not evicted, and can complete their requests.
    let last = halves.last_mut().unwrap();
    last.write_all(b"t: x\r\n\r\n").unwrap();
    last.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
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
