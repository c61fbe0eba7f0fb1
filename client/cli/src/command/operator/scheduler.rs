use api::{SchedulerConfiguration, SchedulerScan};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::value;
use crate::layout;
use crate::output::{write_err, write_out};

pub static GET_CONFIG: Command = Command {
    name: "operator scheduler get-config",
    aliases: &[],
    arguments: "",
    summary: "Show how the scheduler works.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get_config(call))),
};

pub static SET_CONFIG: Command = Command {
    name: "operator scheduler set-config",
    aliases: &[],
    arguments: "",
    summary: "Change how the scheduler works.",
    details: "What is not given stays as it is.",
    flags: &[
        &[
            value("check-index", "N", "Change it only if its modify index is N."),
            value(
                "scheduler-algorithm",
                "NAME",
                "Which nodes are good: binpack fills them, spread spares them.",
            ),
            value("memory-oversubscription", "BOOL", "Tasks may use up to their memory_max."),
            value("reject-job-registration", "BOOL", "Refuse to register, dispatch and scale jobs."),
            value("pause-eval-broker", "BOOL", "Let evaluations wait; nothing is scheduled."),
            value("preempt-batch-scheduler", "BOOL", "Batch jobs may take the place of others."),
            value("preempt-service-scheduler", "BOOL", "Service jobs may take the place of others."),
            value("preempt-sysbatch-scheduler", "BOOL", "Sysbatch jobs may take the place of others."),
            value("preempt-system-scheduler", "BOOL", "System jobs may take the place of others."),
            value(
                "node-limit-for-feasibility-checks",
                "N",
                "Nodes that are scored at most, with -scan=sample.",
            ),
            value("scan", "all|sample", "Look at all nodes, or at a sample as the reference does."),
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(set_config(call))),
};

const SAMPLE: &str = "sample";

async fn get_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let objects = call.objects()?;
    let client = call.client()?;
    let answer = client.scheduler().await.doing("querying scheduler configuration")?;
    if let Some(objects) = objects {
        return objects.print(&answer);
    }
    let scan = client.scheduler_scan().await.doing("querying scheduler configuration")?;
    write_out(layout::operator::scheduler(&answer.scheduler_config.unwrap_or_default(), &scan));
    Ok(0)
}

async fn set_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let scan = call.args.value("scan").map(|scan| SchedulerScan { scan: scan.to_string() });
    let expected: Option<u64> = call.args.number("check-index")?;
    let client = call.client()?;
    let seen = client.scheduler().await.doing("querying scheduler configuration")?;
    let seen = seen.scheduler_config.unwrap_or_default();
    let wanted = changed(&call, seen.clone())?;
    let limited = wanted.node_limit_for_feasibility_checks > 0
        && wanted.node_limit_for_feasibility_checks != seen.node_limit_for_feasibility_checks;
    let index = expected.unwrap_or(seen.modify_index);
    let set = client.set_scheduler(&wanted, index).await.doing("setting scheduler configuration")?;
    if !set.updated {
        return Err(anyhow::anyhow!(
            "Scheduler configuration could not be atomically updated, please try again"
        )
        .into());
    }
    if let Some(scan) = &scan {
        client.set_scheduler_scan(scan).await.doing("setting which nodes are looked at")?;
    }
    write_out("Scheduler configuration updated!\n");
    if limited && client.scheduler_scan().await.doing("querying scheduler configuration")?.scan != SAMPLE {
        write_err(
            "Note: -node-limit-for-feasibility-checks has no effect while all nodes are looked at: see -scan",
        );
    }
    Ok(0)
}

fn changed(call: &Call, mut config: SchedulerConfiguration) -> Result<SchedulerConfiguration, Failure> {
    let preemption = &mut config.preemption_config;
    for (flag, field) in [
        ("memory-oversubscription", &mut config.memory_oversubscription_enabled),
        ("reject-job-registration", &mut config.reject_job_registration),
        ("pause-eval-broker", &mut config.pause_eval_broker),
        ("preempt-batch-scheduler", &mut preemption.batch_scheduler_enabled),
        ("preempt-service-scheduler", &mut preemption.service_scheduler_enabled),
        ("preempt-sysbatch-scheduler", &mut preemption.sys_batch_scheduler_enabled),
        ("preempt-system-scheduler", &mut preemption.system_scheduler_enabled),
    ] {
        if let Some(given) = call.args.value(flag) {
            let wrong =
                || anyhow::anyhow!("invalid value \"{given}\" for flag -{flag}: expected true or false");
            *field = api::go_bool(given).ok_or_else(wrong)?;
        }
    }
    if let Some(algorithm) = call.args.value("scheduler-algorithm") {
        config.scheduler_algorithm = algorithm.to_string();
    }
    let limit = call.args.number("node-limit-for-feasibility-checks")?;
    config.node_limit_for_feasibility_checks = limit.unwrap_or(config.node_limit_for_feasibility_checks);
    Ok(config)
}
