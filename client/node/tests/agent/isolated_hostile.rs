//! Tasks of the driver `exec` that want out, or more than they were given.

use std::path::Path;

use crate::isolated::{isolated, skipped, with_resources};
use crate::support::*;
use executor::process::stat;
use node::task::events::DEAD;
use serde_json::json;

/// What a task could do to leave, one attempt a line. Each says something only if it succeeds.
const ATTEMPTS: &[&str] = &[
    // As root of the host's own users, which it may become.
    "setpriv --reuid=0 cat /etc/shadow /etc/gshadow",
    "cat /proc/kcore | head -c 1",
    "mount -t tmpfs none /mnt && echo mounted",
    "mount --bind /etc /local && echo bound",
    "umount /etc/shadow && echo unmounted",
    "umount /proc/kcore && echo unmounted",
    "unshare -m echo unshared",
    "unshare -U echo unshared",
    "nsenter -t 1 -m -u -i -n -p echo entered",
    "setpriv --reuid=0 mknod /local/disk b 254 0; head -c 1 /local/disk",
    "setpriv --reuid=0 mknod /dev/disk b 254 0; head -c 1 /dev/disk",
    "setpriv --reuid=0 sh -c 'echo 1 > /proc/sys/kernel/panic' && echo written",
    "setpriv --reuid=0 sh -c 'echo b > /proc/sysrq-trigger' && echo written",
    "setpriv --reuid=0 sh -c 'echo x > /sys/kernel/uevent_helper' && echo written",
    "setpriv --reuid=0 sh -c 'mkdir /sys/fs/cgroup/x' && echo made",
    "ls /proc/1/root/home",
    "ls /root /home /work",
    // Modules, keys, a new name for the host: the calls themselves.
    "setpriv --reuid=0 perl -e 'print \"loaded\" if syscall(175, 0, 0, 0) == 0 || $! + 0 != 1'",
    "perl -e 'print \"key\" if syscall(250, 0, -3, 1) >= 0'",
    "perl -e 'print \"ring\" if syscall(425, 1, 0) >= 0 || $! + 0 != 1'",
    "setpriv --reuid=0 perl -e 'print \"named\" if syscall(170, \"evil\", 4) == 0'",
    // A call under its second number.
    "setpriv --reuid=0 perl -e 'print \"x32\" if syscall(0x40000000 + 165, 0, 0, 0, 0, 0) == 0'",
    // A file of its own for another project, whose quota it would count to: the request, and the call.
    "perl -e '$a = \"\\0\" x 28; open F, \">/local/own\"; ioctl F, 0x801c581f, $a; print \"given\" if ioctl(F, 0x401c5820, $a) || $! + 0 != 1'",
    "perl -e '$p = \"/local/own\"; $a = \"\\0\" x 24; print \"given\" if syscall(469, -100, $p, $a, 24, 0) == 0 || $! + 0 != 1'",
    // Our own program, for writing.
    "setpriv --reuid=0 sh -c 'for p in /proc/[0-9]*; do echo x >> $p/exe; done' && echo overwritten",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_task_gets_nothing_of_its_host() {
    if skipped("a_hostile_task_gets_nothing_of_its_host") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let alloc_dir = base.path().canonicalize().unwrap().join("alloc");
    let secret = format!("cat {}/*/*/secrets/*", alloc_dir.display());
    let script: Vec<String> = ATTEMPTS
        .iter()
        .map(|attempt| attempt.to_string())
        .chain([secret])
        .enumerate()
        .map(|(number, attempt)| {
            format!("x=$({attempt} 2>/dev/null); [ -z \"$x\" ] || echo \"{number}: $x\"")
        })
        .collect();
    let processes = "echo processes $(ls -d /proc/[0-9]* | wc -l)".to_string();
    let script = [script, vec![processes]].concat().join("\n");
    servers.assign(alloc(
        1,
        "service",
        json!([isolated("t", "echo hidden > /secrets/own; exec sleep 1000")]),
    ));
    servers.assign(alloc(2, "batch", json!([isolated("t", &script)])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    servers.await_status(&alloc_id(2), "complete");
    let said = log(base.path(), 2, "t.stdout.0");
    let (outcome, processes) = said.trim_end().rsplit_once("processes ").unwrap();
    assert_eq!(outcome, "", "each line is an attempt that succeeded");
    assert!(processes.parse::<u32>().unwrap() <= 4, "{processes}");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_takes_too_much_memory_is_killed_and_that_is_reported() {
    if skipped("a_task_that_takes_too_much_memory") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let script = "echo up; exec perl -e '$x .= \"0123456789\" x 1000000 while 1'";
    let small = json!({"t": {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 24, "MemoryMaxMB": 48}}});
    servers.assign(with_resources(alloc(1, "batch", json!([isolated("t", script)])), small));
    let agent = start(settings(base.path()), &servers).await;
    let update = servers.await_status(&alloc_id(1), "failed");
    let exit = update.task_states["t"].events.iter().find(|event| event.kind == "Terminated").unwrap();
    assert_eq!(
        (exit.exit_code, exit.details.get("oom_killed").map(String::as_str)),
        (137, Some("true")),
        "{exit:?}"
    );
    agent.shutdown().await;
}

/// The processes that a task has left, by a word in their arguments.
fn with_word(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(word))
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_task_has_started_survives_it() {
    if skipped("nothing_that_a_task_has_started_survives_it") {
        return;
    }
    for (pid_mode, seconds) in [("private", "7654321"), ("host", "7654322")] {
        let (base, servers) = (Base::new(), FakeServers::new());
        // Each starts the next and ends: there is never a parent to find them by, and always one more.
        let script = format!(
            "for i in $(seq 50); do (setsid sh -c 'trap \"\" TERM INT; while :; do sleep {seconds} & sleep 0.1; done' &) ; \
             [ $i -gt 1 ] || echo up; sleep 0.01; done; sleep 1000"
        );
        let mut task = isolated("t", &script);
        task["Config"]["pid_mode"] = json!(pid_mode);
        task["KillTimeout"] = json!("100ms");
        // So many processes as fit into this.
        let small = json!({"t": {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 32}}});
        servers.assign(with_resources(alloc(1, "service", json!([task])), small));
        let agent = start(settings(base.path()), &servers).await;
        eventually("a crowd", || (with_word(seconds).len() > 20).then_some(()));
        servers.stop(&alloc_id(1));
        servers.await_task(&alloc_id(1), "t", |task| task.state == DEAD);
        eventually("an empty host", || {
            with_word(seconds).into_iter().all(|pid| stat(pid).is_none()).then_some(())
        });
        agent.shutdown().await;
        assert!(!Path::new("/sys/fs/cgroup/memory").join(format!("{}.t", alloc_id(1))).exists());
    }
}
