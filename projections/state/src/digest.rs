//! The digest of the state: kept by fold, compared at each batch.
//!
//! It covers what an image stores, and nothing that only repeats what other rows say: maps from ids to rows, a
//! node's list of allocations and its taken ports. Of a job's allocations and evaluations it has the number.

use base::StableHash;
use model::{Digest, SchedulerRules};

use crate::domain::Domain;
use crate::operator::Configured;
use crate::{State, alloc, deployment, eval, job};

impl State {
    /// Of the whole state, as the last batch left it.
    pub fn digest(&self) -> Digest {
        Digest {
            nodes: self.nodes.digest(),
            jobs: self.jobs.rows.sum(),
            evals: self.evals.rows.sum(),
            allocs: self.allocs.rows.sum(),
            deployments: self.deployments.rows.sum(),
            requests: self.requests.digest(),
            cluster: self.cluster_digest(
                self.volumes.sum,
                self.variables.hash(),
                self.services.hash(),
                self.claims.hash(),
                [
                    self.cursors.hash(),
                    self.sinks.hash(),
                    self.erasure.hash(),
                    self.recording_hash(),
                    self.dropped_history_hash(),
                    self.epoch_hash(),
                    self.expansions.hash(),
                ],
            ),
        }
    }

    /// [`State::digest`] from the rows as they are. The two differ if a fold changed a row behind its table's back.
    pub fn recomputed_digest(&self) -> Digest {
        Digest {
            nodes: self.nodes.recomputed_digest(),
            jobs: self.jobs.rows.recomputed_held(job::hash::row(&self.evals)),
            evals: self.evals.rows.recomputed_held(eval::hash::row),
            allocs: self.allocs.rows.recomputed_held(alloc::hash::row),
            deployments: self.deployments.rows.recomputed_held(deployment::hash::row),
            requests: self.requests.recomputed_digest(),
            cluster: self.cluster_digest(
                self.volumes.recomputed(),
                self.variables.recomputed_hash(),
                self.services.recomputed_hash(),
                self.claims.recomputed_hash(),
                [
                    self.cursors.recomputed_hash(),
                    self.sinks.recomputed_hash(),
                    self.erasure.recomputed_hash(),
                    self.recording_hash(),
                    self.dropped_history_hash(),
                    self.epoch_hash(),
                    self.expansions.hash(),
                ],
            ),
        }
    }

    /// Hashes what the batch changed.
    pub(crate) fn settle_digest(&mut self) {
        self.nodes.settle_digest();
        self.jobs.rows.settle(job::hash::row(&self.evals));
        self.evals.rows.settle(eval::hash::row);
        self.allocs.rows.settle(alloc::hash::row);
        self.deployments.rows.settle(deployment::hash::row);
        self.requests.settle_digest();
        self.pools.settle_digest();
        self.namespaces.settle_digest();
        self.acl.settle_digest();
    }

    /// Zero for a cluster that never raised its epoch.
    fn epoch_hash(&self) -> u64 {
        let Some(epoch) = self.raised else { return 0 };
        let mut hash = StableHash::new(Domain::Epoch as u64);
        hash.word(u64::from(epoch));
        hash.finish()
    }

    fn cluster_digest(
        &self,
        volumes: u64,
        variables: u64,
        services: u64,
        claims: u64,
        later: [u64; 7],
    ) -> u64 {
        let founded = (self.index, self.time, self.cluster, self.tables) != Default::default();
        if !founded && self.operator == Default::default() && self.pools.hash() == 0 {
            return 0;
        }
        let mut hash = StableHash::new(Domain::Cluster as u64);
        hash.pair(self.index.0, self.time.0 as u64);
        hash.id(self.cluster);
        hash.pair(self.tables.nodes.0, self.tables.jobs.0);
        hash.pair(self.tables.evals.0, self.tables.allocs.0);
        hash.word(self.tables.deployments.0);
        if let Some(Configured { rules, created, modified }) = &self.operator.autopilot {
            hash.pair(created.0, modified.0);
            hash.pair(u64::from(rules.cleanup_dead_servers), u64::from(rules.min_quorum));
            hash.pair(rules.last_contact_threshold_ns as u64, rules.max_trailing_logs);
            hash.word(rules.server_stabilization_ns as u64);
        }
        if let Some(Configured { rules, created, modified }) = &self.operator.scheduler {
            hash.pair(created.0, modified.0);
            let SchedulerRules { preempting, .. } = rules;
            let flags = [
                rules.memory_oversubscription,
                rules.reject_job_registration,
                rules.pause_eval_broker,
                rules.sampled,
                preempting.service,
                preempting.batch,
                preempting.system,
                preempting.sysbatch,
            ];
            let flags = flags.iter().fold(0, |all, flag| all << 1 | u64::from(*flag));
            hash.pair(u64::from(rules.node_limit) << 8 | rules.algorithm as u64, flags);
        }
        hash.word(self.pools.hash());
        hash.pair(volumes, self.volumes.len() as u64);
        // Nothing of what a cluster never had: its digests stay what they were.
        if self.namespaces.hash() != 0 {
            hash.word(self.namespaces.hash());
        }
        if self.keyring.hash() != 0 {
            hash.word(self.keyring.hash());
        }
        for part in self.acl.hashes() {
            if part != 0 {
                hash.word(part);
            }
        }
        if variables != 0 {
            hash.word(variables);
        }
        if services != 0 {
            hash.word(services);
        }
        if claims != 0 {
            hash.word(claims);
        }
        for part in later {
            if part != 0 {
                hash.word(part);
            }
        }
        // An image is not made meanwhile, so their bytes need not be in it.
        if !self.restoring.is_empty() {
            hash.id(self.restoring.restore);
            hash.pair(self.restoring.bytes, self.restoring.last.0);
        }
        hash.finish()
    }
}
