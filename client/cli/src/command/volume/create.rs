use std::time::Duration;

use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::{CSIVolume, Constraint, HostVolume, HostVolumeCapability, Map};
use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::job_file;
use crate::output::write_out;

const DETACH: Flag<bool> = Flag::switch("detach", "Do not wait until the volume can be used.");
const ID: Flag<String> =
    Flag::value("id", "ID", "The id of a volume that is changed, instead of the file's.");

pub(super) static CREATE: Command = Command {
    name: "volume create",
    aliases: &[],
    arguments: "<file>",
    summary: "Make a volume: on a node, or by a storage plugin.",
    details: "The file describes the volume; - is standard input. A plugin makes it: of a node, or a storage plugin. One of \
              type csi that is there is made larger, if more is asked for.",
    flags: &[&[&DETACH, &ID], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static REGISTER: Command = Command {
    name: "volume register",
    aliases: &[],
    arguments: "<file>",
    summary: "Register a volume that somebody else has made.",
    details: "The file describes the volume: of type host with node_id and host_path, of type csi with external_id. - is standard input.",
    flags: &[&[&ID], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(register(call))),
};

/// How often a volume is looked at that is not ready yet, and for how long.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOKS: usize = 5 * 60;

async fn create(call: Call) -> Outcome {
    let client = call.client()?;
    let volume = match in_file(&call)? {
        Described::Host(volume) => volume,
        Described::Csi(volume) => {
            let answer = client.create_csi_volume(&volume).await.doing("creating volume")?;
            let made = answer.volumes.first().cloned().unwrap_or_default();
            write_out(format!("Created external volume {} with ID {}\n", made.external_id, made.id));
            warn(&answer.warnings);
            return Ok(0);
        }
    };
    let made = client.create_host_volume(&volume).await.doing("creating volume")?.volume;
    let line = format!("Created host volume {} with ID {}\n", made.name, made.id);
    if call.args.switch(&DETACH) {
        write_out(line);
        return Ok(0);
    }
    write_out(format!("==> {line}"));
    await_ready(&client, &made.id).await?;
    write_out(format!("    Volume \"{}\" ready\n", made.id));
    Ok(0)
}

async fn await_ready(client: &Client, id: &str) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        let shown = client.host_volume(id).await.doing("monitoring volume")?;
        if shown["State"] == "ready" {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(anyhow::anyhow!("volume \"{id}\" was made, and its node has not reported it within a minute").into())
}

async fn register(call: Call) -> Outcome {
    let client = call.client()?;
    let volume = match in_file(&call)? {
        Described::Host(volume) => volume,
        Described::Csi(volume) => {
            let answer = client.register_csi_volume(&volume).await.doing("registering volume")?;
            write_out(format!("Volume \"{}\" registered\n", volume.id));
            warn(&answer.warnings);
            return Ok(0);
        }
    };
    let answer = client.register_host_volume(&volume).await.doing("registering volume")?;
    write_out(format!("Registered host volume {} with ID {}\n", answer.volume.name, answer.volume.id));
    warn(&answer.warnings);
    Ok(0)
}

fn warn(warnings: &str) {
    if !warnings.is_empty() {
        write_out(format!("Warning: {warnings}\n"));
    }
}

/// A volume of one type or the other.
#[derive(Debug)]
enum Described {
    Host(Box<HostVolume>),
    Csi(Box<CSIVolume>),
}

fn in_file(call: &Call) -> Result<Described, Failure> {
    let source = job_file::read_source(call.one_argument()?)?;
    let mut volume =
        read(&source).map_err(|wrong| anyhow::anyhow!("the volume's file is not valid\n\n{wrong}"))?;
    if let Some(id) = call.args.value(&ID) {
        match &mut volume {
            Described::Host(volume) => volume.id = id.to_string(),
            Described::Csi(volume) => volume.id = id.to_string(),
        }
    }
    Ok(volume)
}

fn read(source: &Source) -> Result<Described, Diagnostics> {
    let mut top = Section::parse(source)?;
    let kind: String = top.take("type")?.unwrap_or_default();
    match kind.as_str() {
        "csi" => Ok(Described::Csi(Box::new(super::csi_file::read(top)?))),
        "host" => Ok(Described::Host(Box::new(host(top)?))),
        _ => Err(top.wrong(format!("type = \"{kind}\": expected host or csi"))),
    }
}

fn host(mut top: Section) -> Result<HostVolume, Diagnostics> {
    let mut volume = HostVolume {
        id: top.take("id")?.unwrap_or_default(),
        name: top.take("name")?.unwrap_or_default(),
        namespace: top.take("namespace")?.unwrap_or_default(),
        plugin_id: top.take("plugin_id")?.unwrap_or_default(),
        node_id: top.take("node_id")?.unwrap_or_default(),
        node_pool: top.take("node_pool")?.unwrap_or_default(),
        host_path: top.take("host_path")?.unwrap_or_default(),
        parameters: top.take::<Map<String, String>>("parameters")?.unwrap_or_default(),
        requested_capacity_min_bytes: capacity(&mut top, "capacity_min")?,
        requested_capacity_max_bytes: capacity(&mut top, "capacity_max")?,
        capacity_bytes: capacity(&mut top, "capacity")?,
        ..HostVolume::default()
    };
    for mut part in top.sections("constraint")? {
        volume.constraints.push(Constraint {
            l_target: part.take("attribute")?.unwrap_or_default(),
            operand: part.take("operator")?.unwrap_or_else(|| "=".to_string()),
            r_target: part.take("value")?.unwrap_or_default(),
        });
        part.finish()?;
    }
    for mut part in top.sections("capability")? {
        volume.requested_capabilities.push(HostVolumeCapability {
            access_mode: part.take("access_mode")?.unwrap_or_else(|| "single-node-writer".to_string()),
            attachment_mode: part.take("attachment_mode")?.unwrap_or_else(|| "file-system".to_string()),
        });
        part.finish()?;
    }
    top.finish()?;
    Ok(volume)
}

pub(super) fn capacity(section: &mut Section, key: &str) -> Result<i64, Diagnostics> {
    let Some(text) = section.take::<String>(key)? else { return Ok(0) };
    let wrong =
        || section.wrong(format!("{key} = \"{text}\": expected a number of bytes, like 10GiB or 500MB"));
    parse_bytes(&text).ok_or_else(wrong)
}

/// A number, alone or with a unit: those with an i go by 1024.
fn parse_bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..at].parse().ok()?;
    let unit: i64 = match text[at..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<HostVolume, Diagnostics> {
        match read(&Source::new("volume.hcl", text.to_string()))? {
            Described::Host(volume) => Ok(*volume),
            Described::Csi(volume) => panic!("{} is another volume", volume.id),
        }
    }

    #[test]
    fn a_volume_is_read_from_its_file() {
        let volume = parsed(
            "name = \"data\"\ntype = \"host\"\nplugin_id = \"mkdir\"\ncapacity_min = \"1GiB\"\ncapacity_max = \"2GB\"\n\
             parameters {\n  mode = \"0770\"\n}\nconstraint {\n  attribute = \"${attr.kernel.name}\"\n  value = \"linux\"\n}\n\
             capability {\n  access_mode = \"single-node-multi-writer\"\n  attachment_mode = \"file-system\"\n}\n",
        )
        .unwrap();
        assert_eq!((volume.name.as_str(), volume.plugin_id.as_str()), ("data", "mkdir"));
        let capacity = (volume.requested_capacity_min_bytes, volume.requested_capacity_max_bytes);
        assert_eq!(capacity, (1 << 30, 2_000_000_000));
        assert_eq!(volume.parameters.get("mode").map(String::as_str), Some("0770"));
        assert_eq!((volume.constraints.len(), volume.constraints[0].operand.as_str()), (1, "="));
        assert_eq!(volume.requested_capabilities[0].access_mode, "single-node-multi-writer");
        assert!(parsed("name = \"data\"\ntype = \"nfs\"\n").is_err());
        assert_eq!(parsed(super::super::init::HOST).unwrap().name, "database");
        assert!(parsed("name = \"data\"\ntype = \"host\"\ncapacity_min = \"much\"\n").is_err());
        assert!(parsed("name = \"data\"\ntype = \"host\"\ncolor = \"red\"\n").is_err());
    }
}
