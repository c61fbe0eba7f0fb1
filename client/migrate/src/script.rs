//! `apply.sh`: what gives a folder's objects to a Nomad, by its command line.

use api::SchedulerConfiguration;
use model::document::{ACLPolicy, ACLRole};

use crate::names::{quoted, shown};
use crate::object::{Kind, Object};

/// What every script begins with. `$nomad` is not split: it is one program.
const HEAD: &str = r#"#!/bin/sh
# Gives what is in this folder to the Nomad (or Sojourn) that NOMAD_ADDR and NOMAD_TOKEN name. Running it again
# does no harm. JOBS=none leaves the jobs out; NOMAD names the program, if it is not nomad.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
nomad=${NOMAD:-nomad}
# Each call below names its namespace.
unset NOMAD_NAMESPACE

role() {
  role_name=$1
  shift
  if role_id=$("$nomad" acl role info -by-name -t '{{.ID}}' -- "$role_name" 2>/dev/null); then
    "$nomad" acl role update -no-merge -name="$role_name" "$@" -- "$role_id"
  else
    "$nomad" acl role create -name="$role_name" "$@"
  fi
}

job() {
  [ "${JOBS:-run}" = none ] || "$nomad" job run -json -detach -namespace="$1" -- "$2"
}
"#;

/// A script, line by line.
pub(crate) struct Script {
    text: String,
    section: Option<Kind>,
}

impl Script {
    pub(crate) fn new() -> Script {
        Script { text: HEAD.to_string(), section: None }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Adds the line that applies an object, of which `file` is relative to the script.
    pub(crate) fn add(&mut self, object: &Object, file: &str) {
        let file = quoted(file);
        let line = match object {
            Object::Namespace(_) => format!("\"$nomad\" namespace apply -json {file}"),
            Object::NodePool(_) => format!("\"$nomad\" node pool apply -json {file}"),
            Object::Policy(policy) => policy_line(policy, &file),
            Object::Role(role) => role_line(role),
            Object::Variable(variable) => {
                let namespace = quoted(&variable.namespace);
                format!("\"$nomad\" var put -force -out=none -namespace={namespace} @{file}")
            }
            Object::Scheduler(scheduler) => scheduler_line(scheduler),
            Object::Job(copy) if copy.is_stopped() => {
                let name = shown(object.name());
                format!("echo {} >&2", quoted(&format!("job {name} was stopped and is left out: see {file}")))
            }
            Object::Job(_) => format!("job {} {file}", quoted(object.namespace())),
        };
        if self.section != Some(object.kind()) {
            self.section = Some(object.kind());
            self.text.push('\n');
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

fn policy_line(policy: &ACLPolicy, file: &str) -> String {
    let mut flags = format!("-description={}", quoted(&policy.description));
    if let Some(tasks) = &policy.job_acl {
        let levels = [
            ("namespace", &tasks.namespace),
            ("job", &tasks.job_id),
            ("group", &tasks.group),
            ("task", &tasks.task),
        ];
        for (flag, value) in levels.into_iter().filter(|(_, value)| !value.is_empty()) {
            flags.push_str(&format!(" -{flag}={}", quoted(value)));
        }
    }
    format!("\"$nomad\" acl policy apply {flags} -- {} {file}", quoted(&policy.name))
}

fn role_line(role: &ACLRole) -> String {
    let mut line = format!("role {} -description={}", quoted(&role.name), quoted(&role.description));
    for policy in role.policies.iter() {
        line.push_str(&format!(" -policy={}", quoted(&policy.name)));
    }
    line
}

/// Without the switches that reject jobs and pause evaluations, and without what an older Nomad has no flag for.
fn scheduler_line(scheduler: &SchedulerConfiguration) -> String {
    let preemption = &scheduler.preemption_config;
    format!(
        "\"$nomad\" operator scheduler set-config -scheduler-algorithm={} -memory-oversubscription={} \\\n  \
         -preempt-batch-scheduler={} -preempt-service-scheduler={} \\\n  \
         -preempt-sysbatch-scheduler={} -preempt-system-scheduler={}",
        quoted(&scheduler.scheduler_algorithm),
        scheduler.memory_oversubscription_enabled,
        preemption.batch_scheduler_enabled,
        preemption.service_scheduler_enabled,
        preemption.sys_batch_scheduler_enabled,
        preemption.system_scheduler_enabled,
    )
}

#[cfg(test)]
mod tests {
    use api::Variable;
    use model::document::{ACLRolePolicyLink, Job, JobACL};

    use super::*;
    use crate::object::JobCopy;

    /// The lines that an object adds to a script.
    fn lines(object: &Object, file: &str) -> String {
        let mut script = Script::new();
        script.add(object, file);
        script.finish().strip_prefix(HEAD).unwrap().trim_start().to_string()
    }

    fn job(stop: bool) -> Object {
        let job =
            Job { id: Some("a'b".into()), namespace: Some("ops".into()), stop: Some(stop), ..Job::default() };
        Object::Job(Box::new(JobCopy { job, submission: None, unknown: Vec::new() }))
    }

    #[test]
    fn names_and_descriptions_are_quoted_and_end_the_flags() {
        let tasks = JobACL { namespace: "ops".into(), job_id: "a; b".into(), ..JobACL::default() };
        let policy = ACLPolicy {
            name: "-dev".into(),
            description: "it's $HOME".into(),
            job_acl: Some(tasks),
            ..ACLPolicy::default()
        };
        assert_eq!(
            lines(&Object::Policy(policy), "acl-policies/-dev.hcl"),
            "\"$nomad\" acl policy apply -description='it'\\''s $HOME' -namespace='ops' -job='a; b' -- '-dev' \
             'acl-policies/-dev.hcl'\n"
        );
        let role = ACLRole {
            name: "r r".into(),
            policies: [ACLRolePolicyLink { name: "-dev".into() }].into_iter().collect(),
            ..ACLRole::default()
        };
        assert_eq!(lines(&Object::Role(role), ""), "role 'r r' -description='' -policy='-dev'\n");
    }

    #[test]
    fn a_job_that_was_stopped_is_not_started() {
        assert_eq!(lines(&job(false), "jobs/ops/a~27b.json"), "job 'ops' 'jobs/ops/a~27b.json'\n");
        assert!(lines(&job(true), "jobs/ops/a~27b.json").starts_with("echo 'job a'\\''b was stopped"));
    }

    #[test]
    fn a_shell_reads_every_script() {
        let variable = Variable { namespace: "ops".into(), path: "a/'b".into(), ..Variable::default() };
        let mut script = Script::new();
        for object in
            [Object::Variable(variable), job(false), job(true), Object::Scheduler(Default::default())]
        {
            script.add(&object, "it's.json");
        }
        let checked = std::process::Command::new("/bin/sh").args(["-n", "-c", &script.finish()]).output();
        let checked = checked.unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
