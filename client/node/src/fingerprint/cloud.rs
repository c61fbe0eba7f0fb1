//! What the metadata service of a cloud says of the machine: its type, its zone, its addresses and its tags, by the names that
//! jobs ask for.
//!
//! Only the service is asked of the cloud that the machine's board names, or whose address the operator gives: elsewhere no agent
//! waits at its start for one that is not there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tls::client::ClientOptions;

use super::Attributes;

/// How long one look at a cloud may take.
const WITHIN: Duration = Duration::from_secs(2);

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Longest value that becomes an attribute: what is longer is a key or a script, and of no use to a constraint.
const VALUE_BYTES_MAX: usize = 256;

/// Most attributes of one cloud: tags have no limit everywhere.
const ATTRIBUTES_MAX: usize = 256;

/// A cloud, as it is found and asked.
#[derive(Debug)]
pub struct Cloud {
    pub name: &'static str,
    /// What the board of its machines says of its vendor.
    vendor: &'static str,
    /// The variable of the agent with the address of its service, where that is another one.
    pub variable: &'static str,
    base: &'static str,
    headers: &'static [(&'static str, &'static str)],
}

pub const CLOUDS: [Cloud; 4] = [
    Cloud {
        name: "env_aws",
        vendor: "Amazon EC2",
        variable: "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        base: "http://169.254.169.254",
        headers: &[],
    },
    Cloud {
        name: "env_azure",
        vendor: "Microsoft Corporation",
        variable: "AZURE_ENV_URL",
        base: "http://169.254.169.254/metadata/instance/",
        headers: &[("metadata", "true")],
    },
    Cloud {
        name: "env_digitalocean",
        vendor: "DigitalOcean",
        variable: "DO_ENV_URL",
        base: "http://169.254.169.254/metadata/v1/",
        headers: &[],
    },
    Cloud {
        name: "env_gce",
        vendor: "Google",
        variable: "GCE_ENV_URL",
        base: "http://169.254.169.254/computeMetadata/v1/instance/",
        headers: &[("metadata-flavor", "Google")],
    },
];

/// How a cloud is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Where its service is, if the operator says so: it is asked then on any machine.
    pub address: Option<String>,
    pub retry_interval: Duration,
    /// How often it is asked again; below zero for ever.
    pub retry_attempts: i64,
    /// The agent does not start without it.
    pub exit_on_failure: bool,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe {
            address: None,
            retry_interval: Duration::from_secs(2),
            retry_attempts: 0,
            exit_on_failure: false,
        }
    }
}

/// By the name of the cloud; what is not there is looked for as usual.
pub type Probes = BTreeMap<String, Probe>;

/// What a service says.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    pub attributes: Attributes,
    pub links: BTreeMap<String, String>,
}

/// Asks the services of the clouds that this machine may be in, and that `wants` names.
///
/// # Errors
/// One that has to be there is not.
pub async fn find(probes: &Probes, root: &Path, wants: impl Fn(&str) -> bool) -> Result<Found, String> {
    let vendor = std::fs::read_to_string(root.join("sys/class/dmi/id/sys_vendor")).unwrap_or_default();
    let mut found = Found::default();
    for cloud in CLOUDS.iter().filter(|cloud| wants(cloud.name)) {
        let usual = Probe::default();
        let probe = probes.get(cloud.name).unwrap_or(&usual);
        if vendor.trim() != cloud.vendor && probe.address.is_none() && !probe.exit_on_failure {
            continue;
        }
        match patiently(cloud, probe).await {
            Ok(own) => {
                found.attributes.extend(own.attributes);
                found.links.extend(own.links);
            }
            Err(why) if probe.exit_on_failure => {
                return Err(format!("client.fingerprint \"{}\": {why}", cloud.name));
            }
            Err(why) => tracing::debug!(cloud = cloud.name, why, "a cloud says nothing of this machine"),
        }
    }
    Ok(found)
}

async fn patiently(cloud: &Cloud, probe: &Probe) -> Result<Found, String> {
    let mut left = probe.retry_attempts;
    loop {
        let asked = tokio::time::timeout(WITHIN, ask(cloud, probe)).await;
        match asked.unwrap_or_else(|_| Err(format!("no answer within {} s", WITHIN.as_secs()))) {
            Ok(found) => return Ok(found),
            Err(why) if left == 0 => return Err(why),
            Err(why) => tracing::debug!(cloud = cloud.name, why, "a cloud is asked again"),
        }
        left -= i64::from(left > 0);
        tokio::time::sleep(probe.retry_interval).await;
    }
}

async fn ask(cloud: &Cloud, probe: &Probe) -> Result<Found, String> {
    let base = probe.address.as_deref().unwrap_or(cloud.base).trim_end_matches('/').to_string();
    let tls = tls::client::config_for(&base, &ClientOptions::default()).map_err(|error| error.to_string())?;
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let http = builder.tls_backend_preconfigured(tls).build().map_err(|error| base::reasons(&error))?;
    let mut headers = HeaderMap::new();
    for (name, value) in cloud.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let mut service = Service { http, base, headers };
    let mut found = match cloud.name {
        "env_aws" => aws(&mut service).await?,
        "env_azure" => azure(&service).await?,
        "env_digitalocean" => digitalocean(&service).await?,
        _ => gce(&service).await?,
    };
    found.attributes.retain(|_, value| !value.is_empty() && value.len() <= VALUE_BYTES_MAX);
    while found.attributes.len() > ATTRIBUTES_MAX {
        found.attributes.pop_last();
    }
    Ok(found)
}

/// A metadata service.
struct Service {
    http: reqwest::Client,
    base: String,
    headers: HeaderMap,
}

impl Service {
    /// What it says of a path; `None` if there is no such thing on this machine.
    async fn get(&self, path: &str) -> Result<Option<String>, String> {
        let request = self.http.get(format!("{}/{path}", self.base)).headers(self.headers.clone());
        read(request).await
    }

    /// The same of something that every machine has.
    async fn required(&self, path: &str) -> Result<String, String> {
        self.get(path).await?.ok_or_else(|| format!("{}/{path} is not there", self.base))
    }

    async fn json(&self, path: &str) -> Result<Value, String> {
        let Some(text) = self.get(path).await? else { return Ok(Value::Null) };
        serde_json::from_str(&text).map_err(|error| format!("{}/{path}: {error}", self.base))
    }

    /// One attribute for each path that is there.
    async fn texts(&self, named: &[(&str, &str)]) -> Result<Attributes, String> {
        let mut attributes = Attributes::new();
        for (path, name) in named {
            if let Some(text) = self.get(path).await? {
                attributes.insert(name.to_string(), text.trim().to_string());
            }
        }
        Ok(attributes)
    }
}

async fn read(request: reqwest::RequestBuilder) -> Result<Option<String>, String> {
    let mut answer = request.send().await.map_err(|error| base::reasons(&error))?;
    match answer.status().as_u16() {
        200 => {}
        404 => return Ok(None),
        other => return Err(format!("{} is answered with {other}", answer.url())),
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| base::reasons(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            return Err(format!("{} is answered with more than {ANSWER_BYTES_MAX} bytes", answer.url()));
        }
    }
    String::from_utf8(body).map(Some).map_err(|_| format!("{} is not answered with text", answer.url()))
}

async fn aws(service: &mut Service) -> Result<Found, String> {
    let url = format!("{}/latest/api/token", service.base);
    let wanted = service.http.put(url).header("x-aws-ec2-metadata-token-ttl-seconds", "300");
    // Services that know of no tokens are asked without.
    if let Some(token) = read(wanted).await? {
        let value = HeaderValue::from_str(token.trim()).map_err(|_| "the token is no header".to_string())?;
        service.headers.insert(HeaderName::from_static("x-aws-ec2-metadata-token"), value);
    }
    service.base.push_str("/latest/meta-data");
    let zone = service.required("placement/availability-zone").await?;
    let instance = service.required("instance-id").await?;
    let mut attributes = service
        .texts(&[
            ("ami-id", "platform.aws.ami-id"),
            ("instance-life-cycle", "platform.aws.instance-life-cycle"),
            ("instance-type", "platform.aws.instance-type"),
            ("hostname", "unique.platform.aws.hostname"),
            ("local-hostname", "unique.platform.aws.local-hostname"),
            ("local-ipv4", "unique.platform.aws.local-ipv4"),
            ("public-hostname", "unique.platform.aws.public-hostname"),
            ("public-ipv4", "unique.platform.aws.public-ipv4"),
            ("ipv6", "unique.platform.aws.public-ipv6"),
            ("mac", "unique.platform.aws.mac"),
        ])
        .await?;
    let links = [("aws.ec2".to_string(), format!("{zone}.{instance}"))].into();
    attributes.insert("platform.aws.placement.availability-zone".to_string(), zone);
    attributes.insert("unique.platform.aws.instance-id".to_string(), instance);
    Ok(Found { attributes, links })
}

async fn gce(service: &Service) -> Result<Found, String> {
    let id = service.required("id").await?;
    let mut attributes = service
        .texts(&[
            ("cpu-platform", "platform.gce.cpu-platform"),
            ("scheduling/automatic-restart", "platform.gce.scheduling.automatic-restart"),
            ("scheduling/on-host-maintenance", "platform.gce.scheduling.on-host-maintenance"),
            ("scheduling/preemptible", "platform.gce.scheduling.preemptible"),
            ("hostname", "unique.platform.gce.hostname"),
            ("machine-type", "platform.gce.machine-type"),
            ("zone", "platform.gce.zone"),
        ])
        .await?;
    // They are whole paths there.
    for name in ["platform.gce.machine-type", "platform.gce.zone"] {
        if let Some(value) = attributes.get_mut(name) {
            *value = last(value).to_string();
        }
    }
    for network in list(&service.json("network-interfaces/?recursive=true").await?) {
        let name = format!("platform.gce.network.{}", last(network["network"].as_str().unwrap_or_default()));
        if let Some(ip) = network["ip"].as_str() {
            attributes.insert(format!("unique.{name}.ip"), ip.to_string());
        }
        for (number, access) in list(&network["accessConfigs"]).enumerate() {
            let ip = access["externalIp"].as_str().unwrap_or_default();
            attributes.insert(format!("unique.{name}.external-ip.{number}"), ip.to_string());
        }
        attributes.insert(name, "true".to_string());
    }
    for tag in list(&service.json("tags").await?).filter_map(Value::as_str) {
        attributes.insert(unique_first("platform.gce.tag.", tag), "true".to_string());
    }
    for (key, value) in service.json("attributes/?recursive=true").await?.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        attributes.insert(unique_first("platform.gce.attr.", key), value);
    }
    let links = [("gce".to_string(), id.clone())].into();
    attributes.insert("unique.platform.gce.id".to_string(), id);
    Ok(Found { attributes, links })
}

async fn azure(service: &Service) -> Result<Found, String> {
    let said = service.json("?api-version=2019-06-04&format=json").await?;
    let (machine, network) = (&said["compute"], &said["network"]["interface"][0]);
    let (v4, v6) = (&network["ipv4"]["ipAddress"][0], &network["ipv6"]["ipAddress"][0]);
    let id = machine["vmId"].as_str().ok_or("the machine has no vmId")?;
    let mut attributes = Attributes::new();
    for (name, value) in [
        ("platform.azure.location", &machine["location"]),
        ("platform.azure.resource-group", &machine["resourceGroupName"]),
        ("platform.azure.scale-set", &machine["vmScaleSetName"]),
        ("platform.azure.vm-size", &machine["vmSize"]),
        ("platform.azure.zone", &machine["zone"]),
        ("unique.platform.azure.name", &machine["name"]),
        ("unique.platform.azure.local-ipv4", &v4["privateIpAddress"]),
        ("unique.platform.azure.public-ipv4", &v4["publicIpAddress"]),
        ("unique.platform.azure.local-ipv6", &v6["privateIpAddress"]),
        ("unique.platform.azure.public-ipv6", &v6["publicIpAddress"]),
        ("unique.platform.azure.mac", &network["macAddress"]),
    ] {
        attributes.insert(name.to_string(), value.as_str().unwrap_or_default().to_string());
    }
    for tag in list(&machine["tagsList"]) {
        if let (Some(name), Some(value)) = (tag["name"].as_str(), tag["value"].as_str()) {
            attributes.insert(unique_first("platform.azure.tag.", name), value.to_string());
        }
    }
    let links = [("azure".to_string(), id.to_string())].into();
    attributes.insert("unique.platform.azure.id".to_string(), id.to_string());
    Ok(Found { attributes, links })
}

async fn digitalocean(service: &Service) -> Result<Found, String> {
    let id = service.required("id").await?;
    let mut attributes = service
        .texts(&[
            ("region", "platform.digitalocean.region"),
            ("hostname", "unique.platform.digitalocean.hostname"),
            ("interfaces/private/0/ipv4/address", "unique.platform.digitalocean.private-ipv4"),
            ("interfaces/public/0/ipv4/address", "unique.platform.digitalocean.public-ipv4"),
            ("interfaces/private/0/ipv6/address", "unique.platform.digitalocean.private-ipv6"),
            ("interfaces/public/0/ipv6/address", "unique.platform.digitalocean.public-ipv6"),
            ("interfaces/public/0/mac", "unique.platform.digitalocean.mac"),
        ])
        .await?;
    let links = [("digitalocean".to_string(), id.clone())].into();
    attributes.insert("unique.platform.digitalocean.id".to_string(), id);
    Ok(Found { attributes, links })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim()
}

/// A name that begins with `unique.` keeps the whole attribute out of the class of the node.
fn unique_first(prefix: &str, name: &str) -> String {
    match name.strip_prefix("unique.") {
        Some(name) => format!("unique.{prefix}{name}"),
        None => format!("{prefix}{name}"),
    }
}

#[cfg(test)]
mod tests;
