//! Volumes and plugins, as their clients see them.

use axum::body::Body;
use axum::http::Method;
use model::document::{CSIInfo, CSINodeInfo, Node};
use model::{AllocId, Command, NodeId, NodeStatus, VolumeKey, VolumeKind};
use serde_json::{Value, json};
use wire::messages::{
    CsiExpandRequest, CsiExpandResponse, CsiNodeExpandRequest, CsiNodeExpandResponse, CsiValidateRequest,
    Empty,
};

use crate::guarded::Guarded;
use crate::stream::seen_by;
use crate::support::{Cluster, assert_holds, job_json, node_document, node_id, request};

/// A node that runs a plugin.
async fn with_plugin(cluster: &Cluster) {
    let info = CSIInfo {
        plugin_id: "ebs".to_string(),
        healthy: true,
        provider: "aws.ebs".to_string(),
        provider_version: "1.2".to_string(),
        ..CSIInfo::default()
    };
    let node = node_id(1);
    let document = Node {
        csi_node_plugins: [("ebs".to_string(), info)].into_iter().collect(),
        ..node_document(node, 1)
    };
    cluster.submit(Command::RegisterNode { document: Box::new(document) }).await;
}

#[tokio::test]
async fn a_csi_volume_is_registered_listed_read_and_deregistered() {
    let cluster = Cluster::start().await;
    with_plugin(&cluster).await;
    let capability = json!({"AccessMode": "single-node-writer", "AttachmentMode": "file-system"});
    let volume =
        json!({"ID": "data", "Name": "data", "PluginID": "ebs", "RequestedCapabilities": [capability]});
    let body = json!({"Volumes": [volume]});
    cluster.put("/v1/volume/csi/other", &body).await.refused(400, "Volume ID does not match request path");
    cluster
        .send(request(Method::POST, "/v1/volume/csi/data", Body::empty()))
        .await
        .refused(405, "Invalid method");
    let registered = cluster.put("/v1/volume/csi/data", &body).await;
    assert_holds(
        &registered.json(),
        &json!({"Volumes": [{"ID": "data", "Namespace": "default"}], "Warnings": ""}),
    );
    let index = registered.index();

    let list = cluster.get("/v1/volumes?type=csi").await;
    assert_eq!(list.index(), index);
    let line = json!({
        "ID": "data", "PluginID": "ebs", "Provider": "aws.ebs", "Schedulable": true, "NodesHealthy": 1,
        "NodesExpected": 1, "ControllerRequired": false, "CurrentReaders": 0, "CurrentWriters": 0,
        "ResourceExhausted": "0001-01-01T00:00:00Z", "CreateIndex": index, "ModifyIndex": index,
    });
    assert_holds(&list.json(), &json!([line]));
    for none in ["type=host", "type=csi&plugin_id=x", "type=csi&prefix=x", "type=csi&namespace=x", "x=csi"] {
        assert_eq!(cluster.get(&format!("/v1/volumes?{none}")).await.json(), json!([]), "{none}");
    }
    let filtered = format!("/v1/volumes?type=csi&filter={}", "Schedulable%20==%20true");
    assert_holds(&cluster.get(&filtered).await.json(), &json!([{"ID": "data"}]));
    let read = cluster.get("/v1/volume/csi/data").await.json();
    let detail = json!({
        "ID": "data", "Secrets": null, "Allocations": [], "ReadAllocs": {}, "WriteAllocs": {},
        "ProviderVersion": "1.2", "Schedulable": true, "CreateIndex": index,
    });
    assert_holds(&read, &detail);

    let newer = format!("/v1/volumes?type=csi&index={index}");
    let waiting = cluster.get(&newer);
    let gone = async {
        cluster.delete("/v1/volume/csi/data?force=x").await.refused(400, "invalid force value");
        assert_eq!(cluster.delete("/v1/volume/csi/data").await.status, 200);
    };
    let (woken, ()) = tokio::join!(waiting, gone);
    assert_eq!(woken.json(), json!([]), "who waits for the list is woken by what leaves it");
    cluster.get("/v1/volume/csi/data").await.refused(404, "volume not found");
    assert_eq!(cluster.delete("/v1/volume/csi/data").await.status, 500);
    cluster
        .put("/v1/volume/csi/data/create", &body)
        .await
        .refused(500, "plugin ebs: no node has a healthy controller of it");
    cluster.get("/v1/volume/csi/data/x").await.refused(404, "resource not found");
}

/// No plugin is asked from where it can be reached: whoever registers it knows.
#[tokio::test]
async fn a_volume_that_is_there_is_reached_from_where_its_request_requires() {
    let cluster = Cluster::start().await;
    with_plugin(&cluster).await;
    let capability = json!({"AccessMode": "single-node-writer", "AttachmentMode": "file-system"});
    let zone = |name: &str| json!({"Segments": {"zone": name}});
    let volume = |more: Value| {
        let mut volume = json!({"ID": "data", "PluginID": "ebs", "RequestedCapabilities": [capability]});
        volume.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"Volumes": [volume]})
    };
    for (more, expected, warning) in [
        (json!({"RequestedTopologies": {"Required": [zone("a")]}}), "a", ""),
        (json!({"RequestedTopologies": {"Required": [zone("a")]}, "Topologies": [zone("b")]}), "b", ""),
        (
            json!({"RequestedTopologies": {"Required": [zone("c")], "Preferred": [zone("d")]}}),
            "c",
            "topology_request: preferred has no effect on a volume that is there already",
        ),
    ] {
        let registered = cluster.put("/v1/volume/csi/data", &volume(more)).await.json();
        assert_eq!(registered["Warnings"], warning);
        let read = cluster.get("/v1/volume/csi/data").await.json();
        assert_eq!(read["Topologies"], json!([zone(expected)]));
    }
}

/// They are a variable from then on; whoever may not write that may not give any.
#[tokio::test]
async fn secrets_of_a_volume_are_kept_sealed_and_reach_its_plugin() {
    let guarded = Guarded::start().await;
    let cluster = &guarded.cluster;
    let info = || CSIInfo { plugin_id: "ebs".to_string(), healthy: true, ..CSIInfo::default() };
    let document = Node {
        csi_controller_plugins: [("ebs".to_string(), info())].into_iter().collect(),
        ..node_document(node_id(1), 1)
    };
    cluster.submit(Command::RegisterNode { document: Box::new(document) }).await;
    cluster.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).await;
    let mut volume = data(0);
    volume["Secrets"] = json!({"key": "opensesame"});
    let path = "/v1/volume/csi/data";
    // What the plugin does not take is not kept.
    cluster.nodes.refuses("CSI.ControllerValidateVolume", "the secret is another one");
    let refused = guarded.put(&guarded.root, path, &json!({"Volumes": [volume]})).await;
    assert_eq!(refused.status, 500);
    guarded.get(&guarded.root, "/v1/var/csi/data").await.refused(404, "variable not found");

    cluster.nodes.answers("CSI.ControllerValidateVolume", &Empty {});
    let rules = r#"namespace "default" { capabilities = ["csi-write-volume", "csi-read-volume"] }"#;
    let writer = guarded.caller("writer", rules).await;
    let refused = guarded.put(&writer, path, &json!({"Volumes": [volume]})).await;
    let why =
        "Permission denied: Secrets are kept as the variable csi/data, which takes the right to write that";
    refused.refused(403, why);
    let made = guarded.put(&guarded.root, path, &json!({"Volumes": [volume]})).await;
    assert_eq!((made.status.as_u16(), made.text().contains("opensesame")), (200, false), "{}", made.text());
    let (_, method, asked) = cluster.nodes.last::<CsiValidateRequest>();
    assert_eq!(
        (method.as_str(), asked.secrets.0["key"].as_str()),
        ("CSI.ControllerValidateVolume", "opensesame")
    );
    assert_eq!(guarded.get(&guarded.root, path).await.json()["Secrets"], Value::Null);
    let kept = guarded.get(&guarded.root, "/v1/var/csi/data").await.json();
    assert_eq!(kept["Items"], json!({"key": "opensesame"}));

    // The same once more is no change of the variable.
    guarded.put(&writer, path, &json!({"Volumes": [volume]})).await.refused(403, why);
    let again = guarded.put(&guarded.root, path, &json!({"Volumes": [volume]})).await;
    assert_eq!(again.status, 200, "{}", again.text());
    let still = guarded.get(&guarded.root, "/v1/var/csi/data").await.json();
    assert_eq!(still["ModifyIndex"], kept["ModifyIndex"]);
    let seen = seen_by(cluster, &guarded.root, "?topic=CSIVolume&topic=Variable", 2).await;
    assert!(seen.iter().all(|event| !event.to_string().contains("opensesame")), "{seen:?}");
}

/// A volume that grows is expanded where it is mounted, if its plugin can do that there.
#[tokio::test]
async fn a_volume_that_grows_is_expanded_where_it_is_mounted() {
    let cluster = Cluster::start().await;
    let (node, expanding) = (node_id(1), |supports_expand| CSIInfo {
        plugin_id: "ebs".to_string(),
        healthy: true,
        node_info: Some(CSINodeInfo { supports_expand, ..CSINodeInfo::default() }),
        controller_info: Some(Default::default()),
        ..CSIInfo::default()
    });
    let document = |can| Node {
        csi_node_plugins: [("ebs".to_string(), expanding(can))].into_iter().collect(),
        csi_controller_plugins: [("ebs".to_string(), expanding(can))].into_iter().collect(),
        ..node_document(node, 1)
    };
    cluster.submit(Command::RegisterNode { document: Box::new(document(true)) }).await;
    cluster.submit(Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }).await;
    cluster.nodes.answers("CSI.ControllerValidateVolume", &Empty {});
    let alloc = mounting(&cluster, node).await;
    let key = VolumeKey::new(VolumeKind::Csi, "default", "data");
    cluster.submit(Command::ClaimCsiVolume { volume: key.clone(), alloc, node }).await;
    let grow = async |capacity: i64| {
        let grown = CsiExpandResponse { capacity_bytes: capacity, node_expansion_required: true };
        cluster.nodes.answers("CSI.ControllerExpandVolume", &grown);
        cluster.put("/v1/volume/csi/data/create", &json!({"Volumes": [data(capacity)]})).await.json()
    };
    cluster.nodes.answers("CSI.NodeExpandVolume", &CsiNodeExpandResponse { capacity_bytes: 10 });
    assert_eq!(grow(10).await["Warnings"], "");
    let (asked, method, request) = cluster.nodes.last::<CsiNodeExpandRequest>();
    assert_eq!((asked, method.as_str()), (node, "CSI.NodeExpandVolume"));
    assert_eq!((request.capacity.required_bytes, request.external_id.as_str()), (10, "data"));
    assert_eq!(request.claim.unwrap().allocation_id, alloc.to_string());
    let awaited = || cluster.control.state().expansions.get(&key).map(|awaited| awaited.required_bytes);
    assert_eq!(awaited(), None, "the node has done it");

    cluster.submit(Command::RegisterNode { document: Box::new(document(false)) }).await;
    let warning = format!("plugin ebs cannot expand what is mounted on these nodes: {node}");
    assert_eq!(grow(20).await["Warnings"], warning);
    assert_eq!(awaited(), Some(20), "for the next node to mount it");
    cluster.submit(Command::DetachCsiClaim { volume: key.clone(), alloc, node: Some(node) }).await;
    assert_eq!(grow(30).await["Warnings"], "", "no node has it any more");
    assert_eq!(cluster.nodes.last::<CsiExpandRequest>().1, "CSI.ControllerExpandVolume");
    assert_eq!(cluster.get("/v1/volume/csi/data").await.json()["Capacity"], 30);
    assert_eq!(awaited(), Some(30));
}

fn data(capacity: i64) -> Value {
    let capability = json!({"AccessMode": "single-node-writer", "AttachmentMode": "file-system"});
    json!({"ID": "data", "PluginID": "ebs", "RequestedCapabilities": [capability], "RequestedCapacityMin": capacity})
}

/// An allocation on the node that mounts a volume.
async fn mounting(cluster: &Cluster, node: NodeId) -> AllocId {
    let registered = cluster.put("/v1/volume/csi/data", &json!({"Volumes": [data(0)]})).await;
    assert_eq!(registered.status, 200, "{}", registered.text());
    let mut job = job_json("web");
    job["TaskGroups"][0]["Count"] = json!(1);
    job["TaskGroups"][0]["Volumes"] = json!({"v": {"Name": "v", "Type": "csi", "Source": "data",
        "AccessMode": "single-node-writer", "AttachmentMode": "file-system"}});
    let made = cluster.put("/v1/jobs", &json!({"Job": job})).await.json();
    let eval = made["EvalID"].as_str().unwrap().parse().unwrap();
    cluster.place(eval, "web", node, 7).await
}

#[tokio::test]
async fn plugins_are_what_nodes_report() {
    let cluster = Cluster::start().await;
    with_plugin(&cluster).await;
    let line = json!({"ID": "ebs", "Provider": "aws.ebs", "NodesHealthy": 1, "NodesExpected": 1});
    assert_holds(&cluster.get("/v1/plugins?type=csi").await.json(), &json!([line]));
    assert_eq!(cluster.get("/v1/plugins").await.json(), json!([]));
    let plugin = cluster.get("/v1/plugin/csi/ebs").await.json();
    assert_holds(&plugin, &json!({"ID": "ebs", "Version": "1.2", "Controllers": {}, "Allocations": []}));
    assert_eq!(plugin["Nodes"][node_id(1).to_string()]["Healthy"], true);
    cluster.get("/v1/plugin/csi/none").await.refused(404, "plugin not found");
}

#[tokio::test]
async fn a_host_volume_is_registered_listed_read_and_deleted() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await.to_string();
    let capability = json!({"AccessMode": "single-node-writer", "AttachmentMode": "file-system"});
    let volume = json!({
        "Name": "data", "NodeID": node, "HostPath": "/srv/data", "CapacityBytes": 7,
        "RequestedCapabilities": [capability],
    });
    let registered = cluster.put("/v1/volume/host/register", &json!({"Volume": volume})).await.json();
    assert!(registered["Warnings"].as_str().unwrap().starts_with("the volume is pending until"));
    let id = registered["Volume"]["ID"].as_str().unwrap().to_string();
    let line = json!({"ID": id, "Name": "data", "NodeID": node, "State": "pending", "CapacityBytes": 7});
    for query in [
        "type=host".to_string(),
        format!("type=host&node_id={node}"),
        format!("type=host&prefix={}", &id[..4]),
    ] {
        assert_holds(&cluster.get(&format!("/v1/volumes?{query}")).await.json(), &json!([line]));
    }
    assert_eq!(cluster.get("/v1/volumes?type=host&node_pool=x").await.json(), json!([]));
    let read = cluster.get(&format!("/v1/volume/host/{id}")).await.json();
    assert_holds(&read, &json!({"HostPath": "/srv/data", "Namespace": "default"}));
    let deleted = cluster.delete(&format!("/v1/volume/host/{id}")).await;
    assert_eq!(deleted.json()["Index"], deleted.index());
    cluster.get(&format!("/v1/volume/host/{id}")).await.refused(404, "volume not found");
    cluster.put("/v1/volume/host/register", &json!({})).await.refused(400, "Volume: expected a host volume");
    let elsewhere = json!({"Volume": {"Namespace": "none", "Name": "x", "NodeID": node, "HostPath": "/x",
        "RequestedCapabilities": [capability]}});
    let refused = cluster.put("/v1/volume/host/register", &elsewhere).await;
    assert!(refused.text().contains("none"), "{}", refused.text());
    assert_ne!(refused.status, 200);
}

/// What may be read may be followed, and nothing else.
#[tokio::test]
async fn volumes_and_plugins_are_followed_by_those_who_may_read_them() {
    let guarded = Guarded::start().await;
    let cluster = &guarded.cluster;
    with_plugin(cluster).await;
    let capability = json!({"AccessMode": "single-node-writer", "AttachmentMode": "file-system"});
    let csi = json!({"ID": "data", "Name": "data", "PluginID": "ebs", "RequestedCapabilities": [capability]});
    let got = guarded.put(&guarded.root, "/v1/volume/csi/data", &json!({"Volumes": [csi]})).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let host = json!({"Name": "scratch", "NodeID": node_id(1).to_string(), "HostPath": "/srv", "RequestedCapabilities": [capability]});
    let made = guarded.put(&guarded.root, "/v1/volume/host/register", &json!({"Volume": host})).await.json();
    let id = made["Volume"]["ID"].as_str().unwrap().to_string();
    guarded.delete(&guarded.root, &format!("/v1/volume/host/{id}")).await;

    let csi = guarded.caller("csi", r#"namespace "default" { capabilities = ["csi-read-volume"] }"#).await;
    let hosts =
        guarded.caller("hosts", r#"namespace "default" { capabilities = ["host-volume-read"] }"#).await;
    let plugins = guarded.caller("plugins", r#"plugin { policy = "read" }"#).await;
    let jobs = guarded.caller("jobs", r#"namespace "default" { policy = "read" }"#).await;
    let seen = seen_by(cluster, &csi, "?topic=CSIVolume:ebs", 1).await;
    let expected = json!({"Type": "CSIVolumeRegistered", "Key": "data", "Namespace": "default",
        "FilterKeys": ["data", "data", "ebs"], "Payload": {"Volume": {"ID": "data", "Secrets": null}}});
    assert_holds(&seen[0], &expected);
    let seen = seen_by(cluster, &hosts, "?topic=HostVolume:scratch", 2).await;
    assert_eq!([&seen[0]["Type"], &seen[1]["Type"]], ["HostVolumeRegistered", "HostVolumeDeleted"]);
    assert_eq!((&seen[1]["Key"], &seen[1]["Payload"]["Volume"]["HostPath"]), (&json!(id), &json!("/srv")));
    let seen = seen_by(cluster, &plugins, "?topic=CSIPlugin", 1).await;
    assert_holds(
        &seen[0],
        &json!({"Key": "ebs", "Namespace": "", "Payload": {"Plugin": {"NodesHealthy": 1}}}),
    );
    for (token, topic) in
        [(&csi, "HostVolume"), (&hosts, "CSIVolume"), (&csi, "CSIPlugin"), (&jobs, "CSIPlugin")]
    {
        let refused = guarded.get(token, &format!("/v1/event/stream?topic={topic}")).await;
        refused.refused(403, "Permission denied");
    }
}
