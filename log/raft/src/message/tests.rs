use std::collections::{BTreeMap, BTreeSet};

use base::{Index, Rng, Time, Uuid};
use journal::store::Chain;
use openraft::BasicNode;
use openraft::vote::leader_id_std::LeaderId;

use super::*;
use crate::config::Data;

#[test]
fn what_is_said_is_what_is_heard() {
    for message in samples() {
        let bytes = message.clone().encode(7, 9);
        assert_eq!(Message::decode(&bytes, 9), Ok((7, message)));
    }
}

#[test]
fn an_append_has_these_bytes() {
    let entries = vec![Entry { log_id: id(6, 3), payload: EntryPayload::Blank }];
    let append = Append { vote: vote(3, true), previous: Some(id(5, 2)), committed: None, entries };
    let bytes = Message::Append(append).encode(1, 2);
    assert_eq!(bytes[..4], [1, 1, 0, 0]);
    assert_eq!(bytes[8..24], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[24..41], [3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(bytes[41..58], [1, 5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[58..], [0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn another_server_and_another_version_are_refused() {
    let bytes = Message::Done.encode(1, 2);
    let misdirected = Malformed::Misdirected { meant: 2, here: 3 };
    assert_eq!(Message::decode(&bytes, 3), Err(misdirected));
    let mut newer = bytes.to_vec();
    newer[0] = 2;
    assert_eq!(Message::decode(&newer.into(), 2), Err(Malformed::Version(2)));
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    for message in samples() {
        let bytes = message.encode(1, 2);
        for len in 0..bytes.len() {
            assert!(Message::decode(&bytes.slice(..len), 2).is_err());
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0x11;
            assert!(Message::decode(&changed.into(), 2).is_err(), "byte {at}");
        }
    }
}

/// With a right checksum over wrong fields: an error or another message, and no panic.
#[test]
fn any_fields_are_read_without_a_panic() {
    let mut rng = Rng::new(5);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..2_000 {
        for message in samples() {
            let mut bytes = message.encode(1, 2).to_vec();
            for _ in 0..=rng.below(3) {
                let at = 1 + rng.below(bytes.len() as u64 - 1) as usize;
                bytes[at] = rng.next() as u8;
            }
            if rng.below(4) == 0 {
                bytes.truncate(HEADER + rng.below(bytes.len() as u64) as usize);
            }
            let sum = crc32c::crc32c(&bytes[CHECKED..]);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            match Message::decode(&bytes.into(), 2) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} {refused}");
}

#[test]
fn terms_out_of_order_are_refused() {
    let append = |previous, first, second| {
        let entry = |index, term| Entry { log_id: id(index, term), payload: EntryPayload::Blank };
        let entries = vec![entry(6, first), entry(7, second)];
        let append =
            Append { vote: vote(5, true), previous: Some(id(5, previous)), committed: None, entries };
        Message::decode(&Message::Append(append).encode(1, 2), 2)
    };
    assert!(append(2, 2, 5).is_ok());
    for (previous, first, second) in [(3, 2, 5), (2, 4, 3), (2, 2, 6)] {
        assert!(append(previous, first, second).is_err());
    }
}

#[test]
fn a_vote_belongs_to_its_kind_of_message() {
    let request = VoteRequest::new(vote(3, true), None);
    assert!(Message::decode(&Message::Vote(request).encode(1, 2), 2).is_err());
    let append = Append { vote: vote(3, false), previous: None, committed: None, entries: vec![] };
    assert!(Message::decode(&Message::Append(append).encode(1, 2), 2).is_err());
}

fn samples() -> Vec<Message> {
    let asked = VoteRequest { vote: vote(3, false), last_log_id: Some(id(8, 2)), leadership_transfer: true };
    let transfer = TransferLeaderRequest::new(vote(3, true), 9, Some(id(8, 3)));
    vec![
        Message::Append(append()),
        Message::Vote(asked.clone()),
        Message::PreVote(VoteRequest::new(vote(4, false), None)),
        Message::Transfer(transfer),
        Message::Remove { node: 77, members: Some(id(8, 2)) },
        Message::Appended(AppendEntriesResponse::Success),
        Message::Appended(AppendEntriesResponse::PartialSuccess(Some(id(8, 2)))),
        Message::Appended(AppendEntriesResponse::Conflict),
        Message::Appended(AppendEntriesResponse::HigherVote(vote(9, false))),
        Message::Voted(VoteResponse::new(vote(3, true), Some(id(8, 2)), true)),
        Message::Offer(Offer { vote: vote(3, true), address: "a:4647".into(), picture: picture() }),
        Message::WhichImage,
        Message::Wanted { chunks: picture().chunks, offset: 77 },
        Message::Done,
        Message::Fetching,
        Message::Installed(vote(3, true)),
        Message::Image(None),
        Message::Image(Some(picture())),
        Message::Chunks { left: 5, chunks: vec![Bytes::from_static(b"abc"), Bytes::new()] },
    ]
}

fn picture() -> Picture {
    let members = crate::config::StoredMembership::new(Some(id(0, 0)), members());
    let meta = ImageMeta {
        last: store::LogId { index: 9, term: 2 },
        index: Index(5),
        members: formats::image_members_bytes(&members),
        chain: Some(Chain([7; 16])),
    };
    Picture { meta, chunks: vec![ChunkId([1; 16]), ChunkId([2; 16])] }
}

fn members() -> crate::config::Membership {
    let nodes = BTreeMap::from([(1, BasicNode { addr: "a:4647".into() })]);
    crate::config::Membership::new(vec![BTreeSet::from([1])], nodes).unwrap()
}

fn append() -> Append {
    let batch = journal::encode(&model::Batch {
        epoch: model::EPOCH,
        digest: model::Digest::default(),
        index: Index(1),
        previous: Index(0),
        time: Time(0),
        proposer: Uuid::NIL,
        commands: vec![],
        events: vec![],
    });
    let payloads =
        [EntryPayload::Membership(members()), EntryPayload::Blank, EntryPayload::Normal(Data::logged(batch))];
    let entries = (0..).zip(payloads).map(|(index, payload)| Entry { log_id: id(index, 2), payload });
    let entries = entries.collect();
    Append { vote: vote(3, true), previous: None, committed: Some(id(1, 2)), entries }
}

fn id(index: u64, term: u64) -> LogId {
    formats::log_id(store::LogId { index, term })
}

fn vote(term: u64, committed: bool) -> Vote {
    Vote { leader_id: LeaderId { term, voted_for: 4 }, committed }
}
