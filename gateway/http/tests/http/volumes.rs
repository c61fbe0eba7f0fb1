//! Volumes and plugins, as their clients see them.

use axum::body::Body;
use axum::http::Method;
use model::Command;
use model::document::{CSIInfo, Node};
use serde_json::json;

use crate::guarded::Guarded;
use crate::stream::seen_by;
use crate::support::{Cluster, assert_holds, node_document, node_id, request};

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
