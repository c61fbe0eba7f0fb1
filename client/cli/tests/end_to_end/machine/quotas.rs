//! Disks of allocations that the file system bounds.

use serde_json::Value;

use super::{Machine, image, skipped, slowly};
use crate::end_to_end::support::{http, text};

const MIB: u64 = 1 << 20;

/// A group with a disk of so many MiB, whose task stays. A new word in `version` replaces its allocation.
fn job(name: &str, mib: u32, version: &str) -> String {
    format!(
        r#"job "{name}" {{
  group "g" {{
    ephemeral_disk {{
      size   = {mib}
      sticky = true
    }}
    task "t" {{
      driver = "raw_exec"
      user   = "nobody"
      config {{
        command = "sh"
        args    = ["-c", "echo {version}; sleep 10000"]
      }}
      logs {{
        max_files     = 1
        max_file_size = 1
      }}
      resources {{
        cpu    = 50
        memory = 32
      }}
    }}
  }}
}}
"#
    )
}

fn start(machine: &Machine, name: &str, mib: u32, version: &str) -> String {
    machine.run_job(&job(name, mib, version));
    let found = slowly("the task has printed its version", || {
        machine.agent.allocs(name).into_iter().find(|alloc| {
            alloc["ClientStatus"] == "running"
                && machine.agent.run(&["alloc", "logs", &text(&alloc["ID"])]).stdout.trim() == version
        })
    });
    text(&found["ID"])
}

/// Stores so much in a new file of the allocation, as a task of it would. Whether all of it had room.
fn store(machine: &mut Machine, alloc: &str, file: &str, mib: u64) -> bool {
    let path = format!("/data/alloc/{alloc}/{file}");
    let (code, said) =
        machine.try_shell(&format!("su -s /bin/sh nobody -c 'dd if=/dev/zero of={path} bs=1M count={mib}'"));
    let stored: u64 = machine.shell(&format!("stat -c %s {path}")).trim().parse().unwrap();
    assert_eq!(code == 0, stored == mib * MIB, "{said}");
    assert_eq!(code == 0, !said.contains("uota exceeded"), "{said}");
    code == 0
}

#[test]
fn what_an_allocation_stores_is_bounded_by_its_own_quota() {
    if skipped("what_an_allocation_stores_is_bounded_by_its_own_quota") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = image::disk(directory.path(), &["-O", "quota,project", "-E", "quotatype=prjquota"]);
    let mut machine = Machine::boot(directory.path(), Some(&disk));
    machine.shell("sed 's/network_interface/ephemeral_disk_quota = true\\n  network_interface/' /etc/agent.hcl > /etc/bounded.hcl");
    let (code, said) = machine.try_shell("sojourn agent -config /etc/bounded.hcl");
    assert!(code != 0 && said.contains("/data/alloc: its file system is mounted without limits"), "{said}");
    machine.shell("umount /data && mount -t ext4 -o prjquota /dev/vda /data");

    // What is there before quotas are wanted.
    machine.start_agent();
    let early = start(&machine, "early", 20, "one");
    assert!(store(&mut machine, &early, "alloc/data/first", 12));
    machine.kill_agent();
    machine.shell("mv /etc/bounded.hcl /etc/agent.hcl");

    machine.start_agent();
    let (small, large) = (start(&machine, "small", 20, "one"), start(&machine, "large", 60, "one"));
    assert!(!store(&mut machine, &small, "alloc/data/big", 64), "more than its disk has");
    assert!(store(&mut machine, &large, "t/local/big", 30), "its neighbour does not notice");
    assert!(!store(&mut machine, &early, "t/local/more", 12), "what it had before counts");
    machine.shell(&format!("rm /data/alloc/{early}/alloc/data/first"));
    assert!(store(&mut machine, &early, "t/local/more", 12), "until it is gone");

    // The next agent finds all of it.
    machine.kill_agent();
    machine.start_agent();
    assert!(!store(&mut machine, &small, "t/tmp/again", 1));
    assert!(!store(&mut machine, &large, "alloc/data/again", 40));
    machine.shell(&format!("rm /data/alloc/{large}/alloc/data/again"));

    // What moves to the next allocation counts for that.
    let next = start(&machine, "large", 60, "two");
    assert_ne!(next, large);
    let moved = machine.shell(&format!("stat -c %s /data/alloc/{next}/t/local/big"));
    assert_eq!(moved.trim(), (30 * MIB).to_string());
    assert!(!store(&mut machine, &next, "alloc/data/again", 40));
    assert!(store(&mut machine, &large, "alloc/tmp/mine", 40), "and not for the other one");

    for job in ["early", "small", "large"] {
        machine.agent.run(&["job", "stop", "-detach", job]).expect_success();
    }
    slowly("all directories are removed", || {
        http::put(machine.agent.config.http, "/v1/client/gc", &Value::Null).ok()?;
        machine.shell("ls /data/alloc").trim().is_empty().then_some(())
    });
}
