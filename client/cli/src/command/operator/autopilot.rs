use api::AutopilotConfiguration;
use base::Duration;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::{json, write_out};

const CLEANUP_DEAD_SERVERS: Flag<String> =
    Flag::value("cleanup-dead-servers", "BOOL", "Remove failed servers when that is safe.");
const MAX_TRAILING_LOGS: Flag<u64> =
    Flag::number("max-trailing-logs", "N", "Log entries that a healthy server may lag behind.");
const LAST_CONTACT_THRESHOLD: Flag<Duration> = Flag::parsed(
    "last-contact-threshold",
    "DURATION",
    "a duration, like 10s",
    "Time since the last contact after which a server is unhealthy.",
);
const SERVER_STABILIZATION_TIME: Flag<Duration> = Flag::parsed(
    "server-stabilization-time",
    "DURATION",
    "a duration, like 10s",
    "How long a new server must be healthy before it becomes a voter.",
);
const MIN_QUORUM: Flag<u32> =
    Flag::number("min-quorum", "N", "Least number of voters that must remain when servers are removed.");
const ENABLE_REDUNDANCY_ZONES: Flag<String> =
    Flag::value("enable-redundancy-zones", "BOOL", "Nomad Enterprise only.");
const DISABLE_UPGRADE_MIGRATION: Flag<String> =
    Flag::value("disable-upgrade-migration", "BOOL", "Nomad Enterprise only.");
const ENABLE_CUSTOM_UPGRADES: Flag<String> =
    Flag::value("enable-custom-upgrades", "BOOL", "Nomad Enterprise only.");

pub(super) static GET_CONFIG: Command = Command {
    name: "operator autopilot get-config",
    aliases: &[],
    arguments: "",
    summary: "Show the autopilot configuration.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get_config(call))),
};

pub(super) static SET_CONFIG: Command = Command {
    name: "operator autopilot set-config",
    aliases: &[],
    arguments: "",
    summary: "Change the autopilot configuration.",
    details: "Settings without a flag stay unchanged.",
    flags: &[
        &[
            &CLEANUP_DEAD_SERVERS,
            &MAX_TRAILING_LOGS,
            &LAST_CONTACT_THRESHOLD,
            &SERVER_STABILIZATION_TIME,
            &MIN_QUORUM,
            &ENABLE_REDUNDANCY_ZONES,
            &DISABLE_UPGRADE_MIGRATION,
            &ENABLE_CUSTOM_UPGRADES,
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(set_config(call))),
};

pub(super) static HEALTH: Command = Command {
    name: "operator autopilot health",
    aliases: &[],
    arguments: "",
    summary: "Show the health of the servers.",
    details: "",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(health(call))),
};

async fn get_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let config = call.client()?.autopilot().await.doing("querying autopilot configuration")?;
    if let Some(format) = format {
        return format.print(&config);
    }
    write_out(layout::operator::autopilot(&config));
    Ok(0)
}

async fn set_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let seen = client.autopilot().await.doing("querying autopilot configuration")?;
    let wanted = changed(&call, seen.clone())?;
    let set =
        client.set_autopilot(&wanted, seen.modify_index).await.doing("setting autopilot configuration")?;
    if !set {
        return Err(anyhow::anyhow!("Configuration could not be atomically updated, please try again").into());
    }
    write_out("Configuration updated!\n");
    Ok(0)
}

fn changed(call: &Call, mut config: AutopilotConfiguration) -> Result<AutopilotConfiguration, Failure> {
    for (flag, field) in [
        (&CLEANUP_DEAD_SERVERS, &mut config.cleanup_dead_servers),
        (&ENABLE_REDUNDANCY_ZONES, &mut config.enable_redundancy_zones),
        (&DISABLE_UPGRADE_MIGRATION, &mut config.disable_upgrade_migration),
        (&ENABLE_CUSTOM_UPGRADES, &mut config.enable_custom_upgrades),
    ] {
        *field = call.args.boolean(flag)?.unwrap_or(*field);
    }
    for (flag, field) in [
        (&LAST_CONTACT_THRESHOLD, &mut config.last_contact_threshold),
        (&SERVER_STABILIZATION_TIME, &mut config.server_stabilization_time),
    ] {
        if let Some(given) = call.args.parsed(flag)? {
            *field = given.to_string();
        }
    }
    config.max_trailing_logs = call.args.parsed(&MAX_TRAILING_LOGS)?.unwrap_or(config.max_trailing_logs);
    config.min_quorum = call.args.parsed(&MIN_QUORUM)?.unwrap_or(config.min_quorum);
    Ok(config)
}

async fn health(call: Call) -> Outcome {
    call.no_arguments()?;
    let health = call.client()?.autopilot_health().await.doing("querying autopilot health")?;
    let as_json = call.args.switch(&JSON);
    write_out(if as_json { json(&health) } else { layout::operator::health(&call.style(), &health) });
    Ok(0)
}
