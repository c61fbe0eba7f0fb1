//! An inventory as a folder of files.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::names::file_name;
use crate::object::{JobCopy, Object};
use crate::read::Inventory;
use crate::script::Script;

/// For its owner alone: variables are secrets, and jobs may hold some.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const SCRIPT_MODE: u32 = 0o700;

/// Why a folder was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{} is not empty: name a folder that is new or empty", .0.display())]
    NotEmpty(PathBuf),
    #[error("{} cannot be written: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Writes a file for each object, the source of each job that has one, and `apply.sh`. Gives how many files there are.
///
/// # Errors
/// When there is something in the folder already, or a file cannot be written: then the folder is not complete.
pub fn export(inventory: &Inventory, folder: &Path) -> Result<usize, ExportError> {
    let mut writer = Writer { folder, files: 0 };
    writer.open()?;
    let mut script = Script::new();
    for object in &inventory.objects {
        let file = path(object);
        match object {
            Object::Policy(policy) => writer.text(&file, &policy.rules, FILE_MODE)?,
            Object::Job(copy) => writer.job(&file, object.content(), copy)?,
            _ => writer.json(&file, &object.content())?,
        }
        script.add(object, &file);
    }
    writer.text("apply.sh", &script.finish(), SCRIPT_MODE)?;
    Ok(writer.files)
}

/// Where an object's file is, from the folder.
fn path(object: &Object) -> String {
    let (namespace, name) = (file_name(object.namespace()), file_name(object.name()));
    match object {
        Object::Namespace(_) => format!("namespaces/{name}.json"),
        Object::NodePool(_) => format!("node-pools/{name}.json"),
        Object::Policy(_) => format!("acl-policies/{name}.hcl"),
        Object::Role(_) => format!("acl-roles/{name}.json"),
        Object::Variable(_) => format!("variables/{namespace}/{name}.json"),
        Object::Scheduler(_) => "scheduler.json".to_string(),
        Object::Job(_) => format!("jobs/{namespace}/{name}.json"),
    }
}

struct Writer<'a> {
    folder: &'a Path,
    files: usize,
}

impl Writer<'_> {
    /// Makes the folder, or takes an empty one.
    fn open(&self) -> Result<(), ExportError> {
        let failed = |source| ExportError::Write { path: self.folder.to_path_buf(), source };
        match std::fs::read_dir(self.folder).map(Iterator::count) {
            Ok(0) => {}
            Ok(_) => return Err(ExportError::NotEmpty(self.folder.to_path_buf())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(self.folder).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        std::fs::set_permissions(self.folder, Permissions::from_mode(FOLDER_MODE)).map_err(failed)
    }

    /// A job as `job run -json` takes it, and what it was registered with: its source, values of `-var` and of `-var-file`.
    fn job(&mut self, file: &str, mut job: Value, copy: &JobCopy) -> Result<(), ExportError> {
        if copy.is_stopped() {
            job["Stop"] = Value::Bool(true);
        }
        self.json(file, &json!({ "Job": job }))?;
        let Some(submission) = &copy.submission else { return Ok(()) };
        let stem = file.strip_suffix(".json").unwrap_or(file);
        if submission.format == "hcl2" {
            self.text(&format!("{stem}.nomad.hcl"), &submission.source, FILE_MODE)?;
        }
        if !submission.variables.is_empty() {
            self.text(&format!("{stem}.vars.hcl"), &submission.variables, FILE_MODE)?;
        }
        if !submission.variable_flags.is_empty() {
            self.json(&format!("{stem}.var-flags.json"), &json!(submission.variable_flags))?;
        }
        Ok(())
    }

    fn json(&mut self, file: &str, value: &Value) -> Result<(), ExportError> {
        self.text(file, &format!("{value:#}\n"), FILE_MODE)
    }

    fn text(&mut self, file: &str, text: &str, mode: u32) -> Result<(), ExportError> {
        let path = self.folder.join(file);
        let failed = |source| ExportError::Write { path: path.clone(), source };
        let parent = path.parent().unwrap_or(self.folder);
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(parent).map_err(failed)?;
        let mut new = OpenOptions::new();
        // Two objects never share a file, nor does anything follow a link.
        let mut opened = new.write(true).create_new(true).mode(mode).open(&path).map_err(failed)?;
        opened.write_all(text.as_bytes()).map_err(failed)?;
        self.files += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api::Variable;
    use model::document::{Job, JobSubmission};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn hostile_names_stay_in_the_folder_and_secrets_are_their_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("out");
        let variable = Variable { namespace: "..".into(), path: "../../x".into(), ..Variable::default() };
        let job = Job {
            id: Some("../a".into()),
            namespace: Some("default".into()),
            version: Some(3),
            ..Job::default()
        };
        let source = JobSubmission {
            source: "job \"../a\" {}".into(),
            format: "hcl2".into(),
            variables: "x = 1".into(),
            ..JobSubmission::default()
        };
        let copy = JobCopy { job, submission: Some(source), unknown: Vec::new() };
        let objects = vec![Object::Variable(variable), Object::Job(Box::new(copy))];
        let inventory = Inventory { objects, ..Inventory::default() };
        assert_eq!(export(&inventory, &folder).unwrap(), 5);

        let secret = folder.join("variables/~2E./~2E.~2F..~2Fx.json");
        assert_eq!((mode(&secret), mode(&folder), mode(secret.parent().unwrap())), (0o600, 0o700, 0o700));
        assert_eq!(mode(&folder.join("apply.sh")), 0o700);
        let job = std::fs::read_to_string(folder.join("jobs/default/~2E.~2Fa.json")).unwrap();
        let job: Value = serde_json::from_str(&job).unwrap();
        assert_eq!((&job["Job"]["ID"], job["Job"].get("Version")), (&json!("../a"), None));
        assert!(folder.join("jobs/default/~2E.~2Fa.nomad.hcl").is_file());
        assert!(folder.join("jobs/default/~2E.~2Fa.vars.hcl").is_file());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_empty_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("mine"), "x").unwrap();
        let error = export(&Inventory::default(), directory.path()).unwrap_err();
        assert!(error.to_string().ends_with("is not empty: name a folder that is new or empty"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
