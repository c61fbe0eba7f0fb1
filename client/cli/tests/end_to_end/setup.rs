//! `setup consul` and `setup vault`, against what stands for them: see [`super::support::consul`], [`super::support::vault`].

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::end_to_end::support::consul::FakeConsul;
use crate::end_to_end::support::vault::FakeVault;
use crate::end_to_end::support::{AgentConfig, CommandOutput, job, program, sojourn};

/// Runs `setup`, and answers its questions.
fn setup(words: &[&str], variables: &[(&str, &str)], answers: &str) -> CommandOutput {
    let mut command = program(&sojourn());
    command.arg("setup").args(words).envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What has asked nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(answers.as_bytes());
    child.wait_with_output().unwrap().into()
}

#[test]
fn consul_is_set_up_once_and_cleared_of_nothing_else() {
    let fake = FakeConsul::start();
    fake.change(|state| state.management = "root".into());
    let address = fake.address.to_string();
    let variables = [("CONSUL_HTTP_ADDR", address.as_str()), ("CONSUL_HTTP_TOKEN", "root")];
    let objects = || fake.look(|state| state.acl.clone());

    let refused = setup(&["consul", "-y"], &variables[..1], "").expect_failure();
    assert!(refused.contains("403") && refused.contains("acl:write"), "{refused}");
    let unanswered = setup(&["consul"], &variables, "").expect_failure();
    assert!(unanswered.contains("-y asks no questions"), "{unanswered}");
    assert!(objects().is_empty());
    // The first is wanted, the second is not.
    let stopped = setup(&["consul"], &variables, "y\nn\n").expect_failure();
    assert!(stopped.contains("stopped before the policy \"nomad-tasks\""), "{stopped}");
    assert_eq!(objects().len(), 1);

    let url = "http://10.0.0.1:4646/.well-known/jwks.json";
    setup(&["consul", "-destroy", "-y"], &variables, "").expect_success();
    let done = setup(&["consul", "-y", "-jwks-url", url], &variables, "").expect_success();
    assert!(done.contains("service_identity") && done.contains("task_identity"), "{done}");
    let made = objects();
    let config = &made["auth-method/nomad-workloads"]["Config"];
    assert_eq!((&config["JWKSURL"], &config["BoundAudiences"]), (&json!(url), &json!(["consul.io"])));
    assert_eq!(config["ClaimMappings"]["nomad_service"], "nomad_service");
    assert_eq!(made["role/name/nomad-tasks-default"]["Policies"], json!([{"Name": "nomad-tasks"}]));
    let rules: Vec<&Value> =
        made.iter().filter(|(key, _)| key.starts_with("binding-rule/")).map(|(_, rule)| rule).collect();
    let mut rules: Vec<[&str; 3]> = rules
        .iter()
        .map(|rule| ["BindType", "BindName", "Selector"].map(|field| rule[field].as_str().unwrap()))
        .collect();
    rules.sort_unstable();
    assert_eq!(
        rules,
        [
            ["role", "nomad-tasks-${value.nomad_namespace}", "\"nomad_service\" not in value"],
            ["service", "${value.nomad_service}", "\"nomad_service\" in value"],
        ]
    );
    let again = setup(&["consul", "-y"], &variables, "").expect_success();
    assert_eq!((again.matches("[=] There is ").count(), objects()), (5, made), "{again}");

    // A policy that somebody else has made stays, and so does everything on a no.
    fake.change(|state| state.acl.get_mut("policy/name/nomad-tasks").unwrap()["Description"] = "ours".into());
    let kept = setup(&["consul", "-destroy"], &variables, "n\nn\n").expect_success();
    assert!(kept.contains("Left the auth method"), "{kept}");
    let cleared = setup(&["consul", "-destroy", "-y"], &variables, "").expect_success();
    assert!(
        cleared.contains("Left the policy \"nomad-tasks\": it was not made by this command"),
        "{cleared}"
    );
    assert_eq!(objects().into_keys().collect::<Vec<_>>(), ["policy/name/nomad-tasks"]);
}

#[test]
fn vault_is_set_up_once_and_cleared_of_nothing_else() {
    let fake = FakeVault::start();
    fake.change(|state| state.tokens.insert("root".into(), Instant::now() + Duration::from_secs(3_600)));
    let address = format!("http://{}", fake.address);
    let variables = [("VAULT_ADDR", address.as_str()), ("VAULT_TOKEN", "root"), ("VAULT_NAMESPACE", "team")];
    let objects = || fake.change(|state| state.set_up.clone());

    let refused = setup(&["vault", "-y"], &variables[..1], "").expect_failure();
    assert!(refused.contains("GET /v1/sys/auth: 403") && refused.contains("permission denied"), "{refused}");
    let stopped = setup(&["vault"], &variables, "\nno\n").expect_failure();
    assert!(stopped.contains("stopped before the configuration of the auth method"), "{stopped}");
    assert_eq!(objects().into_keys().collect::<Vec<_>>(), ["sys/auth/jwt-nomad"]);

    let done = setup(&["vault", "-y", "-kv-path=kv"], &variables, "").expect_success();
    assert!(done.contains("default_identity"), "{done}");
    let made = objects();
    let config = &made["auth/jwt-nomad/config"];
    assert_eq!(
        (&config["jwks_url"], &config["default_role"]),
        (&json!("http://localhost:4646/.well-known/jwks.json"), &json!("nomad-workloads"))
    );
    let role = &made["auth/jwt-nomad/role/nomad-workloads"];
    assert_eq!(
        (&role["bound_audiences"], &role["token_policies"]),
        (&json!(["vault.io"]), &json!(["nomad-workloads"]))
    );
    let policy = made["sys/policies/acl/nomad-workloads"]["policy"].as_str().unwrap();
    let own = "kv/data/{{identity.entity.aliases.auth_jwt_1.metadata.nomad_namespace}}/\
               {{identity.entity.aliases.auth_jwt_1.metadata.nomad_job_id}}";
    assert!(policy.contains(&format!("path \"{own}\" {{\n  capabilities = [\"read\"]\n}}\n")), "{policy}");
    let again = setup(&["vault", "-y"], &variables, "").expect_success();
    assert_eq!((again.matches("[=] There is ").count(), objects()), (4, made), "{again}");
    let requests = fake.change(|state| state.requests.clone());
    assert!(requests.iter().any(|request| request == "GET sys/auth team root"), "{requests:?}");

    fake.change(|state| {
        state.set_up.get_mut("sys/policies/acl/nomad-workloads").unwrap()["policy"] = "".into()
    });
    let cleared = setup(&["vault", "-destroy", "-y"], &variables, "").expect_success();
    assert!(cleared.contains("Left the policy \"nomad-workloads\""), "{cleared}");
    assert_eq!(objects().into_keys().collect::<Vec<_>>(), ["sys/policies/acl/nomad-workloads"]);
}

#[test]
fn a_check_lists_the_tasks_that_could_not_log_in() {
    let directory = tempfile::tempdir().unwrap();
    let agent = AgentConfig::server(directory.path(), "one").start();
    let ready = agent.run(&["setup", "vault", "-check"]).expect_success();
    assert!(ready.starts_with("Every task with a vault block has an identity"), "{ready}");
    let mut with = job("with", json!({"command": "/bin/true"}));
    with["TaskGroups"][0]["Tasks"][0]["Vault"] = json!({});
    let mut without = with.clone();
    (without["ID"], without["Name"]) = ("without".into(), "without".into());
    with["TaskGroups"][0]["Tasks"][0]["Identities"] =
        json!([{"Name": "vault_default", "Audience": ["vault.io"]}]);
    agent.register(&with);
    agent.register(&without);
    let found = agent.run(&["setup", "vault", "-check", "-json"]);
    assert_eq!(found.code, 1, "{found:?}");
    let lacking =
        json!({"Namespace": "default", "JobID": "without", "Task": "main", "Identity": "vault_default"});
    assert_eq!(serde_json::from_str::<Value>(&found.stdout).unwrap(), json!([lacking]));
    let found = agent.run(&["setup", "vault", "-check"]);
    assert!(found.stdout.contains("default    without  main  vault_default"), "{}", found.stdout);
}
