//! Finds the object that a shortened id or name refers to.

use api::{JobListStub, NodeListStub};
use model::document::{AllocationListStub, Deployment, Evaluation};
use sdk::{Client, Query};

use crate::call::{Doing, Failure};
use crate::layout;
use crate::output::OutputStyle;

/// Most jobs that are requested for a prefix: enough to choose from.
const JOBS_MAX: u32 = 20;

/// Length of a full id: it needs no lookup.
pub(crate) const WHOLE_ID: usize = 36;

/// The start of an id as servers look it up: whole bytes, so an odd last digit is left out.
///
/// # Errors
/// `short` when only one character was given: that would match one thing in sixteen.
pub(crate) fn prefix<'a>(id: &'a str, short: &str) -> Result<&'a str, Failure> {
    if id.chars().count() < 2 {
        return Err(anyhow::anyhow!("{short} must contain at least two characters.").into());
    }
    let digits = id.chars().filter(|c| *c != '-').count();
    if digits % 2 == 0 || !id.is_ascii() { Ok(id) } else { Ok(&id[..id.len() - 1]) }
}

/// What a prefix matched: the caller decides what more than one match, or none, means.
pub(crate) enum Match<T> {
    One(T),
    Many(Vec<T>),
}

fn narrow<T>(
    mut found: Vec<T>,
    noun: &str,
    given: &str,
    id: impl Fn(&T) -> &str,
) -> Result<Match<T>, Failure> {
    found.retain(|item| id(item).starts_with(given));
    if let Some(exact) = found.iter().position(|item| id(item) == given) {
        return Ok(Match::One(found.swap_remove(exact)));
    }
    match found.len() {
        0 => Err(anyhow::anyhow!("No {noun}(s) with prefix or id \"{given}\" found").into()),
        1 => Ok(Match::One(found.remove(0))),
        _ => Ok(Match::Many(found)),
    }
}

/// Fails with the list of candidates.
fn ambiguous<T>(things: &str, table: &str) -> Result<T, Failure> {
    Err(Failure::Code(1, format!("Prefix matched multiple {things}\n\n{}", table.trim_end())))
}

/// Allocations that begin with `id`.
///
/// # Errors
/// When there are none, or the request fails.
pub(crate) async fn allocations(client: &Client, id: &str) -> Result<Match<AllocationListStub>, Failure> {
    let prefix = prefix(id, "Alloc ID")?;
    let found = client.allocations(Query::new().prefix(prefix)).await.doing("querying allocation")?;
    narrow(found.value, "allocation", id, |alloc| &alloc.id)
}

/// The allocation that begins with `id`.
///
/// # Errors
/// When there are none or several, or the request fails.
pub(crate) async fn allocation(
    client: &Client,
    style: &OutputStyle,
    id: &str,
) -> Result<AllocationListStub, Failure> {
    match allocations(client, id).await? {
        Match::One(alloc) => Ok(alloc),
        Match::Many(found) => ambiguous("allocations", &layout::alloc::table(style, &found)),
    }
}

/// The id of the allocation that begins with `id`. One that the servers have forgotten is in their history, which looks
/// it up itself.
///
/// # Errors
/// When there are several, or the request fails.
pub(crate) async fn known_allocation(
    client: &Client,
    style: &OutputStyle,
    id: &str,
) -> Result<String, Failure> {
    if id.len() == WHOLE_ID {
        return Ok(id.to_string());
    }
    let prefix = prefix(id, "Alloc ID")?;
    let found = client.allocations(Query::new().prefix(prefix)).await.doing("querying allocation")?;
    if !found.value.iter().any(|alloc| alloc.id.starts_with(id)) {
        return Ok(id.to_string());
    }
    match narrow(found.value, "allocation", id, |alloc| &alloc.id)? {
        Match::One(alloc) => Ok(alloc.id),
        Match::Many(found) => ambiguous("allocations", &layout::alloc::table(style, &found)),
    }
}

/// The id of the only node of that name, or else of the one that begins so.
///
/// # Errors
/// When there are none or several, or the request fails.
pub(crate) async fn node_or_name(
    client: &Client,
    style: &OutputStyle,
    text: &str,
) -> Result<String, Failure> {
    let mut all = client.nodes(Query::new()).await.doing("querying node info")?.value;
    all.retain(|node| node.name == text);
    match all.as_slice() {
        [] => Ok(node(client, style, text).await?.id),
        [one] => Ok(one.id.clone()),
        _ => ambiguous("nodes", &layout::node::table(style, &all, &layout::node::Columns::default())),
    }
}

/// The node that begins with `id`.
///
/// # Errors
/// When there are none or several, or the request fails.
pub(crate) async fn node(client: &Client, style: &OutputStyle, id: &str) -> Result<NodeListStub, Failure> {
    let prefix = prefix(id, "Identifier")?;
    let found = client.nodes(Query::new().prefix(prefix)).await.doing("querying node info")?;
    match narrow(found.value, "node", id, |node| &node.id)? {
        Match::One(node) => Ok(node),
        Match::Many(found) => {
            ambiguous("nodes", &layout::node::table(style, &found, &layout::node::Columns::default()))
        }
    }
}

/// The evaluation that begins with `id`.
///
/// # Errors
/// When there are none or several, or the request fails.
pub(crate) async fn evaluation(
    client: &Client,
    style: &OutputStyle,
    id: &str,
) -> Result<Evaluation, Failure> {
    let prefix = prefix(id, "Identifier")?;
    let found = client.evaluations(Query::new().prefix(prefix)).await.doing("querying evaluation")?;
    match narrow(found.value, "evaluation", id, |eval| &eval.id)? {
        Match::One(eval) => Ok(eval),
        Match::Many(found) => ambiguous("evaluations", &layout::eval::table(style, &found)),
    }
}

/// The deployment that begins with `id`.
///
/// # Errors
/// When there are none or several, or the request fails.
pub(crate) async fn deployment(
    client: &Client,
    style: &OutputStyle,
    id: &str,
) -> Result<Deployment, Failure> {
    if id.len() == 36 {
        return Ok(client.deployment(id, Query::new()).await.doing("retrieving deployment")?.value);
    }
    let mut found = client
        .deployments(Query::new().prefix(prefix(id, "Identifier")?))
        .await
        .doing("retrieving deployment")?
        .value;
    found.retain(|deployment| deployment.id.starts_with(id));
    match found.len() {
        0 => Err(anyhow::anyhow!("Deployment ID \"{id}\" matched no deployments").into()),
        1 => Ok(found.remove(0)),
        _ => ambiguous("deployments", &layout::deployment::table(style, &found)),
    }
}

/// The job that `id` names or begins: its namespace and id.
///
/// # Errors
/// When there are none or several, or the request fails. A token that may not list jobs may still read
/// one, so then the id is used as it is.
pub(crate) async fn job(client: &Client, style: &OutputStyle, id: &str) -> Result<(String, String), Failure> {
    job_that(client, style, id, "").await
}

/// As [`job`], among those that `filter` is true of.
///
/// # Errors
/// As [`job`].
pub(crate) async fn job_that(
    client: &Client,
    style: &OutputStyle,
    id: &str,
    filter: &str,
) -> Result<(String, String), Failure> {
    // An empty prefix would match every job.
    if id.is_empty() {
        return Err(anyhow::anyhow!("The name of a job must not be empty").into());
    }
    let query = Query::new().prefix(id).with("per_page", JOBS_MAX).with("filter", filter);
    let found = match client.jobs(query).await {
        Err(error) if error.status() == Some(403) => {
            return Ok((client.namespace().to_string(), id.to_string()));
        }
        found => found.doing("querying job prefix")?.value,
    };
    choose_job(client.namespace() == "*", id, found).map_err(|found| match found.as_slice() {
        [] => anyhow::anyhow!("No job(s) with prefix or ID \"{id}\" found").into(),
        found => Failure::Code(
            1,
            format!(
                "Prefix \"{id}\" matched multiple jobs\n\n{}\n(results may be truncated)",
                layout::job::table(style, found, client.namespace() == "*").trim_end()
            ),
        ),
    })
}

/// The only match, or the exact one if no other namespace has one of the same name; else the choice.
fn choose_job(
    all_namespaces: bool,
    id: &str,
    found: Vec<JobListStub>,
) -> Result<(String, String), Vec<JobListStub>> {
    let exact = found.iter().filter(|job| job.id == id).count();
    let decided = found.len() == 1 || (exact > 0 && (!all_namespaces || exact == 1));
    match found.iter().find(|job| job.id == id).or(found.first()) {
        Some(job) if decided => Ok((job.namespace.clone(), job.id.clone())),
        _ => Err(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_last_digit_is_not_sent() {
        let asked = |id| prefix(id, "Alloc ID").unwrap();
        assert_eq!(asked("ab"), "ab");
        assert_eq!(asked("abc"), "ab");
        assert_eq!(asked("5d16e7fe-8"), "5d16e7fe-");
        assert_eq!(asked("5d16e7fe-8a"), "5d16e7fe-8a");
        assert!(prefix("a", "Alloc ID").is_err());
    }

    #[test]
    fn the_last_digit_still_filters_the_matches() {
        let found = || vec!["abc1".to_string(), "abd1".to_string()];
        let one = narrow(found(), "node", "abc", String::as_str).ok();
        assert!(matches!(one, Some(Match::One(id)) if id == "abc1"));
        let many = narrow(found(), "node", "ab", String::as_str).ok();
        assert!(matches!(many, Some(Match::Many(ids)) if ids.len() == 2));
        assert!(narrow(found(), "node", "b", String::as_str).is_err());
    }

    #[test]
    fn an_exact_name_wins_unless_two_namespaces_have_it() {
        let stub = |namespace: &str, id: &str| JobListStub {
            namespace: namespace.into(),
            id: id.into(),
            ..JobListStub::default()
        };
        let web = ("default".to_string(), "web".to_string());
        assert_eq!(
            choose_job(false, "web", vec![stub("default", "web"), stub("default", "web2")]),
            Ok(web.clone())
        );
        assert_eq!(choose_job(false, "we", vec![stub("default", "web")]), Ok(web.clone()));
        assert_eq!(choose_job(true, "web", vec![stub("default", "web"), stub("a", "web2")]), Ok(web));
        assert!(choose_job(true, "web", vec![stub("default", "web"), stub("a", "web")]).is_err());
        assert!(choose_job(false, "we", vec![stub("default", "web"), stub("default", "web2")]).is_err());
        assert!(choose_job(false, "we", vec![]).is_err());
    }
}
