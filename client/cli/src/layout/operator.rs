//! The raft cluster, its autopilot and snapshot files.

use api::{
    AutopilotConfiguration, KeyringResponse, OperatorHealthReply, RaftConfiguration, SchedulerConfiguration,
    SchedulerScan, SigningRootKey, UpgradeStatus,
};
use server::snapshot_file::Read;

use super::cell;
use crate::output::{OutputStyle, Table, bytes, fields};

pub(crate) fn raft_peers(raft: &RaftConfiguration) -> String {
    let mut table = Table::new(["Node", "ID", "Address", "State", "Voter", "RaftProtocol"]);
    for server in raft.servers.iter() {
        table.row([
            server.node.clone(),
            server.id.clone(),
            server.address.clone(),
            (if server.leader { "leader" } else { "follower" }).to_string(),
            cell(server.voter),
            server.raft_protocol.clone(),
        ]);
    }
    table.render()
}

/// The servers with their releases, what is in the way, and what to do next.
pub(crate) fn upgrade(status: &UpgradeStatus) -> String {
    let mut table = Table::new(["Name", "Address", "Version", "Epoch", "Status", "Voter"]);
    for server in status.servers.iter() {
        let known = |text: String| if server.epoch == 0 { "unknown".to_string() } else { text };
        table.row([
            server.name.clone(),
            server.address.clone(),
            known(server.version.clone()),
            known(server.epoch.to_string()),
            server.status.clone(),
            cell(server.voter),
        ]);
    }
    let problems: String = status.problems.iter().map(|problem| format!("{problem}\n")).collect();
    let next = match (status.finished, problems.is_empty()) {
        (true, _) => "Every server is of this release, and the cluster is at its epoch".to_string(),
        (false, true) => format!(
            "Every server knows epoch {}: the cluster gets there by itself unless server.raise_epoch is false, and at \
             once by operator upgrade finish. An older release cannot be gone back to from then on",
            status.next
        ),
        (false, false) => {
            "Upgrade these servers, one at a time. Until the last one the older release can be gone back to"
                .to_string()
        }
    };
    format!("Epoch: {}\n\n{}\n{problems}{next}\n", status.epoch, table.render())
}

/// The keys of gossip, then the servers that did not answer.
pub(crate) fn gossip_keys(answer: &KeyringResponse) -> String {
    let mut table = Table::new(["Key", "Servers"]);
    for (key, count) in answer.keys.iter() {
        table.row([key.clone(), format!("{count}/{}", answer.num_nodes)]);
    }
    let failures = answer.messages.iter().map(|(server, why)| format!("{server}: {why}\n"));
    table.render() + &failures.collect::<String>()
}

pub(crate) fn root_keys(style: &OutputStyle, keys: &[SigningRootKey]) -> String {
    let mut columns = vec!["Key", "State", "Create Time", "Publish Time"];
    // Scripts know the columns of Nomad.
    columns.extend(style.verbose.then_some("Signs"));
    let mut table = Table::new(columns);
    for key in keys {
        // Zero: it was in use at once.
        let published =
            if key.meta.publish_time == 0 { "<none>".to_string() } else { style.time(key.meta.publish_time) };
        let mut row = vec![
            style.id(&key.meta.key_id),
            key.meta.state.clone(),
            style.time(key.meta.create_time),
            published,
        ];
        row.extend(style.verbose.then(|| key.signing_algorithm.clone()));
        table.row(row);
    }
    table.render()
}

pub(crate) fn autopilot(config: &AutopilotConfiguration) -> String {
    let lines = [
        ("CleanupDeadServers", cell(config.cleanup_dead_servers)),
        ("LastContactThreshold", config.last_contact_threshold.clone()),
        ("MaxTrailingLogs", cell(config.max_trailing_logs)),
        ("MinQuorum", cell(config.min_quorum)),
        ("ServerStabilizationTime", config.server_stabilization_time.clone()),
        ("EnableRedundancyZones", cell(config.enable_redundancy_zones)),
        ("DisableUpgradeMigration", cell(config.disable_upgrade_migration)),
        ("EnableCustomUpgrades", cell(config.enable_custom_upgrades)),
    ];
    lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

pub(crate) fn scheduler(config: &SchedulerConfiguration, scan: &SchedulerScan) -> String {
    let preemption = &config.preemption_config;
    fields(&[
        ("Scheduler Algorithm", config.scheduler_algorithm.clone()),
        ("Memory Oversubscription", cell(config.memory_oversubscription_enabled)),
        ("Reject Job Registration", cell(config.reject_job_registration)),
        ("Pause Eval Broker", cell(config.pause_eval_broker)),
        ("Preemption System Scheduler", cell(preemption.system_scheduler_enabled)),
        ("Preemption Service Scheduler", cell(preemption.service_scheduler_enabled)),
        ("Preemption Batch Scheduler", cell(preemption.batch_scheduler_enabled)),
        ("Preemption SysBatch Scheduler", cell(preemption.sys_batch_scheduler_enabled)),
        ("Node Limit For Feasibility Checks", cell(config.node_limit_for_feasibility_checks)),
        ("Modify Index", cell(config.modify_index)),
        ("Nodes Looked At", scan.scan.clone()),
    ])
}

pub(crate) fn health(style: &OutputStyle, health: &OperatorHealthReply) -> String {
    let mut text = format!(
        "Healthy: {}\nFailureTolerance: {}\nLeader: {}\nVoters:\n",
        health.healthy, health.failure_tolerance, health.leader
    );
    text.extend(health.voters.iter().map(|voter| format!("\t{voter}\n")));
    let mut table = Table::new([
        "ID",
        "Name",
        "Address",
        "SerfStatus",
        "Version",
        "Leader",
        "Voter",
        "Healthy",
        "LastContact",
        "LastTerm",
        "LastIndex",
        "StableSince",
    ]);
    for server in health.servers.iter() {
        table.row([
            server.id.clone(),
            server.name.clone(),
            server.address.clone(),
            server.serf_status.clone(),
            server.version.clone(),
            cell(server.leader),
            cell(server.voter),
            cell(server.healthy),
            server.last_contact.clone(),
            cell(server.last_term),
            cell(server.last_index),
            style.time(server.stable_since.0.map_or(0, |time| time.0)),
        ]);
    }
    text + "Servers:\n" + &table.render()
}

/// The metadata of a snapshot file.
pub(crate) fn snapshot(style: &OutputStyle, file: &Read) -> String {
    let meta = &file.meta;
    let block = fields(&[
        ("Created", style.time(meta.created.0)),
        ("ID", meta.id()),
        ("Size", bytes(file.bytes)),
        ("Index", cell(meta.index)),
        ("Term", cell(meta.term.0)),
        ("Version", meta.release.clone()),
        ("Cluster", meta.cluster.to_string()),
    ]);
    let mut table = Table::new(["Type", "Count", "Size"]);
    for content in &meta.contents {
        table.row([content.kind.clone(), cell(content.count), bytes(content.bytes)]);
    }
    let total: u64 = meta.contents.iter().map(|content| content.bytes).sum();
    table.row(["Total".to_string(), "-".to_string(), bytes(total)]);
    format!("{block}\n{}", table.render())
}

#[cfg(test)]
mod tests {
    use api::{RaftServer, ServerHealth};
    use base::{Index, Term, Time, Uuid};
    use server::snapshot_file::{Content, Meta};

    use super::*;

    #[test]
    fn peers_are_listed_with_their_role() {
        let peer = |node: &str, leader| RaftServer {
            id: format!("id-{node}"),
            node: node.into(),
            address: "10.0.0.1:4647".into(),
            leader,
            voter: true,
            raft_protocol: "3".into(),
        };
        let raft = RaftConfiguration { servers: vec![peer("a", true), peer("b", false)].into(), index: 7 };
        assert_eq!(
            raft_peers(&raft),
            "Node  ID    Address        State     Voter  RaftProtocol\n\
             a     id-a  10.0.0.1:4647  leader    true   3\n\
             b     id-b  10.0.0.1:4647  follower  true   3\n"
        );
    }

    #[test]
    fn health_is_lines_then_a_table() {
        let server = ServerHealth {
            id: "x".into(),
            name: "a".into(),
            address: "10.0.0.1:4647".into(),
            serf_status: "alive".into(),
            version: "0.1.0".into(),
            leader: true,
            last_contact: "0s".into(),
            last_term: 2,
            last_index: 9,
            healthy: true,
            voter: true,
            stable_since: Time::from_secs(1_767_323_045).into(),
        };
        let reply = OperatorHealthReply {
            healthy: true,
            failure_tolerance: 1,
            servers: vec![server].into(),
            leader: "x".into(),
            voters: vec!["x".to_string()].into(),
        };
        let text = health(&OutputStyle::for_tests(), &reply);
        let head = "Healthy: true\nFailureTolerance: 1\nLeader: x\nVoters:\n\tx\nServers:\nID  Name  Address";
        assert!(text.starts_with(head), "{text}");
        assert!(
            text.ends_with("true     0s           2         9          2026-01-02T03:04:05Z\n"),
            "{text}"
        );
    }

    #[test]
    fn a_snapshot_is_described_without_a_server() {
        let contents = vec![Content { kind: "Job".into(), count: 2, bytes: 2_048 }];
        let meta = Meta {
            created: Time::from_secs(1_767_323_045),
            cluster: Uuid::from(1),
            index: Index(9),
            term: Term(2),
            release: "0.1.0".into(),
            contents,
        };
        let file = Read { index: meta.index, meta, chunks: Vec::new(), bytes: 4_096 };
        let text = snapshot(&OutputStyle::for_tests(), &file);
        assert!(
            text.starts_with(
                "Created = 2026-01-02T03:04:05Z\nID      = 2-9-1767323045000\nSize    = 4.0 KiB\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with("\n\nType   Count  Size\nJob    2      2.0 KiB\nTotal  -      2.0 KiB\n"),
            "{text}"
        );
    }
}
