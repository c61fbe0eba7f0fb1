//! Where the images of containers come from, and when they go.

use futures_util::stream::StreamExt;
use serde_json::json;

use crate::docker::{container, with_plugin};
use crate::support::engine::{self, TestEngine, archive};
use crate::support::*;

fn has_image(engine: &TestEngine, name: &str) -> bool {
    let name = name.to_string();
    engine.ask(async move |client| client.inspect_image(&name).await.is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pulled_once_for_all_and_removed_when_nobody_needs_it() {
    let Some(engine) = engine::shared("an_image_is_pulled_once") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let registry = registry::start(archive(&engine.busybox()));
    let image = format!("{}/app:1", registry.address);
    let auth = json!({"username": registry::USER, "password": registry::PASSWORD});
    let task = |name| container(name, "exec sleep 1000", json!({"image": &image, "auth": &auth}));
    servers.assign(alloc(150, "service", json!([task("a"), task("b")])));
    let plugin = json!({"endpoint": engine.endpoint(), "gc": {"image_delay": "100ms"}});
    let agent = start(with_plugin(base.path(), plugin), &servers).await;
    for name in ["a", "b"] {
        servers.await_task(&alloc_id(150), name, |task| {
            task.events.iter().any(|event| event.display_message == "Downloading image")
        });
    }
    assert!(!has_image(&engine, &image));
    registry.open();
    servers.await_status(&alloc_id(150), "running");
    for name in ["a", "b"] {
        servers.await_task(&alloc_id(150), name, |task| task.state == "running");
    }
    assert_eq!(registry.asked_for("HEAD /v2/app/manifests/1"), 1, "both have waited for one pull");

    // It is there already, for those who may not pull it as well.
    let later = container("t", "true", json!({"image": &image}));
    servers.assign(alloc(151, "batch", json!([later])));
    servers.await_status(&alloc_id(151), "complete");
    assert_eq!(registry.asked_for("HEAD /v2/app/manifests/1"), 1);
    let forced = container("t", "true", json!({"image": &image, "auth": &auth, "force_pull": true}));
    servers.assign(alloc(152, "batch", json!([forced])));
    servers.await_status(&alloc_id(152), "complete");
    assert_eq!(registry.asked_for("HEAD /v2/app/manifests/1"), 2);
    assert!(has_image(&engine, &image), "two tasks still have it");

    servers.stop(&alloc_id(150));
    servers.await_status(&alloc_id(150), "complete");
    eventually("the removal of the image", || (!has_image(&engine, &image)).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_come_from_the_task_or_from_the_operator() {
    let Some(engine) = engine::shared("credentials") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let registry = registry::start(archive(&engine.busybox()));
    registry.open();
    let config = base.path().join("auth.json");
    // `me:secret` in base64.
    let auths = json!({"auths": {&registry.address: {"auth": "bWU6c2VjcmV0"}}});
    std::fs::write(&config, auths.to_string()).unwrap();
    let image = |version: &str| format!("{}/own{version}", registry.address);
    let task = |more| json!([container("t", "true", more)]);
    let wrong = json!({"username": "me", "password": "wrong"});
    servers.assign(alloc(160, "batch", task(json!({"image": image(":1"), "auth": wrong}))));
    servers.assign(alloc(161, "batch", task(json!({"image": image(&format!("@{}", registry.digest))}))));
    servers.assign(alloc(162, "batch", task(json!({"image": image(":2")}))));
    let plugin =
        json!({"endpoint": engine.endpoint(), "auth": {"config": config}, "gc": {"image_delay": "100ms"}});
    let agent = start(with_plugin(base.path(), plugin), &servers).await;
    let why = |n| {
        let update = servers.await_status(&alloc_id(n), "failed");
        let events = update.task_states["t"].events.iter();
        events
            .map(|event| event.display_message.clone())
            .find(|text| text.contains("Failed to pull"))
            .unwrap()
    };
    assert!(why(160).contains("basic auth") || why(160).contains("nauthorized"), "{}", why(160));
    servers.await_status(&alloc_id(161), "complete");
    assert!(why(162).contains("manifest unknown"), "{}", why(162));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_loaded_from_a_file_of_the_task() {
    let Some(engine) = engine::shared("an_image_is_loaded") else { return };
    let (base, servers) = (Base::new(), FakeServers::new());
    let image = "loaded-test:1";
    engine.import(&engine.busybox(), image);
    let bytes = engine.ask(async move |client| {
        let mut parts = client.export_image(image);
        let mut bytes = Vec::new();
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part.unwrap());
        }
        client
            .remove_image(image, None::<bollard::query_parameters::RemoveImageOptions>, None)
            .await
            .unwrap();
        bytes
    });
    assert!(!has_image(&engine, image));
    let local = base.path().join("alloc").join(alloc_id(170)).join("t/local");
    std::fs::create_dir_all(&local).unwrap();
    std::fs::write(local.join("image.tar"), bytes).unwrap();
    let more = json!({"image": image, "load": "image.tar"});
    servers.assign(alloc(170, "batch", json!([container("t", "echo loaded", more)])));
    let plugin = json!({"endpoint": engine.endpoint(), "gc": {"image": false}});
    let agent = start(with_plugin(base.path(), plugin), &servers).await;
    servers.await_status(&alloc_id(170), "complete");
    assert_eq!(log(base.path(), 170, "t.stdout.0"), "loaded\n");
    assert!(has_image(&engine, image), "images are to stay");
    agent.shutdown().await;
}
