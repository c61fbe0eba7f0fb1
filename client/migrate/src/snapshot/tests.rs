use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use flate2::Compression;
use flate2::write::GzEncoder;
use model::document::Map;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::*;

const KEY: &str = "11111111-2222-3333-4444-555555555555";
const KEK: [u8; 32] = [7; 32];
const DATA_KEY: [u8; 32] = [9; 32];

/// A state as servers write it: a header, then records, each with a byte for its kind, which the reader does not need to know.
struct State(Vec<u8>);

impl State {
    fn new() -> State {
        State(msgpack::to_vec(&json!({})).unwrap())
    }

    fn with(mut self, kind: u8, record: &impl Serialize) -> State {
        self.0.push(kind);
        self.0.extend(msgpack::to_vec(record).unwrap());
        self
    }

    fn file(&self) -> Vec<u8> {
        let meta = br#"{"Version":1,"ID":"2-48-1","Index":48,"Term":2}"#.to_vec();
        let sums = sums(&[("meta.json", &meta), ("state.bin", &self.0)]);
        archive(&[("meta.json", &meta), ("state.bin", &self.0), ("SHA256SUMS", sums.as_bytes())])
    }
}

/// Names and contents.
type Files<'a> = &'a [(&'a str, &'a [u8])];

fn sums(files: Files) -> String {
    let hex =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    files.iter().map(|(name, bytes)| format!("{}  {name}\n", hex(bytes))).collect()
}

fn archive(files: Files) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn sealed(key: [u8; 32], content: &[u8], associated: &[u8]) -> Bytes {
    let nonce = [3; 12];
    let mut sealed = content.to_vec();
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
    let place = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(place, Aad::from(associated), &mut sealed).unwrap();
    Bytes([&nonce[..], &sealed].concat())
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RootKeyRecord {
    #[serde(rename = "KeyID")]
    key_id: String,
    algorithm: String,
    state: String,
    wrapped_keys: Vec<WrappedKeyRecord>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WrappedKeyRecord {
    provider: String,
    wrapped_data_encryption_key: Map<String, Bytes>,
    key_encryption_key: Bytes,
}

fn root_key(provider: &str, kek: &[u8]) -> RootKeyRecord {
    let wrapped = WrappedKeyRecord {
        provider: provider.into(),
        wrapped_data_encryption_key: [("Ciphertext".to_string(), sealed(KEK, &DATA_KEY, b""))]
            .into_iter()
            .collect(),
        key_encryption_key: Bytes(kek.to_vec()),
    };
    RootKeyRecord {
        key_id: KEY.into(),
        algorithm: "aes256-gcm".into(),
        state: "active".into(),
        wrapped_keys: vec![wrapped],
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct VariableRecord {
    namespace: String,
    path: String,
    modify_index: u64,
    data: Bytes,
    #[serde(rename = "KeyID")]
    key_id: String,
}

fn variable(namespace: &str, key: [u8; 32]) -> VariableRecord {
    VariableRecord {
        namespace: namespace.into(),
        path: "app/db".into(),
        modify_index: 12,
        data: sealed(key, br#"{"password":"s3cret"}"#, KEY.as_bytes()),
        key_id: KEY.into(),
    }
}

fn web(version: u64, count: u64) -> Value {
    json!({
        "ID": "web", "Name": "web", "Namespace": "ops", "Type": "service", "Priority": 50, "Version": version,
        "Datacenters": ["*"], "Unheard": "of",
        "TaskGroups": [{ "Name": "g", "Count": count, "Tasks": [{ "Name": "t", "Driver": "docker", "Config": { "image": "web:1" } }] }],
    })
}

fn nightly(id: &str, parent: &str) -> Value {
    let group = json!({ "Name": "g", "Count": 1, "Tasks": [{ "Name": "t", "Driver": "raw_exec" }] });
    json!({ "ID": id, "ParentID": parent, "Type": "batch", "Priority": 50, "TaskGroups": [group] })
}

/// Some of everything.
fn furnished() -> State {
    State::new()
        .with(2, &json!({ "Key": "jobs", "Value": 47 }))
        .with(0, &json!({ "ID": "n1", "SecretID": "s", "Datacenter": "dc1", "Name": "node", "Meta": {} }))
        .with(27, &json!({ "Name": "gpu", "Description": "Big ones", "Meta": { "team": "ml" }, "SchedulerConfiguration": null, "Hash": null }))
        .with(27, &json!({ "Name": "default", "Description": "", "Meta": null, "SchedulerConfiguration": null }))
        .with(1, &web(2, 5))
        .with(1, &nightly("nightly/periodic-1", "nightly"))
        .with(3, &json!({ "ID": "e1", "TriggeredBy": "job-register", "JobID": "web", "Type": "service", "Priority": 50 }))
        .with(4, &json!({ "ID": "a1", "NodeID": "n1", "EvalID": "e1", "Job": web(1, 4) }))
        .with(5, &json!([{ "Index": 1, "Time": "x" }]))
        .with(9, &web(1, 4))
        .with(9, &web(2, 5))
        .with(9, &nightly("nightly/periodic-1", "nightly"))
        .with(10, &json!({ "ID": "d1", "JobID": "web", "JobVersion": 2, "TaskGroups": {} }))
        .with(11, &json!({ "Name": "readers", "Rules": "namespace \"ops\" { policy = \"read\" }", "JobACL": null }))
        .with(12, &json!({ "AccessorID": "x", "SecretID": "y", "Name": "ci", "Policies": ["readers"] }))
        .with(13, &json!({ "SchedulerAlgorithm": "spread", "PreemptionConfig": { "BatchSchedulerEnabled": true } }))
        .with(64, &json!({ "Name": "ops", "Description": "mine", "Quota": "", "Meta": { "a": "b" }, "Capabilities": null }))
        .with(17, &json!({ "ID": "v", "PluginID": "p", "AccessMode": "", "AttachmentMode": "", "Secrets": { "k": "v" } }))
        .with(21, &variable("ops", DATA_KEY))
        .with(22, &json!({ "Namespace": "ops", "Size": 100 }))
        .with(23, &root_key("aead", &KEK))
        .with(24, &json!({ "ID": "r", "Name": "staff", "Policies": [{ "Name": "readers" }] }))
        .with(28, &json!({ "Source": "job \"web\" {}", "Format": "hcl2", "Namespace": "ops", "JobID": "web", "Version": 2 }))
        .with(99, &json!({ "Shiny": 1, "New": 2 }))
}

fn read(file: &[u8], scope: &Scope) -> Result<Inventory, SnapshotError> {
    Inventory::from_snapshot(file, scope).map(|(inventory, index)| {
        assert_eq!(index, 48);
        inventory
    })
}

fn everything() -> Scope {
    Scope::of("", true)
}

fn notes(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| format!("{}: {}", note.what, note.why)).collect()
}

#[test]
fn a_snapshot_has_what_people_configured() {
    let found = read(&furnished().file(), &everything()).unwrap();
    let labels: Vec<String> = found.objects.iter().map(Object::label).collect();
    assert_eq!(
        labels,
        [
            "namespace ops",
            "node pool gpu",
            "ACL policy readers",
            "ACL role staff",
            "variable ops/app/db",
            "scheduler configuration",
            "job ops/web",
        ]
    );
    let [namespace, pool, _, role, Object::Variable(variable), scheduler, Object::Job(job)] =
        &found.objects[..]
    else {
        panic!("{labels:?}");
    };
    assert_eq!(namespace.content()["Meta"], json!({ "a": "b" }));
    assert_eq!(pool.content()["Description"], "Big ones");
    assert_eq!(role.content()["Policies"], json!([{ "Name": "readers" }]));
    assert_eq!(variable.items.get("password").map(String::as_str), Some("s3cret"));
    assert_eq!(scheduler.content()["PreemptionConfig"]["BatchSchedulerEnabled"], true);
    assert_eq!((job.job.version, job.job.task_groups[0].count), (Some(2), Some(5)), "the newest version");
    assert_eq!(job.unknown, ["Unheard"]);
    assert_eq!(job.submission.as_ref().map(|sent| sent.source.as_str()), Some("job \"web\" {}"));
    assert_eq!(
        notes(&found.left_out),
        [
            "1 ACL tokens: their secrets stay with that cluster: make new ones",
            "1 CSI volumes: their secrets stay with that cluster: register them again",
            "1 child jobs: periodic jobs and dispatches launched them: the other cluster launches its own",
            "1 records that are not known here: their fields are New, Shiny",
        ]
    );
    assert_eq!(notes(&found.failures), [""; 0]);
}

#[test]
fn one_namespace_is_what_was_asked_for() {
    let found = read(&furnished().file(), &Scope::of("ops", false)).unwrap();
    let labels: Vec<String> = found.objects.iter().map(Object::label).collect();
    assert_eq!(labels, ["namespace ops", "node pool gpu", "job ops/web"]);
    let found = read(&furnished().file(), &Scope::of("other", true)).unwrap();
    assert_eq!(found.objects.len(), 1);
}

#[test]
fn a_variable_that_cannot_be_opened_says_why_and_keeps_nothing_else() {
    let why = |state: State| {
        let found = read(&state.with(1, &web(0, 1)).file(), &everything()).unwrap();
        assert_eq!(found.objects.len(), 1, "the job");
        notes(&found.failures).concat()
    };
    let plain = || State::new().with(21, &variable("ops", DATA_KEY));
    let label = "variable ops/app/db: ";
    assert_eq!(why(plain()), format!("{label}the key {KEY} that it is sealed with is not in the snapshot"));
    assert_eq!(
        why(plain().with(23, &root_key("awskms", b""))),
        format!(
            "{label}the key {KEY} that it is sealed with can only be opened by awskms: read the running servers with import nomad-api"
        )
    );
    assert_eq!(
        why(plain().with(23, &root_key("aead", &[8; 32]))),
        format!("{label}the key {KEY} that it is sealed with is not opened by what is stored beside it")
    );
    let other = State::new().with(21, &variable("ops", [1; 32])).with(23, &root_key("aead", &KEK));
    assert_eq!(why(other), format!("{label}the key {KEY} does not open it"));
}

/// Records come in pieces that end anywhere.
#[test]
fn records_are_the_same_in_pieces_of_any_size() {
    let state = furnished();
    let split = |size: usize| {
        let (mut records, mut found) = (Records::default(), Vec::new());
        for piece in state.0.chunks(size) {
            let mut keep = |record: &[u8]| {
                found.push(record.to_vec());
                Ok(())
            };
            records.push(piece, &mut keep).unwrap();
        }
        records.finish().unwrap();
        found
    };
    let whole = split(state.0.len());
    assert_eq!(whole.len(), 25);
    for size in [1, 2, 3, 7, 64, 1000] {
        assert_eq!(split(size), whole, "{size}");
    }
}

#[test]
fn a_file_that_is_not_whole_is_not_used() {
    let state = furnished();
    let failure = |file: &[u8]| read(file, &everything()).unwrap_err().to_string();
    let whole = state.file();
    assert!(failure(b"hello").starts_with("it cannot be read as a gzip-compressed tar: "));
    for length in [10, whole.len() / 2, whole.len() - 9] {
        failure(&whole[..length]);
    }
    let (meta, bin) = (&b"{\"Index\":48}"[..], &state.0[..]);
    let sums = sums(&[("meta.json", meta), ("state.bin", bin)]);
    let sums = sums.as_bytes();
    let mut changed = bin.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    let cases: [(Files, &str); 6] = [
        (&[("meta.json", meta), ("state.bin", bin)], "it has no SHA256SUMS: expected meta.json, state.bin"),
        (&[("state.bin", bin), ("SHA256SUMS", sums)], "it has no meta.json: "),
        (&[("meta.json", meta), ("SHA256SUMS", sums)], "it has no state.bin: "),
        (&[("meta.json", meta), ("passwd", b"")], "it has a file \"passwd\": expected meta.json"),
        (
            &[("meta.json", b"{}"), ("state.bin", bin), ("SHA256SUMS", sums)],
            "meta.json is not what it should be: ",
        ),
        (
            &[("meta.json", meta), ("state.bin", &changed), ("SHA256SUMS", sums)],
            "it is damaged: state.bin does not have",
        ),
    ];
    for (files, expected) in cases {
        let why = failure(&archive(files));
        assert!(why.starts_with(expected), "{why}");
    }
    let mut cut = State(state.0.clone());
    cut.0.pop();
    assert_eq!(failure(&cut.file()), "state.bin is not what it should be: msgpack value ends early");
    let mut reserved = furnished();
    reserved.0.extend([1, 0xc1]);
    assert!(failure(&reserved.file()).contains("0xc1 begins no msgpack value"));
    let mut endless = State::new();
    // A text of 4 GiB, it says.
    endless.0.extend([1, 0xdb, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(failure(&endless.file()), "a record of state.bin is longer than anything that servers write");
}
