//! What would happen: changes on a fork of the state, which nobody else sees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{
    ForkAdd, ForkChange, ForkDown, ForkRequest, ForkScale, JobRegisterRequest, Params, SchedulerConfiguration,
};
use axum::Router;
use axum::extract::State as With;
use control::whatif::{
    ADDED_MAX, Change, DURATION_MAX, Question, Unfound, Until, find_datacenter, find_node, forecast,
};
use model::JobKey;
use model::document::{ForkResult, input};
use serde_json::Value;
use state::State;

use super::register::registration;
use super::{scheduler, write};
use crate::access::{Access, PlanJob, ReadJob, ReadNodes, WriteNodes, WriteOperator};
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::blocking::FORKS_MAX;
use crate::error::Failure;
use crate::request::{Json, Read, Reading};

/// Most changes of one fork.
const CHANGES_MAX: usize = 64;

/// The longest time that a fork may take. The answer then says how far it came.
const TIME_MAX: Duration = Duration::from_secs(20);

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/fork", write(fork))
}

async fn fork(With(server): With<AppState>, read: Read<ReadNodes>, Json(body): Json<Value>) -> Answer {
    check_names(&body)?;
    let request: ForkRequest = input::from_request(body)?;
    let mut read = Reading::from(read);
    begin_at(&mut read, &request.as_of)?;
    let until = until(&request.until)?;
    // Before its state is opened: that takes memory too.
    let turn = server.forks.clone().try_acquire_owned().map_err(|_| {
        Failure::too_many(format!("{FORKS_MAX} forks are being computed already: try again in a second"))
    })?;
    let (state, known_leader) = server.moment(&read).await?;
    may_see_all(&read.access, &state)?;
    let asking = Asking { server: &server, params: &read.params, access: &read.access, state: &state };
    let changes = asking.changes(request)?;
    let now = if read.options.as_of.is_some() { state.time } else { now() };
    let question = Question { changes, until, now, job_count_max: server.job_count_max };
    let index = state.index;
    // Dropped when nobody waits for the answer any more.
    let caller = Arc::new(());
    let waiting = Arc::downgrade(&caller);
    let computed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let began = Instant::now();
        forecast(&state, &question, &|| waiting.strong_count() > 0 && began.elapsed() < TIME_MAX)
    });
    let result: ForkResult = computed.await??;
    drop(caller);
    let response = answer::json(&result);
    Ok(answer::with_meta(response, &answer::Meta { index, known_leader, next_token: None }))
}

/// The moment may stand in the body, or where reads have it.
fn begin_at(read: &mut Reading, as_of: &str) -> Result<(), Failure> {
    let given = Params::new(vec![("as_of".to_string(), as_of.to_string())]).moment("as_of")?;
    match (given, read.options.as_of) {
        (Some(given), Some(other)) if given != other => {
            Err(Failure::invalid("`as_of` of the body and of the request: expected one moment, not two"))
        }
        (Some(_), _) => {
            read.options.as_of = given;
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

fn until(text: &str) -> Result<Until, Failure> {
    if matches!(text, "" | "quiet") {
        return Ok(Until::Quiet);
    }
    let span = text.parse::<base::Duration>().ok();
    let fits = span.filter(|span| span.0 > 0 && *span <= DURATION_MAX);
    fits.map(Until::Passed).ok_or_else(|| {
        Failure::invalid(format!(
            "until: {text:?}: expected \"quiet\", or a time like \"1h\" up to {DURATION_MAX}"
        ))
    })
}

/// What a fork says is about all jobs and nodes: what is moved is anybody's.
fn may_see_all(access: &Access, state: &State) -> Result<(), Failure> {
    state.namespaces.names().into_iter().try_for_each(|namespace| access.require::<ReadJob>(namespace))
}

/// What the changes of a request mean.
struct Asking<'a> {
    server: &'a AppState,
    params: &'a Params,
    access: &'a Access,
    state: &'a State,
}

impl Asking<'_> {
    fn changes(&self, request: ForkRequest) -> Result<Vec<Change>, Failure> {
        let count = request.changes.len();
        if count > CHANGES_MAX {
            return Err(Failure::invalid(format!(
                "changes: {count} are given: expected at most {CHANGES_MAX}"
            )));
        }
        let changes = request.changes.0.into_iter().enumerate();
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
fn check_names(body: &Value) -> Result<(), Failure> {
    expect("", body, &["as_of", "changes", "until"])?;
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

fn expect(path: &str, value: &Value, known: &[&str]) -> Result<(), Failure> {
    let dot = if path.is_empty() { "" } else { ": " };
    let Some(fields) = value.as_object() else {
        return Err(Failure::invalid(format!("{path}{dot}expected an object with {}", known.join(", "))));
    };
    let unknown = fields.keys().find(|key| known.iter().all(|name| !key.eq_ignore_ascii_case(name)));
    unknown.map_or(Ok(()), |key| {
        Err(Failure::invalid(format!("{path}{dot}unknown field {key:?}: expected {}", known.join(", "))))
    })
}
