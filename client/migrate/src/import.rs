//! An inventory written to another cluster, as far as it is not there already.

use std::collections::BTreeMap;
use std::str::FromStr;

use api::{JobPlanRequest, JobRegisterRequest, SchedulerConfiguration, Variable};
use model::document::{ACLRole, Job};
use sdk::{Client, Error, VariableChange};

use crate::compare::differences;
use crate::object::{JobCopy, Kind, Object, label};
use crate::read::{Inventory, Note, Scope};

/// What becomes of jobs. Both clusters would run a job that is registered with the second while the first still has it, so
/// somebody has to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// They are compared and not registered.
    None,
    /// New ones are registered stopped; those that are there go on as they are.
    Stopped,
    /// They are registered, and run unless they are stopped in the cluster they come from.
    Run,
}

impl FromStr for Jobs {
    type Err = ();

    fn from_str(word: &str) -> Result<Jobs, ()> {
        match word {
            "none" => Ok(Jobs::None),
            "stopped" => Ok(Jobs::Stopped),
            "run" => Ok(Jobs::Run),
            _ => Err(()),
        }
    }
}

/// How to import.
#[derive(Clone, Debug)]
pub struct Import {
    pub jobs: Jobs,
    /// Report what would be written, and write nothing.
    pub dry_run: bool,
    /// What was read of the other cluster.
    pub scope: Scope,
}

/// What became of one object, or would in a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Created,
    /// With the paths of what differed.
    Changed(Vec<String>),
    Unchanged,
    /// It is not taken over, and nothing is wrong.
    LeftOut(String),
    Failed(String),
}

/// One object in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub what: String,
    pub change: Change,
    /// What the other cluster does not know of it, or how it was registered; may be empty.
    pub remark: String,
}

/// Writes what `from` has to the cluster of `to`, and reports each object once it is done. One that fails does not keep
/// the others.
///
/// # Errors
/// The cluster cannot be reached.
pub async fn import(
    from: &Inventory,
    to: &Client,
    how: &Import,
    report: &mut dyn FnMut(Line),
) -> Result<(), Error> {
    let to = &to.in_namespace("");
    let there = Inventory::read(to, &how.scope).await?;
    let importer = Importer { to, how, known: by_label(&there), coming: by_label(from) };
    for object in &from.objects {
        let what = object.label();
        let failure = there.failures.iter().find(|failure| failure.what == what).map(|failure| &failure.why);
        let change = match there.unreadable.get(&object.kind()).or(failure) {
            Some(why) => Ok(Change::Failed(format!("it cannot be read where it would be written: {why}"))),
            None => importer.bring(object).await,
        };
        let change = match change {
            Err(error @ (Error::Unreachable { .. } | Error::Address { .. } | Error::Tls(_))) => {
                return Err(error);
            }
            Err(error) => Change::Failed(error.to_string()),
            Ok(change) => change,
        };
        report(Line { what, change, remark: remark(object, how) });
    }
    let unread = from.missed().map(|(kind, why)| (format!("every {}", kind.word()), why));
    let failures = unread.chain(from.failures.iter().map(|Note { what, why }| (what.clone(), why.as_str())));
    for (what, why) in failures {
        report(Line { what, change: Change::Failed(why.to_string()), remark: String::new() });
    }
    for Note { what, why } in from.left_out.iter().cloned() {
        report(Line { what, change: Change::LeftOut(why), remark: String::new() });
    }
    Ok(())
}

fn by_label(inventory: &Inventory) -> BTreeMap<String, &Object> {
    inventory.objects.iter().map(|object| (object.label(), object)).collect()
}

fn remark(object: &Object, how: &Import) -> String {
    let Object::Job(copy) = object else { return String::new() };
    let mut remarks = Vec::new();
    if copy.is_stopped() && how.jobs != Jobs::None {
        remarks.push("stopped there".to_string());
    }
    if !copy.unknown.is_empty() {
        remarks.push(format!("without fields that are not known here: {}", copy.unknown.join(", ")));
    }
    remarks.join("; ")
}

struct Importer<'a> {
    to: &'a Client,
    how: &'a Import,
    /// What is there already, by its label.
    known: BTreeMap<String, &'a Object>,
    /// What is to be there in the end.
    coming: BTreeMap<String, &'a Object>,
}

impl Importer<'_> {
    /// Compares an object with the one that is there, and writes it if they differ.
    async fn bring(&self, object: &Object) -> Result<Change, Error> {
        let known = self.known.get(&object.label()).copied();
        if let Object::Job(copy) = object {
            let known = match known {
                Some(Object::Job(known)) => Some(known.as_ref()),
                _ => None,
            };
            return self.bring_job(copy, known).await;
        }
        let change = match known.map(|known| differences(&known.content(), &object.content())) {
            None => Change::Created,
            Some(paths) if paths.is_empty() => return Ok(Change::Unchanged),
            Some(paths) => Change::Changed(paths),
        };
        if self.how.dry_run {
            return Ok(change);
        }
        Ok(match write(self.to, object, known).await? {
            None => change,
            Some(why) => Change::Failed(why),
        })
    }

    async fn bring_job(&self, copy: &JobCopy, known: Option<&JobCopy>) -> Result<Change, Error> {
        let jobs = self.how.jobs;
        let stop = match (jobs, known) {
            (Jobs::Run, _) => copy.is_stopped(),
            (Jobs::Stopped | Jobs::None, None) => true,
            (Jobs::Stopped | Jobs::None, Some(known)) => known.is_stopped(),
        };
        let job = Job { stop: Some(stop), ..copy.unregistered() };
        let change = match known {
            None => Change::Created,
            Some(known) => match job_differences(self.to, copy, known, stop).await? {
                paths if paths.is_empty() => return Ok(Change::Unchanged),
                paths => Change::Changed(paths),
            },
        };
        if self.how.dry_run || jobs == Jobs::None {
            let problems = self.to.validate(self.where_it_can_be(job)).await?.error;
            return Ok(match (problems.is_empty(), jobs) {
                (false, _) => Change::Failed(problems),
                (true, Jobs::None) => Change::LeftOut(not_chosen(&change)),
                (true, Jobs::Stopped | Jobs::Run) => change,
            });
        }
        let request = JobRegisterRequest {
            job: Some(job),
            submission: copy.submission.clone(),
            // Not over what somebody else registered since it was compared.
            enforce_index: true,
            job_modify_index: known.and_then(|known| known.job.job_modify_index).unwrap_or(0),
            ..JobRegisterRequest::default()
        };
        self.to.register(&request).await?;
        Ok(change)
    }

    /// The job as it can be validated in a dry run: its namespace and its node pool may be among what is still to come.
    fn where_it_can_be(&self, job: Job) -> Job {
        let is_to_come = |kind, name: &Option<String>| {
            let label = label(kind, "", name.as_deref().unwrap_or_default());
            !self.known.contains_key(&label) && self.coming.contains_key(&label)
        };
        let elsewhere = |kind, name: Option<String>| if is_to_come(kind, &name) { None } else { name };
        Job {
            namespace: elsewhere(Kind::Namespace, job.namespace),
            node_pool: elsewhere(Kind::NodePool, job.node_pool),
            ..job
        }
    }
}

/// Writes an object that is no job. A text says why it was not written.
async fn write(to: &Client, object: &Object, known: Option<&Object>) -> Result<Option<String>, Error> {
    match object {
        Object::Namespace(namespace) => to.apply_namespace(namespace).await?,
        Object::NodePool(pool) => to.apply_node_pool(pool).await?,
        Object::Policy(policy) => to.apply_acl_policy(policy).await?,
        Object::Role(role) => {
            // Ids are each cluster's own.
            let id = match known {
                Some(Object::Role(known)) => known.id.clone(),
                _ => String::new(),
            };
            to.apply_acl_role(&ACLRole { id, ..role.clone() }).await?;
        }
        Object::Variable(variable) => return write_variable(to, variable, known).await,
        Object::Scheduler(scheduler) => return write_scheduler(to, scheduler, known).await,
        Object::Job(_) => unreachable!("jobs are registered, by bring_job"),
    }
    Ok(None)
}

/// Only if nobody wrote it since it was compared.
async fn write_variable(
    to: &Client,
    variable: &Variable,
    known: Option<&Object>,
) -> Result<Option<String>, Error> {
    let index = match known {
        Some(Object::Variable(known)) => known.modify_index,
        _ => 0,
    };
    let wanted =
        Variable { path: variable.path.clone(), items: variable.items.clone(), ..Variable::default() };
    let written = to.in_namespace(&variable.namespace).set_variable(&wanted, Some(index)).await?;
    Ok(match written {
        VariableChange::Done(_) => None,
        VariableChange::Conflict(_) => Some("somebody else has its lock, or changed it just now".to_string()),
    })
}

/// All but the switches, which stay as they are.
async fn write_scheduler(
    to: &Client,
    scheduler: &SchedulerConfiguration,
    known: Option<&Object>,
) -> Result<Option<String>, Error> {
    let known = match known {
        Some(Object::Scheduler(known)) => known.clone(),
        _ => SchedulerConfiguration::default(),
    };
    let wanted = SchedulerConfiguration {
        reject_job_registration: known.reject_job_registration,
        pause_eval_broker: known.pause_eval_broker,
        ..scheduler.clone()
    };
    let updated = to.set_scheduler(&wanted, known.modify_index).await?.updated;
    Ok((!updated).then(|| "somebody else changed it just now".to_string()))
}

fn not_chosen(change: &Change) -> String {
    let word = if *change == Change::Created { "is not there" } else { "differs" };
    format!("it {word}: choose -jobs=stopped or -jobs=run")
}

/// Where the job differs from the one that is there. Servers fill in what a job leaves out, and not all fill in the same, so
/// where the documents differ the server has the last word.
async fn job_differences(
    to: &Client,
    copy: &JobCopy,
    known: &JobCopy,
    stop: bool,
) -> Result<Vec<String>, Error> {
    let wrap = |copy: &JobCopy| Object::Job(Box::new(copy.clone())).content();
    let mut paths = differences(&wrap(known), &wrap(copy));
    if !paths.is_empty() {
        // As the one that is there is, or stopping and starting would be a difference too.
        let job = Job { stop: known.job.stop, ..copy.unregistered() };
        let id = job.id.clone().unwrap_or_default();
        let request = JobPlanRequest { job: Some(job), diff: true, policy_override: false };
        let plan = to.plan(&id, &request).await?;
        if plan.diff.is_some_and(|diff| diff.kind == "None") {
            paths.clear();
        }
    }
    if stop != known.is_stopped() {
        paths.push("Stop".to_string());
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_chosen_by_one_of_three_words() {
        assert_eq!(
            ["none", "stopped", "run"].map(str::parse),
            [Ok(Jobs::None), Ok(Jobs::Stopped), Ok(Jobs::Run)]
        );
        assert_eq!("yes".parse::<Jobs>(), Err(()));
    }

    #[test]
    fn what_servers_and_operators_of_the_moment_wrote_is_no_difference() {
        let scheduler =
            SchedulerConfiguration { pause_eval_broker: true, modify_index: 7, ..Default::default() };
        let [left, right] = [scheduler, SchedulerConfiguration::default()].map(Object::Scheduler);
        assert_eq!(left.content(), right.content());
        let job = |version, stop| {
            let job =
                Job { version: Some(version), stop: Some(stop), region: Some("eu".into()), ..Job::default() };
            Object::Job(Box::new(JobCopy { job, submission: None, unknown: Vec::new() }))
        };
        assert_eq!(job(1, true).content(), job(2, false).content());
        assert_eq!(Object::Role(ACLRole { id: "x".into(), ..ACLRole::default() }).label(), "ACL role");
    }
}
