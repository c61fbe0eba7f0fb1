//! What runs after a machine has lost its power and come back.

use super::{MORE, Machine, image, skipped, slowly};
use crate::end_to_end::support::text;

/// A service, a batch job that was done before, and one that was not. Each start leaves a line.
fn job(kind: &str, name: &str, driver: &str, then: &str) -> String {
    format!(
        "job \"{name}\" {{\n  type = \"{kind}\"\n  group \"g\" {{\n    task \"t\" {{\n      driver = \"{driver}\"\n      \
         config {{\n        command = \"sh\"\n        args = [\"-c\", \"echo start >> $NOMAD_ALLOC_DIR/data/starts; {then}\"]\n      \
         }}\n      resources {{\n        cpu = 50\n        memory = 32\n      }}\n    }}\n  }}\n}}\n"
    )
}

#[test]
fn tasks_come_back_once_after_a_reboot() {
    if std::env::var_os(MORE).is_none() {
        eprintln!("SKIPPED tasks_come_back_once_after_a_reboot: {MORE}=1 runs it, in two minutes");
        return;
    }
    if skipped("tasks_come_back_once_after_a_reboot") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = image::disk(directory.path(), &[]);
    let mut machine = Machine::boot(directory.path(), Some(&disk));
    machine.start_agent();
    machine.run_job(&job("batch", "done", "exec", "exit 0"));
    machine.run_job(&job("service", "apart", "exec", "sleep 10000"));
    machine.run_job(&job("service", "plain", "raw_exec", "sleep 10000"));
    machine.run_job(&job("batch", "unfinished", "exec", "sleep 10000"));
    let done = text(&machine.alloc("done", "complete")["ID"]);
    let running = ["apart", "plain", "unfinished"].map(|job| text(&machine.alloc(job, "running")["ID"]));
    let starts = |machine: &mut Machine, alloc: &str| {
        machine.shell(&format!("cat /data/alloc/{alloc}/alloc/data/starts | wc -l")).trim().to_string()
    };
    for alloc in running.iter().chain([&done]) {
        slowly("the task has started", || (starts(&mut machine, alloc) == "1").then_some(()));
    }
    machine.shell("sync");

    // The power is gone: nothing ends, nothing is written.
    drop(machine);
    let mut machine = Machine::boot(directory.path(), Some(&disk));
    machine.start_agent();
    for alloc in &running {
        slowly("the task has started again", || (starts(&mut machine, alloc) == "2").then_some(()));
    }
    for (job, alloc) in ["apart", "plain", "unfinished"].iter().zip(&running) {
        let found = slowly("the server knows it", || {
            let found = machine.agent.get(&format!("/v1/allocation/{alloc}"));
            (found["TaskStates"]["t"]["State"] == "running" && found["ClientStatus"] == "running")
                .then_some(found)
        });
        assert_eq!(found["DesiredStatus"], "run", "{found}");
        assert_eq!(machine.agent.allocs(job).len(), 1, "{job} is where it was, and nowhere else");
    }
    assert_eq!(starts(&mut machine, &done), "1", "what was done is not done again");
    assert_eq!(machine.agent.allocs("done").len(), 1);
    let sleeping = machine.shell("ps | grep -c '[s]leep 10000'; true");
    assert_eq!(sleeping.trim(), "3", "one process for each task");
    let scopes = machine.shell("find /sys/fs/cgroup/nomad.slice -name '*.scope' | wc -l");
    assert_eq!(scopes.trim(), "3", "one group for each task");
    for job in ["apart", "plain", "unfinished"] {
        machine.agent.run(&["job", "stop", "-detach", job]).expect_success();
    }
    slowly("all has ended", || {
        // It fails when a group goes while it looks into it.
        let (code, scopes) = machine.try_shell("find /sys/fs/cgroup/nomad.slice -name '*.scope'");
        (code == 0 && scopes.is_empty()).then_some(())
    });
}
