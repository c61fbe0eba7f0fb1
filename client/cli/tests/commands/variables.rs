//! Variables: what is sent for what is written, and how they are printed.

use serde_json::{Value, json};

use crate::commands::support::{Cluster, CommandOutput, ran, sojourn};

const TIME: i64 = 1_767_323_045_000_000_000;

fn variable(index: u64) -> String {
    json!({
        "Namespace": "default", "Path": "app/db", "CreateIndex": 7, "ModifyIndex": index,
        "CreateTime": TIME, "ModifyTime": TIME, "Items": {"password": "hunter2", "user": "me"},
    })
    .to_string()
}

fn cluster() -> Cluster {
    let list = json!([
        {"Namespace": "default", "Path": "app/cache", "ModifyTime": TIME},
        {"Namespace": "default", "Path": "app/db", "ModifyTime": TIME},
    ]);
    let versions = json!([
        {"Version": 1, "ModifyIndex": 9, "ModifyTime": TIME, "Author": "ci", "AccessorID": "0badcafe-1111-4222-8333-444444444444"},
        {"Version": 0, "ModifyIndex": 7, "ModifyTime": TIME, "Author": "", "AccessorID": ""},
    ]);
    Cluster::answering(&[
        ("GET /v1/vars", &list.to_string()),
        ("GET /v1/var/app/db", &variable(9)),
        ("GET /v1/var/app/versions", &versions.to_string()),
        ("PUT /v1/var/app/db", &variable(10)),
        ("DELETE /v1/var/app/db", ""),
    ])
}

/// The last request's path, and its body.
fn sent(output: &CommandOutput) -> (String, Value) {
    let request = output.requests.last().unwrap();
    let mut parts = request.splitn(3, ' ');
    let (method, path) = (parts.next().unwrap(), parts.next().unwrap());
    let body = parts.next().map_or(Value::Null, |body| serde_json::from_str(body).unwrap());
    (format!("{method} {path}"), body)
}

/// The command without a hint at the web interface.
fn run(cluster: &Cluster, words: &[&str]) -> CommandOutput {
    cluster.run_with(&[("NOMAD_CLI_SHOW_HINTS", "0")], words)
}

#[test]
fn a_variable_is_shown_in_each_form() {
    let cluster = cluster();
    let shown = run(&cluster, &["var", "get", "app/db"]);
    assert_eq!(
        shown.stdout,
        "Namespace   = default\nPath        = app/db\nCreate Time = 2026-01-02T03:04:05Z\n\
         Modify Time = 2026-01-02T03:04:05Z\nCheck Index = 9\n\nItems\npassword = hunter2\nuser     = me\n",
        "{}",
        shown.stderr
    );
    assert_eq!(run(&cluster, &["var", "get", "-item=user", "app/db"]).stdout, "me\n");
    let none = run(&cluster, &["var", "get", "-item=x", "app/db"]);
    assert_eq!((none.code, none.stderr.as_str()), (1, "Variable does not contain \"x\" item\n"));
    let json = run(&cluster, &["var", "get", "-out=json", "app/db"]);
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["Items"]["user"], "me");
    let hcl = run(&cluster, &["var", "get", "-out=hcl", "app/db"]);
    assert!(
        hcl.stdout.ends_with("items = {\n  \"password\" = \"hunter2\"\n  \"user\" = \"me\"\n}\n"),
        "{}",
        hcl.stdout
    );
    let template = ["var", "get", "-out=go-template", "-template={{.Path}} {{.ModifyIndex}}", "app/db"];
    assert_eq!(run(&cluster, &template).stdout, "app/db 9\n");
    for wrong in [["var", "get", "-out=yaml", "app/db"], ["var", "get", "-template=x", "app/db"]] {
        assert_eq!(run(&cluster, &wrong).code, 1, "{wrong:?}");
    }
    let old = run(&cluster, &["var", "get", "-version=0", "app/db"]);
    assert_eq!(sent(&old).0, "GET /v1/var/app/db?version=0");
}

#[test]
fn variables_are_listed() {
    let cluster = cluster();
    let list = run(&cluster, &["var", "list", "app/"]);
    assert_eq!(
        list.stdout,
        "Namespace  Path       Last Updated\ndefault    app/cache  2026-01-02T03:04:05Z\n\
         default    app/db     2026-01-02T03:04:05Z\n",
        "{}",
        list.stderr
    );
    assert_eq!(sent(&list).0, "GET /v1/vars?prefix=app%2F");
    assert_eq!(run(&cluster, &["var", "list", "-out=terse"]).stdout, "app/cache\napp/db\n");
    let all = run(&cluster, &["var", "list", "-namespace=*", "-out=terse"]);
    assert_eq!(all.stdout, "default\tapp/cache\ndefault\tapp/db\n");
    let none = Cluster::answering(&[("GET /v1/vars", "[]")]);
    assert_eq!(run(&none, &["var", "list"]).stdout, "No variables found\n");
}

#[test]
fn a_variable_is_put_together_from_arguments_and_files() {
    let cluster = cluster();
    let put = run(&cluster, &["var", "put", "app/db", "user=me", "note=a=b"]);
    assert_eq!((put.code, put.stdout.as_str()), (0, ""), "{}", put.stderr);
    let (path, body) = sent(&put);
    assert_eq!(path, "PUT /v1/var/app/db");
    assert_eq!(body["Items"], json!({"user": "me", "note": "a=b"}));
    let checked = run(&cluster, &["var", "put", "-check-index=0", "-out=table", "app/db", "user=me"]);
    assert_eq!(sent(&checked).0, "PUT /v1/var/app/db?cas=0");
    assert!(checked.stdout.contains("\nCheck Index = 10\n"), "{}", checked.stdout);

    let directory = tempfile::tempdir().unwrap();
    let (file, value) = (directory.path().join("a.hcl"), directory.path().join("value"));
    std::fs::write(&file, "path = \"app/db\"\nmodify_index = 9\nitems {\n  user = \"me\"\n}\n").unwrap();
    std::fs::write(&value, "many\nlines\n").unwrap();
    let (file, value) = (format!("@{}", file.display()), format!("text=@{}", value.display()));
    let put = run(&cluster, &["var", "put", &file, &value]);
    let (path, body) = sent(&put);
    assert_eq!(path, "PUT /v1/var/app/db?cas=9", "{}", put.stderr);
    assert_eq!(body["Items"], json!({"user": "me", "text": "many\nlines\n"}));
    assert_eq!(sent(&run(&cluster, &["var", "put", "-force", &file])).0, "PUT /v1/var/app/db");
    let other = run(&cluster, &["var", "put", "app/other", &file]);
    assert!(other.code == 1 && other.stderr.contains("is not that of the file"), "{}", other.stderr);
    for wrong in [vec!["var", "put"], vec!["var", "put", "app/db"], vec!["var", "put", "app/db", "user"]] {
        assert_eq!(run(&cluster, &wrong).code, 1, "{wrong:?}");
    }
}

#[test]
fn a_conflict_names_both_indexes_and_a_lock_itself() {
    let conflict = format!("409 {}", variable(9));
    let cluster =
        Cluster::answering(&[("PUT /v1/var/app/db", &conflict), ("DELETE /v1/var/app/db", &conflict)]);
    for words in [
        &["var", "put", "-check-index=7", "app/db", "a=b"][..],
        &["var", "purge", "-check-index=7", "app/db"],
    ] {
        let late = run(&cluster, words);
        assert_eq!(late.code, 1);
        assert!(
            late.stderr.starts_with("Check-and-Set conflict\n\nThe check-index 7 does not hold"),
            "{}",
            late.stderr
        );
        assert!(late.stderr.contains("is 9"), "{}", late.stderr);
    }
    let locked = run(&cluster, &["var", "put", "app/db", "a=b"]);
    assert!(locked.code == 1 && locked.stderr.contains("is locked"), "{}", locked.stderr);
    let early = run(&cluster, &["var", "lock", "-early-return", "app/db", "true"]);
    assert!(early.code == 1 && early.stderr.contains("somebody else has the lock"), "{}", early.stderr);
}

#[test]
fn versions_are_listed_and_gone_back_to() {
    let cluster = cluster();
    let shown = run(&cluster, &["var", "history", "app/versions"]);
    let head = "Version  Modify Index  Modify Time";
    assert!(shown.stdout.starts_with(head), "{}{}", shown.stdout, shown.stderr);
    assert!(shown.stdout.contains("  ci      0badcafe\n"), "{}", shown.stdout);
    let back = run(&cluster, &["var", "revert", "app/db", "0"]);
    assert_eq!(
        back.stdout, "Reverted variable \"app/db\" to version 0, modify index 10\n",
        "{}",
        back.stderr
    );
    assert!(back.requests.iter().any(|sent| sent.contains("?version=0")), "{:?}", back.requests);
    assert_eq!(sent(&back).0, "PUT /v1/var/app/db?cas=9");
    assert_eq!(sent(&back).1["Items"]["user"], "me");
    let purged = run(&cluster, &["var", "purge", "app/db"]);
    assert_eq!(purged.stdout, "Successfully purged variable \"app/db\"!\n", "{}", purged.stderr);
}

#[test]
fn an_example_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let init = |words: &[&str]| {
        ran(sojourn().current_dir(directory.path()).args(["var", "init"]).args(words).output().unwrap())
    };
    assert_eq!(init(&[]).stdout, "Example variable specification written to spec.nv.hcl\n");
    assert_eq!(init(&[]).code, 1, "it is there already");
    assert_eq!(init(&["-out=json"]).stdout, "Example variable specification written to spec.nv.json\n");
    assert_eq!(init(&["-quiet", "mine.hcl"]).stdout, "Example variable specification written to mine.hcl\n");
    assert!(!std::fs::read_to_string(directory.path().join("mine.hcl")).unwrap().contains('#'));
}
