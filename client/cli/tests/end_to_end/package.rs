//! What `client/packaging/build` makes of the program that the tests have built.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::end_to_end::support::{program, sojourn};

/// Runs a program that has to succeed, and gives what it printed.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {printed}{}", String::from_utf8_lossy(&done.stderr));
    printed
}

/// The packages, as files in a directory; `None` where the tools are missing.
fn build(to: &Path) -> Option<Vec<PathBuf>> {
    let tools = ["dpkg-deb", "python3", "objdump", "tar"];
    let is_missing =
        |tool: &&&str| !Command::new(**tool).arg("--version").output().is_ok_and(|v| v.status.success());
    if let Some(tool) = tools.iter().find(is_missing) {
        eprintln!("skipped: {tool} is not installed");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    output(
        Command::new(root.join("client/packaging/build"))
            .args(["--fast", "--program"])
            .arg(sojourn())
            .arg("--output")
            .arg(to)
            .env("SOURCE_DATE_EPOCH", "1767323045")
            .env("CARGO_NET_OFFLINE", "true"),
    );
    let mut files: Vec<PathBuf> = to.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    Some(files)
}

fn named(files: &[PathBuf], end: &str) -> PathBuf {
    files.iter().find(|file| file.to_string_lossy().ends_with(end)).expect(end).clone()
}

#[test]
fn packages_are_whole_and_the_same_twice() {
    let directory = tempfile::tempdir().unwrap();
    let Some(files) = build(&directory.path().join("one")) else { return };
    let again = build(&directory.path().join("two")).unwrap();
    let sums = std::fs::read_to_string(named(&files, "SHA256SUMS")).unwrap();
    assert_eq!(sums, std::fs::read_to_string(named(&again, "SHA256SUMS")).unwrap(), "the same bytes twice");
    assert_eq!(sums.lines().count(), 3);
    output(
        Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(directory.path().join("one")),
    );

    debian_package(directory.path(), &named(&files, ".deb"));
    image(directory.path(), &named(&files, ".oci.tar"));
    components(&named(&files, ".cdx.json"));
}

fn debian_package(directory: &Path, package: &Path) {
    let root = directory.join("root");
    output(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    let version = output(program(&root.join("usr/bin/sojourn")).arg("version"));
    assert!(version.contains("v0."), "{version}");
    let fields = output(Command::new("dpkg-deb").arg("-f").arg(package));
    assert!(fields.contains("Depends: libc6 (>= 2."), "{fields}");
    for file in [
        "usr/share/man/man1/sojourn-job-run.1.gz",
        "usr/share/bash-completion/completions/sojourn",
        "usr/lib/sysusers.d/sojourn.conf",
        "usr/share/doc/sojourn/copyright",
    ] {
        assert!(root.join(file).is_file(), "{file}");
    }

    // Configurations that an agent reads; only their owner and the server may.
    for name in ["client", "server"] {
        let file = root.join(format!("etc/sojourn.d/{name}.hcl"));
        output(program(&sojourn()).args(["config", "validate"]).arg(&file));
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }

    // Nothing that runs at installation starts or enables a unit.
    let scripts = directory.join("scripts");
    output(Command::new("dpkg-deb").arg("-e").arg(package).arg(&scripts));
    for name in ["postinst", "postrm"] {
        output(Command::new("sh").arg("-n").arg(scripts.join(name)));
        let text = std::fs::read_to_string(scripts.join(name)).unwrap();
        for word in ["start", "enable"] {
            let acts = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            assert!(!acts.clone().any(|line| line.contains(word)), "{name}: {word}");
        }
    }
    let units = ["sojourn.service", "sojourn-server.service"]
        .map(|unit| root.join("usr/lib/systemd/system").join(unit));
    for unit in &units {
        assert!(std::fs::read_to_string(unit).unwrap().contains("\nKillMode=process\n"));
    }
    match Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .arg("--root")
        .arg(&root)
        .args(&units)
        .output()
    {
        Ok(verified) => {
            let said = String::from_utf8_lossy(&verified.stderr);
            // What the package needs of a system is not in its own directory.
            let absent = |line: &&str| {
                line.contains(".target not found") || line.contains("/bin/kill is not executable")
            };
            let ours: Vec<&str> =
                said.lines().filter(|line| line.contains("sojourn") && !absent(line)).collect();
            assert!(ours.is_empty(), "{said}");
        }
        Err(_) => eprintln!("skipped: systemd-analyze is not installed"),
    }
}

fn image(directory: &Path, image: &Path) {
    let layout = directory.join("image");
    std::fs::create_dir(&layout).unwrap();
    output(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout));
    let blob = |digest: &Value| {
        let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap().to_string();
        let path = layout.join("blobs/sha256").join(&digest);
        let sum = output(Command::new("sha256sum").arg(&path));
        assert!(sum.starts_with(&digest), "{sum}");
        path
    };
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    let manifest = read(blob(&read(layout.join("index.json"))["manifests"][0]["digest"]));
    let config = read(blob(&manifest["config"]["digest"]));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/sojourn");
    let layer = blob(&manifest["layers"][0]["digest"]);
    let root = directory.join("image-root");
    std::fs::create_dir(&root).unwrap();
    output(Command::new("tar").arg("-xzf").arg(layer).arg("-C").arg(&root));
    if rustix::process::geteuid().is_root() {
        // The layer alone is enough to run it.
        let version = output(Command::new("chroot").arg(&root).args(["/usr/bin/sojourn", "version"]));
        assert!(version.contains("v0."), "{version}");
    }
    if Command::new("podman").arg("--version").output().is_ok() {
        let loaded = output(Command::new("podman").args(["load", "-i"]).arg(image));
        assert!(loaded.contains("sojourn"), "{loaded}");
    }
}

fn components(bom: &Path) {
    let bom: Value = serde_json::from_slice(&std::fs::read(bom).unwrap()).unwrap();
    assert_eq!(
        (&bom["bomFormat"], &bom["metadata"]["component"]["name"]),
        (&"CycloneDX".into(), &"sojourn".into())
    );
    let all = bom["components"].as_array().unwrap();
    let has = |name: &str| all.iter().any(|component| component["name"] == name);
    assert!(has("openraft") && has("server") && !has("test-world"), "{} components", all.len());
    let from_elsewhere = all.iter().find(|component| component["name"] == "openraft").unwrap();
    assert_eq!(from_elsewhere["hashes"][0]["alg"], "SHA-256");
}
