//! Services by their names: a real agent, asked over UDP and TCP.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use serde_json::{Value, json};

use crate::end_to_end::support::*;

const WITHIN: Duration = Duration::from_secs(5);

fn question(name: &str, wanted: RecordType) -> Message {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), wanted));
    message
}

fn over_udp(server: SocketAddr, name: &str, wanted: RecordType) -> Message {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    let asked = question(name, wanted);
    socket.send_to(&asked.to_vec().unwrap(), server).unwrap();
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).unwrap();
    let answer = Message::from_vec(&bytes[..length]).unwrap();
    assert_eq!(answer.metadata.id, asked.metadata.id);
    answer
}

fn over_tcp(server: SocketAddr, name: &str, wanted: RecordType) -> Message {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let asked = question(name, wanted).to_vec().unwrap();
    stream.write_all(&(asked.len() as u16).to_be_bytes()).unwrap();
    stream.write_all(&asked).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes).unwrap();
    Message::from_vec(&bytes).unwrap()
}

fn ports(answer: &Message) -> BTreeSet<i64> {
    let port = |data: &RData| match data {
        RData::SRV(srv) => i64::from(srv.port),
        other => panic!("{other}"),
    };
    answer.answers.iter().map(|record| port(&record.data)).collect()
}

fn job_of(count: u64) -> Value {
    let mut job = staying("web");
    job["TaskGroups"][0]["Count"] = count.into();
    job["TaskGroups"][0]["Networks"] = json!([{"DynamicPorts": [{"Label": "http"}]}]);
    job["TaskGroups"][0]["Services"] =
        json!([{"Name": "web", "PortLabel": "http", "Provider": "nomad", "Tags": ["v1"]}]);
    job
}

#[test]
fn a_service_is_found_by_its_name_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let block = format!("client {{\n  dns {{\n    enabled = true\n    port = {port}\n  }}\n}}\n");
    let agent = AgentConfig::development(directory.path(), "dev").with(&block).start();
    agent.wait_for_a_ready_node();
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let absent = over_udp(server, "web.service.nomad.", RecordType::SRV);
    assert_eq!(absent.metadata.response_code, ResponseCode::NXDomain, "{absent:?}");
    assert_eq!(absent.authorities.len(), 1);

    agent.register(&job_of(2));
    let registered = || -> BTreeSet<i64> {
        let found = agent.get("/v1/service/web");
        found.as_array().unwrap().iter().map(|one| one["Port"].as_i64().unwrap()).collect()
    };
    until("both are registered", || registered().len() == 2);
    let names = ["web", "_web._tcp", "v1.web", "web.default.ns", "_web._tcp.default.ns"];
    for name in names.map(|name| format!("{name}.service.nomad.")) {
        until(&name, || ports(&over_udp(server, &name, RecordType::SRV)) == registered());
        let answer = over_tcp(server, &name, RecordType::SRV);
        assert_eq!(ports(&answer), registered());
        let RData::SRV(srv) = &answer.answers[0].data else { unreachable!() };
        let address = over_udp(server, &srv.target.to_ascii(), RecordType::A);
        assert_eq!(address.answers[0].data, answer.additionals[0].data);
    }
    let address = over_udp(server, "web.service.nomad.", RecordType::A);
    assert_eq!(address.answers.len(), 1, "both have one address: {address:?}");
    assert!(over_udp(server, "web.service.nomad.", RecordType::TXT).answers.is_empty());
    let code = |name: &str| over_udp(server, name, RecordType::A).metadata.response_code;
    assert_eq!(code("v2.web.service.nomad."), ResponseCode::NXDomain);
    assert_eq!(code("example.com."), ResponseCode::Refused);

    agent.register(&job_of(1));
    until("the one that has ended is not found", || {
        ports(&over_tcp(server, "web.service.nomad.", RecordType::SRV)).len() == 1
    });
    agent.run(&["job", "stop", "-detach", "web"]).expect_success();
    until("nothing is left", || code("web.service.nomad.") == ResponseCode::NXDomain);
}

/// A resolver that has one address for every name, over UDP and TCP, and says what it was asked.
fn resolver(port: u16) -> Arc<Mutex<Vec<String>>> {
    let (asked, udp) = (Arc::default(), UdpSocket::bind(("127.0.0.1", port)).unwrap());
    let tcp = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let answer = |bytes: &[u8], asked: &Mutex<Vec<String>>| {
        let question = Message::from_vec(bytes).unwrap();
        let name = question.queries[0].name().clone();
        asked.lock().unwrap().push(name.to_ascii());
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.queries = question.queries.clone();
        reply.answers.push(Record::from_rdata(name, 60, RData::A(A::new(203, 0, 113, 7))));
        reply.to_vec().unwrap()
    };
    let seen: Arc<Mutex<Vec<String>>> = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok((length, from)) = udp.recv_from(&mut bytes) {
            udp.send_to(&answer(&bytes[..length], &seen), from).unwrap();
        }
    });
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut bytes).unwrap();
            let reply = answer(&bytes, &seen);
            stream.write_all(&[&(reply.len() as u16).to_be_bytes()[..], &reply].concat()).unwrap();
        }
    });
    asked
}

#[test]
fn what_is_not_about_services_is_asked_of_a_resolver() {
    let directory = tempfile::tempdir().unwrap();
    let [port, own, nobody] = [(); 3].map(|()| free_port());
    let asked = resolver(own);
    // Nobody listens at the first.
    let resolvers = format!("[\"127.0.0.1:{nobody}\", \"127.0.0.1:{own}\"]");
    let block = format!(
        "client {{\n  dns {{\n    enabled = true\n    port = {port}\n    recursors = {resolvers}\n  }}\n}}\n"
    );
    let agent = AgentConfig::development(directory.path(), "dev").with(&block).start();
    agent.wait_for_a_ready_node();
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    for over in [over_udp, over_tcp] {
        let answer = over(server, "example.com.", RecordType::A);
        let [record] = answer.answers.as_slice() else { panic!("{answer:?}") };
        assert_eq!(record.data, RData::A(A::new(203, 0, 113, 7)));
    }
    let absent = over_udp(server, "web.service.nomad.", RecordType::A);
    assert_eq!(absent.metadata.response_code, ResponseCode::NXDomain);
    assert!(absent.metadata.recursion_available);
    assert_eq!(*asked.lock().unwrap(), ["example.com.", "example.com."]);

    let path = "/v1/metrics?format=prometheus";
    let counted = http::get(agent.config.http, path).unwrap().body;
    for (result, count) in [("forwarded", 2), ("absent", 1)] {
        let of = |line: &&str| {
            line.starts_with("sojourn_client_dns_queries_total{")
                && line.contains(&format!("result=\"{result}\""))
        };
        let line = counted.lines().find(of).unwrap_or_else(|| panic!("{result}: {counted}"));
        assert!(line.ends_with(&format!(" {count}")), "{line}");
    }
}

#[test]
fn services_are_found_with_access_control_on() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let block = format!(
        "acl {{\n  enabled = true\n}}\nclient {{\n  dns {{\n    enabled = true\n    port = {port}\n  }}\n}}\n"
    );
    let agent = AgentConfig::development(directory.path(), "dev").with(&block).start();
    let run = |token: &str, words: &[&str]| -> CommandOutput {
        agent.config.user(&sojourn()).env("NOMAD_TOKEN", token).args(words).output().unwrap().into()
    };
    let token = eventually("the cluster is bootstrapped", || {
        let made = run("", &["acl", "bootstrap", "-json"]);
        (made.code == 0).then(|| serde_json::from_str::<Value>(&made.stdout).unwrap())
    });
    let token = text(&token["SecretID"]);
    let file = directory.path().join("job.json");
    std::fs::write(&file, json!({"Job": job_of(1)}).to_string()).unwrap();
    run(&token, &["job", "run", "-detach", "-json", file.to_str().unwrap()]).expect_success();
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    until("the service is found", || {
        ports(&over_udp(server, "web.service.nomad.", RecordType::SRV)).len() == 1
    });
    // Who has no token finds it by its name all the same, and in no other way.
    assert_eq!(http::get(agent.config.http, "/v1/service/web").unwrap().status, 403);
}

#[test]
fn a_block_with_wrong_values_is_rejected_by_the_key() {
    let directory = tempfile::tempdir().unwrap();
    for (key, expected) in [
        ("address = \"nowhere\"", "dns.address: expected an IP address"),
        ("port = 0", "dns.port = 0: expected a port"),
        ("ttl = \"-1s\"", "dns.ttl"),
        ("domain = \"a..b\"", "dns.domain: expected a domain"),
        ("recursors = [\"dns.example\"]", "dns.recursors: expected an IP address"),
        (
            "port = 53\n    recursors = [\"127.0.0.1\"]",
            "dns.recursors: \"127.0.0.1\" is this listener itself",
        ),
        (
            "recursors = [\"::1\", \"::2\", \"::3\", \"::4\"]",
            "dns.recursors: expected at most 3 resolvers, got 4",
        ),
    ] {
        let block = format!("client {{\n  dns {{\n    enabled = true\n    {key}\n  }}\n}}\n");
        let output = AgentConfig::development(directory.path(), "dev").with(&block).fail();
        let text = output.expect_failure();
        assert!(text.contains(expected), "{key}: {text}");
    }
}
