//! What a child may touch of the node: Landlock, which the kernel also holds git and its own children to.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};

use crate::FetchError;
use crate::request::{Confinement, ExtraPath, Request};
use crate::source::Kind;

/// The newest rights that this release knows of. Older kernels enforce those that they know.
const NEWEST: ABI = ABI::V5;

/// Names of hosts, authorities, and the libraries that look them up.
const READABLE: [&str; 28] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/passwd",
    "/etc/group",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/dev/urandom",
    "/dev/zero",
];

/// Programs that fetch repositories, and what they read.
const PROGRAMS: [&str; 11] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local",
    "/usr/share",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
];
const PROGRAM_SETTINGS: [&str; 6] = [
    "/etc/gitconfig",
    "/etc/ssh/ssh_config",
    "/etc/ssh/ssh_config.d",
    "/etc/ssh/ssh_known_hosts",
    "/etc/mercurial",
    "/etc/alternatives",
];

/// Of the home of the agent's user.
const HOME: [&str; 6] = [".netrc", ".ssh", ".gitconfig", ".config/git", ".hgrc", ".config/hg"];

/// Variables that name files to read, when the operator passes them on.
const NAMED_FILES: [&str; 5] = ["NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE"];

/// Confines this process and all that it starts, for good.
///
/// # Errors
/// When the kernel knows how to and refuses.
pub fn confine(request: &Request, kind: Kind) -> Result<Confinement, FetchError> {
    if request.limits.disable_filesystem_isolation {
        return Ok(Confinement::Disabled);
    }
    let all = AccessFs::from_all(NEWEST);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    // Files, directories and links; no programs are run from there, and no devices or sockets made.
    let write = all
        & !(AccessFs::Execute
            | AccessFs::MakeChar
            | AccessFs::MakeBlock
            | AccessFs::MakeFifo
            | AccessFs::MakeSock
            | AccessFs::IoctlDev);
    let written: Vec<&PathBuf> =
        [&request.root, &request.scratch].into_iter().chain(&request.writable).collect();
    let mut programs: Vec<&str> = Vec::new();
    let mut readable: Vec<PathBuf> = READABLE.map(PathBuf::from).into();
    if matches!(kind, Kind::Git | Kind::Hg) {
        programs.extend(PROGRAMS);
        readable.extend(PROGRAM_SETTINGS.map(PathBuf::from));
    }
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()) {
        readable.extend(HOME.map(|name| home.join(name)));
    }
    readable.extend(NAMED_FILES.iter().filter_map(std::env::var_os).map(PathBuf::from));
    let extra = request.limits.extra_paths.iter().map(|extra| (&extra.path, rights(extra)));
    let extra: Vec<_> = extra.flat_map(|(path, rights)| path_beneath_rules([path], rights)).collect();
    let confined = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .create()?
            .add_rules(path_beneath_rules(readable, read))?
            .add_rules(path_beneath_rules(programs, run))?
            .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(written, write))?
            .add_rules(extra)?
            .restrict_self()
    };
    let status: landlock::RestrictionStatus = confined()
        .map_err(|error: landlock::RulesetError| FetchError::failed(format!("Landlock: {error}")))?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Confinement::Full,
        RulesetStatus::PartiallyEnforced => Confinement::Partial,
        RulesetStatus::NotEnforced => Confinement::Missing,
    })
}

/// What the operator allows with a path. Of a file only what is done with files: the kernel refuses more.
fn rights(extra: &ExtraPath) -> BitFlags<AccessFs> {
    let mut rights = BitFlags::empty();
    let mut add = |wanted: bool, of_files: BitFlags<AccessFs>, of_directories: BitFlags<AccessFs>| {
        if wanted {
            rights |= of_files;
        }
        if wanted && extra.is_directory {
            rights |= of_directories;
        }
    };
    add(extra.read, AccessFs::ReadFile.into(), AccessFs::ReadDir.into());
    add(extra.write, AccessFs::WriteFile | AccessFs::Truncate, BitFlags::empty());
    let made = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::MakeSym;
    add(extra.create, BitFlags::empty(), made | AccessFs::RemoveFile | AccessFs::RemoveDir | AccessFs::Refer);
    add(extra.execute, AccessFs::Execute.into(), BitFlags::empty());
    rights
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::request::{Limits, Mode};

    fn request(base: &Path) -> Request {
        std::fs::create_dir_all(base.join("in/tmp")).unwrap();
        std::fs::create_dir(base.join("out")).unwrap();
        std::fs::write(base.join("out/secret"), "secret").unwrap();
        Request {
            source: String::new(),
            options: BTreeMap::new(),
            headers: BTreeMap::new(),
            mode: Mode::Any,
            insecure: false,
            root: base.join("in"),
            destination: PathBuf::new(),
            scratch: base.join("in/tmp/scratch"),
            writable: Vec::new(),
            owner: None,
            limits: Limits::usual(),
        }
    }

    /// Confines a thread, which is what the kernel confines, and sees what it may do.
    fn confined(kind: Kind, then: impl FnOnce(&Path) + Send) {
        let base = tempfile::tempdir().unwrap();
        let request = request(base.path());
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| match confine(&request, kind).unwrap() {
                Confinement::Missing => eprintln!("skipped: the kernel has no Landlock"),
                Confinement::Full | Confinement::Partial => then(base.path()),
                Confinement::Disabled => panic!("nobody has disabled it"),
            });
            confined.join().unwrap();
        });
        assert_eq!(std::fs::read_dir(base.path().join("out")).unwrap().count(), 1);
    }

    fn run(program: &str, argument: &Path) -> bool {
        let mut command = Command::new(program);
        let status = command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn a_download_reads_and_writes_nothing_but_what_it_has_to() {
        confined(Kind::Http, |base| {
            for path in ["/etc/shadow", "/etc/hostname", "/proc/self/environ", "/usr/bin/env"] {
                assert!(std::fs::read(path).is_err(), "{path}");
            }
            let (inside, outside) = (base.join("in"), base.join("out"));
            assert!(std::fs::read(outside.join("secret")).is_err());
            assert!(std::fs::write(outside.join("new"), "x").is_err());
            assert!(std::fs::remove_file(outside.join("secret")).is_err());
            assert!(std::fs::hard_link(outside.join("secret"), inside.join("secret")).is_err());
            assert!(std::fs::rename(outside.join("secret"), inside.join("secret")).is_err());
            assert!(!run("/bin/cat", Path::new("/etc/hosts")), "nothing is run");
            std::fs::create_dir_all(inside.join("a/b")).unwrap();
            std::fs::write(inside.join("a/b/file"), "x").unwrap();
            std::fs::rename(inside.join("a/b/file"), inside.join("file")).unwrap();
            assert_eq!(std::fs::read(inside.join("file")).unwrap(), b"x");
            std::fs::read("/etc/passwd").unwrap();
        });
    }

    #[test]
    fn what_git_starts_is_confined_too() {
        confined(Kind::Git, |base| {
            std::fs::write(base.join("in/file"), "x").unwrap();
            assert!(run("/bin/cat", &base.join("in/file")));
            assert!(!run("/bin/cat", &base.join("out/secret")));
            assert!(!run("/bin/cat", Path::new("/etc/shadow")));
            assert!(!run("/usr/bin/touch", &base.join("out/new")));
            let program = base.join("in/program");
            std::fs::copy("/bin/true", &program).unwrap();
            assert!(!run(program.to_str().unwrap(), Path::new("")), "what was fetched is not run");
        });
    }

    #[test]
    fn an_operator_can_allow_more() {
        let base = tempfile::tempdir().unwrap();
        let mut request = request(base.path());
        let out = base.path().join("out");
        std::fs::create_dir(base.path().join("made")).unwrap();
        for given in [format!("d:r:{}", out.display()), format!("d:wc:{}/made", base.path().display())] {
            request.limits.extra_paths.push(given.parse().unwrap());
        }
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| match confine(&request, Kind::Http).unwrap() {
                Confinement::Missing => eprintln!("skipped: the kernel has no Landlock"),
                _ => {
                    std::fs::read(out.join("secret")).unwrap();
                    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
                    assert!(std::fs::write(out.join("new"), "x").is_err());
                    let made = base.path().join("made/file");
                    std::fs::write(&made, "x").unwrap();
                    assert!(std::fs::read(&made).is_err());
                    std::fs::remove_file(&made).unwrap();
                }
            });
            confined.join().unwrap();
        });
        for wrong in ["", "d:/opt", "x:r:/opt", "f:rq:/opt", "d:r:opt"] {
            assert!(wrong.parse::<ExtraPath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_operator_can_do_without() {
        let base = tempfile::tempdir().unwrap();
        let mut request = request(base.path());
        request.limits.disable_filesystem_isolation = true;
        assert_eq!(confine(&request, Kind::Http).unwrap(), Confinement::Disabled);
        std::fs::read(base.path().join("out/secret")).unwrap();
    }
}
