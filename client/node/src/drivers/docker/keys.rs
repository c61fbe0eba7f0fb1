//! The keys of a task's `config` block.

use super::settings::LOGGING;
use crate::driver::{Field, Schema, ValueType};

const OF_WINDOWS: ValueType = ValueType::Unsupported("it is about containers of Windows");

pub const TASK: Schema = Schema(&[IMAGE, COMMAND, NETWORK, ISOLATION, LIMITS, FILES, REST]);

const IMAGE: &[Field] = &[
    Field::required("image", ValueType::Text),
    Field::optional("force_pull", ValueType::Boolean),
    Field::optional("image_pull_timeout", ValueType::Duration),
    Field::optional("load", ValueType::Text),
    Field::optional("auth", ValueType::Block(AUTH)),
    Field::optional("auth_soft_fail", ValueType::Boolean),
];

const AUTH: Schema = Schema(&[&[
    Field::optional("username", ValueType::Text),
    Field::optional("password", ValueType::Text),
    Field::optional("email", ValueType::Text),
    Field::optional("server_address", ValueType::Text),
]]);

const COMMAND: &[Field] = &[
    Field::optional("command", ValueType::Text),
    Field::optional("args", ValueType::TextList),
    Field::optional("entrypoint", ValueType::TextList),
    Field::optional("work_dir", ValueType::Text),
    Field::optional("interactive", ValueType::Boolean),
    Field::optional("tty", ValueType::Boolean),
    Field::optional("init", ValueType::Boolean),
];

const NETWORK: &[Field] = &[
    Field::optional("network_mode", ValueType::Text),
    Field::optional("network_aliases", ValueType::TextList),
    Field::optional("ipv4_address", ValueType::Text),
    Field::optional("ipv6_address", ValueType::Text),
    Field::optional("mac_address", ValueType::Text),
    Field::optional("ports", ValueType::TextList),
    Field::optional(
        "port_map",
        ValueType::Unsupported(
            "tasks have no networks of their own; use ports with those of a network block of the group",
        ),
    ),
    Field::optional("advertise_ipv6_address", ValueType::Boolean),
    Field::optional("dns_servers", ValueType::TextList),
    Field::optional("dns_search_domains", ValueType::TextList),
    Field::optional("dns_options", ValueType::TextList),
    Field::optional("extra_hosts", ValueType::TextList),
    Field::optional("hostname", ValueType::Text),
];

const ISOLATION: &[Field] = &[
    Field::optional("uts_mode", ValueType::Text),
    Field::optional("pid_mode", ValueType::Text),
    Field::optional("ipc_mode", ValueType::Text),
    Field::optional("userns_mode", ValueType::Text),
    Field::optional("cgroupns", ValueType::Text),
    Field::optional("privileged", ValueType::Boolean),
    Field::optional("cap_add", ValueType::TextList),
    Field::optional("cap_drop", ValueType::TextList),
    Field::optional("security_opt", ValueType::TextList),
    Field::optional("group_add", ValueType::TextList),
    Field::optional("sysctl", ValueType::TextMap),
    Field::optional("readonly_rootfs", ValueType::Boolean),
    Field::optional("runtime", ValueType::Text),
    Field::optional("isolation", OF_WINDOWS),
];

const LIMITS: &[Field] = &[
    Field::optional("ulimit", ValueType::TextMap),
    Field::optional("pids_limit", ValueType::Number),
    Field::optional("oom_score_adj", ValueType::Number),
    Field::optional("shm_size", ValueType::Number),
    Field::optional("storage_opt", ValueType::TextMap),
    Field::optional("cpu_hard_limit", ValueType::Boolean),
    Field::optional("cpu_cfs_period", ValueType::Number),
    Field::optional(
        "cpuset_cpus",
        ValueType::Unsupported("ask for cores of the task's own with cores in its resources block"),
    ),
    Field::optional("memory_hard_limit", ValueType::Number),
];

const FILES: &[Field] = &[
    Field::optional("volumes", ValueType::TextList),
    Field::optional("volume_driver", ValueType::Text),
    Field::optional("mount", ValueType::Blocks(MOUNT)),
    Field::optional("mounts", ValueType::Blocks(MOUNT)),
    Field::optional("devices", ValueType::Blocks(DEVICE)),
];

const MOUNT: Schema = Schema(&[&[
    Field::optional("type", ValueType::Text),
    Field::required("target", ValueType::Text),
    Field::optional("source", ValueType::Text),
    Field::optional("readonly", ValueType::Boolean),
    Field::optional(
        "bind_options",
        ValueType::Block(Schema(&[&[Field::optional("propagation", ValueType::Text)]])),
    ),
    Field::optional(
        "volume_options",
        ValueType::Block(Schema(&[&[
            Field::optional("no_copy", ValueType::Boolean),
            Field::optional("labels", ValueType::TextMap),
            Field::optional(
                "driver_config",
                ValueType::Block(Schema(&[&[
                    Field::optional("name", ValueType::Text),
                    Field::optional("options", ValueType::TextMap),
                ]])),
            ),
        ]])),
    ),
    Field::optional(
        "tmpfs_options",
        ValueType::Block(Schema(&[&[
            Field::optional("size", ValueType::Number),
            Field::optional("mode", ValueType::Number),
        ]])),
    ),
]]);

const DEVICE: Schema = Schema(&[&[
    Field::required("host_path", ValueType::Text),
    Field::optional("container_path", ValueType::Text),
    Field::optional("cgroup_permissions", ValueType::Text),
]]);

const REST: &[Field] = &[
    Field::optional("labels", ValueType::TextMap),
    Field::optional("logging", ValueType::Block(LOGGING)),
    Field::optional(
        "healthchecks",
        ValueType::Block(Schema(&[&[Field::optional("disable", ValueType::Boolean)]])),
    ),
    Field::optional("container_exists_attempts", ValueType::Number),
];
