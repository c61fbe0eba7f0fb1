use model::event::{JobVersionTagged, JobVersionUntagged};
use model::{JobKey, Rejection};
use state::State;

use super::decide::known;
use crate::decision::Decision;

/// Versions of one job that may have a name: each of them is kept.
pub const TAGS_MAX: usize = 64;

/// Longest description of a tag, in characters.
pub const DESCRIPTION_MAX: usize = 1000;

/// Names a version, the newest if none is given. A version that has a name gets this one instead.
///
/// # Errors
/// [`Rejection::JobRefused`]: no such version, or another one has this name.
pub fn tag(
    state: &State,
    key: &JobKey,
    version: Option<u64>,
    name: &str,
    description: &str,
) -> Result<Decision, Rejection> {
    let refused = |why: String| Err(Rejection::JobRefused(why));
    let job = known(state, key)?;
    let version = version.unwrap_or_else(|| job.current().version);
    if job.version(version).is_none() {
        return refused(format!("job {:?} at version {version} not found", key.id));
    }
    if name.is_empty() {
        return refused("tag name required".to_string());
    }
    if description.chars().count() > DESCRIPTION_MAX {
        return refused(format!("Description: expected at most {DESCRIPTION_MAX} characters"));
    }
    if job.tagged(name).is_some_and(|other| other != version) {
        return refused(format!("tag {name:?} already exists on a different version of job {:?}", key.id));
    }
    let tagged = job.versions.iter().filter(|version| job.tag(version.version).is_some()).count();
    if tagged >= TAGS_MAX && job.tag(version).is_none() {
        return refused(format!("{TAGS_MAX} versions of job {:?} are tagged already", key.id));
    }
    if job.tag(version).is_some_and(|tag| tag.name == name && tag.description == description) {
        return Ok(Decision::nothing());
    }
    let (name, description) = (name.to_string(), description.to_string());
    Ok(JobVersionTagged { key: key.clone(), version, name, description }.into())
}

/// # Errors
/// [`Rejection::JobRefused`] if no version has that name.
pub fn untag(state: &State, key: &JobKey, name: &str) -> Result<Decision, Rejection> {
    let job = known(state, key)?;
    if job.tagged(name).is_none() {
        return Err(Rejection::JobRefused(format!("tag {name:?} not found for job {:?}", key.id)));
    }
    Ok(JobVersionUntagged { key: key.clone(), name: name.to_string() }.into())
}
