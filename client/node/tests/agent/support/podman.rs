//! A Podman of the tests' own: directories that go with it, an image of busybox.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::packages::install;

/// The image that it has.
pub const IMAGE: &str = "localhost/busybox-test:1";

const PREFIX: &str = "sojourn-podman-";

/// The user of an engine that is not root's: nobody, who has no range of users below him.
const USER: u32 = 65534;

/// An engine whose service runs, until it is dropped.
pub struct TestPodman {
    directory: PathBuf,
    is_rootless: bool,
    service: Mutex<Option<Child>>,
}

/// None where there cannot be one.
pub fn own(test: &str) -> Option<TestPodman> {
    made(test, false)
}

/// The same, of a user who is not root. None, aloud, also where the kernel gives users no namespaces.
pub fn of_a_user(test: &str) -> Option<TestPodman> {
    made(test, true)
}

fn made(test: &str, is_rootless: bool) -> Option<TestPodman> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {test}: only root can start a container engine");
        return None;
    }
    install(
        &["podman", "runc", "busybox-static", "slirp4netns"],
        &["podman", "runc", "busybox", "slirp4netns"],
    );
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = Path::new("/tmp").join(format!("{PREFIX}{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let base = directory.display();
    let engine = format!(
        "[containers]\ndefault_ulimits=[\"nofile=20000:20000\",\"nproc=4096:4096\"]\n\
         [engine]\nruntime=\"runc\"\ncgroup_manager=\"cgroupfs\"\nevents_logger=\"file\"\n\
         [network]\nnetwork_config_dir=\"{base}/networks\"\n"
    );
    std::fs::write(directory.join("containers.conf"), engine).unwrap();
    let storage = format!(
        "[storage]\ndriver=\"vfs\"\nrunroot=\"{base}/run\"\ngraphroot=\"{base}/storage\"\n\
         [storage.options.vfs]\nignore_chown_errors=\"{is_rootless}\"\n"
    );
    std::fs::write(directory.join("storage.conf"), storage).unwrap();
    let podman = TestPodman { directory, is_rootless, service: Mutex::new(None) };
    if is_rootless {
        std::os::unix::fs::chown(&podman.directory, Some(USER), Some(USER)).unwrap();
        make_tun(&podman.tun());
        let output = podman.command(&["unshare", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let refused = ["not permitted", "ermission denied"].iter().any(|sign| said.contains(sign));
            assert!(refused, "a user has no engine: {said}");
            eprintln!("SKIPPED {test}: the kernel refuses a user a container engine: {said}");
            return None;
        }
    }
    podman.import_busybox();
    podman.start();
    Some(podman)
}

/// The device that a user's engine makes networks of.
fn make_tun(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), makedev(10, 200)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
}

impl TestPodman {
    pub fn socket(&self) -> String {
        format!("{}/s", self.directory.display())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.is_rootless {
            true => self.as_user(),
            false => Command::new("podman"),
        };
        command.args(arguments).stdin(Stdio::null());
        command.env("CONTAINERS_CONF", self.directory.join("containers.conf"));
        command.env("CONTAINERS_STORAGE_CONF", self.directory.join("storage.conf"));
        command
    }

    /// The program run by the user, for whom the device of networks is open, whatever it is on this host.
    fn as_user(&self) -> Command {
        let (user, tun) = (USER.to_string(), self.tun());
        let script = format!(
            "mount --bind {} /dev/net/tun && exec setpriv --reuid {user} --regid {user} --clear-groups -- podman \"$@\"",
            tun.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "slave", "sh", "-c", &script, "podman"]);
        command.env("HOME", &self.directory).env("XDG_RUNTIME_DIR", &self.directory).current_dir("/");
        command
    }

    fn tun(&self) -> PathBuf {
        self.directory.join("tun")
    }

    /// What the program says, asked without its service.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is in the image that it has.
    pub fn busybox(&self) -> PathBuf {
        self.directory.join("root")
    }

    fn import_busybox(&self) {
        let root = self.busybox();
        super::engine::make_busybox(&root);
        let tar = self.directory.join("root.tar");
        std::fs::write(&tar, super::engine::archive(&root)).unwrap();
        self.ask(&["import", "-q", tar.to_str().unwrap(), IMAGE]);
    }

    pub fn start(&self) {
        *self.service.lock().unwrap() = Some(self.serve(&self.socket()));
    }

    /// A service of the engine at this path.
    fn serve(&self, socket: &str) -> Child {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.directory.join("log"));
        let address = format!("unix://{socket}");
        let mut command = self.command(&["system", "service", "--time=0", &address]);
        let child = command.stdout(Stdio::null()).stderr(log.unwrap()).spawn().unwrap();
        super::eventually("the service", || std::os::unix::net::UnixStream::connect(socket).ok().map(drop));
        child
    }

    /// One more service of this engine.
    pub fn second_service(&self) -> SecondService {
        let socket = format!("{}/second", self.directory.display());
        SecondService { child: self.serve(&socket), socket }
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

pub struct SecondService {
    pub socket: String,
    child: Child,
}

impl Drop for SecondService {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for TestPodman {
    fn drop(&mut self) {
        let service = self.service.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mut child) = service.take() {
            child.kill().ok();
            child.wait().ok();
        }
        self.ask(&["rm", "-a", "-f", "-t", "0"]);
        if self.is_rootless {
            // It ends what keeps the namespaces of the user.
            self.ask(&["system", "migrate"]);
        }
        super::engine::remove_directory(&self.directory);
    }
}
