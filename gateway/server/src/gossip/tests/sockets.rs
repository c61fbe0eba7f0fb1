//! The same over real sockets on the loopback. Time is real, but short.

use std::time::Duration;

use tokio::net::UdpSocket;

use super::super::pool::Timings;
use super::super::{Gossip, GossipError, JoinError, Member, Settings};
use super::{KEY, OTHER_KEY, key, member};

/// Far beyond what anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn quick() -> Timings {
    Timings {
        probe: Duration::from_millis(100),
        round_trip: Duration::from_millis(40),
        suspicion: Duration::from_millis(400),
        spread: Duration::from_millis(20),
        retry: Duration::from_millis(300),
        forget: Duration::from_secs(3_600),
    }
}

async fn start(n: u8, secret: Option<&str>, change: impl FnOnce(&mut Member)) -> Gossip {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut own = member(n, socket.local_addr().unwrap());
    change(&mut own);
    let keyring = secret.and_then(key).into();
    let settings = Settings { own, keyring, timings: quick(), seed: u64::from(n) };
    Gossip::start(settings, Box::new(|_| Ok(())), socket).unwrap()
}

fn seen(gossip: &Gossip) -> String {
    let list = gossip.sightings();
    let words = list.iter().map(|seen| format!("{} {}", seen.member.name, seen.standing.word()));
    words.collect::<Vec<_>>().join(", ")
}

async fn sees(gossip: &Gossip, expected: &str) {
    let mut watch = gossip.watch();
    let reached = async {
        while seen(gossip) != expected {
            watch.changed().await.unwrap();
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "expected {expected}, saw {}", seen(gossip));
}

#[tokio::test]
async fn servers_join_fail_and_leave() {
    let (one, two, three) = (
        start(1, Some(KEY), |_| ()).await,
        start(2, Some(KEY), |_| ()).await,
        start(3, Some(KEY), |_| ()).await,
    );
    assert_eq!(two.join(one.address()).await.unwrap().name, "s1");
    assert_eq!(three.join(one.address()).await.unwrap().name, "s1");
    for server in [&one, &two, &three] {
        sees(server, "s1 alive, s2 alive, s3 alive").await;
    }
    one.announce_log().await.unwrap();
    let mut watch = three.watch();
    watch.wait_for(|list| list[0].member.has_log).await.unwrap();

    drop(two);
    sees(&one, "s1 alive, s2 failed, s3 alive").await;
    assert_eq!(one.force_leave("s2", false).await, Ok(true));
    sees(&three, "s1 alive, s2 left, s3 alive").await;

    three.leave().await;
    three.leave().await;
    sees(&one, "s1 alive, s2 left, s3 left").await;
    assert!(matches!(three.announce_log().await, Err(GossipError::Ended)));
}

#[tokio::test]
async fn a_server_that_does_not_answer_or_rejects_is_not_joined() {
    let one = start(1, Some(KEY), |_| ()).await;
    assert_eq!(one.join(one.address()).await, Err(JoinError::Ourselves(one.address())));
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let silent = silent.local_addr().unwrap();
    let other_key = start(2, Some(OTHER_KEY), |_| ()).await;
    let (silent, other_key) = tokio::join!(one.join(silent), other_key.join(one.address()));
    assert!(matches!(silent, Err(JoinError::Silent(_))));
    assert!(matches!(other_key, Err(JoinError::Silent(_))));
    let mut counts = one.0.counts.clone();
    counts.wait_for(|counts| counts.unauthentic > 0).await.unwrap();

    let twin = start(3, Some(KEY), |own| own.name = "s1".to_string()).await;
    let refused = twin.join(one.address()).await.unwrap_err();
    assert!(refused.to_string().contains("the name \"s1.global\" belongs to the server"), "{refused}");
    assert_eq!(seen(&one), "s1 alive");
}

#[tokio::test]
async fn a_server_whose_description_cannot_be_sent_does_not_start() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut own = member(1, socket.local_addr().unwrap());
    own.datacenter = "d".repeat(97);
    let settings = Settings { own, keyring: None.into(), timings: quick(), seed: 1 };
    let error = Gossip::start(settings, Box::new(|_| Ok(())), socket).err().unwrap();
    assert!(error.to_string().contains("this server's datacenter is empty or longer than 96 bytes"));
}
