//! Job files of every kind: each is read, completed and judged; of some the canonical form is kept (`data/golden`).
//!
//! With `WRITE_GOLDEN=1` in the environment the kept forms are written anew, for a person to read.

use std::path::{Path, PathBuf};

use jobspec::{
    Source, Variables, apply_defaults, canonicalize, client_form, imply_constraints, parse, validate,
};
use model::document::Job;
use serde_json::Value;

/// What servers refuse although the language has it.
const REFUSED: [(&str, &[&str]); 1] = [("schedule", &["task schedules are not supported"])];

/// Jobs whose canonical form is kept.
const GOLDEN: [&str; 24] = [
    "actions-and-ui",
    "autoscaled",
    "change-script",
    "checks-all-kinds",
    "connect-ingress",
    "connect-native-and-sidecar-task",
    "constraints-sugar",
    "csi-mysql",
    "disconnect",
    "disconnect-legacy",
    "docker-rich-config",
    "dynamic-everything",
    "expressions",
    "heredocs",
    "identities",
    "legacy-resources-network",
    "lifecycle-hooks",
    "multiregion",
    "node-exporter",
    "parameterized-encode",
    "periodic-backup",
    "secrets-blocks",
    "update-canary",
    "vault-template",
];

fn data(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(below)
}

/// Name and text of every job file.
pub fn all() -> Vec<(String, String)> {
    let files = std::fs::read_dir(data("jobs")).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<(String, String)> = files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".nomad.hcl").to_string();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn read(name: &str, text: &str) -> Job {
    let parsed = parse(&Source::new(name, text), &Variables::default(), &super::functions::disk());
    parsed.unwrap_or_else(|wrong| panic!("{wrong}")).job
}

#[test]
fn every_job_is_read_completed_and_valid() {
    let all = all();
    assert!(all.len() >= 60, "{} job files", all.len());
    for (name, text) in all {
        let mut job = read(&name, &text);
        canonicalize(&mut job);
        imply_constraints(&mut job);
        let judged = validate(&job);
        let refused =
            REFUSED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, reasons)| reasons);
        assert_eq!(judged.errors.len(), refused.len(), "{name}: {:#?}", judged.errors);
        for (error, reason) in judged.errors.iter().zip(refused) {
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
        let mut again = job.clone();
        canonicalize(&mut again);
        imply_constraints(&mut again);
        assert_eq!(again, job, "{name}: canonical jobs stay as they are");
    }
}

#[test]
fn canonical_forms_stay_as_they_were_read_and_approved() {
    for (name, text) in all() {
        if !GOLDEN.contains(&name.as_str()) {
            continue;
        }
        let mut job = read(&name, &text);
        apply_defaults(&mut job);
        let (form, path) = (client_form(&job), data(&format!("golden/{name}.json")));
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&path, format!("{form:#}\n")).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let kept: Value = serde_json::from_str(&kept).unwrap();
        if let Some(difference) = difference(&form, &kept, "Job") {
            panic!("{name}: {difference}");
        }
    }
}

/// The first place where two values differ.
fn difference(found: &Value, kept: &Value, path: &str) -> Option<String> {
    match (found, kept) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(key, value)| difference(value, &b[key], &format!("{path}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(at, (a, b))| difference(a, b, &format!("{path}[{at}]")))
        }
        _ if found == kept => None,
        _ => Some(format!("{path} is {found:#}, was {kept:#}")),
    }
}

#[test]
fn what_is_parsed_and_printed_is_read_as_the_same_job() {
    for (name, text) in all() {
        let job = read(&name, &text);
        let printed = client_form(&job).to_string();
        let again =
            jobspec::parse_json(&Source::new("j.json", printed), &Variables::default(), &jobspec::NoFiles);
        assert_eq!(again.unwrap().job, job, "{name}");
    }
}
