//! Allocations: the list, the block, addresses, tasks and their events.

use model::ClientStatus;
use model::document::{
    AllocDeploymentStatus, Allocation, AllocationListStub, Job, PortMapping, Task, TaskState,
};

use super::{cell, metrics};
use crate::output::{OutputStyle, Table, fields};

/// The node will not run it any more, by its client status.
pub(crate) fn is_over(client_status: &str) -> bool {
    ClientStatus::from_word(client_status).is_some_and(ClientStatus::is_terminal)
}

/// The list of allocations, newest first.
pub(crate) fn table(style: &OutputStyle, allocs: &[AllocationListStub]) -> String {
    let mut allocs: Vec<_> = allocs.iter().collect();
    allocs.sort_by(|a, b| b.create_index.cmp(&a.create_index).then_with(|| a.name.cmp(&b.name)));
    let verbose = |name| style.verbose.then_some(name);
    let wide = style.wide.then_some(["Name", "Job ID", "Node Name", "Description"]);
    let head = ["ID"]
        .into_iter()
        .chain(verbose("Eval ID"))
        .chain(["Node ID"])
        .chain(verbose("Node Name"))
        .chain(["Task Group", "Version", "Desired", "Status", "Created", "Modified"])
        .chain(wide.into_iter().flatten());
    let mut table = Table::new(head);
    for alloc in allocs {
        let mut row = vec![style.id(&alloc.id)];
        row.extend(style.verbose.then(|| alloc.eval_id.clone()));
        row.push(style.id(&alloc.node_id));
        row.extend(style.verbose.then(|| alloc.node_name.clone()));
        row.extend([
            alloc.task_group.clone(),
            cell(alloc.job_version),
            alloc.desired_status.clone(),
            alloc.client_status.clone(),
            style.when(alloc.create_time),
            style.when(alloc.modify_time),
        ]);
        if style.wide {
            let texts = [&alloc.name, &alloc.job_id, &alloc.node_name, &alloc.client_description];
            row.extend(texts.map(String::clone));
        }
        table.row(row);
    }
    table.render()
}

/// The list of allocations of several jobs.
pub(crate) fn with_jobs(style: &OutputStyle, allocs: &[AllocationListStub]) -> String {
    let head =
        ["ID", "Job ID", "Node ID", "Task Group", "Version", "Desired", "Status", "Created", "Modified"];
    let mut table = Table::new(head);
    for alloc in allocs {
        table.row([
            style.id(&alloc.id),
            alloc.job_id.clone(),
            style.id(&alloc.node_id),
            alloc.task_group.clone(),
            cell(alloc.job_version),
            alloc.desired_status.clone(),
            alloc.client_status.clone(),
            style.when(alloc.create_time),
            style.when(alloc.modify_time),
        ]);
    }
    table.render()
}

/// The section `Allocations` of a job or a node.
pub(crate) fn section(style: &OutputStyle, allocs: &[AllocationListStub]) -> String {
    if allocs.is_empty() {
        return style.section("Allocations", "No allocations placed\n");
    }
    style.section("Allocations", &table(style, allocs))
}

/// The block of one allocation; `rescheduled` is when its follow-up evaluation is due, if it waits for one.
pub(crate) fn block(style: &OutputStyle, alloc: &Allocation, rescheduled: Option<i64>) -> String {
    let version = alloc.job.as_ref().and_then(|job| job.version).unwrap_or(0);
    // Nomad's own command line has this one id in full.
    let id = if style.is_stock() { alloc.id.clone() } else { style.id(&alloc.id) };
    let mut entries = vec![
        ("ID", id),
        ("Eval ID", style.id(&alloc.eval_id)),
        ("Name", alloc.name.clone()),
        ("Node ID", style.id(&alloc.node_id)),
        ("Node Name", alloc.node_name.clone()),
        ("Job ID", alloc.job_id.clone()),
        ("Job Version", cell(version)),
        ("Client Status", alloc.client_status.clone()),
        ("Client Description", alloc.client_description.clone()),
        ("Desired Status", alloc.desired_status.clone()),
        ("Desired Description", alloc.desired_description.clone()),
        ("Created", style.when(alloc.create_time)),
        ("Modified", style.when(alloc.modify_time)),
    ];
    if let Some(deadline) = max_run_deadline(alloc) {
        entries.push(("Max Run Deadline", style.when(deadline)));
    }
    if !alloc.deployment_id.is_empty() {
        entries.push(("Deployment ID", style.id(&alloc.deployment_id)));
        entries.push(("Deployment Health", health(alloc.deployment_status.as_ref()).to_string()));
        if let Some(status) = alloc.deployment_status.as_ref().filter(|status| status.canary) {
            entries.push(("Canary", cell(status.canary)));
        }
    }
    if let Some(attempts) = reschedule_attempts(alloc) {
        entries.push(("Reschedule Attempts", attempts));
    }
    if !alloc.next_allocation.is_empty() {
        entries.push(("Replacement Alloc ID", style.id(&alloc.next_allocation)));
    }
    if let Some(due) = rescheduled.filter(|_| awaits_rescheduling(alloc)) {
        entries.push(("Reschedule Eligibility", reschedule_eligibility(style, due)));
    }
    if let Some(metric) = alloc.metrics.as_ref().filter(|_| style.verbose) {
        entries.push(("Evaluated Nodes", cell(metric.nodes_evaluated)));
        entries.push(("Filtered Nodes", cell(metric.nodes_filtered)));
        entries.push(("Exhausted Nodes", cell(metric.nodes_exhausted)));
        entries.push(("Allocation Time", cell(metric.allocation_time.0)));
        entries.push(("Failures", cell(metric.coalesced_failures)));
    }
    fields(&entries)
}

/// When the group's maximum run time ends.
fn max_run_deadline(alloc: &Allocation) -> Option<i64> {
    let limit = group_of(alloc)?.max_run_duration.filter(|limit| limit.0.0 > 0)?;
    let starts = alloc.task_states.values().map(|state| state.started_at.time().0);
    let begin = starts.filter(|start| *start > 0).min()?;
    Some(begin.saturating_add(limit.0.0))
}

/// Whether the allocation waits for being rescheduled: for its follow-up evaluation.
pub(crate) fn awaits_rescheduling(alloc: &Allocation) -> bool {
    !alloc.followup_eval_id.is_empty() && alloc.next_allocation.is_empty()
}

/// When the allocation will be rescheduled, by its follow-up evaluation: the delay grows with each attempt, and only the
/// servers know how far it has.
fn reschedule_eligibility(style: &OutputStyle, due: i64) -> String {
    if due > style.now.0 { style.ago(due) } else { "now".to_string() }
}

fn health(status: Option<&AllocDeploymentStatus>) -> &'static str {
    match status.and_then(|status| status.healthy) {
        Some(true) => "healthy",
        Some(false) => "unhealthy",
        None => "unset",
    }
}

/// Replacements within the policy's interval, of those it allows: `1/3`. A policy without limit has none.
fn reschedule_attempts(alloc: &Allocation) -> Option<String> {
    let tracker = alloc.reschedule_tracker.as_ref()?;
    let policy = group_of(alloc)?.reschedule_policy.as_ref()?;
    if policy.unlimited == Some(true) {
        return None;
    }
    let allowed = policy.attempts.filter(|attempts| *attempts > 0)?;
    let interval = policy.interval.map_or(0, |interval| interval.0.0);
    let last = tracker.events.iter().map(|event| event.reschedule_time).max()?;
    let counted = tracker.events.iter().filter(|event| last - event.reschedule_time <= interval).count();
    Some(format!("{counted}/{allowed}"))
}

/// The group as the job describes it.
pub(crate) fn group_of(alloc: &Allocation) -> Option<&model::document::TaskGroup> {
    let groups = &alloc.job.as_ref()?.task_groups;
    groups.iter().find(|group| group.name.as_deref() == Some(&alloc.task_group))
}

/// Where the allocation's ports are reached; empty when it has none.
pub(crate) fn addresses(style: &OutputStyle, alloc: &Allocation) -> String {
    let Some(resources) = &alloc.allocated_resources else { return String::new() };
    if resources.shared.ports.is_empty() {
        return String::new();
    }
    let network = resources.shared.networks.first();
    let dynamic = |port: &PortMapping| {
        network.is_some_and(|network| network.dynamic_ports.iter().any(|known| known.label == port.label))
    };
    let mut table = Table::new(["Label", "Dynamic", "Address"]);
    for port in &resources.shared.ports {
        let to = if port.to > 0 { format!(" -> {}", port.to) } else { String::new() };
        let yes = if dynamic(port) { "yes" } else { "no" };
        let ip =
            if port.host_ip.contains(':') { format!("[{}]", port.host_ip) } else { port.host_ip.clone() };
        let address = format!("{ip}:{}{to}", port.value);
        table.row([format!("*{}", port.label), yes.to_string(), address]);
    }
    let mode = network.map(|network| network.mode.as_str()).filter(|mode| !mode.is_empty());
    let mode = mode.map(|mode| format!(" (mode = \"{mode}\")")).unwrap_or_default();
    style.section(&format!("Allocation Addresses{mode}:"), &table.render())
}

/// What `-short` shows: block and tasks.
pub(crate) fn short(style: &OutputStyle, alloc: &Allocation) -> String {
    let entries = [
        ("ID", style.id(&alloc.id)),
        ("Name", alloc.name.clone()),
        ("Created", style.when(alloc.create_time)),
        ("Modified", style.when(alloc.modify_time)),
    ];
    let mut table = Table::new(["Name", "State", "Last Event", "Time", "Lifecycle"]);
    for (name, state) in tasks(alloc) {
        let last = state.events.last();
        table.row([
            name.to_string(),
            state.state.clone(),
            last.map(|event| event.kind.clone()).unwrap_or_default(),
            style.time(last.map_or(0, |event| event.time)),
            lifecycle(alloc.job.as_ref(), &alloc.task_group, name).unwrap_or_else(|| "main".to_string()),
        ]);
    }
    format!("{}{}", fields(&entries), style.section("Tasks", &table.render()))
}

/// The allocation's tasks in the order they run: prestart, sidecars, the rest; by name within each.
pub(crate) fn tasks(alloc: &Allocation) -> Vec<(&str, &TaskState)> {
    let rank = |name: &str| match task_of(alloc.job.as_ref(), &alloc.task_group, name)
        .and_then(|task| task.lifecycle.as_ref())
    {
        Some(lifecycle) if lifecycle.hook == "prestart" && !lifecycle.sidecar => 0,
        Some(lifecycle) if lifecycle.sidecar => 1,
        _ => 2,
    };
    let mut tasks: Vec<_> = alloc.task_states.iter().map(|(name, state)| (name.as_str(), state)).collect();
    tasks.sort_by_key(|(name, _)| (rank(name), *name));
    tasks
}

/// The task as the job describes it.
pub(crate) fn task_of<'a>(job: Option<&'a Job>, group: &str, name: &str) -> Option<&'a Task> {
    let group = job?.task_groups.iter().find(|known| known.name.as_deref() == Some(group))?;
    group.tasks.iter().find(|task| task.name == name)
}

/// `prestart`, `prestart sidecar`; none for a main task.
pub(crate) fn lifecycle(job: Option<&Job>, group: &str, name: &str) -> Option<String> {
    let lifecycle = task_of(job, group, name)?.lifecycle.as_ref().filter(|known| !known.hook.is_empty())?;
    Some(format!("{}{}", lifecycle.hook, if lifecycle.sidecar { " sidecar" } else { "" }))
}

/// The placement metrics of the allocation.
pub(crate) fn placement(style: &OutputStyle, alloc: &Allocation) -> String {
    let Some(metric) = &alloc.metrics else { return String::new() };
    let reasons =
        if metric.nodes_evaluated == 0 { String::new() } else { metrics::reasons(style, metric, "") };
    style.section("Placement Metrics", &(reasons + &metrics::scores(style, metric)))
}

#[cfg(test)]
pub(crate) mod tests {
    use base::Time;
    use model::document::{
        AllocatedResources, AllocatedTaskResources, NetworkResource, Port, TaskEvent, TaskGroup,
        TaskLifecycle,
    };

    use super::*;

    fn style() -> OutputStyle {
        OutputStyle::for_tests()
    }

    fn secs_ago(secs: i64) -> i64 {
        style().now.0 - secs * 1_000_000_000
    }

    fn stub(id: &str, index: u64) -> AllocationListStub {
        AllocationListStub {
            id: format!("{id}-0000"),
            node_id: "0badcafe-1111".into(),
            task_group: "api".into(),
            job_version: 3,
            desired_status: "run".into(),
            client_status: "running".into(),
            create_index: index,
            create_time: secs_ago(3_900),
            modify_time: secs_ago(12),
            ..AllocationListStub::default()
        }
    }

    #[test]
    fn the_list_shows_the_newest_first() {
        assert_eq!(
            table(&style(), &[stub("aaaaaaaa", 1), stub("bbbbbbbb", 2)]),
            "ID        Node ID   Task Group  Version  Desired  Status   Created   Modified\n\
             bbbbbbbb  0badcafe  api         3        run      running  1h5m ago  12s ago\n\
             aaaaaaaa  0badcafe  api         3        run      running  1h5m ago  12s ago\n"
        );
        assert_eq!(section(&style(), &[]), "\nAllocations\nNo allocations placed\n");
        assert_eq!(
            with_jobs(&style(), &[AllocationListStub { job_id: "web".into(), ..stub("aaaaaaaa", 1) }]),
            "ID        Job ID  Node ID   Task Group  Version  Desired  Status   Created   Modified\n\
             aaaaaaaa  web     0badcafe  api         3        run      running  1h5m ago  12s ago\n"
        );
        let verbose = OutputStyle { verbose: true, ..style() };
        let text = table(&verbose, &[stub("aaaaaaaa", 1)]);
        assert!(text.starts_with("ID             Eval ID  Node ID        Node Name  Task Group"), "{text}");
        assert!(text.contains("2026-01-02T01:59:05Z"), "{text}");
    }

    /// Its own policy has the first delay; the follow-up evaluation has the one that counts.
    #[test]
    fn the_servers_say_when_it_is_rescheduled() {
        let waiting = Allocation { followup_eval_id: "ffffffff-1".into(), ..alloc() };
        let due = style().now.0 + 120_000_000_000;
        let text = block(&style(), &waiting, Some(due));
        assert!(text.contains("Reschedule Eligibility = 2m from now\n"), "{text}");
        assert!(block(&style(), &waiting, Some(1)).contains("Reschedule Eligibility = now\n"));
        let replaced = Allocation { next_allocation: "eeeeeeee-1".into(), ..waiting };
        assert!(!block(&style(), &replaced, Some(due)).contains("Eligibility"));
    }

    #[test]
    fn nomads_own_command_line_has_the_id_in_full() {
        let stock = OutputStyle { program: "nomad".to_string(), ..style() };
        let alloc = Allocation { id: "aaaaaaaa-1111".into(), eval_id: "bbbbbbbb-1111".into(), ..alloc() };
        let text = block(&stock, &alloc, None);
        assert!(text.contains("= aaaaaaaa-1111\n") && text.contains("= bbbbbbbb\n"), "{text}");
    }

    /// A running allocation with a task before the main one.
    pub(crate) fn alloc() -> Allocation {
        let task = |name: &str, lifecycle| Task { name: name.into(), lifecycle, ..Task::default() };
        let prestart = TaskLifecycle { hook: "prestart".into(), sidecar: false };
        let group = TaskGroup {
            name: Some("api".into()),
            tasks: vec![task("main", None), task("setup", Some(prestart))].into(),
            ..TaskGroup::default()
        };
        let limits = AllocatedTaskResources {
            cpu: model::document::AllocatedCpuResources { cpu_shares: 500, ..Default::default() },
            memory: model::document::AllocatedMemoryResources { memory_mb: 256, memory_max_mb: 0 },
            ..AllocatedTaskResources::default()
        };
        let mut resources = AllocatedResources::default();
        resources.tasks.insert("main".into(), limits);
        resources.shared.disk_mb = 300;
        resources.shared.ports =
            vec![PortMapping { label: "http".into(), value: 25_001, to: 80, host_ip: "10.0.0.7".into() }]
                .into();
        let port = Port { label: "http".into(), ..Port::default() };
        resources.shared.networks = vec![NetworkResource {
            mode: "bridge".into(),
            dynamic_ports: vec![port].into(),
            ..NetworkResource::default()
        }]
        .into();
        let started = TaskEvent { kind: "Started".into(), time: secs_ago(5), ..TaskEvent::default() };
        let received = TaskEvent { kind: "Received".into(), time: secs_ago(6), ..TaskEvent::default() };
        let state = |state: &str| TaskState {
            state: state.into(),
            started_at: Time(secs_ago(5)).into(),
            events: vec![received.clone(), started.clone()].into(),
            ..TaskState::default()
        };
        Allocation {
            id: "5d16e7fe-8a2e".into(),
            eval_id: "11111111-2222".into(),
            name: "web.api[0]".into(),
            node_id: "0badcafe-1111".into(),
            node_name: "n1".into(),
            job_id: "web".into(),
            task_group: "api".into(),
            job: Some(Job { version: Some(2), task_groups: vec![group].into(), ..Job::default() }),
            allocated_resources: Some(resources),
            desired_status: "run".into(),
            client_status: "running".into(),
            create_time: secs_ago(10),
            modify_time: secs_ago(4),
            task_states: [("main".to_string(), state("running")), ("setup".to_string(), state("dead"))]
                .into_iter()
                .collect(),
            ..Allocation::default()
        }
    }

    #[test]
    fn the_block_has_nomads_fields() {
        assert_eq!(
            block(&style(), &alloc(), None),
            "ID                  = 5d16e7fe\n\
             Eval ID             = 11111111\n\
             Name                = web.api[0]\n\
             Node ID             = 0badcafe\n\
             Node Name           = n1\n\
             Job ID              = web\n\
             Job Version         = 2\n\
             Client Status       = running\n\
             Client Description  = <none>\n\
             Desired Status      = run\n\
             Desired Description = <none>\n\
             Created             = 10s ago\n\
             Modified            = 4s ago\n"
        );
    }

    #[test]
    fn addresses_mark_dynamic_ports() {
        assert_eq!(
            addresses(&style(), &alloc()),
            "\nAllocation Addresses (mode = \"bridge\"):\n\
             Label  Dynamic  Address\n\
             *http  yes      10.0.0.7:25001 -> 80\n"
        );
    }

    #[test]
    fn the_short_form_lists_tasks_in_the_order_they_run() {
        let text = short(&style(), &alloc());
        assert_eq!(
            text,
            "ID       = 5d16e7fe\nName     = web.api[0]\nCreated  = 10s ago\nModified = 4s ago\n\
             \nTasks\n\
             Name   State    Last Event  Time                  Lifecycle\n\
             setup  dead     Started     2026-01-02T03:04:00Z  prestart\n\
             main   running  Started     2026-01-02T03:04:00Z  main\n"
        );
    }
}
