//! Control groups of version 2, on a kernel that has no others.

use super::{Machine, skipped, slowly};
use crate::end_to_end::support::{http, text};

const GROUPS: &str = "/sys/fs/cgroup/nomad.slice";

/// Three tasks that stay: with limits, with a core of its own, and with a process that left it.
const STAYING: &str = r#"job "staying" {
  group "g" {
    task "limited" {
      driver = "exec"
      config {
        command = "sh"
        args    = ["-c", "cat /proc/self/cgroup; cat /bin/busybox > /local/copy; sleep 10000"]
      }
      resources {
        cpu        = 100
        memory     = 32
        memory_max = 64
      }
    }
    task "pinned" {
      driver = "exec"
      config {
        command = "sh"
        args    = ["-c", "grep Cpus_allowed_list /proc/self/status; sleep 10000"]
      }
      resources {
        cores  = 1
        memory = 32
      }
    }
    task "left" {
      driver = "raw_exec"
      config {
        command = "sh"
        args    = ["-c", "setsid sh -c 'setsid sleep 20000 & exit 0'; echo started; sleep 10000"]
      }
      resources {
        cpu    = 100
        memory = 32
      }
    }
  }
}
"#;

const HUNGRY: &str = r#"job "hungry" {
  type = "batch"
  group "g" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "hungry" {
      driver = "exec"
      config {
        command = "tail"
        args    = ["/dev/zero"]
      }
      resources {
        cpu    = 50
        memory = 16
      }
    }
  }
}
"#;

#[test]
fn tasks_are_held_by_control_groups_of_version_2() {
    if skipped("tasks_are_held_by_control_groups_of_version_2") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut machine = Machine::boot(directory.path(), None);
    machine.start_agent();
    let nodes = machine.agent.get("/v1/nodes");
    let node = machine.agent.get(&format!("/v1/node/{}", text(&nodes[0]["ID"])));
    assert_eq!(node["Attributes"]["os.cgroups.version"], "2");
    machine.run_job(HUNGRY);
    one_that_wants_too_much_is_killed_and_said_so(&machine);
    machine.run_job(STAYING);
    let alloc = text(&machine.alloc("staying", "running")["ID"]);
    each_has_a_group_with_its_limits(&mut machine, &alloc);
    a_command_is_in_the_group_and_the_namespaces(&machine, &alloc);
    usage_is_what_the_groups_say(&machine, &alloc);
    an_agent_finds_its_tasks_again(&mut machine, &alloc);
    nothing_is_left(&mut machine, &alloc);
}

fn one_that_wants_too_much_is_killed_and_said_so(machine: &Machine) {
    let ended = machine.alloc("hungry", "failed");
    let events = ended["TaskStates"]["hungry"]["Events"].as_array().unwrap().clone();
    let end = events.iter().find(|event| event["Type"] == "Terminated").expect("it has ended");
    assert_eq!(end["Details"]["oom_killed"], "true", "{end}");
    assert_eq!(end["Details"]["exit_code"], "137", "{end}");
}

fn scope(alloc: &str, task: &str) -> String {
    let partition = if task == "pinned" { "reserve.slice" } else { "share.slice" };
    format!("{GROUPS}/{partition}/{alloc}.{task}.scope")
}

fn each_has_a_group_with_its_limits(machine: &mut Machine, alloc: &str) {
    let group = machine.said(alloc, "limited");
    assert_eq!(group.trim(), format!("0::/nomad.slice/share.slice/{alloc}.limited.scope"));
    // What shares the rest may have begun before a core was taken out of it: the groups say what holds now.
    let pinned = machine.said(alloc, "pinned");
    let own = pinned.trim().rsplit('\t').next().unwrap();
    assert!(["0", "1"].contains(&own), "a task with a core of its own may run on: {own:?}");
    let shared = if own == "0" { "1" } else { "0" };
    assert_eq!(machine.said(alloc, "left").trim(), "started");
    let mut read = |task: &str, files: &str| {
        machine
            .shell(&format!("cd {} && cat {files}", scope(alloc, task)))
            .replace('\n', " ")
            .trim()
            .to_string()
    };
    assert_eq!(read("limited", "memory.max memory.low cpu.weight"), "67108864 33554432 4");
    assert_eq!(read("left", "memory.max cpu.weight"), "33554432 4");
    assert_eq!(
        read("pinned", "cpuset.cpus.effective ../../share.slice/cpuset.cpus.effective"),
        format!("{own} {shared}"),
        "one core is one task's, and the other is that of all others"
    );
    assert_eq!(read("left", "cgroup.procs").split(' ').count(), 2, "what left the task is in its group");
}

fn a_command_is_in_the_group_and_the_namespaces(machine: &Machine, alloc: &str) {
    let script = "cat /proc/self/cgroup; id -u; tr '\\0' ' ' < /proc/1/cmdline; readlink /proc/self/root";
    let run = machine
        .agent
        .run(&["alloc", "exec", "-i=false", "-t=false", "-task", "limited", alloc, "sh", "-c", script]);
    let expected = format!("0::/nomad.slice/share.slice/{alloc}.limited.scope\n65534\nsleep 10000 /\n");
    let sees_itself = run.stdout.replace("sh -c cat /proc/self/cgroup; cat /bin/busybox > /local/copy; ", "");
    assert_eq!((run.code, sees_itself), (0, expected), "{}", run.stderr);
}

fn usage_is_what_the_groups_say(machine: &Machine, alloc: &str) {
    let usage = slowly("usage is measured", || {
        let usage = machine.agent.get(&format!("/v1/client/allocation/{alloc}/stats"));
        let memory = usage["Tasks"]["limited"]["ResourceUsage"]["MemoryStats"].clone();
        (memory["Cache"].as_u64() > Some(0)).then_some(usage)
    });
    let usage = &usage["Tasks"]["limited"]["ResourceUsage"];
    let memory = &usage["MemoryStats"];
    let size = std::fs::metadata("/usr/bin/busybox").unwrap().len();
    assert!(memory["Cache"].as_u64() >= Some(size), "the file it has written is in its memory: {memory}");
    assert!(memory["MaxUsage"].as_u64() >= memory["Cache"].as_u64(), "{memory}");
    assert!(memory["KernelUsage"].as_u64() > Some(0), "{memory}");
    let measured = usage["CpuStats"]["Measured"].to_string();
    assert!(measured.contains("Throttled Time"), "{usage}");
}

fn an_agent_finds_its_tasks_again(machine: &mut Machine, alloc: &str) {
    let tasks = ["limited", "pinned", "left"];
    let list = tasks.map(|task| format!("{}/cgroup.procs", scope(alloc, task))).join(" ");
    let before = machine.shell(&format!("cat {list}"));
    machine.kill_agent();
    machine.start_agent();
    // Until the node has registered again, the server does not know the way to it.
    slowly("the agent says what its tasks use", || {
        let path = format!("/v1/client/allocation/{alloc}/stats");
        let answer =
            http::get(machine.agent.config.http, &path).ok().filter(|answer| answer.status == 200)?;
        let usage = answer.json();
        tasks.iter().all(|task| usage["Tasks"][task].is_object()).then_some(())
    });
    assert_eq!(machine.shell(&format!("cat {list}")), before, "the same processes in the same groups");
    let states = machine.agent.get(&format!("/v1/allocation/{alloc}"))["TaskStates"].clone();
    for task in tasks {
        assert_eq!(states[task]["State"], "running", "{states}");
        assert_eq!(states[task]["Restarts"], 0, "{states}");
    }
}

/// Also of a task whose executor is gone, so that its group alone knows what belongs to it.
fn nothing_is_left(machine: &mut Machine, alloc: &str) {
    let left = machine.shell(&format!("cat {}/cgroup.procs", scope(alloc, "left")));
    let parent = "set -- $(head -n 1 PROCS); grep PPid /proc/$1/status | cut -f 2";
    let parent = parent.replace("PROCS", &format!("{}/cgroup.procs", scope(alloc, "left")));
    // The first in the group may be the one that left, whose parent is the executor too: it has taken it over.
    let executor = machine.shell(&parent);
    machine.shell(&format!("kill -9 {}", executor.trim()));
    machine.agent.run(&["job", "stop", "-detach", "staying"]).expect_success();
    slowly("nothing is left in the control groups", || {
        // It fails when a group goes while it looks into it.
        let (code, scopes) = machine.try_shell(&format!("find {GROUPS} -name '*.scope'"));
        (code == 0 && scopes.is_empty()).then_some(())
    });
    for process in left.split_ascii_whitespace() {
        let (code, _) = machine.try_shell(&format!("kill -0 {process}"));
        assert_ne!(code, 0, "process {process} is gone");
    }
    let cores = machine.shell(&format!("cat {GROUPS}/share.slice/cpuset.cpus.effective"));
    assert_eq!(cores.trim(), "0-1", "the core was given back");
}
