use sdk::{Error, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run};
use crate::layout::checkup::{self, Answers};
use crate::output::{json, write_out};

pub(super) static COMMAND: Command = Command {
    name: "operator doctor",
    aliases: &[],
    arguments: "",
    summary: "Say what of the cluster needs attention, and what to do about it.",
    details: "Looks at the leader, the health of the servers, their versions, the scheduler, the nodes, and at what the\n\
              agent that is asked leaves open to others. The exit code is 1 when something needs attention.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let (leader, health, members) =
        tokio::join!(client.leader(), client.autopilot_health(), client.members());
    let (scheduler, nodes, agent) =
        tokio::join!(client.scheduler(), client.nodes(Query::new()), client.agent_self());
    let leader = match leader {
        Err(Error::Status { text, .. }) => Err(text),
        reached => Ok(reached.doing("querying the leader")?),
    };
    let said = |error: Error| error.to_string();
    let findings = checkup::examine(&Answers {
        leader,
        health: health.map_err(said),
        members: members.map_err(said),
        scheduler: scheduler.map(|answer| answer.scheduler_config.unwrap_or_default()).map_err(said),
        nodes: nodes.map(|answer| answer.value).map_err(said),
        agent: agent.map_err(said),
    });
    if call.args.switch(&JSON) {
        write_out(json(&findings));
    } else {
        write_out(checkup::text(&call.style(), &findings));
    }
    Ok(u8::from(findings.iter().any(|finding| !finding.ok)))
}
