//! `server.default_scheduler_config`: how the scheduler of a new cluster works.

use jobspec::config::Section;
use model::{Algorithm, SchedulerRules};

use super::unsupported::Refused;
use super::value::ConfigValue;

impl ConfigValue for Algorithm {
    const EXPECTED: &'static str = "\"binpack\" or \"spread\"";

    fn from_text(text: &str) -> Option<Algorithm> {
        Algorithm::from_word(text)
    }
}

pub(super) fn read(rules: &mut SchedulerRules, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "scheduler_algorithm", &mut rules.algorithm);
    refused.set(&mut section, "memory_oversubscription_enabled", &mut rules.memory_oversubscription);
    refused.set(&mut section, "reject_job_registration", &mut rules.reject_job_registration);
    refused.set(&mut section, "pause_eval_broker", &mut rules.pause_eval_broker);
    refused.set(&mut section, "node_limit_for_feasibility_checks", &mut rules.node_limit);
    for mut preemption in refused.sections(&mut section, "preemption_config") {
        let preempting = &mut rules.preempting;
        refused.set(&mut preemption, "system_scheduler_enabled", &mut preempting.system);
        refused.set(&mut preemption, "sysbatch_scheduler_enabled", &mut preempting.sysbatch);
        refused.set(&mut preemption, "batch_scheduler_enabled", &mut preempting.batch);
        refused.set(&mut preemption, "service_scheduler_enabled", &mut preempting.service);
        refused.done(preemption);
    }
    refused.done(section);
}
