//! The schemas of resources and networks.

use super::finish;
use super::job::{AFFINITY, CONSTRAINT};
use super::schema::{Label, Schema, as_it_is, bool, int, int_in, many, one, plain, text, text_map, texts};

pub(super) static RESOURCES: Schema = plain(
    &[
        int("cpu", "CPU"),
        int("cores", "Cores"),
        int("memory", "MemoryMB"),
        int("memory_max", "MemoryMaxMB"),
        int("disk", "DiskMB"),
        int("iops", "IOPS"),
        int("secrets", "SecretsMB"),
    ],
    &[many("network", "Networks", &NETWORK), many("device", "Devices", &DEVICE), one("numa", "NUMA", &NUMA)],
);

static DEVICE: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[int_in("count", "Count", 0, i64::MAX)],
    blocks: &[many("constraint", "Constraints", &CONSTRAINT), many("affinity", "Affinities", &AFFINITY)],
    finish: as_it_is,
};

static NUMA: Schema = plain(&[text("affinity", "Affinity"), texts("devices", "Devices")], &[]);

pub(super) static NETWORK: Schema = Schema {
    label: Label::None,
    fields: &[
        text("mode", "Mode"),
        text("device", "Device"),
        text("cidr", "CIDR"),
        text("ip", "IP"),
        text("hostname", "Hostname"),
        // Nomad has no such key.
        text("isolation", "Isolation"),
        int("mbits", "MBits"),
    ],
    blocks: &[
        many("port", "DynamicPorts", &PORT),
        many("reserved_ports", "ReservedPorts", &PORT),
        one("dns", "DNS", &DNS),
        one("cni", "CNI", &CNI),
    ],
    finish: finish::network,
};

static PORT: Schema = Schema {
    label: Label::Required("Label"),
    fields: &[
        int("static", "Value"),
        int("to", "To"),
        text("host_network", "HostNetwork"),
        bool("ignore_collision", "IgnoreCollision"),
    ],
    blocks: &[],
    finish: finish::port,
};

static DNS: Schema =
    plain(&[texts("servers", "Servers"), texts("searches", "Searches"), texts("options", "Options")], &[]);

static CNI: Schema = plain(&[text_map("args", "Args")], &[]);
