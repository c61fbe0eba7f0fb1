//! The keys of a task's `config` block.

use super::settings::LOGGING;
use crate::driver::{Field, Schema, ValueType};

pub const TASK: Schema = Schema(&[IMAGE, COMMAND, NETWORK, ISOLATION, LIMITS, FILES]);

const IMAGE: &[Field] = &[
    Field::required("image", ValueType::Text),
    Field::optional("auth", ValueType::Block(AUTH)),
    Field::optional("auth_soft_fail", ValueType::Boolean),
    Field::optional("force_pull", ValueType::Boolean),
    Field::optional("image_pull_timeout", ValueType::Duration),
    Field::optional("arch", ValueType::Text),
    Field::optional("os", ValueType::Text),
    Field::optional("variant", ValueType::Text),
];

const AUTH: Schema = Schema(&[&[
    Field::optional("username", ValueType::Text),
    Field::optional("password", ValueType::Text),
    Field::optional("tls_verify", ValueType::Boolean),
]]);

const COMMAND: &[Field] = &[
    Field::optional("command", ValueType::Text),
    Field::optional("args", ValueType::TextList),
    Field::optional("entrypoint", ValueType::TextOrList),
    Field::optional("working_dir", ValueType::Text),
    Field::optional("tty", ValueType::Boolean),
    Field::optional("init", ValueType::Boolean),
    Field::optional("init_path", ValueType::Text),
    Field::optional("labels", ValueType::TextMap),
    Field::optional("logging", ValueType::Block(LOGGING)),
    Field::optional("socket", ValueType::Text),
];

const NETWORK: &[Field] = &[
    Field::optional("hostname", ValueType::Text),
    Field::optional("network_mode", ValueType::Text),
    Field::optional("ports", ValueType::TextList),
    Field::optional(
        "port_map",
        ValueType::Unsupported(
            "tasks have no networks of their own; use ports with those of a network block of the group",
        ),
    ),
    Field::optional("ipv4_address", ValueType::Text),
    Field::optional("ipv6_address", ValueType::Text),
    Field::optional("static_ips", ValueType::TextList),
    Field::optional("static_mac", ValueType::Text),
    Field::optional("extra_hosts", ValueType::TextList),
];

const ISOLATION: &[Field] = &[
    Field::optional("cap_add", ValueType::TextList),
    Field::optional("cap_drop", ValueType::TextList),
    Field::optional("selinux_opts", ValueType::TextList),
    Field::optional("security_opt", ValueType::TextList),
    Field::optional("apparmor_profile", ValueType::Text),
    Field::optional("privileged", ValueType::Boolean),
    Field::optional("userns", ValueType::Text),
    Field::optional("ipc_mode", ValueType::Text),
    Field::optional("readonly_rootfs", ValueType::Boolean),
    Field::optional("sysctl", ValueType::TextMap),
];

const LIMITS: &[Field] = &[
    Field::optional("memory_reservation", ValueType::Text),
    Field::optional("memory_swap", ValueType::Text),
    Field::optional("memory_swappiness", ValueType::Number),
    Field::optional("cpu_hard_limit", ValueType::Boolean),
    Field::optional("cpu_cfs_period", ValueType::Number),
    Field::optional("pids_limit", ValueType::Number),
    Field::optional("oom_score_adj", ValueType::Number),
    Field::optional("ulimit", ValueType::TextMap),
    Field::optional("shm_size", ValueType::Text),
];

const FILES: &[Field] = &[
    Field::optional("devices", ValueType::TextList),
    Field::optional("volumes", ValueType::TextList),
    Field::optional("tmpfs", ValueType::TextList),
];
