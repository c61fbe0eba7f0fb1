//! House rules that a compiler does not know: who may use whom, what stays pure, what must not be said.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The floors of the map in docs/architecture.md. A crate uses lower floors only.
const FLOORS: [(&str, u8); 48] = [
    ("base", 0),
    ("ui", 0),
    ("msgpack", 0),
    ("filter", 0),
    ("template", 0),
    ("executor", 0),
    ("grpc", 0),
    ("tls", 0),
    ("aws-signature", 0),
    ("model", 1),
    ("artifact", 1),
    ("csi", 1),
    ("journal", 2),
    ("state", 2),
    ("api", 2),
    ("jobspec", 2),
    ("wire", 2),
    ("delivery", 2),
    ("raft", 3),
    ("metrics", 3),
    ("monitor", 3),
    ("rules", 3),
    ("history", 3),
    ("feed", 3),
    ("federation", 3),
    ("keyring", 3),
    ("acl", 3),
    ("login", 3),
    ("sdk", 3),
    ("listener", 3),
    ("plugin", 3),
    ("bucket", 3),
    ("fake-network", 4),
    ("test-world", 4),
    ("placement", 4),
    ("node", 4),
    ("audit", 4),
    ("migrate", 4),
    ("control", 5),
    ("agent-http", 5),
    ("recorder", 5),
    ("load", 5),
    ("http-gateway", 6),
    ("sinks", 6),
    ("server", 7),
    ("sojourn", 8),
    ("plan-bench", 8),
    ("sim", 8),
];

/// No clock, no chance, no I/O: these crates may not even name a way to it.
const PURE: [&str; 11] = [
    "base",
    "model",
    "state",
    "rules",
    "placement",
    "acl",
    "api",
    "federation",
    "filter",
    "jobspec",
    "msgpack",
];
const POWERS: [&str; 8] = ["tokio", "axum", "openraft", "fjall", "reqwest", "getrandom", "rustix", "nix"];

/// Longest source file. Past it, look for the seam.
const LINES_MAX: usize = 600;

#[test]
fn every_crate_uses_lower_floors_only() {
    let floors: BTreeMap<&str, u8> = FLOORS.into_iter().collect();
    let manifests = manifests();
    assert_eq!(manifests.len(), FLOORS.len(), "every crate has its floor");
    for (name, manifest) in &manifests {
        let floor = floors[name.as_str()];
        for used in dependencies(manifest).iter().filter_map(|used| floors.get_key_value(used.as_str())) {
            assert!(*used.1 < floor, "{name} on floor {floor} uses {} on floor {}", used.0, used.1);
        }
    }
}

#[test]
fn pure_crates_name_no_power() {
    let manifests = manifests();
    for name in PURE {
        let used = dependencies(&manifests[name]);
        let power = POWERS.iter().find(|power| used.iter().any(|used| used == *power));
        assert_eq!(power, None, "{name} is pure");
    }
}

#[test]
fn every_shared_dependency_says_what_it_is_for() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, table) = manifest.split_once("[workspace.dependencies]").unwrap();
    let (table, _) = table.split_once("\n[").unwrap();
    let mut said = false;
    for line in table.lines() {
        if line.trim().is_empty() {
            said = false;
        } else if line.starts_with('#') {
            said = true;
        } else {
            assert!(said, "no word what it is for: {line}");
        }
    }
}

#[test]
fn no_file_is_too_long_to_hold_in_mind() {
    let mut long: Vec<String> = Vec::new();
    for file in sources(&root()) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        if lines > LINES_MAX {
            long.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Each crate's manifest by its name.
fn manifests() -> BTreeMap<String, String> {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = workspace.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let paths = members.split(',').map(|path| path.trim().trim_matches('"')).filter(|path| !path.is_empty());
    let read = |path: &str| std::fs::read_to_string(root().join(path).join("Cargo.toml")).unwrap();
    let named = |text: String| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        (name.trim_matches('"').to_string(), text)
    };
    paths.map(read).map(named).collect()
}

/// What a manifest uses outside tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let (_, rest) = manifest.split_once("[dependencies]").unwrap_or(("", ""));
    let own = rest.split("\n[").next().unwrap_or_default();
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_string();
    own.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(name).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}
