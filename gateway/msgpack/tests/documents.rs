//! The documents of Nomad's API through the codec.

use model::document::{Allocation, Bytes, Duration, Job, List, Map, Node, Task, TaskGroup, Timestamp};
use msgpack::{from_slice, to_vec};
use serde_json::{Value, json};

#[test]
fn a_timestamp_is_fifteen_raw_bytes() {
    let stamp: Timestamp = "2009-11-10T23:00:00Z".parse().unwrap();
    let bytes = to_vec(&stamp).unwrap();
    assert_eq!(bytes, [0xaf, 1, 0, 0, 0, 14, 194, 139, 231, 112, 0, 0, 0, 0, 255, 255]);
    assert_eq!(from_slice::<Timestamp>(&bytes).unwrap(), stamp);
}

#[test]
fn a_timestamp_whose_bytes_happen_to_be_text_is_still_a_timestamp() {
    let zero_offset = [0xaf, 1, 0, 0, 0, 14, 0x41, 0x42, 0x43, 0x44, 0, 0, 0, 0, 0, 0];
    assert!(from_slice::<Timestamp>(&zero_offset).unwrap().0.is_some());
    let never = to_vec(&Timestamp::default()).unwrap();
    assert_eq!(never[..13], [0xaf, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(from_slice::<Timestamp>(&never).unwrap(), Timestamp::default());
    assert_eq!(from_slice::<Timestamp>(&[0xc0]).unwrap(), Timestamp::default());
}

#[test]
fn bytes_are_raw_whether_or_not_they_are_text() {
    for content in [&b"text"[..], b"YWJj", b"\xff\x00"] {
        let bytes = to_vec(&Bytes(content.to_vec())).unwrap();
        assert_eq!(bytes[0], 0xa0 | content.len() as u8);
        assert_eq!(from_slice::<Bytes>(&bytes).unwrap().0, content);
    }
    assert_eq!(to_vec(&Bytes::default()).unwrap(), [0xc0]);
}

#[test]
fn a_duration_is_whole_nanoseconds() {
    let bytes = to_vec(&Duration::from_secs(30)).unwrap();
    assert_eq!(bytes, [0xcf, 0, 0, 0, 6, 0xfc, 0x23, 0xac, 0]);
    assert_eq!(from_slice::<Duration>(&bytes).unwrap(), Duration::from_secs(30));
    assert_eq!(from_slice::<Duration>(&[0xff]).unwrap().0.0, -1);
}

#[test]
fn a_job_survives_with_its_configuration() {
    let config: Map<String, Value> =
        [("args".to_string(), json!(["-c", "x"])), ("n".to_string(), json!({"a": [1, -2, 2.5, null, true]}))]
            .into_iter()
            .collect();
    let task =
        Task { name: "t".into(), config, kill_timeout: Some(Duration::from_secs(5)), ..Task::default() };
    let group = TaskGroup { name: Some("g".into()), tasks: List(vec![task]), ..TaskGroup::default() };
    let job = Job {
        id: Some("j".into()),
        payload: Bytes(b"plain".to_vec()),
        task_groups: List(vec![group]),
        ..Job::default()
    };
    assert_eq!(from_slice::<Job>(&to_vec(&job).unwrap()).unwrap(), job);
}

#[test]
fn documents_of_nils_are_documents_of_zeroes() {
    let nils = b"\x84\xa2ID\xc0\xaaAttributes\xc0\xa6Events\xc0\xaeStatusModified\xc0";
    assert_eq!(from_slice::<Node>(nils).unwrap(), Node::default());
    let wait = b"\x82\xa4Name\xa1x\xadShutdownDelay\xc0";
    assert_eq!(from_slice::<Task>(wait).unwrap(), Task { name: "x".into(), ..Task::default() });
    assert_eq!(to_vec(&Allocation::default()).unwrap(), [0x80], "an allocation leaves out what is empty");
}
