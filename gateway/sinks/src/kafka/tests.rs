use base::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::wire::{Reader, Writer};
use super::*;

const TOPIC: &str = "sojourn.events";

fn event() -> Outgoing {
    let body =
        "{\"id\":\"13.0@9f3c2a71\",\"data\":{\"Topic\":\"Job\",\"Key\":\"web\",\"Namespace\":\"default\"}}";
    Outgoing {
        id: "13.0@9f3c2a71".into(),
        body: body.into(),
        time: Time(1_500_000_000),
        ..Outgoing::default()
    }
}

fn to(address: &str, rules: &AddressRules) -> Kafka {
    Kafka::new(address, TOPIC, false, Duration::from_secs(5), rules)
}

fn secret(pairs: &[(&str, &str)]) -> Items {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// What a broker was asked: the number of the request, and what follows its header.
type Asked = (i16, Vec<u8>);

/// A broker that answers each request as it is told, and closes the connection instead if that is nothing.
async fn broker(
    answer: impl Fn(i16, &[u8]) -> Option<Vec<u8>> + Send + Sync + Clone + 'static,
) -> (String, mpsc::UnboundedReceiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (said, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer.clone(), said.clone()));
        }
    });
    (address, asked)
}

async fn serve(
    mut stream: TcpStream,
    answer: impl Fn(i16, &[u8]) -> Option<Vec<u8>>,
    said: mpsc::UnboundedSender<Asked>,
) {
    while let Ok(length) = stream.read_i32().await {
        let mut request = vec![0; length as usize];
        stream.read_exact(&mut request).await.unwrap();
        let mut read = Reader(&request);
        let (key, _version, correlation) = (read.i16().unwrap(), read.i16().unwrap(), read.i32().unwrap());
        assert_eq!(read.text().unwrap(), "sojourn");
        let _nobody_asks = said.send((key, read.0.to_vec()));
        let Some(answer) = answer(key, read.0) else { return };
        let mut whole = Writer::default();
        whole.bytes(&[&correlation.to_be_bytes(), answer.as_slice()].concat());
        stream.write_all(&whole.0).await.unwrap();
    }
}

/// No error, and every request in versions 0 to 9.
fn versions() -> Vec<u8> {
    let mut answer = Writer::default();
    answer.put(&[0, 0]);
    answer.put(&5_i32.to_be_bytes());
    for key in [0_i16, 3, 17, 18, 36] {
        answer.put(&[key.to_be_bytes(), [0, 0], [0, 9]].concat());
    }
    answer.0
}

/// One broker, number 7, which leads both partitions of the topic.
fn metadata(host: &str, port: i32, code: i16) -> Vec<u8> {
    let mut answer = Writer::default();
    answer.put(&1_i32.to_be_bytes());
    answer.put(&7_i32.to_be_bytes());
    answer.text(host);
    answer.put(&port.to_be_bytes());
    answer.put(&(-1_i16).to_be_bytes());
    answer.put(&7_i32.to_be_bytes());
    answer.put(&1_i32.to_be_bytes());
    answer.put(&code.to_be_bytes());
    answer.text(TOPIC);
    answer.put(&[0]);
    answer.put(&2_i32.to_be_bytes());
    for partition in [1_i32, 0] {
        answer.put(&9_i16.to_be_bytes());
        answer.put(&[partition.to_be_bytes(), 7_i32.to_be_bytes()].concat());
        answer.put(&[1_i32.to_be_bytes(), 7_i32.to_be_bytes(), 0_i32.to_be_bytes()].concat());
    }
    answer.0
}

fn produced(partition: i32, code: i16) -> Vec<u8> {
    let mut answer = Writer::default();
    answer.put(&1_i32.to_be_bytes());
    answer.text(TOPIC);
    answer.put(&1_i32.to_be_bytes());
    answer.put(&partition.to_be_bytes());
    answer.put(&code.to_be_bytes());
    answer.put(&[0; 20]);
    answer.0
}

fn partition_of(mut produce: &[u8]) -> i32 {
    // What comes before the topics, and how many there are.
    produce = &produce[12..];
    let mut read = Reader(produce);
    assert_eq!((read.text().unwrap().as_str(), read.i32().unwrap()), (TOPIC, 1));
    read.i32().unwrap()
}

/// A broker that sends everybody to another one, which takes records with these codes, and refuses all after them.
async fn cluster(codes: &[i16]) -> (String, mpsc::UnboundedReceiver<Asked>) {
    let codes = std::sync::Arc::new(std::sync::Mutex::new(codes.to_vec()));
    let (leader, asked) = broker(move |key, body| {
        Some(match key {
            18 => versions(),
            0 => {
                let mut codes = codes.lock().unwrap();
                produced(partition_of(body), if codes.is_empty() { return None } else { codes.remove(0) })
            }
            other => panic!("the leader was asked {other}"),
        })
    })
    .await;
    let port = leader.rsplit_once(':').unwrap().1.parse().unwrap();
    let (address, _) = broker(move |key, _| {
        Some(match key {
            18 => versions(),
            3 => metadata("127.0.0.1", port, 0),
            other => panic!("who leads nothing was asked {other}"),
        })
    })
    .await;
    (address, asked)
}

#[tokio::test]
async fn an_event_has_arrived_when_the_leader_of_its_partition_says_so() {
    let (address, mut asked) = cluster(&[0, 0, 6, 10, 29]).await;
    // The first of these is nobody.
    let mut kafka = to(&format!("127.0.0.1:1,{address}"), &AddressRules::default());
    assert_eq!(kafka.deliver(&mut vec![event()], &Items::new()).await, Ok(()));
    assert_eq!(kafka.deliver(&mut vec![event()], &Items::new()).await, Ok(()));
    let later = kafka.deliver(&mut vec![event()], &Items::new()).await;
    assert!(
        matches!(&later, Err(Undelivered::Later(why)) if why.contains("another broker leads it")),
        "{later:?}"
    );
    let never = kafka.deliver(&mut vec![event()], &Items::new()).await;
    assert!(matches!(&never, Err(Undelivered::Rejected(why)) if why.contains("(error 10)")), "{never:?}");
    let denied = kafka.deliver(&mut vec![event()], &Items::new()).await;
    assert!(matches!(&denied, Err(Undelivered::Later(why)) if why.contains("may not write")), "{denied:?}");
    let closed = kafka.deliver(&mut vec![event()], &Items::new()).await;
    assert!(matches!(&closed, Err(Undelivered::Later(why)) if why.contains("was closed")), "{closed:?}");

    let mut requests = Vec::new();
    while let Ok((key, body)) = asked.try_recv() {
        requests.push((key, body));
    }
    let keys: Vec<i16> = requests.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [18, 0, 0, 0, 18, 0, 18, 0, 18, 0], "a connection is used until something fails");
    let sent: Vec<&Vec<u8>> = requests.iter().filter(|(key, _)| *key == 0).map(|(_, body)| body).collect();
    assert!(sent.iter().all(|body| *body == sent[0]), "an event has the same bytes each time");
    check_request(sent[0]);
}

#[tokio::test]
async fn events_that_go_together_are_one_batch_for_each_partition_and_what_has_arrived_is_not_sent_again() {
    let (address, mut asked) = cluster(&[0, 6, 0]).await;
    let job = |name: &str, number: u32| {
        let body = format!("{{\"data\":{{\"Topic\":\"Job\",\"Key\":\"{name}\",\"Namespace\":\"default\"}}}}");
        let time = Time(i64::from(number) * 1_000_000);
        Outgoing { id: format!("{number}.0@9f3c2a71"), body: body.into(), time, ..Outgoing::default() }
    };
    let place = |name: &str| record::partition(&format!("Job/default/{name}"), 2);
    let other = (0..).map(|number| format!("j{number}")).find(|name| place(name) != place("web")).unwrap();
    let mut kafka = to(&address, &AddressRules::default());
    let mut waiting = vec![job("web", 1), job(&other, 2), job("web", 3)];
    let later = kafka.deliver(&mut waiting, &Items::new()).await;
    assert!(matches!(later, Err(Undelivered::Later(_))), "{later:?}");
    let ids: Vec<&str> = waiting.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["2.0@9f3c2a71"]);
    assert_eq!(kafka.deliver(&mut waiting, &Items::new()).await, Ok(()));
    assert!(waiting.is_empty());

    let mut sent = Vec::new();
    while let Ok((key, body)) = asked.try_recv() {
        if key == 0 {
            let all = ["1.0@9f3c2a71", "2.0@9f3c2a71", "3.0@9f3c2a71"];
            let text = String::from_utf8_lossy(&body).into_owned();
            sent.push(all.map(|id| text.contains(id)));
        }
    }
    assert_eq!(sent, [[true, false, true], [false, true, false], [false, true, false]]);
}

/// Without a transaction, with all acknowledgements, and a batch whose checksum is right.
fn check_request(body: &[u8]) {
    let mut read = Reader(body);
    assert_eq!((read.i16().unwrap(), read.i16().unwrap(), read.i32().unwrap()), (-1, -1, 5_000));
    let batches = read.list(|read| {
        assert_eq!(read.text()?, TOPIC);
        read.list(|read| {
            read.i32()?;
            read.bytes()
        })
    });
    let batch = batches.unwrap()[0][0];
    let (head, checked) = batch.split_at(21);
    assert_eq!(head[8..12], (batch.len() as i32 - 12).to_be_bytes());
    assert_eq!((head[16], &head[17..21]), (2, &crc32c::crc32c(checked).to_be_bytes()[..]));
    assert_eq!(checked[6..14], 1_500_i64.to_be_bytes(), "the time of the event");
    let text = String::from_utf8_lossy(checked);
    for part in [
        "\u{1e}Job/default/web",
        "\u{18}content-typeVapplication/cloudevents+json; charset=UTF-8",
        "\u{a}ce_id\u{1a}13.0@9f3c2a71",
    ] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

/// A cluster says where its brokers are: that is no way around the rules of this server.
#[tokio::test]
async fn the_rules_for_addresses_hold_for_brokers_that_the_cluster_names() {
    let (address, _) =
        broker(|key, _| Some(if key == 18 { versions() } else { metadata("127.0.0.9", 1, 0) })).await;
    let rules = AddressRules { deny: vec!["127.0.0.9/32".parse().unwrap()], ..AddressRules::default() };
    let refused = to(&address, &rules).deliver(&mut vec![event()], &Items::new()).await;
    assert!(
        matches!(&refused, Err(Undelivered::Later(why)) if why.contains("127.0.0.9 is in 127.0.0.9/32")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_topic_that_is_not_there_and_answers_that_are_none_say_so() {
    let why = async |answer: fn(i16) -> Vec<u8>| {
        let (address, _) = broker(move |key, _| Some(answer(key))).await;
        match to(&address, &AddressRules::default()).deliver(&mut vec![event()], &Items::new()).await {
            Err(Undelivered::Later(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let missing = why(|key| if key == 18 { versions() } else { metadata("127.0.0.1", 1, 3) }).await;
    assert!(missing.contains("sojourn.events: there is no such topic"), "{missing}");
    let old = why(|_| [&[0, 0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 2]].concat()).await;
    assert!(old.contains("it speaks Produce 0 to 2, and 3 is needed"), "{old}");
    let short = why(|key| if key == 18 { versions() } else { vec![0, 0, 0, 9] }).await;
    assert!(short.contains("cut short"), "{short}");
    let endless = why(|key| if key == 18 { versions() } else { vec![0x7f; 64] }).await;
    assert!(endless.contains("cut short"), "{endless}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await
    });
    let other = to(&address, &AddressRules::default()).deliver(&mut vec![event()], &Items::new()).await;
    assert!(
        matches!(&other, Err(Undelivered::Later(why)) if why.contains("it is no broker of Kafka")),
        "{other:?}"
    );
}

#[tokio::test]
async fn a_password_that_would_be_sent_in_the_clear_is_not_sent() {
    let (address, mut asked) = broker(|key, _| {
        Some(match key {
            18 => versions(),
            // Unsupported: PLAIN alone.
            17 => [&[0, 33, 0, 0, 0, 1][..], &[0, 5], b"PLAIN"].concat(),
            other => panic!("it was asked {other}"),
        })
    })
    .await;
    let login = secret(&[("user", "u"), ("password", "hidden")]);
    let refused = to(&address, &AddressRules::default()).deliver(&mut vec![event()], &login).await;
    assert!(
        matches!(&refused, Err(Undelivered::Later(why)) if why.contains("over TLS alone")),
        "{refused:?}"
    );
    while let Ok((_, body)) = asked.try_recv() {
        assert!(!body.windows(6).any(|part| part == b"hidden"));
    }
}
