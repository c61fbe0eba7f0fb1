//! The language of policies, and what follows from several of them.

use acl::{
    Acl, Capability, Claims, HostVolumeCapability, OperatorCapability, Policy, PoolCapability,
    VariableCapability,
};

fn acl(rules: &[&str]) -> Acl {
    let policies: Vec<Policy> = rules.iter().map(|rules| Policy::parse(rules).unwrap()).collect();
    Acl::of(&policies)
}

fn refused(rules: &str) -> String {
    Policy::parse(rules).expect_err(rules).to_string()
}

#[test]
fn coarse_words_stand_for_capabilities() {
    let reader = acl(&[r#"namespace "default" { policy = "read" }"#]);
    assert!(reader.allows("default", Capability::ReadJob) && reader.allows("default", Capability::ListJobs));
    assert!(!reader.allows("default", Capability::SubmitJob) && !reader.allows("other", Capability::ReadJob));
    let writer = acl(&[r#"namespace "default" { policy = "write" }"#]);
    assert!(
        writer.allows("default", Capability::SubmitJob) && writer.allows("default", Capability::AllocExec)
    );
    // Only ever given by name.
    for fine in [Capability::AllocNodeExec, Capability::RegisterJob, Capability::CsiRegisterPlugin] {
        assert!(!writer.allows("default", fine), "{fine:?}");
    }
    let scaler = acl(&[r#"namespace "default" { policy = "scale" }"#]);
    assert!(
        scaler.allows("default", Capability::ScaleJob) && !scaler.allows("default", Capability::ListJobs)
    );
}

#[test]
fn json_says_the_same_as_hcl() {
    let hcl = r#"
        namespace "dev-*" {
          policy       = "read"
          capabilities = ["submit-job"]
          variables { path "app/*" { capabilities = ["write", "read"] } }
        }
        node_pool "gpu_1" { policy = "write" }
        host_volume "ca-*" { capabilities = ["mount-readonly"] }
        node { policy = "read" }
        operator { capabilities = ["snapshot-save"] }
        plugin { policy = "list" }
    "#;
    let json = r#"{
        "namespace": {"dev-*": {"policy": "read", "capabilities": ["submit-job"],
                      "variables": {"path": {"app/*": {"capabilities": ["write", "read"]}}}}},
        "node_pool": {"gpu_1": {"policy": "write"}},
        "host_volume": {"ca-*": {"capabilities": ["mount-readonly"]}},
        "node": {"policy": "read"},
        "operator": {"capabilities": ["snapshot-save"]},
        "plugin": {"policy": "list"}
    }"#;
    let policy = Policy::parse(hcl).unwrap();
    assert_eq!(policy, Policy::parse(json).unwrap());
    let shown = serde_json::to_value(&policy).unwrap();
    assert_eq!(shown["Namespaces"][0]["Policy"], "read");
    let paths = &shown["Namespaces"][0]["Variables"]["Paths"];
    assert_eq!(paths[0]["Capabilities"], serde_json::json!(["list", "read", "write"]));
    assert_eq!(shown["NodePools"][0]["Capabilities"], serde_json::json!(["read", "write", "delete"]));
    let acl = Acl::of([&policy]);
    assert!(acl.allows("dev-1", Capability::SubmitJob) && acl.allows_pool("gpu_1", PoolCapability::Delete));
    assert!(acl.allows_variable("dev-1", "app/db", VariableCapability::List));
    assert!(!acl.allows_variable("dev-1", "app/db", VariableCapability::Destroy));
    assert!(acl.allows_host_volume("ca-certs", HostVolumeCapability::MountReadonly));
    assert!(!acl.allows_host_volume("ca-certs", HostVolumeCapability::MountReadwrite));
    assert!(acl.allows_operator(OperatorCapability::SnapshotSave) && !acl.reads_operator());
    assert!(acl.lists_plugins() && !acl.reads_plugins() && acl.reads_nodes() && !acl.writes_nodes());
}

#[test]
fn a_name_of_its_own_wins_and_then_the_closest_glob() {
    let acl = acl(&[r#"
        namespace "*"        { policy = "read" }
        namespace "prod-*"   { policy = "deny" }
        namespace "prod-a*"  { policy = "write" }
        namespace "prod-api" { capabilities = ["list-jobs"] }
    "#]);
    assert!(acl.allows("dev", Capability::ReadJob) && !acl.allows("dev", Capability::SubmitJob));
    assert!(!acl.allows("prod-x", Capability::ReadJob), "denied");
    assert!(acl.allows("prod-ab", Capability::SubmitJob));
    assert!(acl.allows("prod-api", Capability::ListJobs) && !acl.allows("prod-api", Capability::ReadJob));
    assert!(!acl.knows_namespace("prod-x") && acl.knows_namespace("prod-api"));
    assert!(acl.allows("*", Capability::SubmitJob), "in one of them");
    assert!(!acl.allows("*", Capability::AllocNodeExec));
}

#[test]
fn policies_add_up_and_a_denial_wins() {
    let read =
        r#"namespace "default" { policy = "read" } agent { policy = "write" } operator { policy = "read" }"#;
    let exec = r#"namespace "default" { capabilities = ["alloc-exec"] } agent { policy = "deny" } operator { policy = "write" }"#;
    let both = acl(&[read, exec]);
    assert!(both.allows("default", Capability::ReadJob) && both.allows("default", Capability::AllocExec));
    assert!(!both.reads_agent() && both.writes_operator());
    assert!(both.allows_operator(OperatorCapability::KeyringRotate));
    let denied = acl(&[read, exec, r#"namespace "default" { policy = "deny" }"#]);
    assert!(!denied.allows("default", Capability::ReadJob) && !denied.knows_namespace("default"));
}

#[test]
fn a_task_reads_what_its_job_keeps_for_it() {
    let task = |rules: &[&str]| {
        let own = |text: &str| text.to_string();
        acl(rules).with_workload(Claims {
            namespace: own("default"),
            job: own("web"),
            group: own("api"),
            task: own("server"),
        })
    };
    let plain = task(&[]);
    for path in ["nomad/jobs", "nomad/jobs/web", "nomad/jobs/web/api", "nomad/jobs/web/api/server"] {
        assert!(plain.allows_variable("default", path, VariableCapability::Read), "{path}");
        assert!(!plain.allows_variable("default", path, VariableCapability::Write), "{path}");
        assert!(!plain.allows_variable("other", path, VariableCapability::Read), "{path}");
    }
    for path in ["nomad/jobs/web/api/other", "nomad/jobs/website", "app"] {
        assert!(!plain.allows_variable("default", path, VariableCapability::Read), "{path}");
    }
    let deny = r#"namespace "default" { variables { path "nomad/jobs/web" { capabilities = ["deny"] } } }"#;
    let denied = task(&[deny]);
    assert!(!denied.allows_variable("default", "nomad/jobs/web", VariableCapability::Read));
    assert!(denied.allows_variable("default", "nomad/jobs/web/api", VariableCapability::Read));
    let lists = task(&[r#"namespace "*" { variables { path "*" { capabilities = ["list"] } } }"#]);
    assert!(
        lists.allows_variable("default", "nomad/jobs/web", VariableCapability::Read),
        "a glob is no other word"
    );
    assert!(!lists.allows_variable("default", "nomad/jobs/db", VariableCapability::Read));
}

#[test]
fn capabilities_bring_others_with_them() {
    let acl = acl(&[r#"namespace "default" { capabilities = ["host-volume-register"] }"#]);
    assert!(
        acl.allows("default", Capability::HostVolumeCreate)
            && acl.allows("default", Capability::HostVolumeRead)
    );
    assert!(!acl.allows("default", Capability::HostVolumeDelete));
}

#[test]
fn what_has_no_meaning_is_refused_by_name() {
    for (rules, expected) in [
        ("", "it has no rules"),
        (r#"namespace "default" {}"#, r#"namespace "default" needs a policy, capabilities or variables"#),
        (r#"namespace { policy = "read" }"#, "policy"),
        (r#"namespace "a/b" { policy = "read" }"#, r#"invalid namespace name "a/b""#),
        (
            r#"namespace "default" { policy = "list" }"#,
            r#"invalid policy "list": expected deny, read, write, scale"#,
        ),
        (r#"namespace "default" { capabilities = ["fly"] }"#, r#"invalid capability "fly""#),
        (r#"node { policy = "scale" }"#, r#"invalid policy "scale": expected deny, read, write"#),
        (r#"node { policy = "read" } node { policy = "write" }"#, "node stands here a second time"),
        (r#"nodes { policy = "read" }"#, r#"unexpected key "nodes""#),
        (r#"agent {}"#, "agent needs a policy"),
        (r#"namespace "d" { variables {} }"#, "variables needs at least one path"),
        (
            r#"namespace "d" { variables { path "/a" { capabilities = ["read"] } } }"#,
            "without a slash in front",
        ),
        (r#"sentinel { policy = "read" }"#, "enterprise edition"),
        (r#"namespace "default" { policy = "read""#, "rules:1"),
    ] {
        let why = refused(rules);
        assert!(why.contains(expected), "{rules}: {why}");
    }
}

#[test]
fn who_holds_nothing_may_do_nothing() {
    let nobody = Acl::default();
    assert!(Capability::ALL.iter().all(|capability| !nobody.allows("default", *capability)));
    assert!(!nobody.allows("*", Capability::ListJobs) && !nobody.knows_namespace("default"));
    assert!(
        !nobody.reads_agent() && !nobody.reads_nodes() && !nobody.reads_operator() && !nobody.reads_plugins()
    );
    let all = Acl::management();
    assert!(Capability::ALL.iter().all(|capability| all.allows("default", *capability)));
    assert!(all.writes_agent() && all.writes_nodes() && all.writes_operator() && all.reads_plugins());
}
