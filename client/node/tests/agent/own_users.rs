//! Tasks with users of their own, and those of their directories that are in memory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use executor::mounts_below;
use rustix::mount::{MountFlags, mount};
use serde_json::{Value, json};

use crate::exec::result;
use crate::isolated::{isolated, skipped};
use crate::support::listening::running;
use crate::support::web::{Reply, Web};
use crate::support::*;

const STAYS: &str = "exec tail -f /dev/null";

fn task(name: &str, script: &str, key: &str) -> Value {
    let mut task = isolated(name, &format!("{script}; echo stays; {STAYS}"));
    task["Config"][key] = json!(true);
    task
}

fn dir(base: &Path, id: u8) -> PathBuf {
    base.canonicalize().unwrap().join("alloc").join(alloc_id(id))
}

fn owner(path: &Path) -> u32 {
    path.metadata().unwrap().uid()
}

fn mounted(base: &Path, id: u8) -> usize {
    mounts_below(&dir(base, id)).unwrap().len()
}

/// What the task says until it stays, which is its last word.
fn said(base: &Path, task: &str) -> Vec<String> {
    let file = |stream: &str| log(base, 1, &format!("{task}.{stream}.0"));
    let all = eventually("what the task says", || {
        let text = file("stdout");
        (text.ends_with("stays\n") || file("stderr").len() > 4000).then_some(text)
    });
    eprintln!("{task}: {all} {}", file("stderr"));
    all.lines().map(str::to_string).filter(|line| line != "stays").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_have_users_and_secrets_of_their_own_over_restarts_of_the_agent() {
    if skipped("tasks_have_users_of_their_own") {
        return;
    }
    let web = Web::start(|_| Reply::File(b"fetched".to_vec()));
    let running = running().await;
    let base = running.base.path().to_path_buf();
    let mut own = task(
        "own",
        "id -u; id -g; echo $USER $HOME; echo kept > /secrets/kept; stat -f -c %T /secrets /private; \
         head -c 3000000 /dev/zero > /secrets/full && echo fits; cp /bin/true /secrets/x; /secrets/x 2> /dev/null || echo noexec",
        "dynamic_user",
    );
    own["Resources"] = json!({"SecretsMB": 4});
    let root = task(
        "root",
        "id -u; id -g; echo $USER; tr -s ' ' < /proc/self/uid_map; touch /local/f; chown 0:0 /local/f && stat -c %u /local /local/f /usr; \
         mount -t tmpfs x /tmp 2> /dev/null || echo refused; grep CapBnd /proc/self/status; echo x > /usr/x || echo read-only",
        "user_namespace",
    );
    let mut plain = isolated("plain", STAYS);
    plain["Artifacts"] =
        json!([{"GetterSource": format!("{}/a", web.url), "RelativeDest": "secrets/", "Chown": true}]);
    running.servers.assign(alloc(1, "service", json!([own, root, plain])));
    for name in ["own", "root", "plain"] {
        running.servers.await_task(&alloc_id(1), name, |task| task.state == "running");
    }

    let told = said(&base, "own");
    let uid: u32 = told[0].parse().unwrap();
    assert!((80_000..90_000).contains(&uid), "{told:?}");
    let home = format!("nomad-{uid} /local");
    assert_eq!(told[1..], [&told[0], &home, "tmpfs", "tmpfs", "fits", "noexec"].map(str::to_string));
    assert_eq!(owner(&dir(&base, 1).join("own/secrets/kept")), uid);

    let told = said(&base, "root");
    let outside = owner(&dir(&base, 1).join("root/local/f"));
    assert!((80_000..90_000).contains(&outside) && outside != uid, "{outside} {told:?}");
    let map = format!(" 0 {outside} 1");
    assert_eq!(told[..8], ["0", "0", "root", &map, "0", "0", "65534", "refused"].map(str::to_string));
    assert_eq!(told[8..], ["CapBnd:\t00000000a80405fb", "read-only"], "what a job may have, and not all");
    let same = "id -u; [ $(readlink /proc/self/ns/user) = $(readlink /proc/1/ns/user) ] && echo same; grep CapEff /proc/self/status";
    let beside = running.exec_in("root", &["/bin/sh", "-c", same], false).await.rest().await;
    assert_eq!(beside, result("0\nsame\nCapEff:\t00000000a80405fb\n", "", 0));

    assert_eq!(owner(&dir(&base, 1).join("plain/secrets/a")), 65534, "what it fetched is the task's");
    assert_eq!(mounted(&base, 1), 6);

    // An agent that was killed has left something of an allocation that nobody knows.
    let left = dir(&base, 7).join("t/secrets");
    std::fs::create_dir_all(&left).unwrap();
    mount("secrets", &left, "tmpfs", MountFlags::empty(), None).unwrap();
    let running = running.restarted(|_| {}).await;
    assert_eq!(mounted(&base, 7), 0);
    running.servers.assign(alloc(2, "service", json!([task("new", "true", "dynamic_user")])));
    running.servers.await_task(&alloc_id(2), "new", |task| task.state == "running");
    let new = owner(&dir(&base, 2).join("new/local"));
    assert!(![uid, outside].contains(&new), "the next agent knows whose they are");
    assert_eq!(std::fs::read_to_string(dir(&base, 1).join("own/secrets/kept")).unwrap(), "kept\n");

    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    running.servers.forget_alloc(&alloc_id(1));
    eventually("the end of the directory", || (!dir(&base, 1).exists()).then_some(()));
    assert_eq!(mounted(&base, 2), 2);
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_its_own_is_refused_by_name_where_there_can_be_none() {
    if skipped("a_user_of_its_own_is_refused") {
        return;
    }
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut settings = settings(base.path());
    (settings.dynamic_users.uid_min, settings.dynamic_users.uid_max) = (80_000, 80_000);
    let mut named = task("t", "true", "dynamic_user");
    named["User"] = json!("daemon");
    let mut variable = task("t", "true", "dynamic_user");
    variable["Config"]["dynamic_user"] = json!("${NOMAD_META_on}");
    variable["Meta"] = json!({"on": "true"});
    let plain =
        json!({"Name": "t", "Driver": "raw_exec", "Config": {"command": "true", "dynamic_user": true}});
    let cases = [
        (named, "workload_users: user \"daemon\" and a user of the task's own exclude each other"),
        (variable, "dynamic_user and user_namespace must be true or false, without variables"),
        (plain, "dynamic_user"),
    ];
    for (id, (task, _)) in (1..).zip(&cases) {
        servers.assign(alloc(id, "batch", json!([task])));
    }
    let agent = start(settings, &servers).await;
    for (id, (_, text)) in (1..).zip(&cases) {
        let update = servers.await_status(&alloc_id(id), "failed");
        let events = &update.task_states["t"].events;
        assert!(events.iter().any(|event| event.display_message.contains(text)), "{text}: {events:?}");
    }
    // There is one, and it is given back at the end of each.
    for id in 4..6 {
        servers.assign(alloc(id, "batch", json!([task("t", "exit 0", "dynamic_user")])));
        servers.await_status(&alloc_id(id), "complete");
        assert_eq!(owner(&dir(base.path(), id).join("t/local")), 80_000);
    }
    agent.shutdown().await;
}
