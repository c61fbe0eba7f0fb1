use std::time::Duration;

use base::Uuid;

use super::super::Parting;
use super::super::member::{Member, TEXT_MAX};
use super::super::pool::{Greeted, MEMBERS_MAX};
use super::network::{FORGET, Network, address};
use super::{KEY, OTHER_KEY, key, member};

const SECOND: Duration = Duration::from_secs(1);

/// `n` servers that have found each other.
pub(super) fn joined(n: u8, secret: Option<&str>) -> Network {
    let mut network = Network::default();
    for n in 1..=n {
        network.start(member(n, address(n)), secret.and_then(key));
    }
    for n in 2..=n {
        network.greet(n, 1);
    }
    network.pass(5 * SECOND);
    network
}

#[test]
fn servers_that_know_one_know_all() {
    for secret in [None, Some(KEY)] {
        let mut network = joined(5, secret);
        network.all_see("s1 alive, s2 alive, s3 alive, s4 alive, s5 alive");
        for n in 2..=5 {
            let mut own = network.greeted.iter().filter(|(who, _)| *who == address(n));
            assert!(own.all(|(_, greeted)| matches!(greeted, Greeted::Welcome(_))));
        }
        assert_eq!(network.greeted.len(), 8, "both sides receive each greeting");
        network.pass(120 * SECOND);
        network.all_see("s1 alive, s2 alive, s3 alive, s4 alive, s5 alive");
        assert!(network.notices.is_empty());
    }
}

#[test]
fn a_server_that_stops_is_found_failed_and_comes_back() {
    let mut network = joined(3, Some(KEY));
    network.kill(2);
    network.pass(15 * SECOND);
    network.all_see("s1 alive, s2 failed, s3 alive");
    // It lost nothing but its process.
    network.start(Member { generation: 2_000, ..member(2, address(2)) }, key(KEY));
    network.greet(2, 3);
    network.pass(5 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive");
}

#[test]
fn a_server_whose_clock_went_back_is_still_accepted() {
    let mut network = Network::default();
    for n in 1..=3 {
        // Milliseconds since 1970, as servers take them.
        network.start(Member { generation: 1_767_323_045_000, ..member(n, address(n)) }, key(KEY));
    }
    network.greet(2, 1);
    network.greet(3, 1);
    network.pass(5 * SECOND);
    network.kill(2);
    network.pass(15 * SECOND);
    network.start(Member { generation: 3, ..member(2, address(2)) }, key(KEY));
    network.greet(2, 3);
    network.pass(5 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive");
    assert_eq!(network.pool(2).own().generation, 1_767_323_045_001);
}

#[test]
fn a_server_that_leaves_is_no_failure() {
    let mut network = joined(3, None);
    network.pool(2).describe(|own| own.parting = Parting::Leaving);
    network.pass(SECOND);
    network.all_see("s1 alive, s2 leaving, s3 alive");
    network.pool(2).leave();
    network.deliver();
    network.kill(2);
    network.pass(SECOND);
    network.all_see("s1 alive, s2 left, s3 alive");
    network.pass(60 * SECOND);
    network.all_see("s1 alive, s2 left, s3 alive");
}

#[test]
fn the_description_of_a_server_reaches_all() {
    let mut network = joined(3, Some(KEY));
    network.pool(1).describe(|own| own.has_log = true);
    network.pass(2 * SECOND);
    for n in 1..=3 {
        let first = network.pool(n).sightings().next().unwrap().clone();
        assert!(first.member.has_log, "s{n}");
        assert_eq!(first.standing.word(), "alive");
    }
    network.pass(60 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive");
}

#[test]
fn a_failed_server_can_be_made_to_leave_and_to_be_forgotten() {
    let mut network = joined(3, None);
    assert!(!network.pool(1).force_leave("nobody", false));
    network.kill(2);
    network.pass(15 * SECOND);
    assert!(network.pool(1).force_leave("s2.global", false));
    network.pass(3 * SECOND);
    network.all_see("s1 alive, s2 left, s3 alive");
    assert!(network.pool(3).force_leave("s2", true));
    network.pass(3 * SECOND);
    network.all_see("s1 alive, s3 alive");
    // It was not dead after all.
    network.start(member(2, address(2)), None);
    network.greet(2, 1);
    network.pass(15 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive");
}

#[test]
fn a_server_that_just_died_leaves_once_it_is_found_dead() {
    let mut network = joined(3, None);
    // This one lives on, and stays.
    assert!(network.pool(1).force_leave("s3", false));
    network.kill(2);
    assert!(network.pool(1).force_leave("s2", true));
    network.all_see("s1 alive, s2 alive, s3 alive");
    let ordered = |network: &mut Network| -> Vec<(String, Option<Parting>)> {
        network.pool(1).sightings().map(|seen| (seen.member.name.clone(), seen.ordered)).collect()
    };
    let orders = [("s2", Some(Parting::Pruned)), ("s3", Some(Parting::Leaving))];
    for (name, order) in orders {
        assert!(
            ordered(&mut network).contains(&(name.to_string(), order)),
            "{name}: the list shows it at once"
        );
    }
    network.pass(15 * SECOND);
    network.all_see("s1 alive, s3 alive");
    // The order was for then: a server that dies later has failed.
    network.pass(30 * SECOND);
    assert!(ordered(&mut network).iter().all(|(_, order)| order.is_none()));
    network.kill(3);
    network.pass(15 * SECOND);
    network.all_see("s1 alive, s3 failed");
}

#[test]
fn failed_servers_are_forgotten_in_time() {
    let mut network = joined(3, None);
    network.kill(2);
    network.pass(FORGET);
    network.all_see("s1 alive, s2 failed, s3 alive");
    network.pass(20 * SECOND);
    network.all_see("s1 alive, s3 alive");
}

#[test]
fn two_servers_that_were_cut_off_from_each_other_meet_again() {
    for secret in [None, Some(KEY)] {
        let mut network = joined(2, secret);
        network.cut = vec![(address(1), address(2))];
        network.pass(60 * SECOND);
        assert_eq!(network.seen_by(1), "s1 alive, s2 failed");
        assert_eq!(network.seen_by(2), "s1 failed, s2 alive");
        network.cut.clear();
        network.pass(60 * SECOND);
        network.all_see("s1 alive, s2 alive");
    }
}

#[test]
fn a_name_without_its_region_means_a_server_of_this_one() {
    let mut network = Network::default();
    let elsewhere = Member { region: "eu".to_string(), name: "s1".to_string(), ..member(2, address(2)) };
    network.start(member(1, address(1)), key(KEY));
    network.start(elsewhere, key(KEY));
    network.greet(2, 1);
    network.pass(5 * SECOND);
    network.kill(2);
    network.pass(15 * SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s1 failed");
    network.pool(1).force_leave("s1", false);
    network.pass(SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s1 failed");
    assert!(network.pool(1).force_leave("s1.eu", false));
    network.pass(SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s1 left");
}

#[test]
fn a_cut_heals_by_itself() {
    let mut network = joined(3, Some(KEY));
    network.cut = vec![(address(1), address(3)), (address(2), address(3))];
    network.pass(30 * SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s2 alive, s3 failed");
    assert_eq!(network.seen_by(3), "s1 failed, s2 failed, s3 alive");
    network.cut.clear();
    // A server that is alone asks no other, but the others ask whether it is back.
    network.pass(40 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive");
}

#[test]
fn one_lost_link_is_no_failure() {
    let mut network = joined(4, None);
    network.cut = vec![(address(1), address(3))];
    network.pass(300 * SECOND);
    network.all_see("s1 alive, s2 alive, s3 alive, s4 alive");
}

#[test]
fn a_name_belongs_to_one_server_while_it_lives() {
    let mut network = joined(3, None);
    let twin = Member { name: "s2".to_string(), ..member(9, address(9)) };
    network.start(twin, None);
    network.greet(9, 1);
    network.pass(5 * SECOND);
    assert_eq!(network.seen_by(9), "s2 alive");
    assert_eq!(network.seen_by(1), "s1 alive, s2 alive, s3 alive");
    let why =
        "the name \"s2.global\" belongs to the server 00000000-0000-0000-0000-000000000002 at 10.0.0.2:4648";
    assert!(network.said(1).iter().any(|line| line.contains(why)), "{:?}", network.said(1));
    assert!(network.said(9).iter().any(|line| line.contains(why)), "{:?}", network.said(9));
    assert!(matches!(&network.greeted.last().unwrap().1, Greeted::Refused(reason) if reason.contains(why)));
    // The owner's own word counts as much.
    network.greet(9, 2);
    assert_eq!(network.seen_by(9), "s2 alive");
    // A machine that was set up anew takes the name of its former self.
    network.kill(2);
    network.pass(15 * SECOND);
    network.greet(9, 1);
    network.pass(5 * SECOND);
    assert_eq!(network.seen_by(3), "s1 alive, s2 failed, s3 alive, s2 alive");
}

#[test]
fn another_region_may_use_the_name() {
    let mut network = joined(1, None);
    network.start(Member { name: "s1".into(), region: "eu".into(), ..member(2, address(2)) }, None);
    network.greet(2, 1);
    network.pass(2 * SECOND);
    network.all_see("s1 alive, s1 alive");
}

#[test]
fn a_copied_data_directory_is_noticed() {
    let mut network = joined(2, None);
    network.start(Member { serf: address(9), name: "s9".into(), ..member(2, address(9)) }, None);
    network.greet(9, 1);
    assert_eq!(network.pool(1).counts().refused, 1, "who is refused does not knock again by itself");
    assert!(network.said(9)[0].contains("was a data directory copied?"), "{:?}", network.said(9));
    network.start(Member { number: 10, ..member(8, address(8)) }, None);
    network.greet(8, 1);
    for n in [1, 8] {
        assert!(network.said(n).iter().any(|line| line.contains("its raft number 10 belongs to the server")));
    }
}

#[test]
fn a_server_with_another_key_is_rejected_and_both_sides_warn() {
    let mut network = joined(2, Some(KEY));
    network.start(member(3, address(3)), key(OTHER_KEY));
    network.start(member(4, address(4)), None);
    for n in [3, 4] {
        network.greet(n, 1);
        network.greet(1, n);
    }
    network.pass(20 * SECOND);
    assert_eq!(network.seen_by(1), "s1 alive, s2 alive");
    assert_eq!((network.seen_by(3), network.seen_by(4)), ("s3 alive".into(), "s4 alive".into()));
    assert!(
        network.said(1)[0].contains("gossip from 10.0.0.3:4648 is dropped: it is sealed with another key")
    );
    assert!(network.said(1)[1].contains("gossip from 10.0.0.4:4648 is dropped: it is not encrypted"));
    assert!(network.said(3)[0].contains("sealed with another key"));
    assert!(network.said(4)[0].contains("it is encrypted, and here there is no key"));
    let counts = network.pool(1).counts();
    assert!(counts.unauthentic > 0 && counts.mixed > 0, "{counts:?}");
}

#[test]
fn what_was_recorded_does_nothing_when_it_is_sent_again() {
    let mut network = Network::default();
    for n in 1..=3 {
        network.start(member(n, address(n)), key(KEY));
    }
    network.greet(1, 3);
    network.greet(2, 3);
    network.pass(5 * SECOND);
    network.pool(2).describe(|own| own.parting = Parting::Leaving);
    network.pass(SECOND);
    network.pool(2).leave();
    network.deliver();
    network.kill(2);
    // Long after it was forgotten, every packet that was ever sent is sent again.
    network.pass(FORGET + 20 * SECOND);
    network.all_see("s1 alive, s3 alive");
    let recorded = network.sent.iter().filter(|(from, ..)| *from == address(2)).cloned().collect::<Vec<_>>();
    assert!(recorded.len() > 20);
    for (from, to, packet) in &recorded {
        network.inject(*from, *to, packet);
    }
    network.pass(SECOND);
    network.all_see("s1 alive, s3 alive");
    assert!(network.pool(1).counts().repeated > 5);
    // Nor does it to who has started since.
    network.start(Member { generation: 2_000, ..member(3, address(3)) }, key(KEY));
    for (from, _, packet) in &recorded {
        network.inject(*from, address(3), packet);
    }
    assert_eq!(network.seen_by(3), "s3 alive");
}

#[test]
fn changed_packets_are_dropped_and_counted() {
    let mut network = joined(2, Some(KEY));
    let (from, to, packet) = network.sent.last().cloned().unwrap();
    let to_n = if to == address(1) { 1 } else { 2 };
    let before = network.pool(to_n).counts();
    for at in 29..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 4;
        network.inject(from, to, &changed);
    }
    let after = network.pool(to_n).counts();
    assert_eq!(after.unauthentic - before.unauthentic, packet.len() as u64 - 29);
    assert_eq!(network.said(to_n).len(), 1, "said once, however many come");
}

/// Cuts shorter and longer than a suspicion, and changed selves in between: two that were dead to each other are both back
/// without a greeting.
#[test]
fn whoever_dies_is_found_failed_whatever_happened_before() {
    for seed in 0..300 {
        let mut rng = base::Rng::new(seed);
        let mut network = Network { started: seed * 100, ..Network::default() };
        let servers = 2 + rng.below(2) as u8;
        for n in 1..=servers {
            network.start(member(n, address(n)), None);
        }
        for n in 2..=servers {
            network.greet(n, 1);
        }
        let some = |rng: &mut base::Rng| Duration::from_millis(rng.below(12_000));
        for _ in 0..4 {
            network.pass(some(&mut rng));
            match rng.below(3) {
                0 => network.cut = vec![(address(1), address(2))],
                1 => network.cut.clear(),
                _ => network.pool(1 + rng.below(2) as u8).describe(|own| own.has_log = !own.has_log),
            }
        }
        network.cut.clear();
        network.pass(some(&mut rng));
        network.kill(2);
        network.pass(40 * SECOND);
        let seen = network.seen_by(1);
        assert!(seen.contains("s2 failed") || !seen.contains("s2"), "seed {seed}: {seen}");
    }
}

#[test]
fn garbage_of_every_kind_is_survived() {
    let mut network = joined(2, None);
    let packets: Vec<_> = network.sent.iter().map(|(_, _, packet)| packet.clone()).collect();
    let mut rng = base::Rng::new(7);
    for packet in packets.iter().cycle().take(20_000) {
        let mut garbage = packet.clone();
        // An unknown session, so that numbers do not protect.
        garbage[28] = rng.next() as u8;
        let at = 29 + rng.below(garbage.len() as u64 - 29) as usize;
        garbage[at] = rng.next() as u8;
        if rng.below(4) == 0 {
            garbage.truncate(at);
        }
        network.inject(address(2), address(1), &garbage);
    }
    network.pass(60 * SECOND);
    assert!(network.seen_by(1).starts_with("s1 alive"));
}

#[test]
fn there_is_a_bound_on_servers() {
    let mut network = joined(1, None);
    for n in 0..MEMBERS_MAX as u16 + 50 {
        let mut crowd = member(7, std::net::SocketAddr::from(([10, 1, (n >> 8) as u8, n as u8], 1)));
        (crowd.id, crowd.number, crowd.name) =
            (Uuid::from(1_000 + u128::from(n)), 5_000 + u64::from(n), format!("crowd{n}"));
        let serf = crowd.serf;
        network.start(crowd, None);
        network.pools.get_mut(&serf).unwrap().greet(address(1), 1);
        network.deliver();
        network.pools.remove(&serf);
        network.sent.clear();
        if n % 32 == 0 {
            network.pass(2 * SECOND);
        }
    }
    assert_eq!(network.pool(1).sightings().count(), MEMBERS_MAX);
    assert!(network.pool(1).counts().malformed > 0);
}

#[test]
fn the_longest_texts_fit_into_a_packet() {
    let mut network = Network::default();
    let long = |c: char| c.to_string().repeat(TEXT_MAX);
    for n in 1..=5 {
        let own = Member {
            name: format!("{n}{}", &long('n')[1..]),
            region: long('r'),
            datacenter: long('d'),
            rpc: long('p'),
            http: long('h'),
            version: long('v'),
            ..member(n, address(n))
        };
        network.start(own, key(KEY));
    }
    for n in 2..=5 {
        network.greet(n, 1);
    }
    network.pass(60 * SECOND);
    for n in 1..=5 {
        assert_eq!(network.seen_by(n).matches("alive").count(), 5, "{}", network.seen_by(n));
    }
    let longest = network.sent.iter().map(|(_, _, packet)| packet.len()).max().unwrap();
    assert!((1_300..=super::super::seal::PACKET_MAX).contains(&longest), "{longest}");
}
