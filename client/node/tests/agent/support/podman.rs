//! A Podman of the tests' own: directories that go with it, an image of busybox.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::packages::install;

/// The image that it has.
pub const IMAGE: &str = "localhost/busybox-test:1";

const PREFIX: &str = "sojourn-podman-";

/// An engine whose service runs, until it is dropped.
pub struct TestPodman {
    directory: PathBuf,
    service: Mutex<Option<Child>>,
}

/// None where there cannot be one.
pub fn own(test: &str) -> Option<TestPodman> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {test}: only root can start a container engine");
        return None;
    }
    install(&["podman", "runc", "busybox-static"], &["podman", "runc", "busybox"]);
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = Path::new("/tmp").join(format!("{PREFIX}{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let base = directory.display();
    let engine = "[containers]\ndefault_ulimits=[\"nofile=20000:20000\",\"nproc=4096:4096\"]\n\
                  [engine]\nruntime=\"runc\"\ncgroup_manager=\"cgroupfs\"\nevents_logger=\"file\"\n";
    std::fs::write(directory.join("containers.conf"), engine).unwrap();
    let storage =
        format!("[storage]\ndriver=\"vfs\"\nrunroot=\"{base}/run\"\ngraphroot=\"{base}/storage\"\n");
    std::fs::write(directory.join("storage.conf"), storage).unwrap();
    let podman = TestPodman { directory, service: Mutex::new(None) };
    podman.import_busybox();
    podman.start();
    Some(podman)
}

impl TestPodman {
    pub fn socket(&self) -> String {
        format!("{}/s", self.directory.display())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.args(arguments).stdin(Stdio::null());
        command.env("CONTAINERS_CONF", self.directory.join("containers.conf"));
        command.env("CONTAINERS_STORAGE_CONF", self.directory.join("storage.conf"));
        command
    }

    /// What the program says, asked without its service.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn import_busybox(&self) {
        let root = self.directory.join("root");
        super::engine::make_busybox(&root);
        let tar = self.directory.join("root.tar");
        std::fs::write(&tar, super::engine::archive(&root)).unwrap();
        self.ask(&["import", "-q", tar.to_str().unwrap(), IMAGE]);
    }

    pub fn start(&self) {
        let log = std::fs::File::create(self.directory.join("log")).unwrap();
        let address = format!("unix://{}", self.socket());
        let mut command = self.command(&["system", "service", "--time=0", &address]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        *self.service.lock().unwrap() = Some(child);
        super::eventually("the service", || {
            std::os::unix::net::UnixStream::connect(self.socket()).ok().map(drop)
        });
    }

    pub fn kill(&self) {
        let mut child = self.service.lock().unwrap().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(self.socket()).ok();
    }

    /// The ids of all containers of an allocation, also of those that have ended.
    pub fn containers(&self, alloc: &str) -> Vec<String> {
        let label = format!("label=com.hashicorp.nomad.alloc_id={alloc}");
        let said = self.ask(&["ps", "-a", "-q", "--no-trunc", "--filter", &label]);
        said.lines().map(str::to_string).collect()
    }
}

impl Drop for TestPodman {
    fn drop(&mut self) {
        if let Some(mut child) = self.service.lock().unwrap().take() {
            child.kill().ok();
            child.wait().ok();
        }
        self.ask(&["rm", "-a", "-f", "-t", "0"]);
        super::engine::remove_directory(&self.directory);
    }
}
