//! Agents on virtual machines, whose kernels are those of production: control groups of version 2 alone, and reboots.
//!
//! A machine is emulated, so it needs no rights on the host, and is slow. The test talks to its agent as it does to any other,
//! through a port of the host, and to its shell through a serial port.

mod groups;
mod guest;
mod image;
mod quotas;
mod reboot;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::end_to_end::support::{Agent, AgentConfig, free_port, http};

/// The deadline of what happens on a machine, when other tests have the processors.
const SLOW: Duration = Duration::from_secs(240);

const PAUSE: Duration = Duration::from_millis(200);

/// The variable that asks for the tests that take minutes.
const MORE: &str = "SOJOURN_MACHINES";

const AGENT: &str = r#"name = "machine"
bind_addr = "0.0.0.0"
data_dir = "/data"
server {
  enabled = true
  bootstrap_expect = 1
  num_schedulers = 1
  default_scheduler_config {
    memory_oversubscription_enabled = true
  }
}
client {
  enabled = true
  network_interface = "eth0"
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
"#;

/// Whether machines can be had here; says so if not.
fn skipped(test: &str) -> bool {
    let reason = match () {
        () if !cfg!(target_arch = "x86_64") => "the kernel that it boots is of x86_64",
        () if !Path::new("/usr/bin/apt-get").exists() => "it has its kernel from Debian",
        () if !rustix::process::geteuid().is_root() && !Path::new("/usr/bin/qemu-system-x86_64").exists() => {
            "only root can install qemu"
        }
        () => return false,
    };
    eprintln!("SKIPPED {test}: {reason}");
    true
}

/// Polls until there is a result, for as long as a machine may take.
fn slowly<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SLOW;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A machine that runs until it is dropped.
struct Machine {
    /// As the host sees it: the process is the machine.
    agent: Agent,
    shell: BufReader<UnixStream>,
    /// The number of the agent's process.
    process: Option<i32>,
}

impl Machine {
    /// Boots a machine that has its files below `directory`, and its agent's data on the disk if there is one.
    fn boot(directory: &Path, disk: Option<&Path>) -> Machine {
        let kernel = image::kernel();
        let archive = image::initial_root(&kernel, directory, AGENT);
        let port = free_port();
        let socket = directory.join("shell");
        std::fs::remove_file(&socket).ok();
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1024", "-nographic"]);
        command
            .args(["-nodefaults", "-no-reboot", "-kernel"])
            .arg(image::only(&kernel.join("boot"), "vmlinuz"));
        command.arg("-initrd").arg(archive);
        command.args(["-append", image::KERNEL_ARGS]);
        command.arg("-serial").arg(format!("file:{}", directory.join("console").display()));
        command.args(["-serial", "chardev:shell", "-chardev"]);
        command.arg(format!("socket,id=shell,path={},server=on,wait=off", socket.display()));
        command.args(["-device", "virtio-net-pci,netdev=net,romfile=", "-netdev"]);
        command.arg(format!("user,id=net,hostfwd=tcp:127.0.0.1:{port}-:4646"));
        if let Some(disk) = disk {
            command.arg("-drive").arg(format!("file={},if=virtio,format=raw", disk.display()));
        }
        let errors = File::create(directory.join("qemu")).unwrap();
        command.stdin(Stdio::null()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let child = command.spawn().unwrap();
        let agent = seen_from_here(directory, port, child);
        let connect = || UnixStream::connect(&socket).ok();
        let stream = slowly("the machine has a serial port", connect);
        stream.set_read_timeout(Some(SLOW)).unwrap();
        let mut machine = Machine { agent, shell: BufReader::new(stream), process: None };
        machine.answer_until(|line| line == "==ready");
        machine
    }

    /// Runs a line of the machine's shell, which has to succeed.
    fn shell(&mut self, line: &str) -> String {
        let (code, output) = self.try_shell(line);
        assert_eq!(code, 0, "{line}: {output}");
        output
    }

    fn try_shell(&mut self, line: &str) -> (i32, String) {
        self.shell.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        let code = |line: &str| line.strip_prefix("==")?.parse().ok();
        let (last, output) = self.answer_until(|line| code(line).is_some());
        (code(&last).expect("it was one just now"), output)
    }

    /// The line that is meant, and those before it.
    fn answer_until(&mut self, is_meant: impl Fn(&str) -> bool) -> (String, String) {
        let mut output = String::new();
        loop {
            let mut line = String::new();
            self.shell.read_line(&mut line).expect("the machine answers");
            assert!(!line.is_empty(), "the machine went away after {output}");
            if is_meant(line.trim()) {
                return (line.trim().to_string(), output);
            }
            output += &line;
        }
    }

    /// Starts its agent, and waits until that takes tasks.
    fn start_agent(&mut self) {
        let started =
            self.shell("sojourn agent -config /etc/agent.hcl >> /tmp/log 2>&1 < /dev/null & echo $!");
        self.process = Some(started.trim().parse().unwrap());
        slowly("a node is ready", || {
            let answer =
                http::get(self.agent.config.http, "/v1/nodes").ok().filter(|answer| answer.status == 200)?;
            answer.json().as_array()?.iter().any(|node| node["Status"] == "ready").then_some(())
        });
    }

    /// Ends the agent as a crash would; its tasks stay.
    fn kill_agent(&mut self) {
        let process = self.process.take().unwrap();
        self.shell(&format!("kill -9 {process}; wait {process}; true"));
    }

    /// Registers a job that is written as its users do.
    fn run_job(&self, text: &str) {
        let file = self.agent.config.home.join("job.hcl");
        std::fs::write(&file, text).unwrap();
        self.agent.run(&["job", "run", "-detach", file.to_str().unwrap()]).expect_success();
    }

    /// Waits for an allocation of a job with this status.
    fn alloc(&self, job: &str, status: &str) -> Value {
        slowly(&format!("an allocation of {job} is {status}"), || {
            self.agent.allocs(job).into_iter().find(|alloc| alloc["ClientStatus"] == status)
        })
    }

    /// What a task has printed so far, once that is something.
    fn said(&self, alloc: &str, task: &str) -> String {
        slowly("the task prints something", || {
            let said = self.agent.run(&["alloc", "logs", alloc, task]).stdout;
            said.ends_with('\n').then_some(said)
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shell.get_ref().set_read_timeout(Some(Duration::from_secs(10))).ok();
            self.shell.get_mut().write_all(b"tail -c 6000 /tmp/log\n").ok();
            let mut line = String::new();
            while matches!(self.shell.read_line(&mut line), Ok(1..)) && !line.starts_with("==") {
                eprint!("{line}");
                line.clear();
            }
        }
    }
}

fn seen_from_here(directory: &Path, port: u16, child: Child) -> Agent {
    let console: PathBuf = directory.join("console");
    Agent::elsewhere(AgentConfig::elsewhere(directory, port), console, child)
}
