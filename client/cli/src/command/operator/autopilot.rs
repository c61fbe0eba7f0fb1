use api::AutopilotConfiguration;
use base::Duration;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::{switch, value};
use crate::layout;
use crate::output::{json, write_out};

pub static GET_CONFIG: Command = Command {
    name: "operator autopilot get-config",
    aliases: &[],
    arguments: "",
    summary: "Show how the leader looks after the servers.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get_config(call))),
};

pub static SET_CONFIG: Command = Command {
    name: "operator autopilot set-config",
    aliases: &[],
    arguments: "",
    summary: "Change how the leader looks after the servers.",
    details: "What is not given stays as it is.",
    flags: &[
        &[
            value("cleanup-dead-servers", "BOOL", "Remove servers that failed, as far as that is safe."),
            value("max-trailing-logs", "N", "Entries that a healthy server may be behind."),
            value(
                "last-contact-threshold",
                "DURATION",
                "How long the leader may not have heard from a server.",
            ),
            value(
                "server-stabilization-time",
                "DURATION",
                "How long a new server has to live before it votes.",
            ),
            value("min-quorum", "N", "Voters that are left at least when servers are removed."),
            value("enable-redundancy-zones", "BOOL", "Only of enterprise releases."),
            value("disable-upgrade-migration", "BOOL", "Only of enterprise releases."),
            value("enable-custom-upgrades", "BOOL", "Only of enterprise releases."),
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(set_config(call))),
};

pub static HEALTH: Command = Command {
    name: "operator autopilot health",
    aliases: &[],
    arguments: "",
    summary: "Show how the servers do.",
    details: "",
    flags: &[&[switch("json", "Print the objects as JSON.")], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(health(call))),
};

async fn get_config(call: Call) -> Outcome {
    call.no_arguments()?;
    let objects = call.objects()?;
    let config = call.client()?.autopilot().await.doing("querying autopilot configuration")?;
    if let Some(objects) = objects {
        return objects.print(&config);
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
        ("cleanup-dead-servers", &mut config.cleanup_dead_servers),
        ("enable-redundancy-zones", &mut config.enable_redundancy_zones),
        ("disable-upgrade-migration", &mut config.disable_upgrade_migration),
        ("enable-custom-upgrades", &mut config.enable_custom_upgrades),
    ] {
        if let Some(given) = call.args.value(flag) {
            let wrong =
                || anyhow::anyhow!("invalid value \"{given}\" for flag -{flag}: expected true or false");
            *field = api::go_bool(given).ok_or_else(wrong)?;
        }
    }
    for (flag, field) in [
        ("last-contact-threshold", &mut config.last_contact_threshold),
        ("server-stabilization-time", &mut config.server_stabilization_time),
    ] {
        let given: Option<Duration> = call.args.parsed(flag, "a duration, like 10s")?;
        if let Some(given) = given {
            *field = given.to_string();
        }
    }
    config.max_trailing_logs = call.args.number("max-trailing-logs")?.unwrap_or(config.max_trailing_logs);
    config.min_quorum = call.args.number("min-quorum")?.unwrap_or(config.min_quorum);
    Ok(config)
}

async fn health(call: Call) -> Outcome {
    call.no_arguments()?;
    let health = call.client()?.autopilot_health().await.doing("querying autopilot health")?;
    let as_json = call.args.switch("json");
    write_out(if as_json { json(&health) } else { layout::operator::health(&call.look(), &health) });
    Ok(0)
}
