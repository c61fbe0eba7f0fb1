//! A container engine of the tests' own: no network, directories that go with it, an image of busybox.
//!
//! Only root can have one. As root, what is missing is installed, and only what the kernel refuses skips a test, aloud.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{CreateImageOptions, ListContainersOptions, RemoveContainerOptions};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::stream::StreamExt;
use rustix::process::{Pid, Signal, kill_process};

use super::packages::install;

/// The image that every engine of the tests has.
pub const IMAGE: &str = "busybox-test:1";

/// One that does nothing until it is ended, for networks of groups.
pub const PAUSE: &str = "pause-test:1";

/// How long the engine may take for an answer when other tests have the processors.
const ANSWER_SECONDS: u64 = 90;

const PREFIX: &str = "sojourn-engine-";

/// An engine that runs, until it is dropped.
pub struct TestEngine {
    directory: PathBuf,
    live_restore: bool,
    containerd: Option<Child>,
    dockerd: Mutex<Option<Child>>,
}

static SHARED: Mutex<Weak<TestEngine>> = Mutex::new(Weak::new());

/// The engine that tests share as long as one of them has it. None where there cannot be one.
pub fn shared(test: &str) -> Option<Arc<TestEngine>> {
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(engine) = shared.upgrade() {
        return Some(engine);
    }
    let engine = Arc::new(own(test, false)?);
    *shared = Arc::downgrade(&engine);
    Some(engine)
}

/// An engine for a test that stops and starts it.
pub fn own(test: &str, live_restore: bool) -> Option<TestEngine> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {test}: only root can start a container engine");
        return None;
    }
    install(&["docker.io", "containerd", "busybox-static"], &["dockerd", "containerd", "busybox"]);
    remove_leftovers();
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("{PREFIX}{}-{number}", std::process::id());
    // Short: a socket's address holds 107 bytes.
    let directory = Path::new("/tmp").join(name);
    std::fs::create_dir_all(directory.join("containerd")).unwrap();
    let mut engine = TestEngine { directory, live_restore, containerd: None, dockerd: Mutex::new(None) };
    engine.containerd = Some(engine.start_containerd());
    engine.start();
    if !engine.answers() {
        let log = std::fs::read_to_string(engine.directory.join("dockerd.log")).unwrap_or_default();
        let refused = ["operation not permitted", "permission denied", "Operation not permitted"];
        assert!(refused.iter().any(|sign| log.contains(sign)), "the engine does not start: {log}");
        eprintln!("SKIPPED {test}: the kernel refuses a container engine: {log}");
        return None;
    }
    engine.import_busybox();
    Some(engine)
}

/// What tests left that were killed themselves.
fn remove_leftovers() {
    for entry in std::fs::read_dir("/tmp").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<i32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            remove(&entry.path());
        }
    }
}

/// Ends everything that was started with this directory, and removes it.
fn remove(directory: &Path) {
    let name = directory.to_str().unwrap();
    let with_it = || {
        let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
        let of = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(name)
        };
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(pid).filter(of).collect::<Vec<i32>>()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !with_it().is_empty() && Instant::now() < deadline {
        for pid in with_it() {
            for process in executor::process::descendants(pid).iter().map(|child| child.pid).chain([pid]) {
                Pid::from_raw(process).and_then(|process| kill_process(process, Signal::KILL).ok());
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    remove_directory(directory);
}

/// With what is mounted there.
pub fn remove_directory(directory: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut below: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    below.retain(|path| Path::new(path).starts_with(directory));
    for path in below.into_iter().rev() {
        Command::new("umount").args(["-l", path]).stderr(Stdio::null()).status().ok();
    }
    std::fs::remove_dir_all(directory).ok();
}

/// What is in the image of every engine: busybox, by the names that tests call it.
pub fn make_busybox(root: &Path) {
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::create_dir_all(root.join("tmp")).unwrap();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    std::fs::copy(busybox.unwrap(), root.join("bin/busybox")).unwrap();
    for name in
        "sh cat cp echo env hostname id ip kill ls mount pwd sleep stty tail touch true ulimit yes head"
            .split(' ')
    {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
}

impl TestEngine {
    pub fn endpoint(&self) -> String {
        format!("unix://{}/s", self.directory.display())
    }

    fn log(&self, name: &str) -> Stdio {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).open(self.directory.join(name)).unwrap().into()
    }

    /// Of its own, so that containers live on when the engine is killed.
    fn start_containerd(&self) -> Child {
        let base = self.directory.join("containerd");
        let text = format!(
            "version = 2\nroot = \"{base}/root\"\nstate = \"{base}/state\"\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = \"{base}/s\"\n[ttrpc]\naddress = \"{base}/t\"\n",
            base = base.display()
        );
        std::fs::write(base.join("config.toml"), text).unwrap();
        let mut command = Command::new("containerd");
        command.arg("--config").arg(base.join("config.toml")).stdin(Stdio::null());
        let child =
            command.stdout(self.log("containerd.log")).stderr(self.log("containerd.log")).spawn().unwrap();
        super::eventually("containerd", || base.join("s").exists().then_some(()));
        child
    }

    /// Starts the engine, which may have been killed before.
    pub fn start(&self) {
        let path = |name: &str| self.directory.join(name).display().to_string();
        std::fs::remove_file(path("pid")).ok();
        let mut command = Command::new("dockerd");
        command.args(["--bridge=none", "--iptables=false", "--containerd", &path("containerd/s")]);
        command.args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")]);
        command.args(["-H", &self.endpoint()]).args(self.live_restore.then_some("--live-restore"));
        let log = || self.log("dockerd.log");
        let child = command.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn().unwrap();
        *self.dockerd.lock().unwrap() = Some(child);
    }

    pub fn answers_now(&self) -> bool {
        self.directory.join("s").exists() && self.ask(async |client| client.ping().await).is_ok()
    }

    /// True when it answers, false when it has ended or takes too long.
    fn answers(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if self.answers_now() {
                return true;
            }
            if self.dockerd.lock().unwrap().as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub fn await_start(&self) {
        self.start();
        self.await_answer();
    }

    pub fn await_answer(&self) {
        assert!(self.answers(), "the engine comes back");
    }

    pub fn kill(&self) {
        let mut child = self.dockerd.lock().unwrap().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(self.directory.join("s")).ok();
    }

    /// Asks the engine, on a thread of its own: tests have runtimes already.
    pub fn ask<T: Send>(&self, question: impl AsyncFnOnce(Docker) -> T + Send) -> T {
        let endpoint = self.endpoint();
        std::thread::scope(|scope| {
            let ask = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let client =
                        Docker::connect_with_unix(&endpoint, ANSWER_SECONDS, API_DEFAULT_VERSION).unwrap();
                    question(client).await
                })
            };
            scope.spawn(ask).join().unwrap()
        })
    }

    /// What is in the image that every engine of the tests has.
    pub fn busybox(&self) -> PathBuf {
        self.directory.join("root")
    }

    fn import_busybox(&self) {
        let root = self.busybox();
        make_busybox(&root);
        self.import(&root, IMAGE);
        self.import_as(&root, PAUSE, Some("CMD [\"/bin/sleep\", \"1000000\"]"));
    }

    /// Makes an image of one layer: what is in a directory.
    pub fn import(&self, root: &Path, image: &str) {
        self.import_as(root, image, None);
    }

    /// The same, with a line of a Dockerfile that changes it.
    fn import_as(&self, root: &Path, image: &str, change: Option<&str>) {
        let tar = archive(root);
        let (repository, tag) = image.rsplit_once(':').unwrap();
        let options = CreateImageOptions {
            from_src: Some("-".to_string()),
            repo: Some(repository.to_string()),
            tag: Some(tag.to_string()),
            changes: change.map(|change| vec![change.to_string()]).unwrap_or_default(),
            ..CreateImageOptions::default()
        };
        self.ask(async move |client| {
            let body = bollard::body_full(tar.into());
            let mut lines = client.create_image(Some(options), Some(body), None);
            while let Some(line) = lines.next().await {
                line.unwrap();
            }
        });
    }

    /// All containers, also those that have ended, whose label of the allocation begins like this.
    pub fn containers(&self, alloc: &str) -> Vec<ContainerSummary> {
        let options = ListContainersOptions { all: true, ..ListContainersOptions::default() };
        let mut found = self.ask(async move |client| client.list_containers(Some(options)).await.unwrap());
        found.retain(|container| {
            let labels = container.labels.clone().unwrap_or_default();
            labels.get("com.hashicorp.nomad.alloc_id").is_some_and(|label| label.starts_with(alloc))
        });
        found
    }

    pub fn inspect(&self, container: &str) -> ContainerInspectResponse {
        let container = container.to_string();
        self.ask(async move |client| client.inspect_container(&container, None).await.unwrap())
    }
}

/// What is in a directory, as a tar archive.
pub fn archive(root: &Path) -> Vec<u8> {
    let output = Command::new("tar").arg("-C").arg(root).args(["-c", "."]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        let child = self.dockerd.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(mut child) = child {
            let endpoint = self.endpoint();
            // In an orderly way first, so that no control group or mount stays.
            let remove_all = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
                runtime.block_on(async {
                    let client = Docker::connect_with_unix(&endpoint, 10, API_DEFAULT_VERSION).ok()?;
                    let all = ListContainersOptions { all: true, ..ListContainersOptions::default() };
                    for container in client.list_containers(Some(all)).await.ok()? {
                        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
                        client.remove_container(&container.id?, Some(options)).await.ok();
                    }
                    Some(())
                })
            };
            std::thread::spawn(remove_all).join().ok();
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            let deadline = Instant::now() + Duration::from_secs(10);
            while child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            child.kill().ok();
            child.wait().ok();
        }
        if let Some(mut child) = self.containerd.take() {
            child.kill().ok();
            child.wait().ok();
        }
        remove(&self.directory);
    }
}
