//! The changes of a fork, read from a request. Each takes the right to plan it.

use api::{ForkAdd, ForkChange, ForkDown, ForkScale, JobRegisterRequest, Params, SchedulerConfiguration};
use control::whatif::{ADDED_MAX, Change, Unfound, find_datacenter, find_node};
use model::JobKey;
use serde_json::Value;
use state::State;

use super::super::register::registration;
use super::super::scheduler;
use crate::access::{Access, PlanJob, WriteNodes, WriteOperator};
use crate::app_state::AppState;
use crate::error::Failure;

/// Most changes of one request.
const CHANGES_MAX: usize = 64;

/// What the changes of a request mean.
pub(super) struct Asking<'a> {
    pub server: &'a AppState,
    pub params: &'a Params,
    pub access: &'a Access,
    pub state: &'a State,
}

impl Asking<'_> {
    pub(super) fn changes(&self, wanted: Vec<ForkChange>) -> Result<Vec<Change>, Failure> {
        let count = wanted.len();
        if count > CHANGES_MAX {
            return Err(Failure::invalid(format!(
                "changes: {count} are given: expected at most {CHANGES_MAX}"
            )));
        }
        let changes = wanted.into_iter().enumerate();
        let read = |(number, change)| {
            self.change(change).map_err(|wrong| wrong.about(&format!("changes[{number}].")))
        };
        changes.map(read).collect()
    }

    fn change(&self, change: ForkChange) -> Result<Change, Failure> {
        match change {
            ForkChange { drain: Some(node), .. } => {
                self.access.require::<WriteNodes>("")?;
                Ok(Change::Drain(self.node("drain", &node)?))
            }
            ForkChange { down: Some(down), .. } => self.down(&down),
            ForkChange { add: Some(add), .. } => self.add(&add),
            ForkChange { job: Some(job), .. } => {
                let asked = JobRegisterRequest { job: Some(job), ..JobRegisterRequest::default() };
                let registration =
                    registration(self.server, self.params, asked).map_err(|wrong| wrong.about("job: "))?;
                self.access.require::<PlanJob>(&registration.key.namespace)?;
                Ok(Change::Job(Box::new(registration.command)))
            }
            ForkChange { stop: Some(job), .. } => Ok(Change::Stop(self.job("stop", job)?)),
            ForkChange { scale: Some(scale), .. } => self.scale(scale),
            ForkChange { scheduler: Some(wanted), .. } => {
                self.access.require::<WriteOperator>("")?;
                let rules = scheduler::rules(&wanted).map_err(|wrong| wrong.about("scheduler: "))?;
                Ok(Change::Scheduler(rules))
            }
            // Names are checked before: one of them is given, and has a value.
            ForkChange { .. } => Err(Failure::invalid(format!("expected one of {}", CHANGE.join(", ")))),
        }
    }

    fn down(&self, down: &ForkDown) -> Result<Change, Failure> {
        self.access.require::<WriteNodes>("")?;
        let nodes = match (down.node.as_str(), down.datacenter.as_str()) {
            (node, "") if !node.is_empty() => vec![self.node("down.node", node)?],
            ("", datacenter) if !datacenter.is_empty() => find_datacenter(self.state, datacenter)
                .map_err(|why| unfound(why).about("down.datacenter: "))?,
            _ => return Err(Failure::invalid("down: expected either node or datacenter")),
        };
        Ok(Change::Down(nodes))
    }

    fn add(&self, add: &ForkAdd) -> Result<Change, Failure> {
        self.access.require::<WriteNodes>("")?;
        let count = add.count.unwrap_or(1);
        let fits = u32::try_from(count).ok().filter(|count| (1..=ADDED_MAX).contains(count));
        let wrong = || Failure::invalid(format!("add.count: {count}: expected 1 to {ADDED_MAX}"));
        let count = fits.ok_or_else(wrong)?;
        Ok(Change::Add { like: self.node("add.like", &add.like)?, count })
    }

    fn scale(&self, scale: ForkScale) -> Result<Change, Failure> {
        let key = self.job("scale.job", scale.job)?;
        let known = self.state.jobs.lookup(&key).map(|job| job.current());
        if known.is_none_or(|version| version.group(&scale.group).is_none()) {
            let (group, job) = (&scale.group, &key.id);
            return Err(Failure::not_found(format!("scale.group: job {job:?} has no group {group:?}")));
        }
        let count = scale.count.filter(|count| *count >= 0);
        let count = count.ok_or_else(|| Failure::invalid("scale.count: expected a number, 0 or more"))?;
        Ok(Change::Scale { key, group: scale.group, count })
    }

    /// A job in the namespace of the request.
    fn job(&self, field: &str, id: String) -> Result<JobKey, Failure> {
        let namespace = self.params.namespace();
        self.access.require::<PlanJob>(namespace)?;
        let key = JobKey::new(namespace, id.as_str());
        let known = self.state.jobs.lookup(&key).is_some_and(|job| !job.purged);
        let unknown = || Failure::not_found(format!("{field}: no job {id:?} in namespace {namespace:?}"));
        if known { Ok(key) } else { Err(unknown()) }
    }

    fn node(&self, field: &str, text: &str) -> Result<model::NodeId, Failure> {
        find_node(self.state, text).map_err(|why| unfound(why).about(&format!("{field}: ")))
    }
}

fn unfound(why: Unfound) -> Failure {
    match why {
        Unfound::Node(_) | Unfound::Datacenter(_) => Failure::not_found(why.to_string()),
        Unfound::Several { .. } => Failure::invalid(why.to_string()),
    }
}

const CHANGE: [&str; 7] = ["drain", "down", "add", "job", "stop", "scale", "scheduler"];

/// Nothing is accepted and then ignored: of what is not part of Nomad's API every field is known, and a change is one.
///
/// # Errors
/// 400 with the name of a field that nobody knows, and with the change that has several.
pub(super) fn check_names(body: &Value, known: &[&str]) -> Result<(), Failure> {
    expect("", body, known)?;
    let changes = field(body, "changes").and_then(Value::as_array).into_iter().flatten();
    for (number, change) in changes.enumerate() {
        let path = format!("changes[{number}]");
        expect(&path, change, &CHANGE)?;
        let given: Vec<&str> = CHANGE.into_iter().filter(|name| field(change, name).is_some()).collect();
        if given.len() != 1 {
            let found = if given.is_empty() {
                "nothing is".to_string()
            } else {
                format!("{} are", given.join(" and "))
            };
            let expected = CHANGE.join(", ");
            return Err(Failure::invalid(format!("{path}: {found} given: expected one of {expected}")));
        }
        let inner: [(&str, &[&str]); 3] = [
            ("down", &["node", "datacenter"]),
            ("add", &["like", "count"]),
            ("scale", &["job", "group", "count"]),
        ];
        for (name, known) in inner {
            field(change, name).map_or(Ok(()), |inner| expect(&format!("{path}.{name}"), inner, known))?;
        }
        if let Some(wanted) = field(change, "scheduler") {
            check_scheduler(&format!("{path}.scheduler"), wanted)?;
        }
    }
    Ok(())
}

fn check_scheduler(path: &str, wanted: &Value) -> Result<(), Failure> {
    let known = crate::request::as_json(&SchedulerConfiguration::default());
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect()
    };
    let of_all = names(&known);
    expect(path, wanted, &of_all.iter().map(String::as_str).collect::<Vec<_>>())?;
    let of_preemption = names(&known["PreemptionConfig"]);
    let preemption = field(wanted, "PreemptionConfig");
    preemption.map_or(Ok(()), |preemption| {
        let known: Vec<&str> = of_preemption.iter().map(String::as_str).collect();
        expect(&format!("{path}.PreemptionConfig"), preemption, &known)
    })
}

/// As fields are read: whatever their case, and null is nothing.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let mut fields = value.as_object()?.iter();
    fields.find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null()).map(|(_, value)| value)
}

pub(super) fn expect(path: &str, value: &Value, known: &[&str]) -> Result<(), Failure> {
    let dot = if path.is_empty() { "" } else { ": " };
    let Some(fields) = value.as_object() else {
        return Err(Failure::invalid(format!("{path}{dot}expected an object with {}", known.join(", "))));
    };
    let unknown = fields.keys().find(|key| known.iter().all(|name| !key.eq_ignore_ascii_case(name)));
    unknown.map_or(Ok(()), |key| {
        Err(Failure::invalid(format!("{path}{dot}unknown field {key:?}: expected {}", known.join(", "))))
    })
}
