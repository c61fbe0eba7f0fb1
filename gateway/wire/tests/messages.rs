//! The messages' names and shapes on the wire.

use model::document::{Allocation, Bytes, Duration, Job, Map, Node, Timestamp};
use msgpack::{from_slice, to_vec};
use serde_json::Value;
use wire::messages::*;

#[test]
fn embedded_fields_stand_beside_the_requests_own() {
    let request = NodeSpecificRequest {
        node_id: "n".into(),
        query: QueryOptions {
            auth_token: "t".into(),
            max_query_time: Duration::from_secs(1),
            ..QueryOptions::default()
        },
        ..NodeSpecificRequest::default()
    };
    let bytes = to_vec(&request).unwrap();
    let seen: Value = from_slice(&bytes).unwrap();
    assert_eq!((&seen["NodeID"], &seen["AuthToken"]), (&"n".into(), &"t".into()));
    assert_eq!(seen["MaxQueryTime"], 1_000_000_000);
    assert_eq!(seen.as_object().unwrap().len(), 14);
    assert_eq!(from_slice::<NodeSpecificRequest>(&bytes).unwrap(), request);
}

#[test]
fn a_go_clients_heartbeat_is_understood() {
    let bytes = b"\x85\xa6NodeID\xa2n1\xa6Status\xa5ready\xa9NodeEvent\xc0\xa6Region\xa6global\xacSomethingNew\x93\x01\xc0\xa1x";
    let request: NodeUpdateStatusRequest = from_slice(bytes).unwrap();
    assert_eq!((request.node_id.as_str(), request.status.as_str()), ("n1", "ready"));
    assert_eq!((request.node_event, request.write.region.as_str()), (None, "global"));
}

#[test]
fn a_registration_carries_the_whole_node() {
    let node = Node {
        id: "n".into(),
        secret_id: "s".into(),
        attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
        ..Node::default()
    };
    let request = NodeRegisterRequest { node, ..NodeRegisterRequest::default() };
    assert_eq!(from_slice::<NodeRegisterRequest>(&to_vec(&request).unwrap()).unwrap(), request);
}

#[test]
fn an_allocation_travels_with_its_tokens_in_one_map() {
    let job = Job { payload: Bytes(b"YWJj".to_vec()), ..Job::default() };
    let placed = PlacedAlloc {
        alloc: Allocation { id: "a".into(), job: Some(job), ..Allocation::default() },
        signed_identities: [("web".to_string(), "jwt".to_string())].into_iter().collect(),
    };
    let response = AllocsGetResponse { allocs: vec![placed].into(), ..AllocsGetResponse::default() };
    let bytes = to_vec(&response).unwrap();
    let seen: Value = from_slice(&to_vec(&response.allocs[0].signed_identities).unwrap()).unwrap();
    assert_eq!(seen["web"], "jwt");
    assert_eq!(from_slice::<AllocsGetResponse>(&bytes).unwrap(), response);
    let start = b"\x83\xa2ID\xa1a\xa3Job";
    assert!(bytes.windows(start.len()).any(|window| window == start), "one map of three entries");
    assert!(!format!("{response:?}").contains("jwt"), "tokens are not printed");
}

#[test]
fn nothing_found_is_nil() {
    let bytes = to_vec(&SingleNodeResponse::default()).unwrap();
    assert!(bytes.starts_with(b"\x85\xa4Node\xc0"));
    assert_eq!(from_slice::<SingleAllocResponse>(b"\x81\xa5Alloc\xc0").unwrap().alloc, None);
}

#[test]
fn signed_identities_repeat_their_request() {
    let request = WorkloadIdentityRequest { alloc_id: "a".into(), workload_type: 1, ..Default::default() };
    let expiration: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let signed = SignedWorkloadIdentity { request, jwt: "j".into(), expiration };
    let bytes = to_vec(&signed).unwrap();
    assert_eq!(bytes[0], 0x87);
    assert_eq!(from_slice::<SignedWorkloadIdentity>(&bytes).unwrap(), signed);
}

#[test]
fn frames_carry_raw_payloads_or_an_error() {
    let content = to_vec(&StreamFrameWrapper::content(b"{}".to_vec())).unwrap();
    assert_eq!(content, b"\x82\xa5Error\xc0\xa7Payload\xa2{}");
    let failure = StreamFrameWrapper::failure(404, "gone");
    let bytes = to_vec(&failure).unwrap();
    assert_eq!(bytes, b"\x82\xa5Error\x82\xa7Message\xa4gone\xa4Code\xcd\x01\x94\xa7Payload\xc0");
    assert_eq!(from_slice::<StreamFrameWrapper>(&bytes).unwrap(), failure);
}

#[test]
fn documents_of_the_http_api_fit_into_the_open_answers() {
    let files: FsListResponse<Map<String, Value>> = FsListResponse::default();
    assert_eq!(from_slice::<FsListResponse<Map<String, Value>>>(&to_vec(&files).unwrap()).unwrap(), files);
    let stats: AllocStatsResponse<Value> = from_slice(b"\x82\xa5Stats\x81\xa1k\x01\xa5Index\x09").unwrap();
    assert_eq!((stats.stats.unwrap()["k"].clone(), stats.meta.index), (1.into(), 9));
}
