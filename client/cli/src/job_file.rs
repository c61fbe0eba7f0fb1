//! Job files, for `job run`, `job plan` and `job validate`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use jobspec::{Files, Parsed, Source, Variables};
use model::document::{JobSubmission, Map};

use crate::call::{Call, Doing, Failure};
use crate::flags::{Completion, Flag, FlagList};

const JSON: Flag<bool> =
    Flag::switch("json", "The file is JSON: a job as the API takes it, or HCL in its JSON form.");
pub(crate) const HCL2_STRICT: Flag<bool> =
    Flag::switch("hcl2-strict", "Reject values for variables that the file does not declare. Default: true.");
pub(crate) const VAR: Flag<Vec<String>> =
    Flag::values("var", "NAME=VALUE", "The value of a variable; may be repeated. Also NOMAD_VAR_name.");
pub(crate) const VAR_FILE: Flag<Vec<String>> =
    Flag::values("var-file", "FILE", "A file with values of variables; may be repeated.")
        .completed_by(Completion::Files);

/// Flags of every command that reads a job file.
pub(crate) const JOB_FILE_FLAGS: FlagList = &[&JSON, &HCL2_STRICT, &VAR, &VAR_FILE];

/// A job and its source.
pub(crate) struct JobFile {
    pub parsed: Parsed,
    pub submission: JobSubmission,
}

impl JobFile {
    /// Where its blocks stand.
    pub(crate) fn outline(&self) -> Vec<jobspec::Part> {
        // It was parsed just now.
        jobspec::outline(&Source::new("", self.submission.source.clone())).unwrap_or_default()
    }
}

/// Files that a job file names, relative to the directory the program was called in.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        let mut open = vec![PathBuf::from(folder)];
        while let Some(next) = open.pop() {
            let wrong = |error: io::Error| format!("cannot list {}: {error}", next.display());
            for entry in std::fs::read_dir(&next).map_err(wrong)? {
                let entry = entry.map_err(wrong)?;
                let path = entry.path();
                // Links to directories are not followed: they may form a cycle.
                if entry.file_type().map_err(wrong)?.is_dir() {
                    open.push(path);
                } else if path.is_file() {
                    let below = path.strip_prefix(folder).unwrap_or(&path);
                    found.push(below.to_string_lossy().into_owned());
                }
            }
        }
        Ok(found)
    }

    fn absolute(&self, path: &str) -> Result<String, String> {
        let whole = std::path::absolute(path).map_err(|error| format!("{path}: {error}"))?;
        let mut clean = PathBuf::new();
        for part in whole.components() {
            match part {
                std::path::Component::ParentDir => drop(clean.pop()),
                other => clean.push(other),
            }
        }
        Ok(clean.to_string_lossy().into_owned())
    }

    fn home(&self) -> Option<String> {
        std::env::home_dir().map(|home| home.to_string_lossy().into_owned())
    }

    fn random(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    }
}

/// Reads the job file that the call names; `-` is standard input, and `http://…` and `https://…` are fetched.
///
/// # Errors
/// When a file cannot be read, or is no valid job file: then each problem is reported with its position.
pub(crate) async fn load(call: &Call, path: &str) -> Result<JobFile, Failure> {
    load_as(call, path, call.args.switch(&JSON)).await
}

/// As [`load`], for commands of which `-json` is the output. A file is JSON if it is called so, or `json` says that.
///
/// # Errors
/// As for [`load`].
pub(crate) async fn load_as(call: &Call, path: &str, json: bool) -> Result<JobFile, Failure> {
    let source = match path.split_once("://") {
        None => read_source(path)?,
        Some(("http" | "https", _)) => Source::new(path, sdk::fetch(path).await.doing("getting job file")?),
        Some((kind, _)) => {
            let why = format!("{path}: job files are not fetched over {kind}: download it first");
            return Err(anyhow::anyhow!(why).into());
        }
    };
    let variables = variables(call)?;
    let json = json
        || Path::new(path.split('?').next().unwrap_or(path)).extension().is_some_and(|kind| kind == "json");
    let parse = if json { jobspec::parse_json } else { jobspec::parse };
    let parsed = parse(&source, &variables, &Disk)
        .map_err(|wrong| anyhow::anyhow!("Error getting job struct: the job file is not valid\n\n{wrong}"))?;
    let submission = JobSubmission {
        source: source.text,
        format: if json { "json" } else { "hcl2" }.to_string(),
        variable_flags: variables.flags.into_iter().collect::<Map<_, _>>(),
        variables: variables.files.into_iter().map(|file| file.text).collect::<Vec<_>>().join("\n"),
        ..JobSubmission::default()
    };
    Ok(JobFile { parsed, submission })
}

/// A file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read_source(path: &str) -> anyhow::Result<Source> {
    if path == "-" {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).context("cannot read the job from standard input")?;
        return Ok(Source::new("<stdin>", text));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(Source::new(path, text))
}

/// Writes a new file.
///
/// # Errors
/// When it exists already, or cannot be written.
pub(crate) fn write_new(path: &str, text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => anyhow::anyhow!("{path} is there already: name another file"),
        _ => anyhow::anyhow!("{path} cannot be written: {error}"),
    })?;
    Ok(())
}

fn variables(call: &Call) -> anyhow::Result<Variables> {
    let flags = call.args.values(&VAR).iter().map(|given| {
        let (name, value) =
            given.split_once('=').with_context(|| format!("-var {given}: expected NAME=VALUE"))?;
        Ok((name.trim().to_string(), value.to_string()))
    });
    let files = call.args.values(&VAR_FILE).iter().map(PathBuf::from).map(|path| {
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Source::new(path.display().to_string(), text))
    });
    let prefixed =
        |(name, value): (&String, &String)| (format!("{}{name}", jobspec::ENVIRONMENT_PREFIX), value.clone());
    Ok(Variables {
        flags: flags.collect::<anyhow::Result<_>>()?,
        files: files.collect::<anyhow::Result<_>>()?,
        env: call.environment.variables.iter().map(prefixed).collect(),
        text: None,
        strict: call.args.given_switch(&HCL2_STRICT).unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::flags;

    const FILE: &str = r#"
variable "image" {
  type = string
}

job "web" {
  group "api" {
    task "main" {
      driver = "raw_exec"
      config {
        command = var.image
      }
    }
  }
}
"#;

    fn waited<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
    }

    fn call(arguments: &[&str]) -> Call {
        let arguments: Vec<String> = arguments.iter().map(|word| word.to_string()).collect();
        let args = flags::parse(flags::specs(&[JOB_FILE_FLAGS]), &arguments).unwrap();
        let mut environment = Environment::default();
        environment.variables.insert("image".into(), "from-environment".into());
        let command = &crate::command::version::COMMAND;
        Call { program: "sojourn".into(), command, args, environment, frozen: None }
    }

    #[test]
    fn flags_win_over_the_environment_and_are_submitted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.nomad.hcl");
        std::fs::write(&path, FILE).unwrap();
        let command = |call: Call| {
            let file = waited(load(&call, path.to_str().unwrap())).unwrap();
            let command = file.parsed.job.task_groups[0].tasks[0].config["command"].clone();
            (command, file.submission.variable_flags.len(), file.submission.format)
        };
        assert_eq!(command(call(&[])), ("from-environment".into(), 0, "hcl2".into()));
        assert_eq!(command(call(&["-var", "image=/bin/true"])), ("/bin/true".into(), 1, "hcl2".into()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let message = |path| match waited(load(&call(&[]), path)) {
            Err(Failure::Failed(error)) => format!("{error:#}"),
            _ => panic!("expected a failure"),
        };
        assert!(message("/nowhere/x.hcl").starts_with("cannot read /nowhere/x.hcl: "));
        assert!(message("s3://example.com/x.hcl").contains("not fetched over s3: download it first"));
        assert!(message("http://127.0.0.1:1/x.hcl").starts_with("Error getting job file: "));
    }
}
