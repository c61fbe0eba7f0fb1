//! What a virtual machine boots: Debian's kernel for clouds, and a first root file system with our program in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::end_to_end::support::packages::install;
use crate::end_to_end::support::sojourn;

/// Modules of the kernel's package, each after those that it needs.
const MODULES: [&str; 12] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "fs/overlayfs/overlay",
    "fs/quota/quota_tree",
    "fs/quota/quota_v2",
];

/// Without the check of its timer, which fails where the emulator gets too little of a processor.
pub const KERNEL_ARGS: &str = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check";

/// Also for a guest that reacts to its power button.
const BUTTON: [&str; 2] = ["drivers/acpi/button", "drivers/input/evdev"];

/// The first process of a guest: it serves its `/www` until its power button is pressed.
const GUEST_INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do
  insmod /modules/$module
done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
httpd -p 8080 -h /www
echo "the guest is up"
button=$(grep -l LNXPWRBN /sys/class/input/input*/phys | head -n 1)
event=$(basename $(ls -d $(dirname $button)/event*))
head -c 1 /dev/input/$event > /dev/null
echo "the power button was pressed"
poweroff -f
"#;

/// The first process. The root that a kernel begins with cannot be exchanged by tasks, so it becomes an ordinary mount. It
/// goes on as a shell for the test: what comes in at the second serial port is run, and ends with `==` and the exit code.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
if [ "$1" != moved ]; then
  mkdir /moved
  mount --bind / /moved
  cd /moved
  mount --move . /
  exec chroot . /init moved
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for module in $(cat /modules/order); do
  insmod /modules/$module
done
[ -b /dev/vda ] && mount -t ext4 /dev/vda /data
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
exec < /dev/ttyS1 > /dev/ttyS1 2>/dev/console
stty raw -echo
echo "==ready"
while read -r line; do
  eval "$line" < /dev/null 2>&1
  echo "==$?"
done
poweroff -f
"#;

/// Brings what machines need. The kernel is unpacked below `directory`, once for all tests on this host.
pub fn kernel() -> PathBuf {
    install(
        &["qemu-system-x86", "busybox-static", "cpio", "e2fsprogs"],
        &["qemu-system-x86_64", "busybox", "cpio", "mkfs.ext4"],
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    fs::create_dir_all(&directory).unwrap();
    let lock = fs::File::create(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let unpacked = directory.join("unpacked");
    if !unpacked.exists() {
        let found = run(Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"]));
        let package = found.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let package = package.expect("Debian has a kernel for clouds");
        if !Command::new("apt-get")
            .args(["download", package])
            .current_dir(&directory)
            .status()
            .unwrap()
            .success()
        {
            run(Command::new("apt-get").arg("update"));
            run(Command::new("apt-get").args(["download", package]).current_dir(&directory));
        }
        let file = only(&directory, package);
        let draft = directory.join("draft");
        run(Command::new("dpkg-deb").arg("-x").arg(file).arg(&draft));
        fs::rename(draft, &unpacked).unwrap();
    }
    unpacked
}

/// The one entry of a directory whose name begins so.
pub fn only(directory: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(name));
    found.next().unwrap_or_else(|| panic!("{name} is in {}", directory.display()))
}

/// Makes the first root file system; returns its archive.
pub fn initial_root(kernel: &Path, directory: &Path, agent: &str) -> PathBuf {
    let root = directory.join("root");
    for name in ["bin", "data", "dev", "etc", "modules", "proc", "sys", "tmp", "usr/bin"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["lib", "lib64"] {
        fs::create_dir_all(root.join("usr").join(name)).unwrap();
        symlink(Path::new("usr").join(name), root.join(name)).unwrap();
    }
    fs::copy("/usr/bin/busybox", root.join("bin/busybox")).unwrap();
    // Without names of functions it is a third smaller, which the machine need not read.
    run(Command::new("strip").arg("-o").arg(root.join("bin/sojourn")).arg(sojourn()));
    let libraries = run(Command::new("ldd").arg(sojourn()));
    for library in libraries.split_ascii_whitespace().filter(|word| word.starts_with('/')) {
        let place = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(library, place).unwrap();
    }
    let order = modules(kernel, &root, &MODULES);
    let users = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
    let texts = [
        ("modules/order", order.as_str()),
        ("etc/passwd", users),
        ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("etc/agent.hcl", agent),
        ("init", INIT),
    ];
    texts.iter().for_each(|(file, text)| fs::write(root.join(file), text).unwrap());
    pack(&root)
}

/// A root for a guest that needs nothing of ours.
pub fn guest_root(kernel: &Path, directory: &Path) -> PathBuf {
    let root = directory.join("root");
    for name in ["bin", "dev", "modules", "proc", "sys", "www"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy("/usr/bin/busybox", root.join("bin/busybox")).unwrap();
    let order = modules(kernel, &root, &[&MODULES[..], &BUTTON].concat());
    let texts =
        [("modules/order", order.as_str()), ("www/index.html", "from the guest\n"), ("init", GUEST_INIT)];
    texts.iter().for_each(|(file, text)| fs::write(root.join(file), text).unwrap());
    pack(&root)
}

/// Takes modules along that are not a part of the kernel itself; returns their files, one a line.
fn modules(kernel: &Path, root: &Path, modules: &[&str]) -> String {
    let all = only(&kernel.join("lib/modules"), "").join("kernel");
    let mut order = String::new();
    for module in modules {
        let (from, file) =
            (all.join(format!("{module}.ko")), format!("{}.ko", module.rsplit('/').next().unwrap()));
        if from.exists() {
            fs::copy(from, root.join("modules").join(&file)).unwrap();
            order += &format!("{file}\n");
        }
    }
    order
}

/// Makes an archive beside a directory, which goes.
fn pack(root: &Path) -> PathBuf {
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    let pack = "find . | cpio -o -H newc --quiet > ../initial-root";
    run(Command::new("sh").args(["-c", pack]).current_dir(root));
    fs::remove_dir_all(root).unwrap();
    root.with_file_name("initial-root")
}

/// An empty disk with a file system of ext4 that has these features besides the usual ones.
pub fn disk(directory: &Path, features: &[&str]) -> PathBuf {
    let disk = directory.join("disk");
    fs::File::create(&disk).unwrap().set_len(4 << 30).unwrap();
    run(Command::new("/usr/sbin/mkfs.ext4").arg("-q").args(features).arg(&disk));
    disk
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
