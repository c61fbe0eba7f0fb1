//! Artifacts of tasks, from web servers and repositories to the task that finds them in its directory.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use artifact::request::Confinement;
use artifact::{Mode, Request};
use node::artifacts::{ArtifactSettings, fetch, scratch_below};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::web::{Reply, Web};
use crate::support::*;

fn sha256(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A task that waits to be stopped, with these artifacts.
fn with_artifacts(artifacts: Value) -> Value {
    let mut task = mock("t", json!({"run_for": "1h"}));
    task["Artifacts"] = artifacts;
    task
}

fn once(attempts: u32, task: Value) -> Value {
    let restart = json!({"Attempts": attempts, "Mode": "fail", "Interval": "1h", "Delay": "10ms"});
    json!({"RestartPolicy": restart, "Tasks": [task]})
}

fn task_dir(base: &Path, id: u8) -> PathBuf {
    base.join("alloc").join(alloc_id(id)).join("t")
}

/// Runs programs of the host, and fails with what they say.
fn sh(directory: &Path, script: &str) {
    let output = Command::new("/bin/sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn archive(base: &Path, script: &str) -> Vec<u8> {
    let dir = base.join("archive");
    std::fs::create_dir_all(&dir).unwrap();
    sh(&dir, script);
    sh(base, "tar -C archive -czf a.tgz .");
    std::fs::read(base.join("a.tgz")).unwrap()
}

/// The message of the failed download.
fn failure(servers: &FakeServers, id: u8) -> String {
    let update = servers.await_status(&alloc_id(id), "failed");
    let events = &update.task_states["t"].events;
    let failed = events.iter().find(|event| event.kind == "Failed Artifact Download");
    let failed = failed.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(failed.display_message, failed.download_error);
    assert!(!events.iter().any(|event| event.kind == "Task hook failed"), "said once");
    failed.display_message.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_starts_when_its_artifacts_are_there() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let tgz = archive(
        base.path(),
        "mkdir bin sub; printf '#!/bin/sh\necho from the archive\n' > bin/run; \
        chmod 4755 bin/run; echo part > sub/part",
    );
    let sums = format!("{}  ./a.tgz\n", sha256(&tgz).trim_start_matches("sha256:"));
    let checksum = sha256(&tgz);
    let web = Web::start(move |path| match path {
        "/a.tgz" | "/plain" => Reply::File(tgz.clone()),
        "/SUMS" => Reply::File(sums.clone().into_bytes()),
        "/note.txt?v=7" => Reply::File(b"hello".to_vec()),
        _ => Reply::Missing,
    });
    let url = &web.url;
    let mut task = shell("t", "local/app/bin/run; cat local/note.txt local/part/part data; exec sleep 3600");
    task["Artifacts"] = json!([
        {"GetterSource": format!("{url}/a.tgz"), "RelativeDest": "local/app", "GetterOptions": {"checksum": checksum}},
        {"GetterSource": format!("{url}/a.tgz//sub"), "RelativeDest": "local/part",
         "GetterOptions": {"checksum": format!("file:{url}/SUMS")}},
        {"GetterSource": format!("{url}/note.txt"), "RelativeDest": "local/", "GetterOptions": {"v": "${meta.v}"}},
        {"GetterSource": format!("{url}/note.txt?v=7"), "RelativeDest": "data", "GetterMode": "file"},
        {"GetterSource": format!("{url}/plain?archive=tgz"), "RelativeDest": "${NOMAD_ALLOC_DIR}/data/all"},
        {"GetterSource": format!("{url}/a.tgz"), "RelativeDest": "local/raw", "GetterOptions": {"archive": "false"}},
    ]);
    let mut settings = settings(base.path());
    settings.meta.insert("v".into(), "7".into());
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings, &servers).await;
    let state = servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    let downloading = state.events.iter().find(|event| event.kind == "Downloading Artifacts").unwrap();
    assert_eq!(downloading.display_message, "Client is downloading artifacts");
    eventually("the output", || {
        (log(base.path(), 1, "t.stdout.0") == "from the archive\nhellopart\nhello").then_some(())
    });
    let dir = task_dir(base.path(), 1);
    assert_eq!(dir.join("local/app/bin/run").metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(dir.parent().unwrap().join("alloc/data/all/bin/run").is_file());
    assert!(dir.join("local/raw/a.tgz").is_file());
    assert_eq!(std::fs::read_dir(dir.join("tmp")).unwrap().count(), 0, "nothing is left");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_stay_with_the_server_that_the_job_names() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let other = Web::start(|_| Reply::File(b"x".to_vec()));
    let to = format!("{}/file", other.url);
    let first = Web::start(move |path| match path {
        "/start" => Reply::Redirect("/next".to_string()),
        _ => Reply::Redirect(to.clone()),
    });
    let headers = json!({"X-Token": "${NOMAD_TASK_NAME}-secret", "Authorization": "Bearer secret"});
    let source = first.url.replace("http://", "http://me:password@") + "/start";
    let artifacts = json!([{"GetterSource": source, "GetterHeaders": headers}]);
    servers.assign(alloc(1, "service", json!([with_artifacts(artifacts)])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    let asked = first.asked();
    assert_eq!(asked.len(), 2);
    for asked in asked {
        assert_eq!(asked.headers["x-token"], "t-secret", "{}", asked.path);
        assert!(asked.headers.contains_key("authorization"));
    }
    let [asked] = &other.asked()[..] else { panic!("{:?}", other.asked()) };
    assert!(
        !asked.headers.contains_key("x-token") && !asked.headers.contains_key("authorization"),
        "{asked:?}"
    );
    assert_eq!(std::fs::read(task_dir(base.path(), 1).join("local/start")).unwrap(), b"x");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_s3_is_asked_for_with_a_signature() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let web = Web::start(|_| Reply::File(b"x".to_vec()));
    let source = format!("s3::{}/bucket/dir/key?region=eu-west-1", web.url);
    let options = json!({"aws_access_key_id": "ID", "aws_access_key_secret": "very-secret", "version": "7"});
    let open = json!({"GetterSource": format!("s3::{}/bucket/open", web.url)});
    let artifacts = json!([{"GetterSource": source, "GetterOptions": options}, open]);
    servers.assign(alloc(1, "service", json!([with_artifacts(artifacts)])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    let asked = web.asked();
    let of =
        |path: &str| asked.iter().find(|asked| asked.path == path).unwrap_or_else(|| panic!("{asked:?}"));
    let proof = &of("/bucket/dir/key?versionId=7").headers["authorization"];
    assert!(
        proof.starts_with("AWS4-HMAC-SHA256 Credential=ID/") && proof.contains("/eu-west-1/s3/"),
        "{proof}"
    );
    assert!(!format!("{asked:?}").contains("very-secret"));
    assert!(!of("/bucket/open").headers.contains_key("authorization"));
    assert_eq!(std::fs::read(task_dir(base.path(), 1).join("local/key")).unwrap(), b"x");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_download_is_tried_again_under_the_restart_policy() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let web = Web::start(|_| Reply::File(b"another file".to_vec()));
    let source = format!("{}/file?token=secret", web.url);
    let options = json!({"checksum": sha256(b"the file")});
    let artifacts = json!([{"GetterSource": source, "GetterOptions": options}]);
    servers.assign(group_alloc(1, "service", once(1, with_artifacts(artifacts))));
    let agent = start(settings(base.path()), &servers).await;
    let text = failure(&servers, 1);
    let expected =
        format!("failed to download artifact \"{}/file\": checksums did not match: expected", web.url);
    assert!(text.starts_with(&expected), "{text}");
    assert!(!text.contains("secret"), "{text}");
    let state = servers.update(&alloc_id(1)).unwrap().task_states["t"].clone();
    assert_eq!((state.restarts, web.asked().len()), (1, 2), "{:?}", kinds(&state));
    let local = std::fs::read_dir(task_dir(base.path(), 1).join("local")).unwrap();
    assert_eq!(local.count(), 0, "what is wrong is not kept");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_nonsense_fail_with_a_reason() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let escaping = archive(base.path(), "ln -s ../../../secrets out");
    let web = Web::start(move |path| match path {
        "/large" => Reply::File(vec![0; 5000]),
        "/slow" => Reply::Stuck,
        "/out.tgz" => Reply::File(escaping.clone()),
        "/x" => Reply::File(b"x".to_vec()),
        _ => Reply::Missing,
    });
    let cases = [
        ("/large", json!({}), "larger than 4000 bytes (http_max_size)"),
        ("/slow", json!({}), "not complete within 1 s"),
        ("/out.tgz", json!({}), "a link leads out"),
        ("/none", json!({}), "bad response code: 404"),
        ("/x", json!({"RelativeDest": "../other"}), "escapes the directory of the allocation"),
        ("/x", json!({"GetterMode": "dir"}), "mode = \"dir\": expected an archive or a repository"),
        ("/x", json!({"GetterOptions": {"checksum": "crc:1"}}), "is not <type>:<hex>"),
        ("/x", json!({"GetterHeaders": {"a b": "c"}}), "\"a b\" is no header"),
        ("", json!({"GetterSource": "file:///etc/passwd"}), "not allowed as artifacts"),
    ];
    let mut settings = settings(base.path());
    settings.artifacts.limits.http_max_size = 4000;
    settings.artifacts.limits.http_read_timeout = Duration::from_secs(1);
    for (at, (path, extra, _)) in cases.iter().enumerate() {
        let mut artifact = json!({"GetterSource": format!("{}{path}", web.url)});
        artifact.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        servers.assign(alloc(at as u8, "service", json!([with_artifacts(json!([artifact]))])));
    }
    let agent = start(settings, &servers).await;
    for (at, (path, _, expected)) in cases.iter().enumerate() {
        let text = failure(&servers, at as u8);
        assert!(text.contains(expected), "{path}: {text}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_is_not_fetched_again() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let web = Web::start(|_| Reply::File(b"x".to_vec()));
    // It ends once, and then stays.
    let mut task =
        shell("t", "test -e local/file || exit 3; test -e again && exec sleep 3600; touch again; exit 1");
    task["Artifacts"] = json!([{"GetterSource": format!("{}/file", web.url)}]);
    servers.assign(group_alloc(1, "service", once(3, task)));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running" && task.restarts == 1);
    assert_eq!(web.asked().len(), 1);
    agent.shutdown().await;
    // The next agent remembers it too.
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    assert_eq!(web.asked().len(), 1);
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_end_ends_the_download() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let web = Web::start(|_| Reply::Stuck);
    let artifact = json!({"GetterSource": format!("{}/file", web.url)});
    servers.assign(alloc(1, "service", json!([with_artifacts(json!([artifact]))])));
    let agent = start(settings(base.path()), &servers).await;
    eventually("the request", || (!web.asked().is_empty()).then_some(()));
    servers.stop(&alloc_id(1));
    servers.await_task(&alloc_id(1), "t", |task| task.state == "dead");
    eventually("the child is gone", || (web.seen.lock().unwrap().left == 1).then_some(()));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_stops_in_the_middle_leaves_the_rest_to_the_next_one() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let first = AtomicBool::new(true);
    let web = Web::start(move |path| match path {
        "/second" if first.swap(false, Ordering::Relaxed) => Reply::Stuck,
        _ => Reply::File(b"x".to_vec()),
    });
    let source = |name: &str| json!({"GetterSource": format!("{}/{name}", web.url)});
    let artifacts = json!([source("second")]);
    servers.assign(alloc(1, "service", json!([with_artifacts(artifacts)])));
    let agent = start(settings(base.path()), &servers).await;
    eventually("the request", || (!web.asked().is_empty()).then_some(()));
    agent.shutdown().await;
    eventually("the child is gone", || (web.seen.lock().unwrap().left == 1).then_some(()));
    // As if it had been killed, and could not clean up.
    let left = task_dir(base.path(), 1).join("tmp/.artifact-0123456789abcdef");
    std::fs::create_dir_all(left.join("tree")).unwrap();
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    assert_eq!(web.asked().len(), 2);
    assert!(!left.exists());
    assert_eq!(std::fs::read(task_dir(base.path(), 1).join("local/second")).unwrap(), b"x");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_cloned() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let home = base.path().join("home");
    std::fs::create_dir(&home).unwrap();
    sh(
        base.path(),
        "export HOME=$PWD/home GIT_CONFIG_NOSYSTEM=1
        git init -q repo && cd repo
        git config user.name a && git config user.email a@example.org
        mkdir -p sub/deep && echo one > sub/deep/file && echo top > top
        git add . && git commit -qm one && git tag v1
        echo two > sub/deep/file && git commit -qam two
        git update-server-info",
    );
    let files = base.path().join("repo/.git");
    let web = Web::start(move |path| {
        let name = path.split('?').next().unwrap_or_default().trim_start_matches("/repo.git/");
        std::fs::read(files.join(name)).map_or(Reply::Missing, Reply::File)
    });
    let source = |rest: &str| format!("git::{}/repo.git{rest}", web.url);
    let artifacts = json!([
        {"GetterSource": source(""), "RelativeDest": "local/all"},
        {"GetterSource": source("//sub?ref=v1"), "RelativeDest": "local/part"},
        {"GetterSource": source("//sub/deep/file"), "RelativeDest": "local/only", "GetterMode": "file"},
    ]);
    servers.assign(alloc(1, "service", json!([with_artifacts(artifacts)])));
    let option = json!([{"GetterSource": source(""), "GetterOptions": {"ref": "--upload-pack=id"}}]);
    servers.assign(alloc(2, "service", json!([with_artifacts(option)])));
    let unknown = json!([{"GetterSource": source(""), "GetterOptions": {"ref": "v9"}}]);
    servers.assign(alloc(3, "service", json!([with_artifacts(unknown)])));
    let mut settings = settings(base.path());
    settings.artifacts.environment.insert("HOME".into(), home.display().to_string());
    let agent = start(settings, &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    let read = |path: &str| std::fs::read_to_string(task_dir(base.path(), 1).join(path)).unwrap();
    assert_eq!(read("local/all/top"), "top\n");
    assert_eq!(read("local/all/sub/deep/file"), "two\n");
    assert_eq!(read("local/part/deep/file"), "one\n");
    assert_eq!(read("local/only"), "two\n");
    assert!(failure(&servers, 2).contains("ref: \"--upload-pack=id\" is no branch, tag or commit"));
    assert!(failure(&servers, 3).contains("git failed"));
    agent.shutdown().await;
}

fn request_for(base: &Path, settings: &ArtifactSettings) -> Request {
    Request {
        source: String::new(),
        options: Default::default(),
        headers: Default::default(),
        mode: Mode::Any,
        insecure: false,
        root: base.to_path_buf(),
        destination: "to".into(),
        scratch: scratch_below(base),
        writable: Vec::new(),
        owner: None,
        limits: settings.limits.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_confined_unless_the_operator_does_without() {
    let base = Base::new();
    let web = Web::start(|_| Reply::File(b"x".to_vec()));
    let mut settings = ArtifactSettings::usual();
    for (at, disabled) in [false, true].into_iter().enumerate() {
        settings.limits.disable_filesystem_isolation = disabled;
        let source = format!("{}/file{at}", web.url);
        let request = Request { source, ..request_for(base.path(), &settings) };
        let program = Path::new(env!("CARGO_BIN_EXE_node-executor"));
        let answer = fetch(program, &request, &settings).await.unwrap();
        assert_eq!(answer.error, None);
        assert_eq!(answer.confinement == Confinement::Disabled, disabled);
        assert!(base.path().join(format!("to/file{at}")).is_file());
        assert!(!request.scratch.exists());
    }
    // What is no answer is said too.
    let request = request_for(base.path(), &settings);
    let error = fetch(Path::new("/bin/false"), &request, &settings).await.unwrap_err();
    assert!(
        error.contains("ended without an answer: exit status: 1") || error.contains("takes no request"),
        "{error}"
    );
}

/// As root, because only root gives files away.
#[tokio::test(flavor = "multi_thread")]
async fn files_can_be_those_of_the_user_of_the_task() {
    use std::os::unix::fs::MetadataExt;
    let (base, servers) = (Base::new(), FakeServers::new());
    let tgz = archive(base.path(), "mkdir sub; echo x > sub/file; ln -s sub/file link");
    let web = Web::start(move |_| Reply::File(tgz.clone()));
    let mut task = with_artifacts(
        json!([{"GetterSource": format!("{}/a.tgz", web.url), "RelativeDest": "local/x", "Chown": true}]),
    );
    task["User"] = json!("nobody");
    servers.assign(alloc(1, "service", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    if !rustix::process::geteuid().is_root() {
        assert!(failure(&servers, 1).contains("Operation not permitted"));
        return;
    }
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    for path in ["local/x", "local/x/sub", "local/x/sub/file", "local/x/link"] {
        let metadata = task_dir(base.path(), 1).join(path).symlink_metadata().unwrap();
        assert_eq!(metadata.uid(), 65534, "{path}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_nobody_is_accepted_only_when_the_job_says_so() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (base, servers) = (Base::new(), FakeServers::new());
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_string()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = format!("https://{}/file", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            if matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {
                continue;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.ok();
            stream.shutdown().await.ok();
        }
    });
    for (id, insecure) in [(1, true), (2, false)] {
        let artifacts = json!([{"GetterSource": source, "GetterInsecure": insecure}]);
        servers.assign(alloc(id, "service", json!([with_artifacts(artifacts)])));
    }
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    assert!(failure(&servers, 2).contains("certificate"));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_mercurial_is_cloned() {
    if Command::new("hg").arg("--version").output().is_err() {
        eprintln!("skipped: there is no hg");
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    std::fs::create_dir(base.path().join("home")).unwrap();
    sh(
        base.path(),
        "export HOME=$PWD/home HGUSER=a
        hg init repo && cd repo && mkdir sub && echo one > sub/file && hg commit -qAm one && hg tag v1
        echo two > sub/file && hg commit -qm two",
    );
    let mut serving = Command::new("hg")
        .args(["serve", "--address", "127.0.0.1", "--port", "0", "--print-url", "--accesslog", "access.log"])
        .current_dir(base.path().join("repo"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map(Serving)
        .unwrap();
    let mut url = String::new();
    let output = serving.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut url).unwrap();
    let source = format!("hg::{}//sub?rev=v1", url.trim().trim_end_matches('/'));
    let artifacts = json!([{"GetterSource": source, "RelativeDest": "local/hg"}]);
    servers.assign(alloc(1, "service", json!([with_artifacts(artifacts)])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_task(&alloc_id(1), "t", |task| {
        assert!(!kinds(task).contains(&"Failed Artifact Download"), "{:?}", task.events);
        task.state == "running"
    });
    assert_eq!(std::fs::read(task_dir(base.path(), 1).join("local/hg/file")).unwrap(), b"one\n");
    agent.shutdown().await;
}

/// Ends with the test.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
