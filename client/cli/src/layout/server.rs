//! The members of the cluster.

use api::AgentMember;

use super::cell;
use crate::output::{OutputStyle, Table};

/// The list of servers. `leaders` are the RPC addresses of those who lead a region, as far as they are known.
pub(crate) fn members(style: &OutputStyle, members: &[AgentMember], leaders: &[String]) -> String {
    let all = style.verbose || style.wide;
    let protocol = all.then_some("Protocol");
    let tags = all.then_some("Tags");
    let head = ["Name", "Address", "Port", "Status", "Leader"]
        .into_iter()
        .chain(protocol)
        .chain(["Raft Version", "Build", "Datacenter", "Region"])
        .chain(tags);
    let mut table = Table::new(head);
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    for member in members {
        let tag = |name: &str| member.tags.get(name).cloned().unwrap_or_default();
        let mut row = vec![
            member.name.clone(),
            member.addr.clone(),
            cell(member.port),
            member.status.clone(),
            cell(leaders.iter().any(|leader| is_leader(member, leader))),
        ];
        row.extend(all.then(|| cell(member.protocol_cur)));
        row.extend([tag("raft_vsn"), tag("build"), tag("dc"), tag("region")]);
        if all {
            let tags = member.tags.iter().map(|(name, value)| format!("{name}={value}"));
            row.push(tags.collect::<Vec<_>>().join(","));
        }
        table.row(row);
    }
    table.render()
}

/// Members gossip under one port and answer RPC under another, which they name in a tag.
pub(crate) fn is_leader(member: &AgentMember, leader: &str) -> bool {
    let hosts = [member.tags.get("rpc_addr"), Some(&member.addr)];
    let port = member.tags.get("port");
    let is = |host: &String, port: &String| {
        leader == format!("{host}:{port}") || leader == format!("[{host}]:{port}")
    };
    port.is_some_and(|port| hosts.into_iter().flatten().any(|host| is(host, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_is_known_by_its_rpc_address() {
        let member = |name: &str, addr: &str| AgentMember {
            name: name.into(),
            addr: addr.into(),
            port: 4648,
            status: "alive".into(),
            tags: [
                ("port", "4647"),
                ("raft_vsn", "3"),
                ("build", "2.0.0"),
                ("dc", "dc1"),
                ("region", "global"),
            ]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into_iter()
            .collect(),
            ..AgentMember::default()
        };
        let sixth = AgentMember { addr: "::1".into(), ..member("c.global", "") };
        assert!(is_leader(&sixth, "[::1]:4647") && !is_leader(&sixth, "[::2]:4647"));
        assert_eq!(
            members(
                &OutputStyle::for_tests(),
                &[member("b.global", "10.0.0.2"), member("a.global", "10.0.0.1")],
                &["10.0.0.2:4647".to_string()]
            ),
            "Name      Address   Port  Status  Leader  Raft Version  Build  Datacenter  Region\n\
             a.global  10.0.0.1  4648  alive   false   3             2.0.0  dc1         global\n\
             b.global  10.0.0.2  4648  alive   true    3             2.0.0  dc1         global\n"
        );
    }
}
