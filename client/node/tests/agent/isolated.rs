//! Tasks of the driver `exec`: what they see, what they are, and that they live and end as other processes do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::exec::result;
use crate::support::listening::Running;
use crate::support::*;
use executor::process::{descendants, stat};
use executor::spec::{ExecutorProcesses, ExecutorSpec, IsolationSpec, LayerSpec, LogSpec, STATE_FILE, read};
use model::document::Allocation;
use node::driver::process::Executors;
use node::settings::HostVolume;
use node::task::events::DEAD;
use serde_json::{Value, json};

/// True where nothing can be isolated, which is said aloud.
pub fn skipped(test: &str) -> bool {
    let skipped = !rustix::process::geteuid().is_root();
    if skipped {
        eprintln!("skipped: {test} needs root");
    }
    skipped
}

/// A task that runs a shell script in isolation.
pub fn isolated(name: &str, script: &str) -> Value {
    json!({"Name": name, "Driver": "exec", "Config": {"command": "/bin/sh", "args": ["-c", script]}})
}

pub fn with_resources(mut alloc: Allocation, tasks: Value) -> Allocation {
    alloc.allocated_resources = Some(serde_json::from_value(json!({"Tasks": tasks})).unwrap());
    alloc
}

fn state(base: &Path) -> ExecutorProcesses {
    let directory = std::fs::read_dir(base.join("client/executors")).unwrap().next().unwrap().unwrap().path();
    read(&directory, STATE_FILE).unwrap().unwrap()
}

/// What the script of a task says, which ends well.
async fn said(test: &str, task: Value) -> Option<String> {
    if skipped(test) {
        return None;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "batch", json!([task])));
    let agent = start(settings(base.path()), &servers).await;
    let update = eventually("an end", || {
        servers
            .update(&alloc_id(1))
            .filter(|update| ["complete", "failed"].contains(&update.client_status.as_str()))
    });
    let text = log(base.path(), 1, "t.stdout.0");
    let error = log(base.path(), 1, "t.stderr.0");
    assert_eq!(update.client_status, "complete", "{text} {error} {:?}", update.task_states["t"].events);
    agent.shutdown().await;
    Some(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_process_1_of_nobody_in_its_own_root() {
    let script = "echo $$ $(id -u) $(id -g) $USER $HOME; pwd; echo $NOMAD_TASK_DIR $NOMAD_ALLOC_DIR; \
                  ls -d /alloc /alloc/logs /local /secrets /tmp /etc /usr /proc/1 /dev/null; ls /home /root 2>&1 | wc -l";
    let Some(said) = said("a_task_is_process_1", isolated("t", script)).await else { return };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "1 65534 65534 nobody /nonexistent");
    assert_eq!(lines[1..3], ["/", "/local /alloc"]);
    assert_eq!(lines.len(), 13, "all of them are there: {said}");
    assert_eq!(lines[12].trim(), "2", "and the host's other directories are not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_the_capabilities_of_its_user_and_job() {
    let mut task =
        // Without a pipe, whose end the shell may still have open.
        isolated("t", "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; ls /proc/1/fd; true");
    task["Config"]["cap_drop"] = json!(["all"]);
    task["Config"]["cap_add"] = json!(["net_bind_service"]);
    let Some(said) = said("a_task_has_the_capabilities", task).await else { return };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(said.contains(&format!("{set}:\t0000000000000400")), "{said}");
    }
    assert!(said.contains("NoNewPrivs:\t1") && said.contains("Seccomp:\t2"), "{said}");
    assert!(said.ends_with("\n0\n1\n2\n"), "nothing of the agent is left open: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_may_opt_out_and_be_another_user() {
    let mut task = isolated(
        "t",
        "id -un; id -G; grep -E '^(NoNew|Seccomp:)' /proc/self/status; ls /proc | grep -c '^[0-9]'",
    );
    task["User"] = json!("daemon");
    task["Config"]["no_new_privileges"] = json!(false);
    task["Config"]["pid_mode"] = json!("host");
    task["Config"]["work_dir"] = json!("/usr");
    let Some(said) = said("a_task_may_opt_out", task).await else { return };
    assert!(said.starts_with("daemon\n1\n"), "{said}");
    assert!(said.contains("NoNewPrivs:\t0") && said.contains("Seccomp:\t0"), "{said}");
    let processes: usize = said.lines().last().unwrap().parse().unwrap();
    assert!(processes > 5, "it sees those of the host: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_and_missing_programs_are_named() {
    if skipped("mistakes_and_missing_programs_are_named") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let config = |config: Value| json!([{"Name": "t", "Driver": "exec", "Config": config}]);
    let as_root = json!([{"Name": "t", "Driver": "exec", "User": "root", "Config": {"command": "true"}}]);
    let failed = "failed to launch command with executor: ";
    let cases = [
        (config(json!({"command": "no-such"})), format!("{failed}binary \"no-such\" could not be found")),
        (config(json!({"command": "/root/x"})), format!("{failed}binary \"/root/x\" could not be found")),
        (config(json!({"command": "true", "work_dir": "/no/such"})), format!("{failed}work_dir /no/such: ")),
        (config(json!({"command": "/etc/passwd"})), format!("{failed}/etc/passwd: Permission denied")),
        (
            config(json!({"command": "true", "cap_add": ["sys_admin"]})),
            "driver does not allow the following capabilities: sys_admin".to_string(),
        ),
        (as_root, "running as user \"root\" is disallowed".to_string()),
    ];
    for (id, (tasks, _)) in (1..).zip(&cases) {
        servers.assign(alloc(id, "batch", tasks.clone()));
    }
    let agent = start(settings(base.path()), &servers).await;
    for (id, (_, text)) in (1..).zip(&cases) {
        let update = servers.await_status(&alloc_id(id), "failed");
        let events = &update.task_states["t"].events;
        assert!(events.iter().any(|event| event.display_message.starts_with(text)), "{text}: {events:?}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_volume_is_mounted_and_read_only_where_that_is_said() {
    if skipped("a_host_volume_is_mounted") {
        return;
    }
    let (base, disk, servers) = (Base::new(), tempfile::tempdir().unwrap(), FakeServers::new());
    std::fs::write(disk.path().join("given"), "from the host\n").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(disk.path(), open).unwrap();
    let mut settings = settings(base.path());
    let volume = HostVolume { path: disk.path().to_path_buf(), read_only: false };
    settings.host_volumes = BTreeMap::from([("disk".to_string(), volume)]);
    let mut task = isolated("t", "cat /data/given; echo mine > /data/own; touch /fixed/x || echo refused");
    let mount = |to: &str, read_only: bool| json!({"Volume": "v", "Destination": to, "ReadOnly": read_only});
    task["VolumeMounts"] = json!([mount("/data", false), mount("fixed", true)]);
    let group = json!({"Tasks": [task], "Volumes": {"v": {"Name": "v", "Type": "host", "Source": "disk"}}});
    servers.assign(group_alloc(1, "batch", group));
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "from the host\nrefused\n");
    assert_eq!(std::fs::read_to_string(disk.path().join("own")).unwrap(), "mine\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_changes_of_the_host_is_its_own_and_stays_over_a_restart() {
    if skipped("what_a_task_changes_of_the_host") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let before = std::fs::read("/etc/hostname").unwrap();
    let script = "cat /etc/added; echo here > /etc/added; echo evil > /etc/hostname; cat /etc/hostname; \
                  rm /etc/passwd; ls /etc/passwd; exit 1";
    let mut group = json!({"Tasks": [isolated("t", script)]});
    group["RestartPolicy"] = json!({"Attempts": 1, "Mode": "fail", "Interval": "1m", "Delay": "10ms"});
    servers.assign(group_alloc(1, "batch", group));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "failed");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "evil\nhere\nevil\n");
    assert_eq!(std::fs::read("/etc/hostname").unwrap(), before);
    assert!(Path::new("/etc/passwd").exists() && !Path::new("/etc/added").exists());
    servers.stop(&alloc_id(1));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_operator_lists_is_seen_of_the_host_and_no_other_allocation() {
    if skipped("only_what_the_operator_lists") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let root = base.path().canonicalize().unwrap();
    let mut settings = settings(base.path());
    std::fs::create_dir_all(root.join("shown")).unwrap();
    std::fs::write(root.join("shown/file"), "seen\n").unwrap();
    settings.chroot_env = ["/bin", "/lib", "/lib64", "/usr"].map(|path| (path.into(), path.into())).into();
    settings.chroot_env.insert(root.clone(), PathBuf::from("/node"));
    let script = "ls -d /etc; cat /node/shown/file; ls -A /node/alloc /node/client | grep -v :; ls -A /node";
    servers.assign(alloc(1, "batch", json!([isolated("t", script)])));
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "seen\n\nalloc\nclient\nshown\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_beside_a_task_is_in_its_namespaces_and_group() {
    if skipped("a_command_beside_a_task") {
        return;
    }
    let mut task = isolated("web", "exec tail -f /dev/null");
    task["Env"] = json!({"WHO": "me", "LD_PRELOAD": "/local/evil.so"});
    let running = Running::with_task(task).await;
    let spaces = "for n in pid ipc mnt net; do readlink /proc/self/ns/$n; done; cat /proc/self/cgroup";
    let same = format!(
        "a=$({spaces}); b=$(for n in pid ipc mnt net; do readlink /proc/1/ns/$n; done; cat /proc/1/cgroup); \
         [ \"$a\" = \"$b\" ] && echo same"
    );
    let sh = ["/bin/sh", "-c"];
    let run = async |script: &str| {
        let command = [sh[0], sh[1], script];
        let mut said = running.exec_in("web", &command, false).await.rest().await;
        // What the loader says of a library that is not there is no matter.
        said.stderr.clear();
        said
    };
    assert_eq!(run(&same).await, result("same\n", "", 0));
    assert_eq!(run("echo $WHO $(id -un); pwd; exit 7").await, result("me nobody\n/\n", "", 7));
    assert_eq!(run("kill -KILL $$").await, result("", "", 137));
    assert_eq!(
        run("grep -E '^(NoNew|Seccomp:)' /proc/self/status").await,
        result("NoNewPrivs:\t1\nSeccomp:\t2\n", "", 0)
    );
    let missing = running.exec_in("web", &["no-such"], false).await.rest().await;
    assert_eq!(
        (missing.code, String::from_utf8(missing.stderr).unwrap().contains("could not be found")),
        (Some(127), true)
    );
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_memory_that_a_job_can_ask_for_is_enough_to_start() {
    if skipped("the_least_memory") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let least = json!({"t": {"Cpu": {"CpuShares": 1}, "Memory": {"MemoryMB": 10}}});
    servers.assign(with_resources(alloc(1, "batch", json!([isolated("t", "echo up")])), least));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "up\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_cannot_change_places_is_moved() {
    if skipped("a_root_that_cannot_change_places") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut settings = settings(base.path());
    let block = BTreeMap::from([("no_pivot_root".to_string(), json!(true))]);
    settings.plugins.insert("exec".to_string(), block);
    let script = "ls -d /local /etc /usr; ls -d /root /home /work; ls -d /local/../../../root; echo $$";
    servers.assign(alloc(1, "batch", json!([isolated("t", script)])));
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "/etc\n/local\n/usr\n1\n");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_beside_a_task_has_a_terminal_and_ends_with_its_session() {
    if skipped("a_command_beside_a_task_has_a_terminal") {
        return;
    }
    let running = Running::with_task(isolated("web", "exec tail -f /dev/null")).await;
    let script = "trap 'stty size' WINCH; test -t 0 && echo terminal; (setsid sleep 1000 &); until [ \"$x\" ]; do read x; done; echo got $x; exit 3";
    let mut session = running.exec_in("web", &["/bin/sh", "-c", script], true).await;
    session.until("terminal").await;
    session.resize(33, 111).await;
    session.until("33 111").await;
    session.stdin("word\n").await;
    session.until("got word").await;
    assert_eq!(session.rest().await.code, Some(3));

    let mut left = running.exec_in("web", &["sleep", "4321"], false).await;
    let executor = state(running.base.path()).executor.pid;
    let sleeps = || {
        descendants(executor)
            .into_iter()
            .filter(|found| {
                std::fs::read_to_string(format!("/proc/{}/cmdline", found.pid))
                    .is_ok_and(|line| line.contains("sleep\x004321"))
            })
            .count()
    };
    eventually("the command", || (sleeps() == 1).then_some(()));
    left.stdin("").await;
    drop(left);
    eventually("the end of a command that nobody waits for", || (sleeps() == 0).then_some(()));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_task_is_found_again_by_the_next_agent_and_ends_with_its_executor() {
    if skipped("an_isolated_task_is_found_again") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([isolated("t", "echo up; exec sleep 1000")])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let before = state(base.path());
    agent.shutdown().await;
    assert!(before.task.is_alive() && before.executor.is_alive());
    let agent = start(settings(base.path()), &servers).await;
    assert_eq!(agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.state("t").unwrap().state, "running");
    assert_eq!(state(base.path()), before, "the same process");
    let killed =
        std::process::Command::new("kill").args(["-9", &before.executor.pid.to_string()]).status().unwrap();
    assert!(killed.success());
    eventually("the end of the task", || (!before.task.is_alive()).then_some(()));
    servers.stop(&alloc_id(1));
    servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cores_of_a_task_are_its_own_while_it_runs() {
    if skipped("cores_of_a_task_are_its_own") || std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "grep Cpus_allowed_list /proc/self/status; exec sleep 1000";
    let cores = json!({"t": {"Cpu": {"CpuShares": 100, "ReservedCores": [1]}, "Memory": {"MemoryMB": 64}}});
    servers.assign(with_resources(alloc(1, "service", json!([isolated("t", script)])), cores));
    let agent = start(settings(base.path()), &servers).await;
    eventually("output", || (log(base.path(), 1, "t.stdout.0") == "Cpus_allowed_list:\t1\n").then_some(()));
    let shared = isolated("s", "grep Cpus_allowed_list /proc/self/status");
    servers.assign(alloc(2, "batch", json!([shared.clone()])));
    servers.await_status(&alloc_id(2), "complete");
    assert_eq!(log(base.path(), 2, "s.stdout.0"), "Cpus_allowed_list:\t0\n");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    servers.assign(alloc(3, "batch", json!([shared])));
    servers.await_status(&alloc_id(3), "complete");
    assert_eq!(log(base.path(), 3, "s.stdout.0"), "Cpus_allowed_list:\t0-1\n", "given back");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_for_java_runs_in_isolation() {
    let has = |program: &str| std::process::Command::new(program).arg("-version").output().is_ok();
    if skipped("a_program_for_java") || !(has("java") && has("javac")) {
        eprintln!("skipped: a_program_for_java needs a JDK");
        return;
    }
    let (base, built, servers) = (Base::new(), tempfile::tempdir().unwrap(), FakeServers::new());
    let source = built.path().join("Hello.java");
    let text = "class Hello { public static void main(String[] a) { System.out.println(a[0] + \" \" + \
                System.getProperty(\"user.name\") + \" \" + ProcessHandle.current().pid()); } }";
    std::fs::write(&source, text).unwrap();
    let compiled =
        std::process::Command::new("javac").arg("-d").arg(built.path()).arg(&source).status().unwrap();
    assert!(compiled.success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(built.path(), open).unwrap();
    let mut settings = settings(base.path());
    let volume = HostVolume { path: built.path().to_path_buf(), read_only: true };
    settings.host_volumes = BTreeMap::from([("classes".to_string(), volume)]);
    let task = json!({
        "Name": "t", "Driver": "java", "VolumeMounts": [{"Volume": "v", "Destination": "/classes"}],
        "Config": {"class": "Hello", "class_path": "/classes", "jvm_options": ["-Xmx64m"], "args": ["hello"]}
    });
    let group =
        json!({"Tasks": [task], "Volumes": {"v": {"Name": "v", "Type": "host", "Source": "classes"}}});
    servers.assign(group_alloc(1, "batch", group));
    let agent = start(settings, &servers).await;
    servers.await_status(&alloc_id(1), "complete");
    assert_eq!(log(base.path(), 1, "t.stdout.0"), "hello nobody 1\n");
    let node = servers.cluster.lock().unwrap().registered[0].clone();
    assert!(node.attributes.contains_key("driver.java.version"), "{:?}", node.attributes);
    agent.shutdown().await;
}

/// A network that was made for the test, and goes with it.
struct Network(String);

impl Network {
    fn made() -> Network {
        let name = format!("sojourn-{}", std::process::id());
        let made = std::process::Command::new("ip").args(["netns", "add", &name]).status().unwrap();
        assert!(made.success());
        Network(name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        std::process::Command::new("ip").args(["netns", "del", &self.0]).status().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_sees_nothing_but_the_network_that_it_is_given() {
    if skipped("a_task_sees_nothing_but_the_network_that_it_is_given") {
        return;
    }
    let (base, network) = (Base::new(), Network::made());
    let executors = Executors {
        directory: base.path().join("client/executors"),
        program: PathBuf::from(env!("CARGO_BIN_EXE_node-executor")),
        open_files: None,
        cgroup_parent: None,
    };
    let root = base.path().join("task");
    std::fs::create_dir(&root).unwrap();
    let layer = |path: &str| LayerSpec {
        source: path.into(),
        target: path.into(),
        changes: Some(base.path().join("changes").join(path.trim_start_matches('/'))),
    };
    let isolation = IsolationSpec {
        root,
        layers: ["/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"].map(layer).to_vec(),
        private: vec!["/etc".into()],
        no_new_privileges: true,
        seccomp: true,
        ..IsolationSpec::default()
    };
    let stdout =
        LogSpec { directory: base.path().into(), name: "out".into(), files_max: 1, file_bytes_max: 65536 };
    let script = "ls /sys/class/net; tail -n +3 /proc/net/dev | cut -d: -f1";
    let spec = ExecutorSpec {
        command: "sh".into(),
        args: ["-c", script].map(str::to_string).to_vec(),
        work_dir: "/".into(),
        stdout: Some(stdout),
        env: BTreeMap::from([("PATH".to_string(), "/usr/bin:/bin".to_string())]),
        user: Some(executor::spec::UserIds { uid: 65534, gid: 65534 }),
        network_namespace: Some(Path::new("/run/netns").join(&network.0)),
        isolation: Some(isolation),
        ..ExecutorSpec::default()
    };
    for start in 0..2 {
        let started = executors.start(&alloc_id(1), &format!("{start:08x}"), &spec).await.unwrap();
        started.task.wait().await;
    }
    let said = std::fs::read_to_string(base.path().join("out.0")).unwrap();
    assert!(said.starts_with("lo\n    lo\n"), "nothing of the host's network: {said}");
    assert!(stat(std::process::id() as i32).is_some());
}
