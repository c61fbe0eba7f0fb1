use api::{SchedulerConfiguration, SchedulerScan};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::{write_err, write_out};

const CHECK_INDEX: Flag<u64> = Flag::number("check-index", "N", "Change it only if its modify index is N.");
const SCHEDULER_ALGORITHM: Flag<String> = Flag::value("scheduler-algorithm", "NAME", "binpack or spread.");
const MEMORY_OVERSUBSCRIPTION: Flag<String> =
    Flag::value("memory-oversubscription", "BOOL", "Allow tasks to use up to their memory_max.");
const REJECT_JOB_REGISTRATION: Flag<String> =
    Flag::value("reject-job-registration", "BOOL", "Reject requests that register, dispatch or scale jobs.");
const PAUSE_EVAL_BROKER: Flag<String> =
    Flag::value("pause-eval-broker", "BOOL", "Pause the evaluation broker: nothing is scheduled.");
const PREEMPT_BATCH_SCHEDULER: Flag<String> =
    Flag::value("preempt-batch-scheduler", "BOOL", "Allow batch jobs to preempt.");
const PREEMPT_SERVICE_SCHEDULER: Flag<String> =
    Flag::value("preempt-service-scheduler", "BOOL", "Allow service jobs to preempt.");
const PREEMPT_SYSBATCH_SCHEDULER: Flag<String> =
    Flag::value("preempt-sysbatch-scheduler", "BOOL", "Allow sysbatch jobs to preempt.");
const PREEMPT_SYSTEM_SCHEDULER: Flag<String> =
    Flag::value("preempt-system-scheduler", "BOOL", "Allow system jobs to preempt.");
const NODE_LIMIT_FOR_FEASIBILITY_CHECKS: Flag<u64> =
    Flag::number("node-limit-for-feasibility-checks", "N", "Most nodes that are scored, with -scan=sample.");
const SCAN: Flag<String> = Flag::value("scan", "all|sample", "Score all nodes, or a sample as Nomad does.");

pub(super) static GET_CONFIG: Command = Command {
    name: "operator scheduler get-config",
    aliases: &[],
    arguments: "",
    summary: "Show the scheduler configuration.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get_config(call))),
};

pub(super) static SET_CONFIG: Command = Command {
    name: "operator scheduler set-config",
    aliases: &[],
    arguments: "",
    summary: "Change the scheduler configuration.",
    details: "Settings without a flag stay unchanged.",
    flags: &[
        &[
            &CHECK_INDEX,
            &SCHEDULER_ALGORITHM,
            &MEMORY_OVERSUBSCRIPTION,
            &REJECT_JOB_REGISTRATION,
            &PAUSE_EVAL_BROKER,
            &PREEMPT_BATCH_SCHEDULER,
            &PREEMPT_SERVICE_SCHEDULER,
            &PREEMPT_SYSBATCH_SCHEDULER,
            &PREEMPT_SYSTEM_SCHEDULER,
            &NODE_LIMIT_FOR_FEASIBILITY_CHECKS,
            &SCAN,
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(set_config(call))),
};

const SAMPLE: &str = "sample";

async fn get_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let client = call.client()?;
    let answer = client.scheduler().await.doing("querying scheduler configuration")?;
    if let Some(format) = format {
        return format.print(&answer);
    }
    let scan = client.scheduler_scan().await.doing("querying scheduler configuration")?;
    write_out(layout::operator::scheduler(&answer.scheduler_config.unwrap_or_default(), &scan));
    Ok(0)
}

async fn set_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let scan = call.args.value(&SCAN).map(|scan| SchedulerScan { scan: scan.to_string() });
    let expected: Option<u64> = call.args.parsed(&CHECK_INDEX)?;
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
        client.set_scheduler_scan(scan).await.doing("setting which nodes are scored")?;
    }
    write_out("Scheduler configuration updated!\n");
    if limited && client.scheduler_scan().await.doing("querying scheduler configuration")?.scan != SAMPLE {
        write_err(
            "Note: -node-limit-for-feasibility-checks has no effect while all nodes are scored: see -scan",
        );
    }
    Ok(0)
}

fn changed(call: &Call, mut config: SchedulerConfiguration) -> Result<SchedulerConfiguration, Failure> {
    let preemption = &mut config.preemption_config;
    for (flag, field) in [
        (&MEMORY_OVERSUBSCRIPTION, &mut config.memory_oversubscription_enabled),
        (&REJECT_JOB_REGISTRATION, &mut config.reject_job_registration),
        (&PAUSE_EVAL_BROKER, &mut config.pause_eval_broker),
        (&PREEMPT_BATCH_SCHEDULER, &mut preemption.batch_scheduler_enabled),
        (&PREEMPT_SERVICE_SCHEDULER, &mut preemption.service_scheduler_enabled),
        (&PREEMPT_SYSBATCH_SCHEDULER, &mut preemption.sys_batch_scheduler_enabled),
        (&PREEMPT_SYSTEM_SCHEDULER, &mut preemption.system_scheduler_enabled),
    ] {
        *field = call.args.boolean(flag)?.unwrap_or(*field);
    }
    if let Some(algorithm) = call.args.value(&SCHEDULER_ALGORITHM) {
        config.scheduler_algorithm = algorithm.to_string();
    }
    let limit = call.args.parsed(&NODE_LIMIT_FOR_FEASIBILITY_CHECKS)?;
    config.node_limit_for_feasibility_checks = limit.unwrap_or(config.node_limit_for_feasibility_checks);
    Ok(config)
}
