//! The names of all metrics, what each is, and what it says to people who see it on a dashboard.

/// How a metric is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that is read when somebody asks.
    Gauge,
    /// Counted as things happen.
    Counter,
    /// Measured as things happen.
    Sample,
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

/// The line of a name.
///
/// # Panics
/// If there is none: names are constants, and a test of whoever gives figures shows them all.
pub fn of(name: &str) -> &'static Metric {
    let found = TABLE.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("the metric {name} is in the table"))
}

macro_rules! table {
    ($($kind:ident { $($name:literal $help:literal)* })*) => {
        /// Every metric there is. The order is that of the form it is shown in only where names are equal.
        pub const TABLE: &[Metric] =
            &[$($(Metric { name: $name, kind: Kind::$kind, help: $help },)*)*];
    };
}

table! {
    Gauge {
        "nomad.nomad.broker.total_ready" "Evaluations that wait for a scheduler."
        "nomad.nomad.broker.total_unacked" "Evaluations that a scheduler works on."
        "nomad.nomad.broker.total_pending" "Evaluations that wait for another one of their job."
        "nomad.nomad.broker.total_waiting" "Evaluations that wait for their time."
        "nomad.nomad.broker.service_ready" "Evaluations of service jobs that wait for a scheduler."
        "nomad.nomad.broker.service_unacked" "Evaluations of service jobs that a scheduler works on."
        "nomad.nomad.broker.batch_ready" "Evaluations of batch jobs that wait for a scheduler."
        "nomad.nomad.broker.batch_unacked" "Evaluations of batch jobs that a scheduler works on."
        "nomad.nomad.broker.system_ready" "Evaluations of system jobs that wait for a scheduler."
        "nomad.nomad.broker.system_unacked" "Evaluations of system jobs that a scheduler works on."
        "nomad.nomad.broker.sysbatch_ready" "Evaluations of sysbatch jobs that wait for a scheduler."
        "nomad.nomad.broker.sysbatch_unacked" "Evaluations of sysbatch jobs that a scheduler works on."
        "nomad.nomad.blocked_evals.total_blocked" "Evaluations that wait for room."
        "nomad.nomad.blocked_evals.total_escaped" "Evaluations that wait for room of any kind: what they need is not known by class."
        "nomad.nomad.blocked_evals.cpu" "MHz that groups of blocked jobs asked for and no node had, by datacenter, node class and node pool."
        "nomad.nomad.blocked_evals.memory" "MiB of memory that groups of blocked jobs asked for and no node had, by datacenter, node class and node pool."
        "nomad.nomad.blocked_evals.job.cpu" "MHz that groups of a blocked job asked for and no node had."
        "nomad.nomad.blocked_evals.job.memory" "MiB of memory that groups of a blocked job asked for and no node had."
        "nomad.nomad.plan.queue_depth" "Plans and other commands that wait for the sequencer."
        "nomad.nomad.heartbeat.active" "Nodes whose heartbeats are watched."
        "nomad.nomad.job_status.pending" "Jobs that are pending."
        "nomad.nomad.job_status.running" "Jobs that run."
        "nomad.nomad.job_status.dead" "Jobs that are dead."
        "nomad.nomad.job_summary.queued" "Allocations of a task group that wait for a place."
        "nomad.nomad.job_summary.starting" "Allocations of a task group that start."
        "nomad.nomad.job_summary.running" "Allocations of a task group that run."
        "nomad.nomad.job_summary.complete" "Allocations of a task group that are complete."
        "nomad.nomad.job_summary.failed" "Allocations of a task group that have failed."
        "nomad.nomad.job_summary.lost" "Allocations of a task group that are lost."
        "nomad.nomad.job_summary.unknown" "Allocations of a task group of which nothing is known."
        "nomad.raft.appliedIndex" "Index of the newest batch that is in the state."
        "nomad.raft.lastIndex" "Index of the newest batch that is committed."
        "nomad.raft.peers" "Servers of the raft cluster."
        "nomad.autopilot.healthy" "1 while all servers are healthy; the leader knows."
        "nomad.autopilot.failure_tolerance" "Servers that may fail before the cluster stops; the leader knows."
        "nomad.runtime.num_goroutines" "Asynchronous tasks of this agent that have not ended; goroutines in Nomad."
        "nomad.runtime.sys_bytes" "Bytes of memory that this agent holds."
        "nomad.state.snapshotIndex" "Index of the state that figures are read from."
        "sojourn.log.oldest_index" "Index of the oldest batch that the log keeps."
        "sojourn.commands.waiting" "Commands that wait for the sequencer."
        "sojourn.evaluations.longest_wait_seconds" "How long the evaluation waits for a scheduler that waits the longest."
        "sojourn.leader" "1 while this server leads."
        "sojourn.reads.waiting" "Blocking queries that wait for news."
        "sojourn.sinks.lag_batches" "Batches of the log that a sink of the event stream is behind, by sink."
        "sojourn.sinks.lag_seconds" "Age in seconds of the oldest batch that a sink of the event stream is behind, by sink."
        "sojourn.sinks.parked" "1 while a sink of the event stream is parked, by sink."
        "sojourn.sinks.attempts" "Attempts that failed for the event that a sink tries to send, by sink; the leader knows."
        "sojourn.uptime_seconds" "Seconds since this agent started."
        "sojourn.nodes" "Nodes, by status."
        "sojourn.nodes_ineligible" "Nodes that take no new allocations."
        "sojourn.allocations" "Allocations, by client status."
        "nomad.client.uptime" "Seconds since the host started."
        "nomad.client.host.memory.total" "Bytes of memory of the host."
        "nomad.client.host.memory.available" "Bytes of memory that new programs could have."
        "nomad.client.host.memory.used" "Bytes of memory that are in use."
        "nomad.client.host.memory.free" "Bytes of memory that nothing uses."
        "nomad.client.host.cpu.user" "Percent of a core's time in user mode."
        "nomad.client.host.cpu.system" "Percent of a core's time in system mode."
        "nomad.client.host.cpu.idle" "Percent of a core's time that was idle."
        "nomad.client.host.cpu.total_percent" "Percent of a core's time that was used."
        "nomad.client.host.cpu.total_ticks_count" "MHz that the host uses."
        "nomad.client.host.disk.size" "Bytes of the disk that holds allocations."
        "nomad.client.host.disk.used" "Bytes of that disk that are used."
        "nomad.client.host.disk.available" "Bytes of that disk that are left."
        "nomad.client.host.disk.used_percent" "Percent of that disk that are used."
        "nomad.client.host.disk.inodes_percent" "Percent of that disk's inodes that are used."
        "nomad.client.allocated.cpu" "MHz that allocations on the node were given."
        "nomad.client.allocated.memory" "MiB of memory that allocations on the node were given."
        "nomad.client.allocated.disk" "MiB of disk that allocations on the node were given."
        "nomad.client.unallocated.cpu" "MHz that are left for allocations."
        "nomad.client.unallocated.memory" "MiB of memory that are left for allocations."
        "nomad.client.unallocated.disk" "MiB of disk that are left for allocations."
        "nomad.client.allocations.pending" "Allocations on the node that start."
        "nomad.client.allocations.blocked" "Allocations on the node that start and wait for another one to end."
        "nomad.client.allocations.migrating" "Allocations on the node that start and take over the data of another one."
        "nomad.client.allocations.running" "Allocations on the node that run."
        "nomad.client.allocations.terminal" "Allocations on the node that have ended."
        "nomad.client.tasks.pending" "Tasks on the node that start."
        "nomad.client.tasks.running" "Tasks on the node that run."
        "nomad.client.tasks.dead" "Tasks on the node that have ended."
        "nomad.client.allocs.memory.rss" "Bytes of memory that a task holds."
        "nomad.client.allocs.memory.usage" "Bytes of memory that a task uses."
        "nomad.client.allocs.memory.cache" "Bytes of files that are in memory for a task with a control group."
        "nomad.client.allocs.memory.swap" "Bytes that a task with a control group has in swap."
        "nomad.client.allocs.memory.mapped_file" "Bytes of files that a task with a control group has mapped."
        "nomad.client.allocs.memory.max_usage" "Bytes of memory that a task with a control group has used at most."
        "nomad.client.allocs.memory.kernel_usage" "Bytes of memory that the kernel uses for a task with a control group."
        "nomad.client.allocs.memory.allocated" "Bytes of memory that a task was given."
        "nomad.client.allocs.memory.max_allocated" "Bytes of memory that a task may use at most."
        "nomad.client.allocs.cpu.system" "Percent of a core that a task uses in system mode."
        "nomad.client.allocs.cpu.user" "Percent of a core that a task uses in user mode."
        "nomad.client.allocs.cpu.total_percent" "Percent of a core that a task uses."
        "nomad.client.allocs.cpu.total_ticks" "MHz that a task uses."
        "nomad.client.allocs.cpu.throttled_periods" "Periods in which a task with a control group had used up its CPU, since it started."
        "nomad.client.allocs.cpu.throttled_time" "Nanoseconds that a task with a control group had to wait for CPU because of that, since it started."
        "nomad.client.allocs.cpu.allocated" "MHz that a task was given."
    }
    Counter {
        "nomad.raft.apply" "Batches that were given to the log."
        "nomad.nomad.rpc.request" "Calls of the node RPC, also of other servers."
        "nomad.nomad.rpc.request_error" "Calls of the node RPC that were answered with an error."
        "nomad.nomad.rpc.query" "Reads over the node RPC that may wait for news."
        "nomad.nomad.plan.node_rejected" "Plans of which a node rejected its part, by node."
        "nomad.client.allocs.running" "Starts of a task."
        "nomad.client.alloc_hook.prerun.success" "Allocations that were set up."
        "nomad.client.alloc_hook.prerun.failed" "Allocations that could not be set up."
        "nomad.client.task_hook.prestart.success" "Starts of tasks that were prepared."
        "nomad.client.task_hook.prestart.failed" "Starts of tasks that could not be prepared."
        "nomad.client.allocs.restart" "Ends of a task after which it starts again."
        "nomad.client.allocs.complete" "Tasks that have ended for good and have not failed."
        "nomad.client.allocs.failed" "Tasks that have failed for good."
        "nomad.client.allocs.oom_killed" "Ends of a task in which the kernel killed a process because the memory of its control group was used up."
        "sojourn.client.dns.queries_total" "Questions that the DNS of the node was asked, by result: found, absent, unknown while no server answers, refused, forwarded to a resolver, or unanswered by all of them."
        "sojourn.raft.messages_dropped_total" "Messages of other servers that were dropped: malformed, or saying what cannot be."
        "sojourn.http.requests_total" "Requests that were answered."
        "sojourn.sinks.sent_total" "Events that have arrived where this server has sent them, by sink."
        "sojourn.sinks.failures_total" "Attempts to send an event that failed, by sink."
    }
    Sample {
        "nomad.client.alloc_hook.prerun.elapsed" "Milliseconds that an allocation took to be set up, with what it waited for."
        "nomad.client.task_hook.prestart.elapsed" "Milliseconds that the start of a task took to be prepared."
        "nomad.raft.commitTime" "Milliseconds from a batch to its commit."
        "nomad.raft.leader.lastContact" "Milliseconds since the newest message that a follower answered was sent; the leader measures it for each, twice a second."
        "nomad.nomad.heartbeat.invalidate" "Milliseconds until the new status of a node that missed its heartbeats was committed."
        "nomad.raft.fsm.apply" "Milliseconds that a committed batch took to get into the state."
        "nomad.nomad.plan.evaluate" "Milliseconds that the check of a plan took."
        "nomad.nomad.plan.apply" "Milliseconds from a plan that was checked to its commit."
        "nomad.nomad.plan.submit" "Milliseconds that a worker waited for the outcome of its plan."
        "nomad.nomad.worker.dequeue_eval" "Milliseconds that a worker waited for an evaluation."
        "nomad.nomad.worker.wait_for_index" "Milliseconds that a worker waited for a state."
        "nomad.nomad.worker.submit_plan" "Milliseconds that a worker waited for the outcome of its plan."
        "nomad.nomad.worker.send_ack" "Milliseconds until the broker knew that an evaluation is done."
        "nomad.nomad.client.register" "Milliseconds that the registration of a node took."
        "nomad.nomad.client.update_status" "Milliseconds that a heartbeat of a node took."
        "nomad.nomad.client.get_client_allocs" "Milliseconds until a node had the list of its allocations, waiting included."
        "nomad.nomad.client.update_alloc" "Milliseconds that a node's report of its allocations took."
        "nomad.nomad.client.emit_events" "Milliseconds that a node's report of its events took."
        "nomad.nomad.client.get_node" "Milliseconds that reading a node took, waiting included."
        "nomad.nomad.client.update_drain" "Milliseconds that a change of a node's drain took."
        "nomad.nomad.client.update_eligibility" "Milliseconds that a change of a node's eligibility took."
        "nomad.nomad.alloc.get_alloc" "Milliseconds that reading an allocation took, waiting included."
        "nomad.nomad.alloc.get_allocs" "Milliseconds that reading the allocations of a node took, waiting included."
        "nomad.nomad.alloc.sign_identities" "Milliseconds that signing the identities of tasks took."
        "nomad.nomad.worker.invoke_scheduler_service" "Milliseconds that an evaluation of a service job took."
        "nomad.nomad.worker.invoke_scheduler_batch" "Milliseconds that an evaluation of a batch job took."
        "nomad.nomad.worker.invoke_scheduler_system" "Milliseconds that an evaluation of a system job took."
        "nomad.nomad.worker.invoke_scheduler_sysbatch" "Milliseconds that an evaluation of a sysbatch job took."
        "sojourn.sinks.send_time" "Milliseconds that an attempt to send an event took, by sink."
        "sojourn.http.request_time" "Milliseconds from a request to its answer."
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_stands_once_and_says_what_it_is() {
        let names: BTreeSet<&str> = TABLE.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for metric in TABLE {
            assert!(
                metric.name.starts_with("nomad.") || metric.name.starts_with("sojourn."),
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
