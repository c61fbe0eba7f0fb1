use model::{Algorithm, JobType};
use state::State;

/// How nodes are chosen for a job: the scheduler configuration of the cluster with that of the job's node pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerSettings {
    pub algorithm: Algorithm,
    /// The `memory_max` of tasks counts.
    pub memory_oversubscription: bool,
    /// Which types of jobs may preempt; see [`SchedulerSettings::preempts`].
    preempting: Option<model::Preempting>,
    /// `None`: all nodes are considered. Otherwise they are sampled as in Nomad, and this is its
    /// `NodeLimitForFeasibilityChecks`; 0 means 100.
    pub limit: Option<u32>,
}

impl SchedulerSettings {
    /// Jobs of this type may preempt.
    pub const fn preempts(&self, kind: JobType) -> bool {
        match self.preempting {
            Some(preempting) => preempting.by(kind),
            // As in Nomad, every type may preempt where no configuration was ever written.
            None => true,
        }
    }
}

/// The settings for a job in that node pool.
pub fn settings(state: &State, job_pool: &str) -> SchedulerSettings {
    let (rules, pool) = (state.scheduler(), state.pools.get(job_pool));
    let algorithm = rules.map_or(Algorithm::Binpack, |rules| rules.algorithm);
    let oversubscription = rules.is_some_and(|rules| rules.memory_oversubscription);
    SchedulerSettings {
        algorithm: pool.and_then(|pool| pool.algorithm()).unwrap_or(algorithm),
        memory_oversubscription: pool
            .and_then(|pool| pool.memory_oversubscription())
            .unwrap_or(oversubscription),
        preempting: rules.map(|rules| rules.preempting),
        limit: rules.filter(|rules| rules.sampled).map(|rules| rules.node_limit),
    }
}

#[cfg(test)]
mod tests {
    use base::{Index, Time};
    use model::document::{NodePool, NodePoolSchedulerConfiguration};
    use model::{Actor, Command, CommandRecord, Preempting, RequestId, SchedulerRules};
    use rules::Context;
    use state::{Delta, Moment};

    use super::*;

    fn with(state: &mut State, command: Command) {
        let at = Moment { index: state.index.next(), time: Time::ZERO, epoch: model::EPOCH };
        let decided =
            rules::decide(state, &mut Context::new(at.index, at.time, 1), &Actor::ANONYMOUS, &command);
        let (mut delta, events) = (Delta::default(), decided.unwrap().events);
        let record =
            CommandRecord { request: RequestId::default(), kind: command.kind(), actor: Actor::ANONYMOUS };
        state.absorb(at, &record, events.iter(), &mut delta);
        state.seal(at, &delta);
    }

    fn configured(rules: SchedulerRules) -> State {
        let mut state = State::default();
        with(&mut state, Command::SetScheduler { rules, only_at: Some(Index::ZERO) });
        state
    }

    /// I68.
    #[test]
    fn without_a_configuration_every_type_preempts() {
        let settings = settings(&State::default(), "default");
        assert!(JobType::ALL.iter().all(|kind| settings.preempts(*kind)));
        assert_eq!((settings.algorithm, settings.limit), (Algorithm::Binpack, None));
        assert!(!settings.memory_oversubscription);
    }

    #[test]
    fn in_a_new_cluster_only_system_jobs_preempt() {
        let mut state = State::default();
        with(&mut state, Command::FoundCluster { scheduler: Default::default() });
        let settings = settings(&state, "default");
        let preempting: Vec<JobType> =
            JobType::ALL.iter().copied().filter(|kind| settings.preempts(*kind)).collect();
        assert_eq!(preempting, [JobType::System]);
    }

    #[test]
    fn a_configuration_holds_as_it_was_set() {
        let preempting = Preempting { service: true, batch: true, system: false, sysbatch: false };
        let rules = SchedulerRules { preempting, node_limit: 20, ..SchedulerRules::default() };
        let mut state = configured(rules);
        let unlimited = settings(&state, "default");
        assert!(unlimited.preempts(JobType::Service) && !unlimited.preempts(JobType::System));
        assert_eq!(unlimited.limit, None, "nothing is sampled, so nothing is limited");
        with(&mut state, Command::SetSampling { sampled: true });
        assert_eq!(settings(&state, "default").limit, Some(20));
        with(&mut state, Command::SetScheduler { rules: SchedulerRules::default(), only_at: None });
        assert_eq!(settings(&state, "default").limit, Some(0), "a new configuration says nothing about it");
    }

    #[test]
    fn a_pool_differs_in_what_it_names_and_follows_the_cluster_in_the_rest() {
        let mut state = configured(SchedulerRules { memory_oversubscription: true, ..Default::default() });
        let mut pool = |name: &str, algorithm: &str, oversubscribed| {
            let configuration = NodePoolSchedulerConfiguration {
                scheduler_algorithm: algorithm.to_string(),
                memory_oversubscription_enabled: oversubscribed,
            };
            let document = NodePool {
                name: name.to_string(),
                scheduler_configuration: Some(configuration),
                ..NodePool::default()
            };
            with(&mut state, Command::UpsertNodePool(Box::new(document)));
        };
        pool("wide", "spread", None);
        pool("strict", "", Some(false));
        let of = |pool: &str| {
            let settings = settings(&state, pool);
            (settings.algorithm, settings.memory_oversubscription)
        };
        assert_eq!(of("default"), (Algorithm::Binpack, true));
        assert_eq!(of("wide"), (Algorithm::Spread, true));
        assert_eq!(of("strict"), (Algorithm::Binpack, false));
    }
}
