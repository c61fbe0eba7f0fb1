//! One job in several regions: registered in all, deployed in one after the other, stopped in all.

use serde_json::{Value, json};

use crate::regions::{Federation, Place};

/// A service without a count of its own: where a region asks for none it is complete at once, and where it asks for some it stays
/// under way, because there are no nodes.
fn job(id: &str, strategy: &Value, regions: &Value) -> Value {
    let task = json!({"Name": "task", "Driver": "raw_exec", "Config": {"command": "/bin/true"}});
    json!({
        "ID": id, "Datacenters": ["dc1"], "Meta": {"a": "all"},
        "TaskGroups": [{"Name": "group", "Count": 0, "Tasks": [task]}],
        "Multiregion": {"Strategy": strategy, "Regions": regions},
    })
}

async fn registered(place: &Place, job: &Value) -> Value {
    let answer = place.put("/v1/jobs", &json!({"Job": job})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

async fn deployment(place: &Place, id: &str) -> Value {
    place.get(&format!("/v1/job/{id}/deployment")).await.json()
}

async fn until(place: &Place, id: &str, status: &str) {
    let what = format!("the deployment of {id} is {status}");
    place.until(&what, async || deployment(place, id).await["Status"] == status).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_registered_in_all_its_regions_as_each_has_it() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let regions = json!([
        {"Name": "eu", "Count": 0},
        {"Name": "us", "Count": 2, "Datacenters": ["us-1", "us-2"], "NodePool": "all", "Meta": {"a": "us", "b": "new"}},
    ]);
    let shop = job("shop", &json!({}), &regions);
    let answer = registered(&us, &shop).await;
    let (there, here) = (eu.get("/v1/job/shop").await.json(), us.get("/v1/job/shop").await.json());
    assert_eq!(answer["JobModifyIndex"], here["JobModifyIndex"], "the answer is the one of this region");
    let shown = |job: &Value| {
        let group = &job["TaskGroups"][0];
        json!([job["Region"], job["Datacenters"], job["NodePool"], job["Meta"], group["Count"]])
    };
    assert_eq!(shown(&there), json!(["eu", ["dc1"], "default", {"a": "all"}, 0]));
    assert_eq!(shown(&here), json!(["us", ["us-1", "us-2"], "all", {"a": "us", "b": "new"}, 2]));
    // The same once more changes nothing.
    registered(&eu, &shop).await;
    assert_eq!(us.get("/v1/job/shop").await.json()["Version"], 0);

    // Nothing of it is registered if something is wrong, and what is wrong is named.
    let twice = job("twice", &json!({"OnFailure": "panic"}), &json!([{"Name": "eu"}, {"Name": "eu"}]));
    let refused = eu.put("/v1/jobs", &json!({"Job": twice})).await;
    assert_eq!(refused.status, 400);
    for what in ["region \"eu\" is named twice", "there is no \"panic\""] {
        assert!(refused.body.contains(what), "{}", refused.body);
    }
    assert_eq!(eu.get("/v1/job/twice").await.status, 404);
    let checked = json!({"Job": shop, "EnforceIndex": true, "JobModifyIndex": 7});
    assert!(eu.put("/v1/jobs", &checked).await.body.contains("EnforceIndex: expected none"));
    // A region that cannot be reached: the answer says where the job is by then.
    let far = job("far", &json!({}), &json!([{"Name": "us"}, {"Name": "mars"}, {"Name": "eu"}]));
    let refused = eu.put("/v1/jobs", &json!({"Job": far})).await;
    let expected = "region mars: No path to region (registered in us)";
    assert_eq!((refused.status, refused.body.as_str()), (500, expected));
    assert_eq!((us.get("/v1/job/far").await.status, eu.get("/v1/job/far").await.status), (200, 404));

    let stopped = eu.send("DELETE", "/v1/job/shop?global=true", "", "").await;
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    for place in [&eu, &us] {
        assert_eq!(place.get("/v1/job/shop").await.json()["Stop"], true, "in {}", place.region);
    }
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_are_deployed_one_after_the_other_and_end_together() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let one = json!({"MaxParallel": 1});
    registered(&us, &job("quick", &one, &json!([{"Name": "eu", "Count": 0}, {"Name": "us", "Count": 0}])))
        .await;
    for place in [&eu, &us] {
        until(place, "quick", "successful").await;
        assert_eq!(deployment(place, "quick").await["IsMultiregion"], true);
    }

    registered(&us, &job("slow", &one, &json!([{"Name": "eu", "Count": 1}, {"Name": "us", "Count": 0}])))
        .await;
    until(&eu, "slow", "running").await;
    until(&us, "slow", "pending").await;
    let waits = deployment(&us, "slow").await;
    assert_eq!(waits["StatusDescription"], "Deployment is pending, waiting for peer region");
    let unblock = async |place: &Place| {
        let id = deployment(place, "slow").await["ID"].as_str().unwrap().to_string();
        place.put(&format!("/v1/deployment/unblock/{id}"), &json!({"DeploymentID": id})).await
    };
    let refused = unblock(&eu).await;
    let expected = "can't unblock a deployment that waits for no other region";
    assert_eq!((refused.status, refused.body.as_str()), (500, expected));
    assert_eq!(unblock(&us).await.status, 200);
    until(&us, "slow", "blocked").await;
    let waits = deployment(&us, "slow").await;
    assert_eq!(waits["StatusDescription"], "Deployment is complete but waiting for peer region");
    // One that fails takes those with it that come after it.
    let id = deployment(&eu, "slow").await["ID"].as_str().unwrap().to_string();
    assert_eq!(eu.put(&format!("/v1/deployment/fail/{id}"), &json!({"DeploymentID": id})).await.status, 200);
    until(&us, "slow", "failed").await;
    let failed = deployment(&us, "slow").await;
    assert_eq!(failed["StatusDescription"], "Failed due to a failed deployment in a peer region");
    federation.shutdown([eu, us]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_waits_for_one_that_is_cut_off() {
    let mut federation = Federation::default();
    let (eu, us) = federation.pair(false).await;
    let regions = json!([{"Name": "eu", "Count": 1}, {"Name": "us", "Count": 0}]);
    registered(&us, &job("web", &json!({"MaxParallel": 1}), &regions)).await;
    until(&us, "web", "pending").await;
    let id = deployment(&eu, "web").await["ID"].as_str().unwrap().to_string();
    until(&eu, "web", "running").await;
    let stopped = federation.stop(eu).await;
    // Nothing is known of the other region, so nothing follows: it is as it was when the other one is back.
    let gone = async || us.get("/v1/jobs?region=eu").await.status == 500;
    us.until("the other region is gone", gone).await;
    assert_eq!(deployment(&us, "web").await["Status"], "pending");
    let eu = federation.resume(stopped, false).await;
    eu.join(&us).await;
    assert_eq!(deployment(&us, "web").await["Status"], "pending");
    assert_eq!(eu.send("DELETE", "/v1/job/web", "", "").await.status, 200);
    until(&us, "web", "successful").await;
    until(&eu, "web", "cancelled").await;
    assert_eq!(deployment(&eu, "web").await["ID"], id.as_str());
    federation.shutdown([eu, us]).await;
}
