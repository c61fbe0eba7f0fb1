//! Output of tasks on its way to sinks of every kind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};

use node::log_shipping::sink::SinkAddress;
use node::settings::NodeSettings;
use serde_json::{Value, json};

use crate::support::*;

/// What a sink has received, message by message.
type Received = Arc<Mutex<Vec<String>>>;

fn collect(mut next: impl FnMut() -> Option<String> + Send + 'static) -> Received {
    let received = Received::default();
    let shared = Arc::clone(&received);
    std::thread::spawn(move || {
        while let Some(message) = next() {
            shared.lock().unwrap().push(message);
        }
    });
    received
}

fn udp() -> (String, Received) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("syslog+udp://{}", socket.local_addr().unwrap());
    let mut buffer = [0; 65536];
    let next = move || {
        let length = socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    };
    (address, collect(next))
}

fn unix(path: &std::path::Path) -> (String, Received) {
    let socket = UnixDatagram::bind(path).unwrap();
    let mut buffer = [0; 65536];
    let next = move || {
        let length = socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    };
    (format!("syslog+unix:{}", path.display()), collect(next))
}

/// Each message comes behind its length.
fn tcp() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("syslog+tcp://{}", listener.local_addr().unwrap());
    let mut connection: Option<BufReader<std::net::TcpStream>> = None;
    let next = move || loop {
        let Some(open) = &mut connection else {
            connection = Some(BufReader::new(listener.accept().ok()?.0));
            continue;
        };
        let mut length = Vec::new();
        if open.read_until(b' ', &mut length).unwrap_or(0) == 0 {
            connection = None;
            continue;
        }
        let length: usize = std::str::from_utf8(&length).unwrap().trim_end().parse().unwrap();
        let mut message = vec![0; length];
        open.read_exact(&mut message).unwrap();
        return Some(String::from_utf8(message).unwrap());
    };
    (address, collect(next))
}

/// Answers 503 to the first request, and takes the others.
fn otlp() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("otlp+http://{}/v1/logs", listener.local_addr().unwrap());
    let mut answers = vec!["200 OK", "503 Service Unavailable"];
    let next = move || loop {
        let mut reader = BufReader::new(listener.accept().ok()?.0);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = if answers.len() > 1 { answers.pop().unwrap() } else { answers[0] };
        let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        reader.get_mut().write_all(text.as_bytes()).unwrap();
        if answer.starts_with("200") {
            return Some(String::from_utf8(body).unwrap());
        }
    };
    (address, collect(next))
}

fn with_sinks(base: &std::path::Path, sinks: &[(&str, String)]) -> NodeSettings {
    let sinks = sinks.iter().map(|(name, text)| (name.to_string(), SinkAddress::parse(text).unwrap()));
    NodeSettings { log_sinks: sinks.collect::<BTreeMap<_, _>>(), ..settings(base) }
}

fn shipped(name: &str, sink: &str, script: &str) -> Value {
    let mut task = shell(name, script);
    task["Meta"] = json!({"log_sink": sink});
    task
}

fn await_lines(what: &str, received: &Received, wanted: &[&str]) {
    let found = || {
        let received = received.lock().unwrap();
        (received.len() >= wanted.len()).then(|| received.clone())
    };
    let received = eventually(what, found);
    for (message, end) in received.iter().zip(wanted) {
        assert!(message.ends_with(end), "{what}: {received:?}");
    }
    assert_eq!(received.len(), wanted.len(), "{what}: {received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_reaches_every_sink_once_also_over_a_restart_of_the_agent() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let ((udp, by_udp), (tcp, by_tcp), (otlp, by_otlp)) = (udp(), tcp(), otlp());
    let (unix, by_unix) = unix(&base.path().join("log"));
    let file = base.path().join("shipped");
    let sinks = [
        ("udp", udp),
        ("tcp", tcp),
        ("unix", unix),
        ("otlp", otlp),
        ("file", format!("file:{}", file.display())),
    ];
    let script = "echo one; until [ -e local/go ]; do sleep 0.02; done; echo two; exec tail -f /dev/null";
    let names = ["udp", "tcp", "unix", "otlp", "file"];
    let tasks: Vec<Value> = names.iter().map(|name| shipped(name, name, script)).collect();
    servers.assign(alloc(1, "service", json!(tasks)));
    servers.assign(alloc(2, "batch", json!([shipped("t", "elsewhere", "true")])));
    let agent = start(with_sinks(base.path(), &sinks), &servers).await;
    await_lines("udp", &by_udp, &["] one"]);
    await_lines("tcp", &by_tcp, &["] one"]);
    await_lines("unix", &by_unix, &["] one"]);
    eventually("otlp", || (by_otlp.lock().unwrap().len() == 1).then_some(()));
    eventually("a file", || std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty()));

    let message = by_tcp.lock().unwrap()[0].clone();
    let head: Vec<&str> = message.split(' ').collect();
    assert_eq!((head[0], head[2], head[3], head[5]), ("<134>1", "alpha", "tcp", "stdout"), "{message}");
    assert!(message.contains(&format!("job=\"job\" group=\"g\" alloc=\"{}\"", alloc_id(1))), "{message}");
    let body: Value = serde_json::from_str(&by_otlp.lock().unwrap()[0]).unwrap();
    let sent = &body["resourceLogs"][0];
    assert_eq!(sent["scopeLogs"][0]["logRecords"][0]["body"]["stringValue"], "one");
    assert_eq!(
        sent["resource"]["attributes"][0],
        json!({"key": "service.name", "value": {"stringValue": "otlp"}})
    );

    let update = servers.await_status(&alloc_id(2), "failed");
    let events = &update.task_states["t"].events;
    let text = "log_sink \"elsewhere\" is none of this node's, which are: file, otlp, tcp, udp, unix";
    assert!(events.iter().any(|event| event.display_message.contains(text)), "{events:?}");

    // What is said while no agent runs is sent by the next one, and nothing twice.
    agent.shutdown().await;
    for name in names {
        let local = base.path().join("alloc").join(alloc_id(1)).join(name).join("local");
        std::fs::write(local.join("go"), "").unwrap();
        eventually("a second line", || {
            log(base.path(), 1, &format!("{name}.stdout.0")).contains("two").then_some(())
        });
    }
    let agent = start(with_sinks(base.path(), &sinks), &servers).await;
    await_lines("udp", &by_udp, &["] one", "] two"]);
    await_lines("tcp", &by_tcp, &["] one", "] two"]);
    await_lines("unix", &by_unix, &["] one", "] two"]);
    eventually("otlp", || (by_otlp.lock().unwrap().len() == 2).then_some(()));
    let lines = eventually("a file", || {
        let text = std::fs::read_to_string(&file).ok()?;
        (text.lines().count() == 2).then_some(text)
    });
    let second: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&second["line"], &second["task"], &second["stream"]),
        (&json!("two"), &json!("file"), &json!("stdout"))
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_is_away_stops_no_task_and_what_is_lost_is_said() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut task = shipped(
        "t",
        "away",
        "yes 0123456789012345678901234567890 | head -c 3145728; touch local/written; exec tail -f /dev/null",
    );
    task["LogConfig"] = json!({"MaxFiles": 1, "MaxFileSizeMB": 1});
    servers.assign(alloc(1, "service", json!([task])));
    let agent =
        start(with_sinks(base.path(), &[("away", format!("syslog+tcp://{address}"))]), &servers).await;
    let written = base.path().join("alloc").join(alloc_id(1)).join("t/local/written");
    eventually("the end of what it writes", || written.exists().then_some(()));
    // It comes back, and gets what is still there.
    let listener = TcpListener::bind(address).unwrap();
    let (found, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut received = String::new();
        let mut chunk = [0; 65536];
        let (mut stream, _) = listener.accept().unwrap();
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            received.push_str(&String::from_utf8_lossy(&chunk[..read]));
            if received.contains("] 0123456789012345678901234567890") {
                return found.send(());
            }
        }
        Ok(())
    });
    let said = servers.await_task(&alloc_id(1), "t", |task| {
        task.events
            .iter()
            .any(|event| event.display_message.contains("output was lost on the way to sink \"away\""))
    });
    drop(said);
    // What is lost may be said before the sink is found again.
    seen.recv_timeout(PATIENCE).expect("what is left comes");
    agent.shutdown().await;
}
