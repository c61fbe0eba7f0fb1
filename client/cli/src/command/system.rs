use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};

pub(super) const COMMANDS: &[&Command] = &[&GC, &RECONCILE];

static GC: Command = Command {
    name: "system gc",
    aliases: &[],
    arguments: "",
    summary: "Run garbage collection now.",
    details: "Collects jobs, evaluations, allocations, deployments and nodes that have ended.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(gc(call))),
};

static RECONCILE: Command = Command {
    name: "system reconcile summaries",
    aliases: &[],
    arguments: "",
    summary: "Recompute the summaries of all jobs.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(reconcile(call))),
};

async fn gc(call: Call) -> Outcome {
    call.no_arguments()?;
    call.client()?.collect_garbage().await.doing("running system garbage-collection")?;
    Ok(0)
}

async fn reconcile(call: Call) -> Outcome {
    call.no_arguments()?;
    call.client()?.reconcile_summaries().await.doing("running system summary reconciliation")?;
    Ok(0)
}
