//! Keys are replaced on all servers without losing one.

use std::time::Duration;

use super::super::seal::Sealer;
use super::super::{Key, KeyOperation, Keyring};
use super::network::{Network, address};
use super::pool::joined;
use super::{KEY, OTHER_KEY, key, member};

const SECOND: Duration = Duration::from_secs(1);

fn old() -> Key {
    key(KEY).unwrap()
}

fn new() -> Key {
    key(OTHER_KEY).unwrap()
}

/// The keys that each server holds, as one of them finds out.
#[track_caller]
fn all_hold(network: &mut Network, asked: u8, servers: usize, expected: &[Key]) {
    let report = network.change_keys(asked, KeyOperation::List).unwrap();
    assert_eq!(report.replies.len(), servers);
    for (server, reply) in report.replies {
        assert_eq!(reply.as_deref(), Ok(expected), "{server}");
    }
}

#[test]
fn a_key_is_replaced_on_all_servers_without_losing_one() {
    let mut network = joined(3, Some(KEY));
    let steps = [
        (1, KeyOperation::Install(new()), vec![old(), new()]),
        (2, KeyOperation::Use(new()), vec![new(), old()]),
        (3, KeyOperation::Remove(old()), vec![new()]),
    ];
    for (by, operation, expected) in steps {
        // Whoever is asked, and however often.
        for by in [by, by % 3 + 1] {
            let report = network.change_keys(by, operation.clone());
            let is_repeated_removal = report.is_err() && matches!(operation, KeyOperation::Remove(_));
            assert!(is_repeated_removal || report.unwrap().failures().next().is_none(), "{operation:?}");
        }
        all_hold(&mut network, by, 3, &expected);
        let stored = network.saved.lock();
        assert_eq!(stored.len(), 3);
        assert!(stored.values().all(|keyring| keyring.as_ref().unwrap().keys() == expected));
        drop(stored);
        network.pass(30 * SECOND);
        network.all_see("s1 alive, s2 alive, s3 alive");
    }
    assert!(network.notices.is_empty(), "no packet was dropped: {:?}", network.notices);
    let (.., packet) = network.sent.last().unwrap();
    let open = |key: Key| Sealer::new(Some(key).into(), [9; 16]).open(packet).is_ok();
    assert!(open(new()) && !open(old()));
    // Who comes later needs the new key, and who was asleep is not accepted with the old one.
    network.start(member(4, address(4)), Some(new()));
    network.start(member(5, address(5)), Some(old()));
    network.greet(4, 1);
    network.greet(5, 1);
    network.pass(5 * SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s2 alive, s3 alive, s4 alive");
    assert_eq!(network.seen_by(5), "s5 alive");
}

#[test]
fn nothing_changes_while_a_live_server_cannot_follow() {
    let mut network = joined(4, Some(KEY));
    // One lost link: the server is alive, and does not get what is asked of it.
    network.cut = vec![(address(1), address(3))];
    let refused = network.change_keys(1, KeyOperation::Install(new())).unwrap_err();
    assert_eq!(refused, "no key was changed: s3.global: it did not answer");
    network.cut.clear();
    all_hold(&mut network, 1, 4, &[old()]);

    let refused = network.change_keys(2, KeyOperation::Use(new())).unwrap_err();
    for server in ["s1.global", "s2.global", "s3.global", "s4.global"] {
        assert!(refused.contains(&format!("{server} has not installed the key")), "{refused}");
    }
    let refused = network.change_keys(2, KeyOperation::Remove(old())).unwrap_err();
    assert!(refused.contains("s4.global encrypts with the key: use another key before"), "{refused}");
    let refused = network.change_keys(2, KeyOperation::Remove(new())).unwrap_err();
    assert_eq!(refused, "no key was changed: no server has installed the key");
    assert!(network.saved.lock().is_empty());

    // A server that has failed is not waited for.
    network.kill(4);
    network.pass(15 * SECOND);
    network.change_keys(1, KeyOperation::Install(new())).unwrap();
    all_hold(&mut network, 3, 3, &[old(), new()]);
}

#[test]
fn lost_packets_are_sent_again() {
    let mut network = joined(3, Some(KEY));
    network.cut = vec![(address(1), address(2))];
    network.pool(1).change_keys(5, KeyOperation::Install(new()));
    network.pass(SECOND);
    assert_eq!(network.pool(1).key_reports(), []);
    network.cut.clear();
    network.pass(2 * SECOND);
    let (number, report) = network.pool(1).key_reports().pop().unwrap();
    assert_eq!((number, report.unwrap().failures().count()), (5, 0));
}

#[test]
fn a_server_that_cannot_store_its_keys_says_so() {
    let mut network = joined(3, Some(KEY));
    let full = Err("the disk is full".to_string());
    network.saved.lock().insert(address(2), full.clone());
    let report = network.change_keys(1, KeyOperation::Install(new())).unwrap();
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures, [(&"s2.global".to_string(), &"the disk is full".to_string())]);
    // It goes on with the keys it has, so the new one is not used.
    let refused = network.change_keys(1, KeyOperation::Use(new())).unwrap_err();
    assert_eq!(refused, "no key was changed: s2.global has not installed the key");
    network.saved.lock().insert(address(2), Ok(Keyring::default()));
    network.saved.lock().insert(address(1), full);
    let refused = network.change_keys(1, KeyOperation::Use(new())).unwrap_err();
    assert!(refused.contains("s2.global has not"), "{refused}");
    network.change_keys(3, KeyOperation::Install(new())).unwrap();
    assert_eq!(network.change_keys(1, KeyOperation::Use(new())), Err("the disk is full".to_string()));
    all_hold(&mut network, 1, 3, &[old(), new()]);
}

#[test]
fn without_encryption_there_are_no_keys_and_none_is_sent() {
    let mut network = joined(2, None);
    let sent = network.sent.len();
    for operation in [KeyOperation::List, KeyOperation::Install(new())] {
        network.pool(1).change_keys(5, operation);
        let (_, refused) = network.pool(1).key_reports().pop().unwrap();
        assert!(refused.unwrap_err().starts_with("gossip is not encrypted"));
    }
    network.deliver();
    assert_eq!(network.sent.len(), sent);
}

#[test]
fn operations_under_way_are_bounded() {
    let mut network = joined(2, Some(KEY));
    network.cut = vec![(address(1), address(2))];
    for number in 1..=9 {
        network.pool(1).change_keys(number, KeyOperation::List);
    }
    let (number, refused) = network.pool(1).key_reports().pop().unwrap();
    assert_eq!((number, refused.unwrap_err().as_str()), (9, "8 operations on keys are under way already"));
    network.pass(7 * SECOND);
    assert_eq!(network.pool(1).key_reports().len(), 8);
}
