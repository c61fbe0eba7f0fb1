//! Packages of the host that tests need.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

const PLACES: [&str; 5] = ["/usr/sbin", "/usr/bin", "/bin", "/usr/local/bin", "/sbin"];

/// Installs packages, once for all tests on this host, unless the programs that they bring are there.
pub fn install(packages: &[&str], programs: &[&str]) {
    let there = |program: &&str| PLACES.iter().any(|place| Path::new(place).join(program).exists());
    if programs.iter().all(there) {
        return;
    }
    // The package manager itself does not wait for another one.
    let lock = File::create("/tmp/sojourn-install.lock").unwrap();
    lock.lock().unwrap();
    if programs.iter().all(there) {
        return;
    }
    for arguments in [vec!["update"], [&["install", "-y"], packages].concat()] {
        let mut apt = Command::new("apt-get");
        apt.args(&arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        assert!(apt.status().is_ok_and(|status| status.success()), "apt-get {arguments:?}");
    }
}
