//! The tasks that are killed, one way to do the same for each driver: each start takes a name that no other has, and then says
//! that name with the numbers from 0 on.
//!
//! Those of a service go on for ever. Those that end by themselves say `NAME ends CODE`, and exit with that code.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::end_to_end::support::engine::IMAGE;
use crate::end_to_end::support::podman;

/// The first ones have the gate's time; the others need an engine of their own, or a JDK, or are slow.
pub const DRIVERS: [&str; 6] = ["raw_exec", "exec", "docker", "podman", "java", "qemu"];

/// For ever.
pub const SCRIPT: &str = "read RUN < /proc/sys/kernel/random/uuid; i=0; \
                          while :; do echo $RUN $i; i=$((i+1)); sleep 0.1; done";

/// After up to two seconds, with a code of 1 to 100.
pub const ENDING: &str = "read RUN < /proc/sys/kernel/random/uuid; X=$((0x${RUN%%-*})); i=0; \
                          while [ $i -lt $((X / 100 % 20)) ]; do echo $RUN $i; i=$((i+1)); sleep 0.1; done; \
                          echo $RUN ends $((X % 100 + 1)); exit $((X % 100 + 1))";

/// The same for a Java virtual machine: with an argument it goes on for ever.
const CLASS: &str = r#"
class Lines {
    public static void main(String[] args) throws Exception {
        var name = java.nio.file.Files.readString(java.nio.file.Path.of("/proc/sys/kernel/random/uuid")).trim();
        long chance = Long.parseLong(name.substring(0, 8), 16);
        for (int i = 0; args.length > 0 || i < chance / 100 % 20; i++) {
            System.out.println(name + " " + i);
            Thread.sleep(100);
        }
        System.out.println(name + " ends " + (chance % 100 + 1));
        System.exit((int) (chance % 100 + 1));
    }
}
"#;

/// The same for a machine: what its disk begins with, made of `sector.s`. The next byte says whether it ends.
const SECTOR: [u8; 226] = [
    0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xd0, 0xbc, 0x00, 0x7c, 0xfb, 0x66, 0x0f, 0xc7, 0xf7, 0x73, 0xfa, 0x66,
    0x31, 0xf6, 0x66, 0x89, 0xf8, 0x66, 0x31, 0xd2, 0x66, 0xbb, 0x64, 0x00, 0x00, 0x00, 0x66, 0xf7, 0xf3,
    0x89, 0xd5, 0x66, 0x31, 0xd2, 0x66, 0xbb, 0x14, 0x00, 0x00, 0x00, 0x66, 0xf7, 0xf3, 0x66, 0x89, 0x16,
    0xf0, 0x7d, 0xb9, 0x06, 0x00, 0xf4, 0xe2, 0xfd, 0xe8, 0xa0, 0x00, 0x80, 0x3e, 0xe2, 0x7c, 0x00, 0x74,
    0x07, 0x66, 0x3b, 0x36, 0xf0, 0x7d, 0x74, 0x12, 0xe8, 0x47, 0x00, 0x66, 0x89, 0xf0, 0xe8, 0x6f, 0x00,
    0xe8, 0x86, 0x00, 0x66, 0x46, 0xf4, 0xf4, 0xeb, 0xe0, 0xe8, 0x35, 0x00, 0xb0, 0x65, 0xe8, 0x4f, 0x00,
    0xb0, 0x6e, 0xe8, 0x4a, 0x00, 0xb0, 0x64, 0xe8, 0x45, 0x00, 0xb0, 0x73, 0xe8, 0x40, 0x00, 0xb0, 0x20,
    0xe8, 0x3b, 0x00, 0x66, 0x0f, 0xb7, 0xc5, 0x67, 0x66, 0x8d, 0x04, 0x45, 0x01, 0x00, 0x00, 0x00, 0xe8,
    0x3a, 0x00, 0xe8, 0x51, 0x00, 0xba, 0x01, 0x05, 0x89, 0xe8, 0xee, 0xf4, 0xeb, 0xfd, 0x66, 0xb9, 0x08,
    0x00, 0x00, 0x00, 0x66, 0xc1, 0xc7, 0x04, 0x89, 0xf8, 0x24, 0x0f, 0x04, 0x30, 0x3c, 0x39, 0x76, 0x02,
    0x04, 0x27, 0xe8, 0x06, 0x00, 0x66, 0x49, 0x75, 0xe9, 0xb0, 0x20, 0x50, 0xba, 0xfd, 0x03, 0xec, 0xa8,
    0x20, 0x74, 0xfb, 0x58, 0xba, 0xf8, 0x03, 0xee, 0xc3, 0x66, 0x31, 0xd2, 0x66, 0xbb, 0x0a, 0x00, 0x00,
    0x00, 0x66, 0xf7, 0xf3, 0x52, 0x66, 0x85, 0xc0, 0x74, 0x03, 0xe8, 0xeb, 0xff, 0x58, 0x04, 0x30, 0xeb,
    0xd7, 0xb0, 0x0a, 0xeb, 0xd3,
];

/// What the tasks need that is on the host.
pub struct Things {
    directory: PathBuf,
}

impl Things {
    /// Makes what the drivers need.
    pub fn made(directory: &Path, drivers: &[&str]) -> Things {
        let things = Things { directory: directory.join("things") };
        std::fs::create_dir(&things.directory).unwrap();
        // For the user of an isolated task.
        for path in [directory, &things.directory] {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, open).unwrap();
        }
        if drivers.contains(&"java") {
            let source = things.directory.join("Lines.java");
            std::fs::write(&source, CLASS).unwrap();
            let compiled = Command::new("javac").arg("-d").arg(&things.directory).arg(source).status();
            assert!(compiled.is_ok_and(|status| status.success()), "javac");
        }
        if drivers.contains(&"qemu") {
            for (name, ends) in [("lines.img", 0), ("ends.img", 1)] {
                let mut disk = [&SECTOR[..], &[ends]].concat();
                disk.resize(1 << 16, 0);
                // That makes it one to start from.
                disk[510..512].copy_from_slice(&[0x55, 0xaa]);
                std::fs::write(things.directory.join(name), disk).unwrap();
            }
        }
        things
    }

    /// What the agent has to be told of them.
    pub fn configuration(&self) -> String {
        let directory = self.directory.display();
        format!(
            "client {{\n  host_volume \"classes\" {{\n    path = \"{directory}\"\n    read_only = true\n  }}\n}}\n\
             plugin \"qemu\" {{\n  config {{\n    image_paths = [\"{directory}\"]\n  }}\n}}\n"
        )
    }

    /// A job with tasks that go on for ever.
    pub fn staying(&self, driver: &str, count: u32) -> Value {
        let mut job = self.job(driver, driver, true);
        job["TaskGroups"][0]["Count"] = count.into();
        job["TaskGroups"][0]["RestartPolicy"] = restarts(100_000, "delay");
        job
    }

    /// A job whose task ends by itself, and is not started again for that.
    pub fn ending(&self, id: &str, driver: &str) -> Value {
        let mut job = self.job(id, driver, false);
        job["Type"] = "batch".into();
        job["TaskGroups"][0]["RestartPolicy"] = restarts(0, "fail");
        job["TaskGroups"][0]["ReschedulePolicy"] = json!({"Attempts": 0, "Unlimited": false});
        job
    }

    fn job(&self, id: &str, driver: &str, stays: bool) -> Value {
        let (config, memory) = self.config(driver, stays);
        let mut task = json!({
            "Name": "main", "Driver": driver, "Config": config, "KillTimeout": 500_000_000,
            "Resources": {"CPU": 20, "MemoryMB": memory},
        });
        let mut group = json!({"Name": "g"});
        if driver == "java" {
            task["VolumeMounts"] = json!([{"Volume": "v", "Destination": "/classes", "ReadOnly": true}]);
            group["Volumes"] =
                json!({"v": {"Name": "v", "Type": "host", "Source": "classes", "ReadOnly": true}});
        }
        group["Tasks"] = json!([task]);
        json!({"ID": id, "TaskGroups": [group]})
    }

    /// The driver's configuration, and how much memory the task needs.
    fn config(&self, driver: &str, stays: bool) -> (Value, u32) {
        let script = if stays { SCRIPT } else { ENDING };
        let shell = json!({"command": "/bin/sh", "args": ["-c", script]});
        match driver {
            "docker" | "podman" => {
                let mut config = shell;
                config["image"] = if driver == "docker" { IMAGE } else { podman::IMAGE }.into();
                config["network_mode"] = "none".into();
                (config, 32)
            }
            "java" => {
                let options = ["-Xmx16m", "-Xint", "-XX:+UseSerialGC"];
                let args: &[&str] = if stays { &["for-ever"] } else { &[] };
                let class =
                    json!({"class": "Lines", "class_path": "/classes", "jvm_options": options, "args": args});
                (class, 160)
            }
            "qemu" => {
                let image = self.directory.join(if stays { "lines.img" } else { "ends.img" });
                let args = ["-cpu", "max", "-snapshot", "-device", "isa-debug-exit,iobase=0x501,iosize=1"];
                (json!({"image_path": image, "args": args}), 128)
            }
            _ => (shell, 32),
        }
    }
}

fn restarts(attempts: u32, mode: &str) -> Value {
    json!({"Attempts": attempts, "Interval": 3_600_000_000_000_u64, "Delay": 10_000_000, "Mode": mode})
}

/// Whether these are the words of a process that says the lines.
pub fn says_lines(words: &[String]) -> bool {
    let script = words.get(2).is_some_and(|word| word == SCRIPT || word == ENDING);
    let program = words.first().is_some_and(|word| word.ends_with("/java") || word.contains("qemu-system-"));
    script || program && words.iter().any(|word| word == "Lines" || word.contains("/things/"))
}
