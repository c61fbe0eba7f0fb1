//! The server part of the settings.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use api::with_port;
use audit::Audit;
use control::broker::BrokerSettings;
use metrics::NodeFigures;
use model::NodeId;
use server::cluster::Joins;
use server::{ClusterSettings, FederationSettings, GossipSettings, Limits, NodeRoutes};

use super::{ProcessContext, advertised};
use crate::settings::{AgentSettings, LimitSettings};

/// Segments of the log on disk.
const SEGMENT_BYTES: u64 = 64 << 20;

/// # Errors
/// When this host has no usable address, or the node's id cannot be read.
pub(super) fn server_settings(
    settings: &AgentSettings,
    process: &ProcessContext<'_>,
    home: &Path,
    node_figures: &NodeFigures,
    node_routes: &NodeRoutes,
) -> anyhow::Result<server::Settings> {
    let (http_ip, rpc_ip) = (settings.http_ip(), settings.rpc_ip());
    Ok(server::Settings {
        name: settings.name.clone(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        data_dir: home.to_path_buf(),
        http: SocketAddr::new(http_ip, settings.ports.http),
        rpc: SocketAddr::new(rpc_ip, settings.ports.rpc),
        advertise_http: Some(advertised(settings.advertise.http.as_deref(), http_ip, settings.ports.http)?),
        advertise_rpc: Some(advertised(settings.advertise.rpc.as_deref(), rpc_ip, settings.ports.rpc)?),
        node: own_node(settings, home)?,
        garbage: settings.server.garbage.clone(),
        introduction: settings.server.introduction.clone(),
        access: settings.acl.clone(),
        federation: FederationSettings {
            authoritative_region: settings.server.authoritative_region.clone(),
            replication_token: settings.server.replication_token.clone(),
        },
        root_keys: settings.server.root_keys.clone(),
        oidc_issuer: settings.server.oidc_issuer.clone(),
        scheduler: settings.server.scheduler.clone(),
        heartbeats: settings.server.heartbeats.clone(),
        broker: BrokerSettings { lag_max: settings.server.placement_lag_max, ..BrokerSettings::default() },
        job_count_max: job_count_max(settings),
        identities: super::vault::identities(settings),
        workers: workers(settings),
        segment_bytes: SEGMENT_BYTES,
        scrub_every: Some(settings.server.scrub_interval.to_std()).filter(|every| !every.is_zero()),
        history: settings.history.settings(),
        cluster: cluster(settings)?,
        tls: process.tls.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        config: process.config.clone(),
        log: process.log.clone(),
        audit: opened_audit(settings, home)?,
        limits: limits(&settings.limits),
        debug: settings.enable_debug,
        prometheus: settings.prometheus_metrics,
        metrics_host: !settings.telemetry.disable_hostname,
        ui: settings.ui.enabled,
        ui_folder: settings.ui.folder.clone(),
        node_figures: node_figures.clone(),
        node_routes: node_routes.clone(),
        sink_addresses: settings.server.sinks.clone(),
        response_headers: settings.response_headers.clone(),
    })
}

fn job_count_max(settings: &AgentSettings) -> i64 {
    match settings.server.job_max_count {
        0 => i64::MAX,
        most => i64::from(most),
    }
}

/// # Errors
/// Entries cannot be written there.
fn opened_audit(settings: &AgentSettings, home: &Path) -> anyhow::Result<Option<Arc<Audit>>> {
    let Some(wanted) = settings.audit.settings(home) else { return Ok(None) };
    Ok(Some(Arc::new(Audit::open(wanted).context("audit.sink")?)))
}

/// Threads that schedule.
pub(super) fn workers(settings: &AgentSettings) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    settings.server.num_schedulers.map_or(cores, |number| number as usize)
}

fn limits(limits: &LimitSettings) -> Limits {
    Limits {
        http: limits.http(),
        https_handshake: limits.https_handshake_timeout.to_std(),
        rpc: wire::Limits {
            handshake: limits.rpc_handshake_timeout.to_std(),
            connections_per_ip: limits.rpc_max_conns_per_client as usize,
            ..wire::Limits::SERVER
        },
    }
}

/// How the server finds others. A development agent has no peers, and there may be several on a host.
fn cluster(settings: &AgentSettings) -> anyhow::Result<ClusterSettings> {
    let alone = ClusterSettings {
        autopilot: settings.autopilot.clone(),
        raise_epoch: settings.server.raise_epoch,
        ..ClusterSettings::alone()
    };
    if settings.dev {
        return Ok(alone);
    }
    let (ip, port, join) = (settings.serf_ip(), settings.ports.serf, &settings.server.join);
    let advertise = advertised(settings.advertise.serf.as_deref(), ip, port)?;
    let advertise = advertise
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .with_context(|| format!("advertise.serf: {advertise} is no address of this host"))?;
    Ok(ClusterSettings {
        bootstrap_expect: settings.server.bootstrap_expect,
        gossip: Some(GossipSettings {
            address: SocketAddr::new(ip, port),
            advertise,
            key: settings.server.encrypt.clone(),
        }),
        joins: Joins {
            start: join.start_join.clone(),
            retry: join.retry_join.clone(),
            retry_interval: join.retry_interval.to_std(),
            retry_max: join.retry_max,
            port,
        },
        peers: join.static_peers.iter().map(|peer| with_port(peer, 4647)).collect(),
        ..alone
    })
}

/// The id of the node in the same process, which is known before the node starts.
fn own_node(settings: &AgentSettings, home: &Path) -> anyhow::Result<Option<NodeId>> {
    if !settings.client.enabled {
        return Ok(None);
    }
    let dir = settings.client.state_dir.clone().unwrap_or_else(|| home.join("client"));
    let id = node::node_id(&dir, settings.client.id_of_host)
        .with_context(|| format!("cannot read the node's id in {}", dir.display()))?;
    Ok(Some(NodeId(id)))
}
