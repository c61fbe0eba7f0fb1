//! Moving from one cluster to another: by a folder and its script, from the API of a running server, and by a snapshot.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::support::{Agent, AgentConfig, CommandOutput, eventually, job, program, sojourn, text};

/// An id that does harm wherever it is not quoted.
const HOSTILE: &str = "../it's;$(touch${IFS}pwned)\"*/..";

/// What servers write into objects.
const OF_SERVERS: [&str; 12] = [
    "CreateIndex",
    "ModifyIndex",
    "JobModifyIndex",
    "CreateTime",
    "ModifyTime",
    "SubmitTime",
    "Hash",
    "NomadTokenID",
    "Stable",
    "Status",
    "StatusDescription",
    "Version",
];

/// A server with access control on, and its first token.
struct Cluster {
    agent: Agent,
    token: String,
}

impl Cluster {
    fn start(directory: &Path, name: &str) -> Cluster {
        let config = AgentConfig::server(directory, name).with("acl {\n  enabled = true\n}\n");
        let agent = config.start();
        let token = eventually("the cluster has a key to seal secrets with", || {
            let made = agent.run(&["acl", "bootstrap", "-json"]);
            let token = (made.code == 0).then(|| serde_json::from_str::<Value>(&made.stdout).unwrap())?;
            Some(text(&token["SecretID"]))
        });
        Cluster { agent, token }
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        let mut command = self.agent.config.user(&sojourn());
        command.env("NOMAD_TOKEN", &self.token).env("NOMAD_CLI_SHOW_HINTS", "0");
        command.args(words).output().unwrap().into()
    }

    fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.run(&["operator", "api", path]).expect_success()).unwrap()
    }

    fn register(&self, job: &Value) {
        let body = json!({ "Job": job }).to_string();
        self.run(&["operator", "api", "-X", "PUT", "/v1/jobs", &body]).expect_success();
    }

    /// What `import nomad-api` says of what another cluster has.
    fn import(&self, from: &Cluster, flags: &[&str]) -> CommandOutput {
        let url = format!("http://{}", from.agent.config.http);
        let token = format!("-from-token={}", from.token);
        self.run(&[&["import", "nomad-api", &token], flags, &[&url]].concat())
    }

    /// Everything that people wrote, but for jobs that are stopped and children of jobs.
    fn content(&self) -> Value {
        let jobs = self.each("/v1/jobs?namespace=*", |job| {
            if job["Stop"] == true || job["ParentID"] != "" {
                return None;
            }
            let (id, namespace) = (escaped(&text(&job["ID"])), text(&job["Namespace"]));
            Some(self.get(&format!("/v1/job/{id}?namespace={namespace}")))
        });
        let variables = self.each("/v1/vars?namespace=*", |listed| {
            let (path, namespace) = (text(&listed["Path"]), text(&listed["Namespace"]));
            Some(self.get(&format!("/v1/var/{path}?namespace={namespace}")))
        });
        let policies = self.each("/v1/acl/policies", |listed| {
            Some(self.get(&format!("/v1/acl/policy/{}", text(&listed["Name"]))))
        });
        let roles = self.each("/v1/acl/roles", |role| {
            Some(json!({ "Name": role["Name"], "Description": role["Description"], "Policies": role["Policies"] }))
        });
        json!({
            "namespaces": self.each("/v1/namespaces", |one| Some(one.clone())),
            "pools": self.each("/v1/node/pools", |one| Some(one.clone())),
            "policies": policies,
            "roles": roles,
            "variables": variables,
            "scheduler": cleaned(self.get("/v1/operator/scheduler/configuration")["SchedulerConfig"].clone()),
            "jobs": jobs,
        })
    }

    /// A list, with what each entry becomes, without what servers write.
    fn each(&self, path: &str, entry: impl Fn(&Value) -> Option<Value>) -> Value {
        let list = self.get(path);
        list.as_array().unwrap().iter().filter_map(|one| Some(cleaned(entry(one)?))).collect()
    }
}

fn cleaned(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, _| !OF_SERVERS.contains(&name.as_str()));
    }
    object
}

fn escaped(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn sleeping(id: &str) -> Value {
    job(id, json!({ "command": "/bin/sleep", "args": ["1000"] }))
}

/// A cluster with some of everything.
fn furnished(directory: &Path) -> Cluster {
    let cluster = Cluster::start(directory, "first");
    let run = |words: &[&str]| drop(cluster.run(words).expect_success());
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    run(&["namespace", "apply", "-description=it's $HOME", "ops"]);
    let pool = "node_pool \"gpu\" {\n  description = \"Big ones\"\n  meta {\n    team = \"ml\"\n  }\n}\n";
    run(&["node", "pool", "apply", &file("gpu.hcl", pool)]);
    let rules = file("rules.hcl", "namespace \"ops\" {\n  policy = \"read\"\n}\n");
    run(&["acl", "policy", "apply", "-description=it's $(x)", "readers", &rules]);
    run(&["acl", "policy", "apply", "-namespace=ops", "-job=web", "-group=g", "-task=t", "tasks", &rules]);
    run(&["acl", "role", "create", "-name=staff", "-description=a b", "-policy=readers", "-policy=tasks"]);
    run(&["var", "put", "app/db", "password=it's \"one\"", "text=a\nb"]);
    run(&["var", "put", "-namespace=ops", "nomad/jobs/~web", "key=value"]);
    run(&[
        "operator",
        "scheduler",
        "set-config",
        "-scheduler-algorithm=spread",
        "-preempt-batch-scheduler=true",
    ]);
    let source = "variable \"n\" {\n  type = number\n}\n# the reason\njob \"web\" {\n  namespace = \"ops\"\n  \
                  group \"g\" {\n    count = var.n\n    task \"t\" {\n      driver = \"raw_exec\"\n      \
                  config {\n        command = \"/bin/true\"\n      }\n    }\n  }\n}\n";
    run(&["job", "run", "-detach", "-var", "n=2", &file("web.nomad.hcl", source)]);
    for id in [HOSTILE, "old"] {
        cluster.register(&sleeping(id));
    }
    run(&["job", "stop", "-detach", "old"]);
    let mut nightly = sleeping("nightly");
    nightly["Type"] = json!("batch");
    nightly["Periodic"] = json!({ "Enabled": true, "Spec": "0 3 * * *", "SpecType": "cron" });
    cluster.register(&nightly);
    run(&["job", "periodic", "force", "-detach", "nightly"]);
    cluster
}

/// The program under the name of Nomad's.
fn nomad(directory: &Path) -> PathBuf {
    let link = directory.join("nomad");
    symlink(sojourn(), &link).unwrap();
    link
}

/// Runs the script of a folder against a cluster.
fn apply(folder: &Path, nomad: &Path, to: &Cluster) -> CommandOutput {
    let mut command = program(Path::new("/bin/sh"));
    command.arg(folder.join("apply.sh")).env("NOMAD", nomad).env("NOMAD_TOKEN", &to.token);
    command.env("NOMAD_ADDR", format!("http://{}", to.agent.config.http));
    command.env("NOMAD_NAMESPACE", "elsewhere").current_dir("/");
    command.output().unwrap().into()
}

#[test]
fn what_is_exported_is_applied_by_nomads_command_line_and_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (furnished(directory.path()), Cluster::start(directory.path(), "second"));
    let folder = directory.path().join("out");
    let exported = first.run(&["export", "nomad", folder.to_str().unwrap()]);
    assert!(exported.stderr.contains("1 child jobs: not exported: "), "{exported:?}");
    assert!(exported.stderr.contains("1 ACL tokens: not exported: their secrets"), "{exported:?}");
    exported.expect_success();
    let again = first.run(&["export", "nomad", folder.to_str().unwrap()]).expect_failure();
    assert!(again.contains("is not empty: name a folder that is new or empty"), "{again}");

    let source = std::fs::read_to_string(folder.join("jobs/ops/web.nomad.hcl")).unwrap();
    assert!(source.contains("# the reason"), "{source}");
    let secret = std::fs::metadata(folder.join("variables/default/app~2Fdb.json")).unwrap();
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);

    let nomad = nomad(directory.path());
    let applied = apply(&folder, &nomad, &second);
    assert!(applied.stderr.contains("job old was stopped and is left out"), "{applied:?}");
    applied.expect_success();
    assert_eq!(second.content(), first.content());
    assert!(!folder.join("pwned").exists());

    let versions = second.get(&format!("/v1/job/{}/versions", escaped(HOSTILE)));
    apply(&folder, &nomad, &second).expect_success();
    assert_eq!(second.content(), first.content());
    assert_eq!(second.get(&format!("/v1/job/{}/versions", escaped(HOSTILE))), versions);
}

#[test]
fn what_a_running_server_has_is_imported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (furnished(directory.path()), Cluster::start(directory.path(), "second"));
    let untouched = second.content();
    let before = first.content();
    let dry = second.import(&first, &["-dry-run", "-jobs=run"]).expect_success();
    for line in [
        "namespace ops: would be created",
        "variable default/app/db: would be created",
        "; nothing was written",
    ] {
        assert!(dry.contains(line), "{dry}");
    }
    assert_eq!(second.content(), untouched);

    let plain = second.import(&first, &[]).expect_success();
    assert!(
        plain.contains("job ops/web: left out: it is not there: choose -jobs=stopped or -jobs=run"),
        "{plain}"
    );
    assert_eq!(second.get("/v1/jobs?namespace=*"), json!([]));
    let stopped = second.import(&first, &["-jobs=stopped"]).expect_success();
    assert!(stopped.contains("job default/old: created [stopped there]\n"), "{stopped}");
    assert!(stopped.contains("ACL policy tasks: unchanged\n"), "{stopped}");
    let jobs = second.get("/v1/jobs?namespace=*");
    assert!(jobs.as_array().unwrap().iter().all(|job| job["Stop"] == true), "{jobs}");
    let blocked = second.get("/v1/evaluations?namespace=*&status=blocked");
    assert_eq!(blocked, json!([]), "nothing waits for a node");

    let run = second.import(&first, &["-jobs=run"]).expect_success();
    assert!(run.contains("job ops/web: changed (Stop)\n"), "{run}");
    assert_eq!(second.content(), before);
    let source = second.get("/v1/job/web/submission?namespace=ops&version=1");
    assert_eq!((&source["VariableFlags"]["n"], &source["Format"]), (&json!("2"), &json!("hcl2")));

    for flags in [&["-jobs=run"][..], &["-jobs=stopped"], &["-dry-run", "-jobs=run"]] {
        let again = second.import(&first, flags).expect_success();
        assert!(again.contains("0 created, 0 changed, "), "{flags:?}: {again}");
    }
    assert_eq!(first.content(), before);
}

#[test]
fn what_cannot_be_taken_over_keeps_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let first = furnished(directory.path());
    let second = AgentConfig::server(directory.path(), "second").start();
    let url = format!("http://{}", first.agent.config.http);
    let token = format!("-from-token={}", first.token);
    let output = second.run(&["import", "nomad-api", &token, "-jobs=stopped", &url]);
    assert_eq!(output.code, 1, "{output:?}");
    let failed = "ACL policy readers: failed: it cannot be read where it would be written: ";
    assert!(output.stdout.contains(failed), "{output:?}");
    assert!(output.stdout.contains("job ops/web: created\n"), "{output:?}");
    assert_eq!(second.get("/v1/job/web?namespace=ops")["Stop"], true);

    // Where access control is off, nothing of it is missing.
    let folder = directory.path().join("out");
    let exported = second.run(&["export", "nomad", folder.to_str().unwrap()]);
    assert_eq!((exported.code, exported.stderr.as_str()), (0, ""), "{exported:?}");

    let anonymous = second.run(&["import", "nomad-api", &url]);
    assert_eq!(anonymous.code, 1, "{anonymous:?}");
    assert!(anonymous.stdout.contains("every variable: failed: "), "{anonymous:?}");
    let rights = "what the token may not read: left out: it is no management token\n";
    assert!(anonymous.stdout.contains(rights), "{anonymous:?}");
    let nobody = second.run(&["import", "nomad-api", "http://127.0.0.1:1"]).expect_failure();
    assert!(
        nobody.contains("Error reading the other cluster: http://127.0.0.1:1 cannot be reached"),
        "{nobody}"
    );
    let wrong = second.run(&["import", "nomad-api", "-jobs=all", &url]).expect_failure();
    assert!(wrong.contains("invalid value \"all\" for flag -jobs: expected none, stopped or run"), "{wrong}");
}

/// A snapshot as Nomad's servers write them, with these records.
fn snapshot_of(records: &[Value]) -> Vec<u8> {
    let state: Vec<u8> =
        records.iter().flat_map(|record| [vec![1], msgpack::to_vec(record).unwrap()].concat()).collect();
    let meta = json!({ "Index": 48 }).to_string().into_bytes();
    let sum =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sums = format!("{}  meta.json\n{}  state.bin\n", sum(&meta), sum(&state));
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in [("meta.json", meta), ("state.bin", state), ("SHA256SUMS", sums.into_bytes())] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_snapshot_of_nomad_is_imported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (furnished(directory.path()), Cluster::start(directory.path(), "second"));
    let job = first.get("/v1/job/web?namespace=ops");
    let policies = ["readers", "tasks"].map(|name| first.get(&format!("/v1/acl/policy/{name}")));
    let namespace = first.get("/v1/namespace/ops");
    let pool = first.get("/v1/node/pool/gpu");
    let records = [&policies[..], &[job, namespace, pool]].concat();
    let file = directory.path().join("nomad.snap");
    std::fs::write(&file, snapshot_of(&records)).unwrap();
    let file = file.to_str().unwrap();

    let dry = second.run(&["import", "nomad-snapshot", "-dry-run", "-jobs=stopped", file]).expect_success();
    assert!(dry.starts_with("Snapshot of index 48\n"), "{dry}");
    assert!(dry.contains("job ops/web: would be created\n"), "{dry}");
    assert_eq!(second.get("/v1/jobs?namespace=*"), json!([]));
    let run = second.run(&["import", "nomad-snapshot", "-jobs=run", file]).expect_success();
    assert!(run.ends_with("5 created, 0 changed, 0 unchanged, 0 left out, 0 failed\n"), "{run}");
    let of_both =
        ["/v1/job/web?namespace=ops", "/v1/acl/policy/tasks", "/v1/namespace/ops", "/v1/node/pool/gpu"];
    for path in of_both {
        assert_eq!(cleaned(second.get(path)), cleaned(first.get(path)), "{path}");
    }
    let again = second.run(&["import", "nomad-snapshot", "-jobs=run", file]).expect_success();
    assert!(again.contains("0 created, 0 changed, 5 unchanged"), "{again}");

    std::fs::write(file, b"hello").unwrap();
    let wrong = second.run(&["import", "nomad-snapshot", file]).expect_failure();
    assert!(wrong.contains("Error reading snapshot file"), "{wrong}");
    let missing = second.run(&["import", "nomad-snapshot", "nowhere.snap"]).expect_failure();
    assert!(missing.contains("Error opening snapshot file nowhere.snap"), "{missing}");
}
