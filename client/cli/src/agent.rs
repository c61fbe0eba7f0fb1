//! Starts what the settings ask for, waits until it is told to end, and ends it in order. Nothing is decided here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use node::settings::{Capacity, GcSettings, Reserved};
use node::{Agent, WireServers};
use tokio::signal::unix::{SignalKind, signal};

use crate::settings::Settings;

/// Runs the agent until it is told to end; calls `started` when everything runs.
///
/// # Errors
/// What kept it from starting.
pub fn run(settings: &Settings, started: impl FnOnce()) -> anyhow::Result<()> {
    let home = Home::make(settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings, &home.path, started))
}

async fn serve(settings: &Settings, home: &Path, started: impl FnOnce()) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    if settings.server.enabled {
        start_server(settings, home).await?;
    }
    let mut node = None;
    if settings.client.enabled {
        let servers = servers(settings);
        let connect = |local| WireServers::new(local, servers);
        let started = Agent::start(node_settings(settings, home)?, connect).await;
        node = Some(started.context("the node cannot start")?);
    }
    started();
    tokio::select! {
        _ = interrupt.recv() => tracing::info!("interrupted: ending"),
        _ = terminate.recv() => tracing::info!("told to end: ending"),
    }
    let end = async {
        if let Some(node) = node {
            node.shutdown().await;
        }
    };
    tokio::select! {
        () = end => {}
        _ = interrupt.recv() => tracing::warn!("interrupted again: ending at once"),
        _ = terminate.recv() => tracing::warn!("told to end again: ending at once"),
    }
    Ok(())
}

/// THE SERVER STARTS HERE once `gateway/server` can be opened.
async fn start_server(_settings: &Settings, _home: &Path) -> anyhow::Result<()> {
    anyhow::bail!("the server is not part of this build yet")
}

/// Where state is kept. One that only a development agent has is removed with it.
struct Home {
    path: PathBuf,
    temporary: bool,
}

impl Home {
    fn make(settings: &Settings) -> anyhow::Result<Home> {
        let (path, temporary) = match &settings.data_dir {
            Some(path) => (path.clone(), false),
            None => (std::env::temp_dir().join(format!("sojourn-dev-{}", std::process::id())), true),
        };
        // Tasks that run as other users must reach their directories below it.
        let made = std::fs::DirBuilder::new().mode(0o711).recursive(!temporary).create(&path);
        made.with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Home { path, temporary })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the temporary directory stays behind");
        }
    }
}

/// Where the node finds servers: those it was told, or the one in this process.
fn servers(settings: &Settings) -> Vec<String> {
    let told = &settings.client.servers;
    if told.is_empty() {
        let ip = settings.rpc_ip();
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        return vec![SocketAddr::new(ip, settings.ports.rpc).to_string()];
    }
    told.iter().map(|server| with_port(server, 4647)).collect()
}

/// `HOST` or `HOST:PORT`, with the port it lacks. An IPv6 address alone has colons too.
fn with_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) if host.contains(':') => host.to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

/// What others are told to reach a port of this agent at.
fn advertised(given: Option<&str>, ip: IpAddr, port: u16) -> anyhow::Result<String> {
    match given {
        Some(given) => Ok(with_port(given, port)),
        None if ip.is_unspecified() => Ok(SocketAddr::new(outward_ip()?, port).to_string()),
        None => Ok(SocketAddr::new(ip, port).to_string()),
    }
}

/// The address of this host that leads outward. Connecting a UDP socket picks it and sends nothing.
fn outward_ip() -> anyhow::Result<IpAddr> {
    let outside = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 9));
    let find = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(outside)?;
        socket.local_addr()
    };
    Ok(find().context("this host has no outward address: set advertise or bind_addr")?.ip())
}

fn node_settings(settings: &Settings, home: &Path) -> anyhow::Result<node::Settings> {
    let client = &settings.client;
    let http = advertised(settings.advertise.http.as_deref(), settings.http_ip(), settings.ports.http)?;
    Ok(node::Settings {
        state_dir: client.state_dir.clone().unwrap_or_else(|| home.join("client")),
        alloc_dir: client.alloc_dir.clone().unwrap_or_else(|| home.join("alloc")),
        dev: settings.dev,
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        node_name: settings.name.clone(),
        node_class: client.node_class.clone(),
        node_pool: client.node_pool.clone(),
        meta: client.meta.clone(),
        http_address: http,
        tls_http: false,
        reserved: Reserved {
            cpu_mhz: client.reserved.cpu_mhz,
            memory_mib: client.reserved.memory_mib,
            disk_mib: client.reserved.disk_mib,
            ports: client.reserved.ports.clone(),
            cores: client.reserved.cores.clone(),
        },
        capacity: Capacity {
            cpu_mhz: client.cpu_total_compute,
            memory_mib: client.memory_total_mb,
            disk_mib: client.disk_total_mb,
        },
        network_interface: client.network_interface.clone(),
        min_dynamic_port: client.min_dynamic_port,
        max_dynamic_port: client.max_dynamic_port,
        max_kill_timeout: client.max_kill_timeout.to_std(),
        raw_exec: node::driver::raw_exec::RawExecSettings {
            enabled: settings.raw_exec.enabled,
            denied_host_uids: settings.raw_exec.denied_host_uids.clone(),
            denied_host_gids: settings.raw_exec.denied_host_gids.clone(),
            denied_envvars: settings.raw_exec.denied_envvars.clone(),
        },
        mock_driver: false,
        executor_program: std::env::current_exe().context("this program cannot find itself")?,
        default_ineligible: client.default_ineligible,
        node_max_allocs: client.node_max_allocs,
        gc: GcSettings {
            interval: client.gc_interval.to_std(),
            disk_usage_percent_max: client.gc_disk_usage_threshold,
            inode_usage_percent_max: client.gc_inode_usage_threshold,
            allocs_max: client.gc_max_allocs as usize,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_the_port_it_lacks() {
        let cases = [
            ("10.0.0.1", "10.0.0.1:4647"),
            ("10.0.0.1:5000", "10.0.0.1:5000"),
            ("server.lan", "server.lan:4647"),
            ("::1", "[::1]:4647"),
            ("[::1]:5000", "[::1]:5000"),
        ];
        for (given, expected) in cases {
            assert_eq!(with_port(given, 4647), expected);
        }
    }

    #[test]
    fn a_node_beside_a_server_asks_that_one() {
        let mut settings = Settings::dev();
        assert_eq!(servers(&settings), ["127.0.0.1:4647"]);
        settings.bind_addr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert_eq!(servers(&settings), ["127.0.0.1:4647"]);
        settings.client.servers = vec!["a".to_string(), "b:1".to_string()];
        assert_eq!(servers(&settings), ["a:4647", "b:1"]);
    }

    #[test]
    fn directories_lie_below_the_data_directory_unless_told_otherwise() {
        let mut settings = Settings::dev();
        settings.client.alloc_dir = Some("/elsewhere".into());
        let node = node_settings(&settings, Path::new("/data")).unwrap();
        assert_eq!(node.state_dir, Path::new("/data/client"));
        assert_eq!(node.alloc_dir, Path::new("/elsewhere"));
        assert_eq!((node.http_address.as_str(), node.raw_exec.enabled), ("127.0.0.1:4646", true));
    }

    #[test]
    fn the_directory_of_a_development_agent_goes_with_it() {
        let home = Home::make(&Settings::dev()).unwrap();
        let path = home.path.clone();
        assert!(path.is_dir());
        drop(home);
        assert!(!path.exists());
    }
}
