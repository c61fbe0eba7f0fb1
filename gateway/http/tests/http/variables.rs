//! Variables over HTTP: who may do what with them, what a conflict shows, locks, versions, and that no secret leaves a trace.

use axum::http::{Method, StatusCode};
use base::{Time, Uuid};
use keyring::{KeyTree, ServerSecret, Signer, next_rekey};
use model::{Command, KeyTreeCommand, VariableKey};
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY, with_root_key};
use crate::support::{Cluster, Got, SECRET as SERVER_SECRET, assert_holds};

const SECRET: &str = "hunter2-and-more";

fn holding(value: &str) -> Value {
    json!({"Items": {"password": value}})
}

async fn open() -> Cluster {
    with_root_key(Cluster::start().await).await
}

/// What is there instead.
fn conflict(got: &Got) -> Value {
    assert_eq!(got.status, 409, "{}", got.text());
    serde_json::from_str(got.text()).unwrap()
}

async fn delete(cluster: &Cluster, path: &str) -> Got {
    cluster.send(crate::guarded::with_token(NOBODY, Method::DELETE, path, &Value::Null)).await
}

#[tokio::test]
async fn a_variable_is_written_read_listed_and_deleted() {
    let cluster = open().await;
    cluster.get("/v1/var/app/db").await.refused(404, "variable not found");
    cluster.get("/v1/var/").await.refused(400, "missing variable path");
    assert_eq!(cluster.get("/v1/vars").await.json(), json!([]));
    let got = cluster.put("/v1/var/app/db", &holding(SECRET)).await;
    let index = got.index();
    let wanted = json!({
        "Namespace": "default", "Path": "app/db", "Items": {"password": SECRET},
        "CreateIndex": index, "ModifyIndex": index,
    });
    assert_holds(&got.json(), &wanted);
    let read = cluster.get("/v1/var/app/db").await;
    assert_holds(&read.json(), &wanted);
    assert_eq!((read.index(), read.json().get("Lock")), (index, None));

    let again = cluster.put("/v1/var/app/db", &holding(SECRET)).await;
    assert_eq!(again.json()["ModifyIndex"], index, "the same items change nothing");
    cluster.put("/v1/var/app/cache", &holding("x")).await;
    cluster.put("/v1/var/web", &holding("y")).await;
    let paths = async |query: &str| {
        let got = cluster.get(&format!("/v1/vars{query}")).await.json();
        let all = got.as_array().unwrap().iter();
        all.map(|one| one["Path"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths("").await, ["app/cache", "app/db", "web"]);
    assert_eq!(paths("?prefix=app/").await, ["app/cache", "app/db"]);
    assert_eq!(paths("?namespace=*&prefix=w").await, ["web"]);
    assert_eq!(paths("?namespace=dev").await, Vec::<String>::new());
    assert_eq!(paths("?filter=Path+contains+%22cache%22").await, ["app/cache"]);
    let first = cluster.get("/v1/vars?per_page=1").await;
    assert_eq!(first.header("x-nomad-nexttoken"), "default.app/db");
    assert_eq!(paths("?per_page=1&next_token=default.app/db").await, ["app/db"]);
    let list = cluster.get("/v1/vars").await;
    assert!(list.json().as_array().unwrap().iter().all(|one| one.get("Items").is_none()));

    let gone = delete(&cluster, "/v1/var/app/db").await;
    assert_eq!((gone.status, gone.text()), (StatusCode::NO_CONTENT, ""));
    cluster.get("/v1/var/app/db").await.refused(404, "variable not found");
    assert_eq!(delete(&cluster, "/v1/var/app/db").await.status, 204, "it is gone already");
}

#[tokio::test]
async fn search_finds_variables() {
    let cluster = open().await;
    cluster.put("/v1/var/app/db", &holding("x")).await;
    let found = cluster.put("/v1/search", &json!({"Prefix": "app", "Context": "vars"})).await.json();
    assert_eq!(found["Matches"]["vars"], json!(["app/db"]));
    let found = cluster.put("/v1/search/fuzzy", &json!({"Text": "db", "Context": "vars"})).await.json();
    assert_eq!(found["Matches"]["vars"], json!([{"ID": "app/db", "Scope": ["default", "app/db"]}]));
}

#[tokio::test]
async fn what_is_wrong_with_a_variable_is_named() {
    let cluster = open().await;
    let put = async |path: &str, body: &Value| {
        let got = cluster.put(path, body).await;
        (got.status.as_u16(), got.text().to_string())
    };
    let (status, text) = put("/v1/var/nomad/foo", &holding("x")).await;
    assert!(status == 400 && text.contains("only nomad/jobs"), "{text}");
    assert_eq!(put("/v1/var/nomad/jobs/x", &holding("x")).await.0, 200);
    assert_eq!(put("/v1/var/a%20b", &holding("x")).await.0, 400);
    let required = "variable missing required Items object";
    assert_eq!(put("/v1/var/a", &json!({})).await, (400, required.to_string()));
    assert_eq!(put("/v1/var/a", &json!({"Items": null})).await, (400, required.to_string()));
    assert_eq!(put("/v1/var/a", &holding(&"x".repeat(65_536 - 8))).await.0, 200);
    let (status, text) = put("/v1/var/a", &holding(&"x".repeat(65_536 - 7))).await;
    assert_eq!((status, text.contains("64 KiB")), (400, true), "{text}");
    let mismatch = json!({"Path": "b", "Items": {"a": "b"}});
    assert_eq!(put("/v1/var/a", &mismatch).await.1, "variable path does not match the path of the request");
    assert_eq!(put("/v1/var/a?cas=x", &holding("x")).await.0, 400);
    assert_eq!(
        put("/v1/var/a?cas=1&lock-acquire", &holding("x")).await.1,
        "CAS can't be used with lock operations"
    );
    assert_eq!(put("/v1/var/a?lock-renew&lock-release", &holding("x")).await.1, "multiple lock operations");
    assert_eq!(
        put("/v1/var/a?namespace=dev", &holding("x")).await,
        (404, "namespace \"dev\" not found".into())
    );
    assert_eq!(put("/v1/var/a?namespace=*", &holding("x")).await.0, 400);
    // What is of the wrong type may be a secret.
    let (status, text) = put("/v1/var/a", &json!({"Items": {"pin": 123_456}})).await;
    assert_eq!((status, text.contains("123456"), text.contains("Items.pin")), (400, false, true), "{text}");
    let other =
        cluster.send(crate::guarded::with_token(NOBODY, Method::PATCH, "/v1/var/a", &Value::Null)).await;
    other.refused(400, "Invalid method");
}

#[tokio::test]
async fn a_conflict_shows_what_is_there() {
    let cluster = open().await;
    let none = cluster.put("/v1/var/a?cas=7", &holding("x")).await;
    assert_holds(&conflict(&none), &json!({"Namespace": "default", "Path": "a", "ModifyIndex": 0}));
    let first = cluster.put("/v1/var/a?cas=0", &holding("x")).await.index();
    let late = cluster.put("/v1/var/a?cas=0", &holding("y")).await;
    assert_holds(&conflict(&late), &json!({"ModifyIndex": first, "Items": {"password": "x"}}));
    let second = cluster.put(&format!("/v1/var/a?cas={first}"), &holding("y")).await;
    assert_eq!(second.status, 200);
    let late = delete(&cluster, &format!("/v1/var/a?cas={first}")).await;
    assert_eq!(conflict(&late)["ModifyIndex"], second.index());
    assert_eq!(delete(&cluster, &format!("/v1/var/a?cas={}", second.index())).await.status, 204);
}

const READ_APP: &str = r#"namespace "default" { variables { path "app/*" { capabilities = ["read"] } } }"#;
const WRITE_APP: &str = r#"namespace "default" { variables { path "app/*" { capabilities = ["write"] } } }"#;

#[tokio::test]
async fn policies_say_which_paths_a_caller_may_use() {
    let guarded = Guarded::start().await;
    let (root, denied) = (&guarded.root, "Permission denied");
    for path in ["app/db", "other/db"] {
        assert_eq!(guarded.put(root, &format!("/v1/var/{path}"), &holding(SECRET)).await.status, 200);
    }
    let (reader, writer) =
        (guarded.caller("reader", READ_APP).await, guarded.caller("writer", WRITE_APP).await);
    let list = guarded.get(&reader, "/v1/vars").await.json();
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    assert_eq!(guarded.get(&reader, "/v1/var/app/db").await.json()["Items"]["password"], SECRET);
    guarded.get(&reader, "/v1/var/other/db").await.refused(403, denied);
    guarded.put(&reader, "/v1/var/app/db", &holding("x")).await.refused(403, denied);
    guarded.get(NOBODY, "/v1/vars").await.refused(403, denied);

    guarded.get(&writer, "/v1/var/app/db").await.refused(403, denied);
    let late = guarded.put(&writer, "/v1/var/app/db?cas=1", &holding("x")).await;
    assert!(conflict(&late).get("Items").is_none(), "who may not read sees none: {}", late.text());
    let own = guarded.put(&writer, "/v1/var/app/db", &holding("mine")).await.json();
    assert_eq!(own["Items"]["password"], "mine", "it has just said so itself");
    guarded.delete(&writer, "/v1/var/app/db").await.refused(403, denied);

    // The lock of another is shown to who manages.
    let acquire = json!({"Lock": {"TTL": "10s"}});
    let locked = guarded.put(&writer, "/v1/var/app/db?lock-acquire", &acquire).await.json();
    assert!(locked["Lock"]["ID"].is_string() && locked.get("Items").is_none(), "{locked}");
    assert_eq!(guarded.get(root, "/v1/var/app/db").await.json()["Lock"], locked["Lock"]);
    assert!(guarded.get(&reader, "/v1/var/app/db").await.json().get("Lock").is_none());
    assert!(guarded.get(&reader, "/v1/vars").await.json()[0].get("Lock").is_none());
}

#[tokio::test]
async fn a_lock_is_acquired_renewed_and_released() {
    let cluster = open().await;
    let put = async |query: &str, body: &Value| cluster.put(&format!("/v1/var/lock?{query}"), body).await;
    put("lock-renew", &json!({"Lock": {"ID": "00000000-0000-0000-0000-000000000001"}}))
        .await
        .refused(404, "variable doesn't exist");
    let default = cluster.put("/v1/var/default?lock-acquire", &json!({"Items": {"k": "v"}})).await.json();
    assert_eq!((&default["Lock"]["TTL"], &default["Lock"]["LockDelay"]), (&json!("15s"), &json!("15s")));
    let short = put("lock-acquire", &json!({"Lock": {"TTL": "1s"}})).await;
    assert_eq!((short.status.as_u16(), short.text()), (400, "invalid lock TTL 1s: expected 10s to 24h0m0s"));

    let held = put("lock-acquire", &json!({"Items": {"owner": "me"}, "Lock": {}})).await;
    let lock = held.json()["Lock"].clone();
    assert_holds(&lock, &json!({"TTL": "15s", "LockDelay": "15s"}));
    assert_eq!(put("lock-acquire", &json!({"Lock": {"TTL": "20s"}})).await.status, 409);
    put("lock-acquire", &json!({"Lock": lock})).await.refused(400, "variable already holds a lock");
    let other = json!({"Lock": {"ID": "00000000-0000-0000-0000-000000000001"}});
    put("lock-renew", &other).await.refused(409, "attempting to modify locked variable");
    assert_eq!(put("lock-release", &other).await.status, 409);
    assert_eq!(put("", &holding("x")).await.status, 409, "it is locked");
    assert_eq!(delete(&cluster, "/v1/var/lock").await.status, 409);

    let before = cluster.journal.batches().len();
    let renewed = put("lock-renew", &json!({"Lock": lock})).await;
    assert_holds(&renewed.json(), &json!({"Path": "lock", "Lock": lock}));
    assert!(renewed.headers.get("x-nomad-index").is_none(), "nothing was written");
    assert_eq!(cluster.journal.batches().len(), before);
    let set = put("", &json!({"Items": {"owner": "still me"}, "Lock": lock})).await;
    assert_eq!(set.status, 200, "{}", set.text());

    let released = put("lock-release", &json!({"Lock": lock})).await;
    assert_eq!((released.json().get("Items"), released.json().get("Lock")), (None, None));
    assert_holds(&cluster.get("/v1/var/lock").await.json(), &json!({"Items": {"owner": "still me"}}));
    put("lock-renew", &json!({"Lock": lock})).await.refused(409, "variable doesn't hold a lock");
    assert_eq!(
        put("", &json!({"Items": {"a": "b"}, "Lock": lock})).await.status,
        409,
        "who lost it writes nothing"
    );
}

#[tokio::test]
async fn earlier_versions_stay_with_who_wrote_them() {
    let guarded = Guarded::start().await;
    let root = &guarded.root;
    let writer = guarded.caller("writer", WRITE_APP).await;
    guarded.put(root, "/v1/var/app/db", &holding("one")).await;
    guarded.put(&writer, "/v1/var/app/db", &holding("two")).await;
    let versions = guarded.get(root, "/v1/var/app/db?versions").await.json();
    assert_holds(&versions[0], &json!({"Version": 1, "Author": "writer"}));
    assert_holds(&versions[1], &json!({"Version": 0, "Author": "Bootstrap Token"}));
    let old = guarded.get(root, "/v1/var/app/db?version=0").await.json();
    assert_holds(&old, &json!({"Items": {"password": "one"}, "ModifyIndex": versions[1]["ModifyIndex"]}));
    let missing = guarded.get(root, "/v1/var/app/db?version=7").await;
    missing.refused(404, "version 7 of the variable is not kept, or never was");
    guarded.get(&writer, "/v1/var/app/db?versions").await.refused(403, "Permission denied");
    guarded.get(&writer, "/v1/var/app/db?version=0").await.refused(403, "Permission denied");
}

#[tokio::test]
async fn no_secret_is_in_the_log_or_in_an_image_of_the_state() {
    let cluster = open().await;
    let mut named = crate::guarded::with_token(NOBODY, Method::PUT, "/v1/var/app/db", &holding(SECRET));
    let name = "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11";
    named.headers_mut().insert("x-sojourn-request-id", name.parse().unwrap());
    assert_eq!(cluster.send(named).await.status, 200);
    cluster.put("/v1/var/app/db?lock-acquire", &json!({"Items": {"password": SECRET}, "Lock": {}})).await;
    let leaks = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    let image = state::Imager::default().image(&cluster.control.state());
    let chunks = image.chunks.iter().filter_map(|chunk| chunk.bytes.as_ref());
    assert!(chunks.clone().any(|bytes| bytes.windows(6).any(|part| part == b"app/db")), "its path is there");
    assert!(!chunks.into_iter().any(|bytes| leaks(bytes)));
    assert!(!cluster.journal.batches().iter().any(|batch| leaks(batch.bytes())));
    // Nor is anything that a guess could be compared with: the name of the request covers its path alone.
    let unkeyed = |text: &[u8]| blake3::hash(text).as_bytes()[..16].to_vec();
    let guess = unkeyed(holding(SECRET).to_string().as_bytes());
    assert!(
        !cluster.journal.batches().iter().any(|batch| batch.bytes().windows(16).any(|part| part == guess))
    );
}

#[tokio::test]
async fn a_full_rotation_names_the_keys_whose_seals_are_replaced() {
    let cluster = open().await;
    cluster.put("/v1/var/a", &holding("x")).await;
    cluster.put("/v1/var/a", &holding("y")).await;
    let modified = cluster.get("/v1/var/a").await.json()["ModifyIndex"].clone();
    let states = async || {
        let keys = cluster.get("/v1/operator/keyring/keys").await.json();
        let mut states: Vec<String> =
            keys.as_array().unwrap().iter().map(|key| key["State"].as_str().unwrap().into()).collect();
        states.sort();
        states
    };
    cluster.put("/v1/operator/keyring/rotate", &Value::Null).await;
    assert_eq!(states().await, ["active", "inactive"]);
    assert_eq!(
        cluster.get("/v1/var/a").await.json()["Items"]["password"],
        "y",
        "the former key still opens it"
    );
    cluster.put("/v1/operator/keyring/rotate?full", &Value::Null).await;
    assert_eq!(states().await, ["active", "inactive", "inactive"], "`full` is a boolean, and this is none");
    cluster.put("/v1/operator/keyring/rotate?full=true", &Value::Null).await;
    assert_eq!(states().await, ["active", "rekeying", "rekeying", "rekeying"]);
    let signer = Signer::new(ServerSecret::new(Uuid::from(7), &SERVER_SECRET).unwrap());
    // What the leader does in the background.
    while let Some(command) = next_rekey(&signer, &cluster.control.state()) {
        cluster.submit(command).await;
    }
    assert_eq!(states().await, ["active", "inactive", "inactive", "inactive"]);
    let now = cluster.get("/v1/var/a").await.json();
    assert_eq!((&now["Items"]["password"], &now["ModifyIndex"]), (&json!("y"), &modified));
    let state = cluster.control.state();
    let (active, _) = state.keyring.active().unwrap();
    assert!(
        state
            .variables
            .iter()
            .all(|(_, row)| row.versions.iter().all(|kept| kept.items.sealed.key == active))
    );
    let former = state.keyring.keys().keys().find(|key| **key != active).unwrap();
    let used = |key| keyring::is_used(&state, key, Time(i64::MAX));
    assert_eq!((used(active), used(*former)), (true, false));
    assert_eq!(cluster.get("/v1/var/a?version=0").await.json()["Items"]["password"], "x");
}

/// As servers do it among themselves: the one with the id 7 has the tree.
pub async fn with_key_tree(cluster: &Cluster) {
    let submit = async |command| cluster.submit(Command::KeyTree(Box::new(command))).await;
    let (server, tree) = (Uuid::from(7), KeyTree::generate().unwrap());
    let secret = ServerSecret::new(server, &SERVER_SECRET).unwrap();
    submit(KeyTreeCommand::Request { server, public: secret.public() }).await;
    let sealed = vec![tree.seal_for(server, &secret.public()).unwrap()];
    let tree_id = tree.id();
    submit(KeyTreeCommand::Found { tree: tree_id, sealed, after: None }).await;
    cluster.signer.trees().put(tree);
    erased(cluster).await;
}

pub async fn erased(cluster: &Cluster) {
    let state = cluster.control.state();
    let (tree, up_to) = (state.erasure.tree().unwrap(), state.index);
    let report = KeyTreeCommand::ReportErased { server: Uuid::from(7), tree, up_to };
    cluster.submit(Command::KeyTree(Box::new(report))).await;
}

#[tokio::test]
async fn a_forgotten_variable_is_gone_from_the_past_as_well() {
    let guarded = Guarded::start().await;
    let (cluster, root) = (&guarded.cluster, &guarded.root);
    let before = guarded.put(root, "/v1/var/app/old", &holding(SECRET)).await.index();
    with_key_tree(cluster).await;
    let first = guarded.put(root, "/v1/var/app/db", &holding(SECRET)).await.index();
    let last = guarded.put(root, "/v1/var/app/db", &holding("two")).await.index();
    assert_eq!(guarded.put(root, "/v1/var/app/db", &holding("two")).await.json()["ModifyIndex"], last);
    let kept = guarded.put(root, "/v1/var/app/kept", &holding("kept")).await.index();
    let past = async |path: &str, index| guarded.get(root, &format!("/v1/var/{path}as_of={index}")).await;
    assert_eq!(past("app/db?", first).await.json()["Items"]["password"], SECRET);

    let writer = guarded.caller("writer", WRITE_APP).await;
    guarded.delete(&writer, "/v1/var/app/db?forget").await.refused(403, "Permission denied");
    guarded.get(&writer, "/v1/var/other?forgotten").await.refused(403, "Permission denied");
    let cas = guarded.delete(root, "/v1/var/app/db?forget&cas=1").await;
    cas.refused(400, "`cas` can't be used with `forget`");
    assert_eq!(guarded.get(root, "/v1/var/app/db?forgotten").await.json(), json!([]));
    let answer = guarded.delete(root, "/v1/var/app/db?forget").await;
    let at = answer.index();
    let id = Uuid::from(7).to_string();
    let wanted = json!({
        "Namespace": "default", "Path": "app/db", "ForgottenAt": at, "Complete": false,
        "Pending": [{"ID": id, "Name": ""}], "KeptBefore": cluster.control.state().erasure.since().0,
    });
    assert_eq!(answer.json(), wanted);
    assert!(before < cluster.control.state().erasure.since().0, "a root key encrypts what was there before");

    // From here on, whether its key is there or not.
    let gone =
        format!("variable app/db in namespace default was forgotten at index {at}: what it held is erased");
    past("app/db?", first).await.refused(410, &gone);
    past("app/db?version=0&", last).await.refused(410, &gone);
    guarded
        .get(root, "/v1/var/app/db")
        .await
        .refused(404, &format!("variable not found: it was forgotten at index {at}"));
    assert_eq!(
        past("app/db?versions&", last).await.json().as_array().unwrap().len(),
        2,
        "who wrote it, and when"
    );
    assert_eq!(past("app/kept?", kept).await.json()["Items"]["password"], "kept");
    erased(cluster).await;
    let reader = guarded.caller("reader", READ_APP).await;
    let status = guarded.get(&reader, "/v1/var/app/db?forgotten").await.json();
    assert_eq!((&status[0]["Complete"], &status[0]["Pending"]), (&json!(true), &Value::Null));

    // The log that is there may be older than the erasure.
    let state = cluster.control.state();
    let kept = state.erasure.key_of(&VariableKey::new("default", "app/kept"));
    for tree in cluster.signer.trees().without(&[kept]) {
        cluster.signer.trees().put(tree);
    }
    let erased = "variable app/kept in namespace default was forgotten: what it held is erased";
    guarded.get(root, "/v1/var/app/kept").await.refused(410, erased);

    // It leaves as what it was is deleted.
    let seen = crate::stream::seen_by(cluster, root, &format!("?topic=Variable&index={at}"), 1).await;
    assert_eq!(
        (&seen[0]["Payload"]["Metadata"]["Path"], &seen[0]["Payload"]["Deleted"]),
        (&json!("app/db"), &json!(true))
    );
}

/// The topic, the type, and who sees it.
#[tokio::test]
async fn changes_of_variables_are_events() {
    let guarded = Guarded::start().await;
    let root = &guarded.root;
    let reader = guarded.caller("reader", READ_APP).await;
    guarded.put(root, "/v1/var/app/db", &holding(SECRET)).await;
    guarded.put(root, "/v1/var/other/db", &holding(SECRET)).await;
    guarded.delete(root, "/v1/var/app/db").await;
    let (mut entries, mut folded) = (Vec::new(), state::State::default());
    for batch in guarded.cluster.journal.batches() {
        entries.extend(feed::entries::list(&mut folded, &batch.decode().unwrap()).unwrap());
    }
    let of_variables = entries.iter().filter(|entry| entry.topic == feed::entries::VARIABLE);
    let shown: Vec<(&str, &str)> = of_variables.map(|entry| (entry.kind, entry.key.as_str())).collect();
    let updated = |path| ("VariableUpdated", path);
    assert_eq!(shown, [updated("app/db"), updated("other/db"), updated("app/db")]);

    let denied = guarded.get(NOBODY, "/v1/event/stream?topic=Variable&index=1").await;
    denied.refused(403, "Permission denied");
    let seen = crate::stream::seen_by(&guarded.cluster, &reader, "?topic=Variable&index=1", 2).await;
    let paths: Vec<&Value> = seen.iter().map(|event| &event["Payload"]["Metadata"]["Path"]).collect();
    assert_eq!(paths, [&json!("app/db"), &json!("app/db")]);
    assert_eq!((seen[0]["Payload"].get("Deleted"), &seen[1]["Payload"]["Deleted"]), (None, &json!(true)));
    assert!(!seen.iter().any(|event| event.to_string().contains(SECRET)));
}
