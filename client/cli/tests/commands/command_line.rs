//! The command line itself: completion, colours, sockets, confirmations.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use crate::commands::support::{ALLOC, Cluster, EVAL, NODE, job_file, ran, run, sojourn, web_cluster};

#[test]
fn command_lines_are_completed() {
    let typed = |line: &str| {
        let output =
            sojourn().env("COMP_LINE", line).env("NOMAD_ADDR", "http://127.0.0.1:1").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(typed("nomad deploy"), "deployment\n");
    assert_eq!(typed("nomad job pla"), "plan\n");
    assert_eq!(typed("nomad job stop -pu"), "-purge\n");
    assert_eq!(typed("nomad job stop we"), "", "no server can be reached");
}

#[test]
fn blocks_and_keys_are_explained() {
    let (code, page, _) = explain(&["job.group.network.port"]);
    assert_eq!(code, 0);
    for part in
        ["A port of the node for the group.", "\n  port \"http\" {\n", "\n  to                number  "]
    {
        assert!(page.contains(part), "{page}");
    }
    let (_, key, _) = explain(&["node_class"]);
    assert!(key.starts_with("agent.client.node_class\n\n") && key.contains("\nType:    text\n"), "{key}");
    let (_, top, _) = explain(&[]);
    let names: Vec<&str> = top.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(names, ["job", "variable", "variables", "locals", "agent"]);
    let (code, page, wrong) = explain(&["job.group.netwrok"]);
    assert_eq!((code, page.as_str()), (1, ""));
    assert_eq!(wrong, "No block or key is called \"job.group.netwrok\": did you mean job.group.network?\n");
    let (_, json, _) = explain(&["-json", "job.group.count"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json[0]["Kind"], &json[0]["Type"], &json[0]["Default"]),
        (&"key".into(), &"number".into(), &"1".into())
    );
}

/// Exit code, output and errors.
fn explain(arguments: &[&str]) -> (i32, String, String) {
    let output = sojourn().arg("explain").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn names_are_completed_by_searching_for_them() {
    let cluster = web_cluster().with("PUT /v1/search", r#"{"Matches": {"jobs": ["web", "web2"]}}"#);
    let found = cluster.run_with(&[("COMP_LINE", "nomad job stop we")], &[]);
    assert_eq!(found.stdout, "web\nweb2\n", "{}", found.stderr);
    assert!(found.requests[0].ends_with(r#"{"Prefix":"we","Context":"jobs"}"#), "{:?}", found.requests);
}

#[test]
fn colours_are_printed_only_when_enabled() {
    let file = job_file();
    let path = file.path().to_str().unwrap();
    let green = "\u{1b}[32mJob registration successful\u{1b}[0m\n";
    let plain = "Job registration successful\n";
    for (environment, flags, expected) in [
        (&[][..], &[][..], plain),
        (&[][..], &["-force-color"][..], green),
        (&[("NOMAD_CLI_FORCE_COLOR", "1")][..], &[][..], green),
        (&[("NOMAD_CLI_NO_COLOR", "1")][..], &["-no-color"][..], plain),
    ] {
        let arguments: Vec<&str> =
            ["job", "run", "-detach"].iter().chain(flags).chain(&[path]).copied().collect();
        let shown = web_cluster().run_with(environment, &arguments);
        assert!(shown.stdout.starts_with(expected), "{environment:?} {flags:?}: {}", shown.stdout);
    }
}

#[test]
fn an_agent_is_reached_over_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = String::new();
        while !lines.ends_with("\r\n\r\n") {
            reader.read_line(&mut lines).unwrap();
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\nConnection: close\r\n\r\n\"127.0.0.1:4647\"";
        stream.write_all(answer.as_bytes()).unwrap();
        lines
    });
    let address = format!("-address=unix://{}", path.display());
    let output = sojourn()
        .env("NOMAD_HTTP_AUTH", "user:secret")
        .args(["operator", "api", &address, "status/leader"])
        .output()
        .unwrap();
    let shown = ran(output);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "\"127.0.0.1:4647\""), "{}", shown.stderr);
    let request = server.join().unwrap();
    assert!(request.to_lowercase().contains("authorization: basic "), "{request}");
    assert!(request.contains("dXNlcjpzZWNyZXQ="), "{request}");
}

#[test]
fn a_job_file_is_fetched_over_http() {
    let file = std::fs::read_to_string(job_file().path()).unwrap();
    let cluster = web_cluster().with("GET /web.nomad.hcl", &file);
    let url = format!("{}/web.nomad.hcl", cluster.address);
    let done = cluster.run(&["job", "run", "-detach", &url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.requests[0], "GET /web.nomad.hcl");
    assert!(done.requests[1].starts_with("PUT /v1/jobs "), "{:?}", done.requests);
}

#[test]
fn an_agents_configuration_is_checked_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.hcl");
    std::fs::write(&path, "data_dir = \"/tmp/x\"\nserver {\n  enabled = true\n}\n").unwrap();
    let valid = run(&["validate", path.to_str().unwrap()], "config");
    assert_eq!((valid.code, valid.stdout.as_str()), (0, "Configuration is valid!\n"), "{}", valid.stderr);
    std::fs::write(&path, "colour = \"red\"\n").unwrap();
    assert_eq!(run(&["validate", path.to_str().unwrap()], "config").code, 1);
    assert_eq!(run(&["validate"], "config").code, 1);
}

#[test]
fn files_are_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.nomad.hcl");
    let name = path.to_str().unwrap();
    std::fs::write(&path, "job \"web\" {\ntype=\"batch\"\n}\n").unwrap();
    let checked = run(&["-check", folder.path().to_str().unwrap()], "fmt");
    assert_eq!((checked.code, checked.stdout), (1, format!("{name}\n")), "{}", checked.stderr);
    let written = run(&[name], "fmt");
    assert_eq!((written.code, written.stdout), (0, format!("{name}\n")));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "job \"web\" {\n  type = \"batch\"\n}\n");
    let again = run(&["-check", name], "fmt");
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert_eq!(run(&["/nowhere"], "fmt").code, 1);
}

#[test]
fn an_agent_is_healthy_or_the_reason_is_printed() {
    let server = Cluster::answering(&[
        ("GET /v1/agent/self", r#"{"stats": {"nomad": {"server": "true"}}}"#),
        ("GET /v1/status/peers", r#"["a", "b"]"#),
        ("GET /v1/metrics", r#"{"Gauges": [{"Name": "jobs"}]}"#),
    ]);
    assert_eq!(server.run(&["check", "-min-peers=1"]).code, 0);
    let alone = server.run(&["check", "-min-peers=2"]);
    assert_eq!((alone.code, alone.stderr.as_str()), (1, "The server has 1 peer, not 2\n"));
    assert_eq!(server.run(&["check", "x"]).code, 2);
    let metrics = server.run(&["operator", "metrics", "-t", "{{range .Gauges}}{{.Name}}{{end}}"]);
    assert_eq!(metrics.stdout, "jobs\n", "{}", metrics.stderr);
}

#[test]
fn groups_print_their_help_and_end_with_one() {
    for group in [
        "acl",
        "acl auth-method",
        "acl binding-rule",
        "acl policy",
        "acl role",
        "acl token",
        "alloc",
        "deployment",
        "eval",
        "job",
        "job periodic",
        "job tag",
        "namespace",
        "node",
        "node meta",
        "node pool",
        "operator",
        "operator autopilot",
        "scaling policy",
        "server",
        "service",
        "system",
        "system reconcile",
    ] {
        let words: Vec<&str> = group.split(' ').collect();
        let shown = Cluster::answering(&[]).run(&words);
        assert_eq!(shown.code, 1, "{group}");
        assert!(
            shown.stdout.starts_with(&format!("Usage: sojourn {group} <subcommand>")),
            "{group}: {}",
            shown.stdout
        );
    }
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    for (words, code) in [
        (&["job", "plan", "-nope", "x"][..], 255),
        (&["job", "plan"][..], 255),
        (&["job", "validate", "-nope", "x"][..], 255),
        (&["check", "-nope"][..], 2),
        (&["job", "run", "-nope", "x"][..], 1),
        (&["nope"][..], 127),
    ] {
        assert_eq!(Cluster::answering(&[]).run(words).code, code, "{words:?}");
    }
}

#[test]
fn certificates_that_cannot_be_used_are_named_by_their_flag() {
    let address = "-address=https://127.0.0.1:4646";
    for (flag, words) in [
        ("-ca-cert=/none.pem", "-ca-cert: cannot read /none.pem: No such file"),
        ("-ca-path=/none", "-ca-path: /none: No such file"),
        ("-client-cert=/none.pem", "-client-key: the key of the certificate is required too"),
        ("-client-key=/none.pem", "-client-cert: the certificate of the key is required too"),
        ("-tls-server-name=a b", "-tls-server-name: \"a b\" is not a name"),
    ] {
        let refused = run(&[address, flag], "agent-info");
        assert_eq!(refused.code, 1, "{flag}");
        assert!(refused.stderr.contains(words), "{flag}: {}", refused.stderr);
    }
}

#[test]
fn a_broken_file_is_reported_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, fine) = (folder.path().join("a.nomad.hcl"), folder.path().join("b.hcl"));
    let text = "job \"web\" {\n  group \"g\" {\n    count=1\n";
    std::fs::write(&broken, text).unwrap();
    // The configuration of an agent, in the older syntax.
    std::fs::write(&fine, "client {\n  meta {\n    \"rack.row\"=\"7\"\n  }\n}\n").unwrap();
    for flags in [&["-check", folder.path().to_str().unwrap()][..], &[folder.path().to_str().unwrap()]] {
        let refused = run(flags, "fmt");
        assert_eq!(refused.code, 1, "{flags:?}");
        assert!(refused.stderr.contains("a.nomad.hcl:2:"), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&broken).unwrap(), text);
    }
    let formatted = std::fs::read_to_string(&fine).unwrap();
    assert_eq!(formatted, "client {\n  meta {\n    \"rack.row\" = \"7\"\n  }\n}\n", "the others are written");
    let mut child = sojourn()
        .args(["fmt", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
}

#[test]
fn without_a_terminal_nothing_is_confirmed() {
    let node = format!(r#"[{{"ID": "{NODE}", "Name": "n1", "Status": "ready"}}]"#);
    let cluster = web_cluster().with("GET /v1/nodes", &node);
    for (words, method) in [
        (&["node", "eligibility", "-disable", "0badcafe"][..], "/eligibility"),
        (&["node", "drain", "-enable", "-detach", "0badcafe"], "/drain"),
        (&["job", "stop", "we"], "DELETE"),
        (&["job", "restart", "we"], "/restart"),
    ] {
        let refused = cluster.run(words);
        assert_eq!(refused.code, 1, "{words:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("-yes asks no questions"), "{words:?}: {}", refused.stderr);
        assert!(!refused.requests.iter().any(|sent| sent.contains(method)), "{:?}", refused.requests);
    }
    let eval = cluster.run(&["eval", "delete", EVAL]);
    assert_eq!(eval.code, 1, "{}", eval.stdout);
}

#[test]
fn commands_of_nomad_that_are_not_here_say_so() {
    for (words, why) in [
        (&["windows"][..], "for Windows only"),
        (&["windows", "service", "install"], "for Windows only"),
        (&["volume", "claim", "-help"], "there are no sticky claims"),
        (&["operator", "raft", "migrate-backend"], "one kind of log"),
    ] {
        let shown = Cluster::answering(&[]).run(words);
        assert_eq!(shown.code, 1, "{words:?}");
        assert!(shown.stderr.contains(why), "{words:?}: {}", shown.stderr);
        assert_eq!(shown.stdout, "");
    }
}

#[test]
fn commands_of_the_other_edition_print_what_the_server_answers() {
    let only = "501 Nomad Enterprise only endpoint";
    let cluster = Cluster::answering(&[
        ("GET /v1/quotas", only),
        ("DELETE /v1/quota/a%2Fb", only),
        ("PUT /v1/sentinel/policy/p", only),
        ("GET /v1/operator/license", "204 "),
        ("POST /v1/operator/utilization", only),
    ]);
    for (words, doing) in [
        (
            &["quota", "list"][..],
            "retrieving quotas: Unexpected response code: 501 (Nomad Enterprise only endpoint)",
        ),
        (
            &["quota", "delete", "a/b"],
            "deleting quota: Unexpected response code: 501 (Nomad Enterprise only endpoint)",
        ),
        (
            &["sentinel", "apply", "-level=advisory", "p", "f"],
            "writing Sentinel policy: Unexpected response code: 501 (Nomad Enterprise only endpoint)",
        ),
        (&["license", "get"], "getting license: Nomad Enterprise only endpoint"),
        (
            &["operator", "utilization"],
            "creating utilization snapshot bundle: Unexpected response code: 501 (Nomad Enterprise only endpoint)",
        ),
    ] {
        let shown = cluster.run(words);
        assert_eq!((shown.code, shown.stderr), (1, format!("Error {doing}\n")), "{words:?}");
    }
    let few = cluster.run(&["sentinel", "apply", "p"]);
    assert_eq!((few.code, few.requests.len()), (1, 0), "{}", few.stderr);
}

#[test]
fn an_example_of_a_quota_is_written_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spec.hcl");
    let written = run(&["init", path.to_str().unwrap()], "quota");
    assert_eq!(written.stdout, format!("Example quota specification written to {}\n", path.display()));
    assert!(std::fs::read_to_string(path).unwrap().contains("region_limit {"));
}

#[test]
fn a_paused_task_is_asked_of_its_node() {
    let path = format!("/v1/client/allocation/{ALLOC}/pause");
    let cluster = web_cluster()
        .with(
            &format!("GET /v1/allocation/{ALLOC}"),
            &format!(r#"{{"ID": "{ALLOC}", "Namespace": "default"}}"#),
        )
        .with(&format!("PUT {path}"), r#"{"Index": 3}"#)
        .with(&format!("GET {path}"), r#"{"ScheduleState": "run"}"#);
    let paused = cluster.run(&["alloc", "pause", "5d16e7fe", "main"]);
    assert_eq!(paused.code, 0, "{}", paused.stderr);
    let sent = paused.requests.last().unwrap();
    assert!(sent.contains(r#"{"ScheduleState":"pause","Task":"main"}"#), "{sent}");
    let status = cluster.run(&["alloc", "pause", "-status", "5d16e7fe", "main"]);
    assert_eq!(status.stdout, "Pause state: \"run\"\n");
    let wrong = cluster.run(&["alloc", "pause", "-state=stop", "5d16e7fe", "main"]);
    assert_eq!((wrong.code, wrong.requests.len()), (1, 0), "{}", wrong.stderr);
}

/// Bash itself, with a terminal of its own, completes a command, a flag and an id.
#[test]
fn bash_completes_commands_flags_and_ids() {
    let cluster = web_cluster().with("PUT /v1/search", r#"{"Matches": {"jobs": ["webshop"]}}"#);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_sojourn"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let lines = [
        ("sojourn job alloc\t", "sojourn job allocs"),
        ("sojourn job status -all-al\t", "-all-allocs"),
        ("sojourn job status web\t", "sojourn job status webshop"),
    ];
    for (typed, shown) in lines {
        let address = cluster.address.clone();
        let path = path.clone();
        let output = cluster.serving(move || {
            use std::io::Write;
            let mut terminal = std::process::Command::new("script")
                .args(["-qec", "bash --norc --noprofile -i", "/dev/null"])
                .env_clear()
                .envs([("PATH", path.as_str()), ("NOMAD_ADDR", &address), ("TERM", "dumb"), ("PS1", "$ ")])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut keys = terminal.stdin.take().unwrap();
            keys.write_all(b"source <(sojourn completion bash)\n").unwrap();
            // The line is completed, and not run: it becomes a comment.
            keys.write_all(format!("{typed}\x01#\nexit\n").as_bytes()).unwrap();
            drop(keys);
            String::from_utf8_lossy(&terminal.wait_with_output().unwrap().stdout).into_owned()
        });
        assert!(output.contains(shown), "{typed:?}: {output}");
    }
    let unknown = run(&["tcsh"], "completion");
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.starts_with("expected bash, zsh or fish, not \"tcsh\""), "{}", unknown.stderr);
}

/// `man` reads every page without a complaint.
#[test]
fn manual_pages_are_what_man_reads() {
    let folder = tempfile::tempdir().unwrap();
    let written = run(&[folder.path().to_str().unwrap()], "man");
    assert_eq!(written.code, 0, "{}", written.stderr);
    let page = folder.path().join("sojourn-job-run.1");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("\\fB\\-check\\-index\\fR"), "{text}");
    assert!(
        std::fs::read_to_string(folder.path().join("sojourn.1"))
            .unwrap()
            .contains(".BR sojourn\\-job\\-run (1)")
    );
    let Ok(formatted) =
        std::process::Command::new("groff").args(["-man", "-Tascii", "-ww"]).arg(&page).output()
    else {
        eprintln!("skipped: groff is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&formatted.stderr), "");
    assert!(
        String::from_utf8_lossy(&formatted.stdout).contains("Register only if the job's JobModifyIndex is N")
    );
}
