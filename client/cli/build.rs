//! The revision and the date of the build, for `version`.
//!
//! Both are those of the commit, so that the same sources make the same program; `SOURCE_DATE_EPOCH`, `SOJOURN_REVISION`
//! and `SOJOURN_BUILD_DATE` say otherwise. Sources without a repository have neither.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["SOURCE_DATE_EPOCH", "SOJOURN_REVISION", "SOJOURN_BUILD_DATE"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    fold_identical_functions();
    let root = repository();
    if let Some(root) = &root {
        watch(root);
    }
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let of_commit = |what: &[&str]| root.as_ref().and_then(|root| git(root, what));
    let revision = given("SOJOURN_REVISION").or_else(|| of_commit(&["rev-parse", "HEAD"]));
    let seconds = given("SOURCE_DATE_EPOCH").or_else(|| of_commit(&["log", "-1", "--format=%ct"]));
    let date = seconds.and_then(|text| text.parse().ok()).map(rfc3339);
    let date = given("SOJOURN_BUILD_DATE").or(date);
    for (name, value) in [("SOJOURN_REVISION", revision), ("SOJOURN_BUILD_DATE", date)] {
        if let Some(value) = value {
            println!("cargo::rustc-env={name}={value}");
        }
    }
}

/// Of what is compiled for each type anew, much is the same code. Only the program that is made to be small is linked so, and
/// only where Rust brings the linker that can.
fn fold_identical_functions() {
    let is =
        |name: &str, wanted: &[&str]| std::env::var(name).is_ok_and(|value| wanted.contains(&value.as_str()));
    let has_lld = is("CARGO_CFG_TARGET_ARCH", &["x86_64"])
        && is("CARGO_CFG_TARGET_OS", &["linux"])
        && is("CARGO_CFG_TARGET_ENV", &["gnu"]);
    if has_lld && is("OPT_LEVEL", &["s", "z"]) {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// The directory of the sources, if they are a repository of their own and not unpacked into another one.
fn repository() -> Option<PathBuf> {
    let own = Path::new(&std::env::var("CARGO_MANIFEST_DIR").ok()?).join("../..").canonicalize().ok()?;
    let top = PathBuf::from(git(&own, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    (own == top).then_some(own)
}

/// A commit moves the branch, and another branch moves `HEAD`.
fn watch(root: &Path) {
    let mut files = vec!["HEAD".to_string(), "packed-refs".to_string()];
    files.extend(git(root, &["symbolic-ref", "-q", "HEAD"]));
    for file in files {
        if let Some(path) = git(root, &["rev-parse", "--git-path", &file]).map(|path| root.join(path))
            && path.exists()
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// Seconds since 1970, in UTC.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        (year, day) = (year + 1, day - length);
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        (month, day) = (month + 1, day - length);
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}
