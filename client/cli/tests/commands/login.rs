//! Auth methods, binding rules and logging in.

use std::io::Write;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::commands::support::{Cluster, CommandOutput};

const RULE: &str = "3f4a0fcd-7c42-473c-85db-2d31ba0c05fe";

/// The body of the last request.
fn sent(output: &CommandOutput) -> Value {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let request = output.requests.last().unwrap();
    serde_json::from_str(request.splitn(3, ' ').nth(2).expect("it has a body")).unwrap()
}

#[test]
fn auth_methods_are_made_shown_changed_and_deleted() {
    let method = json!({
        "Name": "ci", "Type": "JWT", "TokenLocality": "local", "MaxTokenTTL": "30m0s", "Default": true,
        "TokenNameFormat": "${auth_method_name}", "CreateIndex": 7, "ModifyIndex": 8,
        "Config": {"JWKSURL": "https://ci/keys", "BoundAudiences": ["a", "b"], "ClaimMappings": {"sub": "user"},
            "ClockSkewLeeway": "1m0s"},
    })
    .to_string();
    let stub = r#"[{"Name": "ci", "Type": "JWT", "Default": true}]"#;
    let cluster = Cluster::answering(&[
        ("GET /v1/acl/auth-methods", stub),
        ("GET /v1/acl/auth-method/ci", &method),
        ("PUT /v1/acl/auth-method", &method),
        ("PUT /v1/acl/auth-method/ci", &method),
        ("DELETE /v1/acl/auth-method/ci", ""),
    ]);
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(br#"{"JWKSURL": "https://ci/keys", "ExpirationLeeway": "5s"}"#).unwrap();
    let config = format!("-config=@{}", file.path().display());
    let create = [
        "acl",
        "auth-method",
        "create",
        "-name=ci",
        "-type=jwt",
        "-token-locality=local",
        "-max-token-ttl=30m",
    ];
    let created = cluster.run(&[&create[..], &[&config, "-default"]].concat());
    let body = sent(&created);
    assert_eq!(
        (&body["Type"], &body["MaxTokenTTL"], &body["Default"]),
        (&json!("JWT"), &json!("30m0s"), &json!(true))
    );
    assert_eq!(body["Config"]["ExpirationLeeway"], "5s");
    let head = "Name              = ci\nType              = JWT\nLocality          = local\nMax Token TTL     = 30m0s\n";
    assert!(created.stdout.starts_with(head), "{}", created.stdout);
    for line in [
        "JWKS URL                   = https://ci/keys",
        "= a,b\n",
        "= {sub: user}\n",
        "OIDC Client Secret         = <none>",
    ] {
        assert!(created.stdout.contains(line), "{line}: {}", created.stdout);
    }
    let missing = cluster.run(&create);
    assert!(missing.code == 1 && missing.stderr.contains("-config is required"), "{}", missing.stderr);
    let wrong = cluster.run(&[&create[..], &["-config={\"JWKS\": 1}"]].concat());
    assert!(
        wrong.code == 1 && wrong.stderr.contains("-config: \"JWKS\" is not known: expected "),
        "{}{}",
        wrong.stdout,
        wrong.stderr
    );

    let updated = sent(&cluster.run(&["acl", "auth-method", "update", "-max-token-ttl=1h", "ci"]));
    assert_eq!(
        (&updated["MaxTokenTTL"], &updated["Default"], &updated["Config"]),
        (&json!("1h0m0s"), &json!(true), &Value::Null)
    );
    let list = cluster.run(&["acl", "auth-method", "list"]);
    assert_eq!(list.stdout, "Name  Type  Default\nci    JWT   true\n", "{}", list.stderr);
    let shown = cluster.run(&["acl", "auth-method", "info", "-t", "{{.Name}}", "ci"]);
    assert_eq!(shown.stdout, "ci\n", "{}", shown.stderr);
    let deleted = cluster.run(&["acl", "auth-method", "delete", "ci"]);
    assert_eq!(deleted.stdout, "ACL auth method ci successfully deleted\n", "{}", deleted.stderr);
    let none = Cluster::answering(&[("GET /v1/acl/auth-methods", "[]")]).run(&["acl", "auth-method", "list"]);
    assert_eq!(none.stdout, "No ACL auth methods found\n");
}

#[test]
fn binding_rules_are_made_shown_changed_and_deleted() {
    let rule = json!({
        "ID": RULE, "Description": "d", "AuthMethod": "ci", "Selector": "value.a == b", "BindType": "policy",
        "BindName": "dev", "CreateIndex": 7, "ModifyIndex": 8,
    })
    .to_string();
    let path = format!("/v1/acl/binding-rule/{RULE}");
    let (get, delete) = (format!("GET {path}"), format!("DELETE {path}"));
    let list = format!("[{rule}]");
    let cluster = Cluster::answering(&[
        ("GET /v1/acl/binding-rules", &list),
        (&get, &rule),
        ("PUT /v1/acl/binding-rule", &rule),
        (&delete, ""),
    ]);
    let create = ["acl", "binding-rule", "create", "-auth-method=ci", "-bind-type=policy", "-bind-name=dev"];
    let created = cluster.run(&[&create[..], &["-selector=value.a == b"]].concat());
    let body = sent(&created);
    assert_eq!(
        (&body["ID"], &body["Selector"], &body["BindName"]),
        (&json!(""), &json!("value.a == b"), &json!("dev"))
    );
    let head =
        format!("ID           = {RULE}\nDescription  = d\nAuth Method  = ci\nSelector     = value.a == b\n");
    assert!(created.stdout.starts_with(&head), "{}", created.stdout);
    let missing = cluster.run(&["acl", "binding-rule", "create", "-bind-type=management"]);
    assert!(missing.code == 1 && missing.stderr.contains("-auth-method is required"), "{}", missing.stderr);
    let updated = sent(&cluster.run(&["acl", "binding-rule", "update", "-description=e", RULE]));
    assert_eq!(
        (&updated["ID"], &updated["Description"], &updated["BindName"]),
        (&json!(RULE), &json!("e"), &json!(""))
    );
    let less = cluster.run(&["acl", "binding-rule", "update", "-no-merge", "-bind-type=management", RULE]);
    assert!(less.code == 1 && less.stderr.contains("delete the rule"), "{}", less.stderr);
    let list = cluster.run(&["acl", "binding-rule", "list"]);
    assert!(list.stdout.ends_with(&format!("{RULE}  d            ci\n")), "{}{}", list.stdout, list.stderr);
    let deleted = cluster.run(&["acl", "binding-rule", "delete", RULE]);
    assert_eq!(deleted.stdout, format!("ACL binding rule {RULE} successfully deleted\n"));
}

#[test]
fn who_logs_in_names_a_method_or_takes_the_default_one() {
    let methods = |default: &str| {
        json!([
            {"Name": "ci", "Type": "JWT", "Default": default == "ci"},
            {"Name": "sso", "Type": "OIDC", "Default": default == "sso"},
        ])
        .to_string()
    };
    let token =
        r#"{"AccessorID": "a1", "SecretID": "s1", "Name": "JWT-ci", "Type": "client", "Policies": ["dev"]}"#;
    let cluster = |default: &str| {
        Cluster::answering(&[("GET /v1/acl/auth-methods", &methods(default)), ("PUT /v1/acl/login", token)])
    };
    let by_default = cluster("ci").run(&["login", "-login-token=a.b.c"]);
    assert_eq!(sent(&by_default), json!({"AuthMethodName": "ci", "LoginToken": "a.b.c"}));
    let head = "Successfully logged in via JWT and ci\n\nAccessor ID  = a1\nSecret ID    = s1\n";
    assert!(by_default.stdout.starts_with(head), "{}", by_default.stdout);
    let named = cluster("sso").run(&["login", "-method=ci", "-login-token=a.b.c", "-t", "{{.SecretID}}"]);
    assert_eq!(named.stdout, "s1\n", "{}", named.stderr);
    for (default, words, why) in [
        ("", &["login"][..], "-method is required"),
        ("", &["login", "-method=none"], "\"none\" not found"),
        ("ci", &["login"], "-login-token is required"),
        ("ci", &["login", "-type=OIDC"], "auth method ci is of type JWT"),
        ("sso", &["login", "-login-token=x"], "-login-token is for JWT methods"),
    ] {
        let refused = cluster(default).run(words);
        assert_eq!(refused.code, 1, "{words:?}");
        assert!(refused.stderr.contains(why), "{words:?}: {}", refused.stderr);
    }
}
