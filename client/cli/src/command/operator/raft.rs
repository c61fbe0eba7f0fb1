use std::path::Path;

use anyhow::Context;
use sdk::RaftPeer;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, Outcome, Run};
use crate::flags::{Flag, FlagList};
use crate::layout;
use crate::output::{json, write_out};

const STALE: Flag<bool> = Flag::switch("stale", "Allow any server to answer, also without a leader.");
const PEER_ID: Flag<String> = Flag::value("peer-id", "ID", "The server's id, as list-peers shows it.");
const PEER_ADDRESS: Flag<String> = Flag::value("peer-address", "HOST:PORT", "The server's RPC address.");

const PEER: FlagList = &[&PEER_ID, &PEER_ADDRESS];

pub(super) static LIST_PEERS: Command = Command {
    name: "operator raft list-peers",
    aliases: &[],
    arguments: "",
    summary: "List the peers of the Raft cluster.",
    details: "",
    flags: &[&[&STALE, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list_peers(call))),
};

pub(super) static INFO: Command = Command {
    name: "operator raft info",
    aliases: &[],
    arguments: "<data_dir>",
    summary: "Show where the log of a stopped server ends.",
    details: "Of several servers that are left, the one with the highest term and then the highest entry has the newest log: \
              a cluster that lost most of its servers goes on from it. <data_dir> is data_dir of the agent's \
              configuration.",
    flags: &[&[&JSON]],
    run: Run::Process(info),
};

pub(super) static REMOVE_PEER: Command = Command {
    name: "operator raft remove-peer",
    aliases: &[],
    arguments: "",
    summary: "Remove a server from the Raft cluster.",
    details: "For a server that is gone for good. A server that comes back is added again.",
    flags: &[PEER, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(remove_peer(call))),
};

pub(super) static TRANSFER_LEADERSHIP: Command = Command {
    name: "operator raft transfer-leadership",
    aliases: &[],
    arguments: "",
    summary: "Transfer leadership to another server.",
    details: "",
    flags: &[PEER, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(transfer_leadership(call))),
};

fn info(call: Call) -> Outcome {
    let log = server::log_dir(Path::new(call.one_argument()?));
    let shown = log.display();
    let end = server::log_end(&log).with_context(|| format!("Error reading the log in {shown}"))?;
    let end = end.with_context(|| format!("Error reading the log in {shown}: it is empty"))?;
    write_out(if call.args.switch(&JSON) {
        json(&serde_json::json!({"LastTerm": end.term, "LastEntry": end.entry, "LastIndex": end.index.0}))
    } else {
        format!("Last term:  {}\nLast entry: {}\nLast index: {}\n", end.term, end.entry, end.index)
    });
    Ok(0)
}

async fn list_peers(call: Call) -> Outcome {
    call.no_arguments()?;
    let raft = call.client()?.raft_configuration(call.args.switch(&STALE)).await;
    let raft = raft.doing("retrieving raft configuration")?;
    write_out(if call.args.switch(&JSON) { json(&raft) } else { layout::operator::raft_peers(&raft) });
    Ok(0)
}

async fn remove_peer(call: Call) -> Outcome {
    let peer = peer(&call)?;
    call.client()?.remove_raft_peer(&peer).await.doing("removing raft peer")?;
    write_out(format!("Removed peer with {}\n", named(&peer)));
    Ok(0)
}

async fn transfer_leadership(call: Call) -> Outcome {
    let peer = peer(&call)?;
    let moved = call.client()?.transfer_leadership(&peer).await.doing("transferring leadership")?;
    write_out(match moved.noop {
        true => format!("The peer with {} leads already\n", named(&peer)),
        false => format!("Transferred leadership to peer with {}\n", named(&peer)),
    });
    Ok(0)
}

/// Exactly one of the flags.
fn peer(call: &Call) -> Result<RaftPeer, Failure> {
    call.no_arguments()?;
    let given = |flag| call.args.value(flag).filter(|value| !value.is_empty()).map(str::to_string);
    match (given(&PEER_ID), given(&PEER_ADDRESS)) {
        (Some(id), None) => Ok(RaftPeer::Id(id)),
        (None, Some(address)) => Ok(RaftPeer::Address(address)),
        (None, None) => Err(call.usage("This command needs -peer-id or -peer-address")),
        (Some(_), Some(_)) => Err(call.usage("This command takes -peer-id or -peer-address, not both")),
    }
}

fn named(peer: &RaftPeer) -> String {
    match peer {
        RaftPeer::Id(id) => format!("id \"{id}\""),
        RaftPeer::Address(address) => format!("address \"{address}\""),
    }
}
