//! Each block of a job file, and what it becomes in the document.

use jobspec::{NoFiles, Source, Variables, parse};
use serde_json::{Value, json};

/// The document of `job "j" { … }` with everything unset left out.
fn decoded(body: &str) -> Value {
    let source = Source::new("j.hcl", format!("job \"j\" {{\n{body}\n}}\n"));
    let parsed = parse(&source, &Variables::default(), &NoFiles).unwrap_or_else(|wrong| panic!("{wrong}"));
    pruned(serde_json::to_value(parsed.job).unwrap()).unwrap_or_default()
}

fn pruned(value: Value) -> Option<Value> {
    match value {
        Value::Object(entries) => {
            let kept = entries.into_iter().filter_map(|(key, value)| Some((key, pruned(value)?)));
            let kept: serde_json::Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(pruned).collect())),
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Number(number) if number.as_i64() == Some(0) => None,
        other => Some(other),
    }
}

fn in_group(body: &str) -> Value {
    decoded(&format!("group \"g\" {{\n{body}\n}}"))["TaskGroups"][0].clone()
}

fn in_task(body: &str) -> Value {
    let task = in_group(&format!("task \"t\" {{\ndriver = \"x\"\n{body}\n}}"))["Tasks"][0].clone();
    let Value::Object(mut task) = task else { panic!("a task is an object") };
    task.remove("Name");
    task.remove("Driver");
    Value::Object(task)
}

fn expect(cases: &[(&str, Value)], decode: fn(&str) -> Value, own: &[&str]) {
    for (body, expected) in cases {
        let Value::Object(mut given) = decode(body) else { panic!("{body}") };
        own.iter().for_each(|name| drop(given.remove(*name)));
        assert_eq!(Value::Object(given), *expected, "{body}");
    }
}

const SECOND: i64 = 1_000_000_000;

#[test]
fn blocks_of_a_job_become_its_fields() {
    let cases = [
        ("id = \"other\"\nname = \"n\"", json!({"ID": "other", "Name": "n"})),
        (
            "region = \"r\"\nnamespace = \"ns\"\ntype = \"batch\"\npriority = \"70\"\nall_at_once = true",
            json!({"ID": "j", "Name": "j", "Region": "r", "Namespace": "ns", "Type": "batch", "Priority": 70, "AllAtOnce": true}),
        ),
        (
            "datacenters = [\"a\", \"b\"]\nnode_pool = \"p\"",
            json!({"ID": "j", "Name": "j", "Datacenters": ["a", "b"], "NodePool": "p"}),
        ),
        ("meta {\n a = 1\n b = true\n}", json!({"ID": "j", "Name": "j", "Meta": {"a": "1", "b": "true"}})),
        ("meta = { \"x.y\" = \"z\" }", json!({"ID": "j", "Name": "j", "Meta": {"x.y": "z"}})),
        (
            "periodic {\n cron = \"@daily\"\n prohibit_overlap = true\n time_zone = \"UTC\"\n}",
            json!({"ID": "j", "Name": "j", "Periodic": {"Spec": "@daily", "ProhibitOverlap": true, "TimeZone": "UTC"}}),
        ),
        (
            "parameterized {\n payload = \"required\"\n meta_required = [\"a\"]\n meta_optional = [\"b\"]\n}",
            json!({"ID": "j", "Name": "j", "ParameterizedJob": {"Payload": "required", "MetaRequired": ["a"], "MetaOptional": ["b"]}}),
        ),
        (
            "update {\n stagger = \"10s\"\n max_parallel = 2\n canary = 1\n auto_revert = true\n}",
            json!({"ID": "j", "Name": "j", "Update": {"Stagger": 10 * SECOND, "MaxParallel": 2, "Canary": 1, "AutoRevert": true}}),
        ),
        (
            "reschedule {\n attempts = 3\n delay_function = \"fibonacci\"\n max_delay = \"1h\"\n}",
            json!({"ID": "j", "Name": "j", "Reschedule": {"Attempts": 3, "DelayFunction": "fibonacci", "MaxDelay": 3600 * SECOND}}),
        ),
        (
            "migrate {\n health_check = \"checks\"\n}",
            json!({"ID": "j", "Name": "j", "Migrate": {"HealthCheck": "checks"}}),
        ),
        (
            "multiregion {\n strategy {\n max_parallel = 1\n }\n region \"west\" {\n count = 2\n }\n}",
            json!({"ID": "j", "Name": "j", "Multiregion": {"Strategy": {"MaxParallel": 1}, "Regions": [{"Name": "west", "Count": 2}]}}),
        ),
        (
            "ui {\n description = \"d\"\n link {\n label = \"l\"\n url = \"u\"\n }\n}",
            json!({"ID": "j", "Name": "j", "UI": {"Description": "d", "Links": [{"Label": "l", "URL": "u"}]}}),
        ),
        (
            "spread {\n attribute = \"${node.datacenter}\"\n weight = 100\n target \"dc1\" {\n percent = 70\n }\n}",
            json!({"ID": "j", "Name": "j", "Spreads": [{"Attribute": "${node.datacenter}", "Weight": 100, "SpreadTarget": [{"Value": "dc1", "Percent": 70}]}]}),
        ),
    ];
    expect(&cases, decoded, &["TaskGroups"]);
}

#[test]
fn comparisons_of_constraints_have_spellings_of_their_own() {
    let cases = [
        (
            "attribute = \"${attr.x}\"\nvalue = 3",
            json!({"LTarget": "${attr.x}", "RTarget": "3", "Operand": "="}),
        ),
        (
            "attribute = \"a\"\nversion = \"> 1\"",
            json!({"LTarget": "a", "RTarget": "> 1", "Operand": "version"}),
        ),
        ("attribute = \"a\"\nsemver = \"1\"", json!({"LTarget": "a", "RTarget": "1", "Operand": "semver"})),
        ("attribute = \"a\"\nregexp = \"b\"", json!({"LTarget": "a", "RTarget": "b", "Operand": "regexp"})),
        (
            "attribute = \"a\"\nset_contains = \"b\"",
            json!({"LTarget": "a", "RTarget": "b", "Operand": "set_contains"}),
        ),
        ("distinct_hosts = true", json!({"RTarget": "true", "Operand": "distinct_hosts"})),
        (
            "operator = \"distinct_hosts\"\nvalue = \"true\"",
            json!({"RTarget": "true", "Operand": "distinct_hosts"}),
        ),
        (
            "distinct_property = \"${meta.rack}\"\nvalue = \"2\"",
            json!({"LTarget": "${meta.rack}", "RTarget": "2", "Operand": "distinct_property"}),
        ),
        ("attribute = \"a\"\noperator = \"is_set\"", json!({"LTarget": "a", "Operand": "is_set"})),
        ("attribute = \"a\"\nis_not_set = true", json!({"LTarget": "a", "Operand": "is_not_set"})),
    ];
    for (body, expected) in cases {
        let given = in_task(&format!("constraint {{\n{body}\n}}"));
        assert_eq!(given["Constraints"][0], expected, "{body}");
    }
}

#[test]
fn blocks_of_a_group_become_its_fields() {
    let cases = [
        ("count = 3\nshutdown_delay = \"2s\"", json!({"Count": 3, "ShutdownDelay": 2 * SECOND})),
        ("max_run_duration = 5000000000", json!({"MaxRunDuration": 5 * SECOND})),
        (
            "restart {\n attempts = 1\n interval = \"30s\"\n delay = \"1s\"\n mode = \"delay\"\n}",
            json!({"RestartPolicy": {"Attempts": 1, "Interval": 30 * SECOND, "Delay": SECOND, "Mode": "delay"}}),
        ),
        (
            "disconnect {\n lost_after = \"1m\"\n replace = true\n reconcile = \"keep_original\"\n}",
            json!({"Disconnect": {"LostAfter": 60 * SECOND, "Replace": true, "Reconcile": "keep_original"}}),
        ),
        (
            "ephemeral_disk {\n size = 500\n sticky = true\n}",
            json!({"EphemeralDisk": {"SizeMB": 500, "Sticky": true}}),
        ),
        (
            "volume \"data\" {\n type = \"csi\"\n source = \"s\"\n access_mode = \"single-node-writer\"\n mount_options {\n fs_type = \"ext4\"\n mount_flags = [\"ro\"]\n }\n}",
            json!({"Volumes": {"data": {"Name": "data", "Type": "csi", "Source": "s", "AccessMode": "single-node-writer", "MountOptions": {"FSType": "ext4", "MountFlags": ["ro"]}}}}),
        ),
        (
            "scaling {\n min = 1\n max = 5\n policy {\n cooldown = \"1m\"\n check \"cpu\" {\n source = \"p\"\n strategy \"target-value\" {\n target = 70\n }\n }\n }\n}",
            json!({"Scaling": {"Min": 1, "Max": 5, "Type": "horizontal", "Policy": {"cooldown": "1m", "check": [{"cpu": [{"source": "p", "strategy": [{"target-value": [{"target": 70}]}]}]}]}}}),
        ),
        (
            "consul {\n cluster = \"c\"\n partition = \"p\"\n}",
            json!({"Consul": {"Cluster": "c", "Partition": "p"}}),
        ),
        (
            "network {\n mode = \"bridge\"\n hostname = \"h\"\n port \"http\" {\n to = 80\n }\n port \"ssh\" {\n static = \"22\"\n host_network = \"n\"\n }\n dns {\n servers = [\"1.1.1.1\"]\n }\n cni {\n args = { a = \"b\" }\n }\n}",
            json!({"Networks": [{"Mode": "bridge", "Hostname": "h", "DynamicPorts": [{"Label": "http", "To": 80}], "ReservedPorts": [{"Label": "ssh", "Value": 22, "HostNetwork": "n"}], "DNS": {"Servers": ["1.1.1.1"]}, "CNI": {"Args": {"a": "b"}}}]}),
        ),
    ];
    expect(&cases, in_group, &["Name", "Tasks"]);
}

#[test]
fn blocks_of_a_task_become_its_fields() {
    let cases = [
        (
            "user = \"u\"\nkill_timeout = \"10s\"\nkill_signal = \"SIGINT\"\nleader = \"true\"\nshutdown_delay = \"1s\"",
            json!({"User": "u", "KillTimeout": 10 * SECOND, "KillSignal": "SIGINT", "Leader": true, "ShutdownDelay": SECOND}),
        ),
        (
            "lifecycle {\n hook = \"prestart\"\n sidecar = true\n}",
            json!({"Lifecycle": {"Hook": "prestart", "Sidecar": true}}),
        ),
        ("env {\n A = 1.5\n B = false\n}", json!({"Env": {"A": "1.5", "B": "false"}})),
        ("env = {\n \"A.B\" : \"c\",\n D = null\n}", json!({"Env": {"A.B": "c"}})),
        (
            "config {\n image = \"i\"\n ports = [\"http\"]\n n = 2\n auth {\n user = \"x\"\n }\n mount {\n a = 1\n }\n mount {\n a = 2\n }\n}",
            json!({"Config": {"image": "i", "ports": ["http"], "n": 2, "auth": [{"user": "x"}], "mount": [{"a": 1}, {"a": 2}]}}),
        ),
        (
            "resources {\n cpu = 500\n memory = 256\n memory_max = 512\n device \"nvidia/gpu\" {\n count = 2\n constraint {\n attribute = \"${device.attr.memory}\"\n operator = \">=\"\n value = \"2 GiB\"\n }\n }\n numa {\n affinity = \"require\"\n }\n network {\n mbits = 10\n port \"http\" {}\n }\n}",
            json!({"Resources": {"CPU": 500, "MemoryMB": 256, "MemoryMaxMB": 512, "Devices": [{"Name": "nvidia/gpu", "Count": 2, "Constraints": [{"LTarget": "${device.attr.memory}", "Operand": ">=", "RTarget": "2 GiB"}]}], "NUMA": {"Affinity": "require"}, "Networks": [{"MBits": 10, "DynamicPorts": [{"Label": "http"}]}]}}),
        ),
        (
            "logs {\n max_files = 2\n max_file_size = 5\n}",
            json!({"LogConfig": {"MaxFiles": 2, "MaxFileSizeMB": 5}}),
        ),
        (
            "artifact {\n source = \"https://x/y\"\n options {\n checksum = \"c\"\n }\n headers = { A = \"b\" }\n}",
            json!({"Artifacts": [{"GetterSource": "https://x/y", "GetterOptions": {"checksum": "c"}, "GetterHeaders": {"A": "b"}}]}),
        ),
        (
            "template {\n data = \"x\"\n destination = \"local/x\"\n wait {\n min = \"1s\"\n }\n change_script {\n command = \"c\"\n args = [\"a\"]\n }\n}",
            json!({"Templates": [{"EmbeddedTmpl": "x", "DestPath": "local/x", "ChangeMode": "restart", "Perms": "0644", "Splay": 5 * SECOND, "Wait": {"Min": SECOND}, "ChangeScript": {"Command": "c", "Args": ["a"]}}]}),
        ),
        (
            "vault {\n role = \"r\"\n policies = [\"p\"]\n}",
            json!({"Vault": {"Role": "r", "Policies": ["p"], "Env": true, "ChangeMode": "restart"}}),
        ),
        (
            "volume_mount {\n volume = \"v\"\n destination = \"/d\"\n propagation_mode = \"private\"\n}",
            json!({"VolumeMounts": [{"Volume": "v", "Destination": "/d", "PropagationMode": "private"}]}),
        ),
        ("dispatch_payload {\n file = \"f\"\n}", json!({"DispatchPayload": {"File": "f"}})),
        (
            "csi_plugin {\n id = \"i\"\n type = \"node\"\n mount_dir = \"/csi\"\n health_timeout = \"1s\"\n}",
            json!({"CSIPluginConfig": {"ID": "i", "Type": "node", "MountDir": "/csi", "HealthTimeout": SECOND}}),
        ),
        (
            "scaling \"cpu\" {\n max = 500\n policy {\n a = 1\n }\n}",
            json!({"ScalingPolicies": [{"Type": "vertical_cpu", "Max": 500, "Policy": {"a": 1}}]}),
        ),
        (
            "secret \"s\" {\n provider = \"nomad\"\n path = \"p\"\n config {\n namespace = \"n\"\n }\n}",
            json!({"Secrets": [{"Name": "s", "Provider": "nomad", "Path": "p", "Config": {"namespace": "n"}}]}),
        ),
        (
            "identity {\n env = true\n}\nidentity {\n name = \"vault\"\n aud = [\"v\"]\n ttl = \"1h\"\n}",
            json!({"Identity": {"Env": true}, "Identities": [{"Name": "vault", "Audience": ["v"], "TTL": 3600 * SECOND}]}),
        ),
        (
            "action \"a\" {\n command = \"c\"\n args = [\"x\"]\n}",
            json!({"Actions": [{"Name": "a", "Command": "c", "Args": ["x"]}]}),
        ),
        (
            "schedule {\n cron {\n start = \"0 8 * * *\"\n end = \"0 9\"\n timezone = \"UTC\"\n }\n}",
            json!({"Schedule": {"Cron": {"Start": "0 8 * * *", "End": "0 9", "Timezone": "UTC"}}}),
        ),
        (
            "affinity {\n attribute = \"a\"\n value = \"b\"\n weight = -50\n}",
            json!({"Affinities": [{"LTarget": "a", "RTarget": "b", "Operand": "=", "Weight": -50}]}),
        ),
        ("consul {\n namespace = \"n\"\n}", json!({"Consul": {"Namespace": "n"}})),
    ];
    expect(&cases, in_task, &[]);
}

#[test]
fn services_keep_their_checks_and_their_mesh() {
    let service = in_group(
        r#"service {
  name = "web"
  port = 8080
  provider = "nomad"
  tags = ["a", "${NOMAD_ALLOC_ID}"]
  meta { k = "v" }
  tagged_addresses { lan = "1.2.3.4" }
  weights { passing = 2 }
  check_restart { limit = 3 
    grace = "10s" }
  check {
    type = "http"
    path = "/"
    interval = "10s"
    timeout = "2s"
    header { Authorization = ["x", "y"] }
  }
  connect {
    sidecar_service {
      proxy {
        upstreams {
          destination_name = "db"
          local_bind_port = 5432
          mesh_gateway { mode = "local" }
        }
        transparent_proxy { exclude_outbound_ports = [22, "80"] }
        expose { path { path = "/m" 
          local_path_port = 1 } }
        config { protocol = "http" }
      }
    }
    sidecar_task { resources { cpu = 10 } }
    gateway {
      proxy { 
        envoy_gateway_bind_addresses "lan" { port = 3 }
      }
      ingress {
        listener {
          port = 80
          service { name = "s" 
            request_headers { add { a = "b" } } }
        }
      }
      terminating { service { ca_file = "f" } }
      mesh {}
    }
  }
}"#,
    )["Services"][0]
        .clone();
    let checks = json!([{"Type": "http", "Path": "/", "Interval": 10 * SECOND, "Timeout": 2 * SECOND, "Header": {"Authorization": ["x", "y"]}}]);
    assert_eq!(service["PortLabel"], "8080");
    assert_eq!(service["Checks"], checks);
    assert_eq!(service["CheckRestart"], json!({"Limit": 3, "Grace": 10 * SECOND}));
    let proxy = &service["Connect"]["SidecarService"]["Proxy"];
    assert_eq!(proxy["Upstreams"][0]["MeshGateway"], json!({"Mode": "local"}));
    assert_eq!(proxy["TransparentProxy"]["ExcludeOutboundPorts"], json!([22, 80]));
    assert_eq!(proxy["Expose"]["Paths"], json!([{"Path": "/m", "LocalPathPort": 1}]));
    let gateway = &service["Connect"]["Gateway"];
    assert_eq!(gateway["Proxy"]["EnvoyGatewayBindAddresses"]["lan"], json!({"Name": "lan", "Port": 3}));
    assert_eq!(gateway["Ingress"]["Listeners"][0]["Services"][0]["RequestHeaders"]["Add"], json!({"a": "b"}));
    assert_eq!(gateway["Terminating"]["Services"], json!([{"CAFile": "f"}]));
}

#[test]
fn tasks_of_a_job_stand_in_groups_of_their_own_before_the_others() {
    let job = decoded("group \"g\" {}\ntask \"lone\" {\n driver = \"x\"\n}");
    assert_eq!(job["TaskGroups"][0]["Name"], "lone");
    assert_eq!(job["TaskGroups"][0]["Tasks"][0]["Name"], "lone");
    assert_eq!(job["TaskGroups"][1]["Name"], "g");
}

#[test]
fn tasks_inherit_the_nearest_vault_and_every_secret() {
    let job = decoded(
        r#"vault { role = "job" }
secret "one" { provider = "nomad" 
  path = "p" }
group "a" {
  vault { role = "group" }
  secret "two" { provider = "nomad" 
    path = "p" }
  task "x" { driver = "d" }
  task "y" {
    driver = "d"
    vault { role = "task" }
  }
}
group "b" { task "z" { driver = "d" } }"#,
    );
    let role = |group: usize, task: usize| job["TaskGroups"][group]["Tasks"][task]["Vault"]["Role"].clone();
    assert_eq!((role(0, 0), role(0, 1), role(1, 0)), (json!("group"), json!("task"), json!("job")));
    let secrets = job["TaskGroups"][0]["Tasks"][0]["Secrets"].as_array().unwrap();
    assert_eq!(secrets.iter().map(|secret| &secret["Name"]).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn a_number_that_does_not_fit_its_field_is_an_error() {
    let text = "job \"j\" {\n priority = 9223372036854775808\n}\n";
    let wrong = parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles).unwrap_err().plain();
    assert!(
        wrong.contains("j.hcl:2:13: \"priority\": 9223372036854775808 does not fit in 64 bits"),
        "{wrong}"
    );
    let text = "job \"j\" {\n update {\n  stagger = 9223372036854775808\n }\n}\n";
    assert!(parse(&Source::new("j.hcl", text), &Variables::default(), &NoFiles).is_err());
}
