//! The schemas of services, their checks and the service mesh.

use super::job::{IDENTITY, LOGS, VOLUME_MOUNT};
use super::network::RESOURCES;
use super::schema::{
    Label, Schema, as_it_is, bool, by_label, duration, free, int, int_in, ints_in, many, one, plain, text,
    text_map, texts, texts_map,
};

const PORT_MAX: i64 = u16::MAX as i64;
const COUNT_MAX: i64 = u32::MAX as i64;

pub(super) static SERVICE: Schema = Schema {
    // Old files label services; the name was never taken from there.
    label: Label::Ignored,
    fields: &[
        text("name", "Name"),
        texts("tags", "Tags"),
        texts("canary_tags", "CanaryTags"),
        bool("enable_tag_override", "EnableTagOverride"),
        text("port", "PortLabel"),
        text("address_mode", "AddressMode"),
        text("address", "Address"),
        text_map("meta", "Meta"),
        text_map("canary_meta", "CanaryMeta"),
        text_map("tagged_addresses", "TaggedAddresses"),
        text("task", "TaskName"),
        text("on_update", "OnUpdate"),
        text("provider", "Provider"),
        text("cluster", "Cluster"),
        text("kind", "Kind"),
    ],
    blocks: &[
        many("check", "Checks", &CHECK),
        one("check_restart", "CheckRestart", &CHECK_RESTART),
        one("connect", "Connect", &CONNECT),
        one("identity", "Identity", &IDENTITY),
        one("weights", "Weights", &WEIGHTS),
    ],
    finish: as_it_is,
};

static CHECK: Schema = Schema {
    label: Label::Ignored,
    fields: &[
        text("name", "Name"),
        text("type", "Type"),
        text("command", "Command"),
        texts("args", "Args"),
        text("path", "Path"),
        text("protocol", "Protocol"),
        text("port", "PortLabel"),
        bool("expose", "Expose"),
        text("address_mode", "AddressMode"),
        text("advertise", "Advertise"),
        duration("interval", "Interval"),
        duration("timeout", "Timeout"),
        text("initial_status", "InitialStatus"),
        text("notes", "Notes"),
        text("tls_server_name", "TLSServerName"),
        bool("tls_skip_verify", "TLSSkipVerify"),
        texts_map("header", "Header"),
        text("method", "Method"),
        text("grpc_service", "GRPCService"),
        bool("grpc_use_tls", "GRPCUseTLS"),
        text("task", "TaskName"),
        int("success_before_passing", "SuccessBeforePassing"),
        int("failures_before_critical", "FailuresBeforeCritical"),
        int("failures_before_warning", "FailuresBeforeWarning"),
        text("body", "Body"),
        text("on_update", "OnUpdate"),
    ],
    blocks: &[one("check_restart", "CheckRestart", &CHECK_RESTART)],
    finish: as_it_is,
};

static CHECK_RESTART: Schema = plain(
    &[int("limit", "Limit"), duration("grace", "Grace"), bool("ignore_warnings", "IgnoreWarnings")],
    &[],
);

static WEIGHTS: Schema = plain(&[int("passing", "Passing"), int("warning", "Warning")], &[]);

static CONNECT: Schema = plain(
    &[bool("native", "Native")],
    &[
        one("gateway", "Gateway", &GATEWAY),
        one("sidecar_service", "SidecarService", &SIDECAR_SERVICE),
        one("sidecar_task", "SidecarTask", &SIDECAR_TASK),
    ],
);

static SIDECAR_SERVICE: Schema = plain(
    &[
        texts("tags", "Tags"),
        text("port", "Port"),
        bool("disable_default_tcp_check", "DisableDefaultTCPCheck"),
        text_map("meta", "Meta"),
    ],
    &[one("proxy", "Proxy", &PROXY)],
);

static SIDECAR_TASK: Schema = plain(
    &[
        text("name", "Name"),
        text("driver", "Driver"),
        text("user", "User"),
        free("config", "Config"),
        text_map("env", "Env"),
        text_map("meta", "Meta"),
        duration("kill_timeout", "KillTimeout"),
        duration("shutdown_delay", "ShutdownDelay"),
        text("kill_signal", "KillSignal"),
    ],
    &[
        one("resources", "Resources", &RESOURCES),
        one("logs", "LogConfig", &LOGS),
        many("volume_mount", "VolumeMounts", &VOLUME_MOUNT),
        many("identity", "Identities", &IDENTITY),
    ],
);

static PROXY: Schema = plain(
    &[
        text("local_service_address", "LocalServiceAddress"),
        int("local_service_port", "LocalServicePort"),
        free("config", "Config"),
    ],
    &[
        one("expose", "Expose", &EXPOSE),
        many("upstreams", "Upstreams", &UPSTREAM),
        one("transparent_proxy", "TransparentProxy", &TRANSPARENT_PROXY),
    ],
);

static UPSTREAM: Schema = plain(
    &[
        text("destination_name", "DestinationName"),
        text("destination_namespace", "DestinationNamespace"),
        text("destination_peer", "DestinationPeer"),
        text("destination_partition", "DestinationPartition"),
        text("destination_type", "DestinationType"),
        int("local_bind_port", "LocalBindPort"),
        text("datacenter", "Datacenter"),
        text("local_bind_address", "LocalBindAddress"),
        text("local_bind_socket_path", "LocalBindSocketPath"),
        text("local_bind_socket_mode", "LocalBindSocketMode"),
        free("config", "Config"),
    ],
    &[one("mesh_gateway", "MeshGateway", &MESH_GATEWAY)],
);

static MESH_GATEWAY: Schema = plain(&[text("mode", "Mode")], &[]);

static TRANSPARENT_PROXY: Schema = plain(
    &[
        text("uid", "UID"),
        int_in("outbound_port", "OutboundPort", 0, PORT_MAX),
        texts("exclude_inbound_ports", "ExcludeInboundPorts"),
        ints_in("exclude_outbound_ports", "ExcludeOutboundPorts", 0, PORT_MAX),
        texts("exclude_outbound_cidrs", "ExcludeOutboundCIDRs"),
        texts("exclude_uids", "ExcludeUIDs"),
        bool("no_dns", "NoDNS"),
    ],
    &[],
);

static EXPOSE: Schema = plain(&[], &[many("path", "Paths", &EXPOSE_PATH)]);

static EXPOSE_PATH: Schema = plain(
    &[
        text("path", "Path"),
        text("protocol", "Protocol"),
        int("local_path_port", "LocalPathPort"),
        text("listener_port", "ListenerPort"),
    ],
    &[],
);

static GATEWAY: Schema = plain(
    &[],
    &[
        one("proxy", "Proxy", &GATEWAY_PROXY),
        one("ingress", "Ingress", &INGRESS),
        one("terminating", "Terminating", &TERMINATING),
        one("mesh", "Mesh", &MESH),
    ],
);

static GATEWAY_PROXY: Schema = plain(
    &[
        duration("connect_timeout", "ConnectTimeout"),
        bool("envoy_gateway_bind_tagged_addresses", "EnvoyGatewayBindTaggedAddresses"),
        bool("envoy_gateway_no_default_bind", "EnvoyGatewayNoDefaultBind"),
        text("envoy_dns_discovery_type", "EnvoyDNSDiscoveryType"),
        free("config", "Config"),
    ],
    &[by_label("envoy_gateway_bind_addresses", "EnvoyGatewayBindAddresses", &BIND_ADDRESS)],
);

static BIND_ADDRESS: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[text("address", "Address"), int("port", "Port")],
    blocks: &[],
    finish: as_it_is,
};

static INGRESS: Schema = plain(&[], &[one("tls", "TLS", &TLS), many("listener", "Listeners", &LISTENER)]);

static LISTENER: Schema = plain(
    &[int("port", "Port"), text("protocol", "Protocol")],
    &[many("service", "Services", &INGRESS_SERVICE)],
);

static INGRESS_SERVICE: Schema = plain(
    &[
        text("name", "Name"),
        texts("hosts", "Hosts"),
        int_in("max_connections", "MaxConnections", 0, COUNT_MAX),
        int_in("max_pending_requests", "MaxPendingRequests", 0, COUNT_MAX),
        int_in("max_concurrent_requests", "MaxConcurrentRequests", 0, COUNT_MAX),
    ],
    &[
        one("tls", "TLS", &TLS),
        one("request_headers", "RequestHeaders", &HEADERS),
        one("response_headers", "ResponseHeaders", &HEADERS),
    ],
);

static HEADERS: Schema =
    plain(&[text_map("add", "Add"), text_map("set", "Set"), texts("remove", "Remove")], &[]);

static TLS: Schema = plain(
    &[
        bool("enabled", "Enabled"),
        text("tls_min_version", "TLSMinVersion"),
        text("tls_max_version", "TLSMaxVersion"),
        texts("cipher_suites", "CipherSuites"),
    ],
    &[one("sds", "SDS", &SDS)],
);

static SDS: Schema =
    plain(&[text("cluster_name", "ClusterName"), text("cert_resource", "CertResource")], &[]);

static TERMINATING: Schema = plain(&[], &[many("service", "Services", &LINKED_SERVICE)]);

static LINKED_SERVICE: Schema = plain(
    &[
        text("name", "Name"),
        text("ca_file", "CAFile"),
        text("cert_file", "CertFile"),
        text("key_file", "KeyFile"),
        text("sni", "SNI"),
    ],
    &[],
);

static MESH: Schema = plain(&[], &[]);
