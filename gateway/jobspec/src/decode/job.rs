//! The schemas of jobs, groups and tasks.

use super::finish;
use super::network::{NETWORK, RESOURCES};
use super::schema::{
    Label, Schema, as_it_is, bool, by_label, duration, free, int, int_in, many, one, plain, text, text_map,
    texts,
};
use super::service::SERVICE;

const WEIGHT_MIN: i64 = i8::MIN as i64;
const WEIGHT_MAX: i64 = i8::MAX as i64;

pub(crate) static JOB: Schema = Schema {
    label: Label::Required("~label"),
    fields: &[
        text("id", "ID"),
        text("name", "Name"),
        text("region", "Region"),
        text("namespace", "Namespace"),
        text("type", "Type"),
        int("priority", "Priority"),
        bool("all_at_once", "AllAtOnce"),
        texts("datacenters", "Datacenters"),
        text("node_pool", "NodePool"),
        text_map("meta", "Meta"),
    ],
    blocks: &[
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("spread", "Spreads", &SPREAD),
        many("group", "TaskGroups", &GROUP),
        many("task", "~tasks", &TASK),
        one("vault", "~vault", &VAULT),
        many("secret", "~secrets", &SECRET),
        one("update", "Update", &UPDATE),
        one("multiregion", "Multiregion", &MULTIREGION),
        one("periodic", "Periodic", &PERIODIC),
        one("parameterized", "ParameterizedJob", &PARAMETERIZED),
        one("reschedule", "Reschedule", &RESCHEDULE),
        one("migrate", "Migrate", &MIGRATE),
        one("ui", "UI", &UI),
    ],
    finish: finish::job,
};

static GROUP: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[
        int("count", "Count"),
        text_map("meta", "Meta"),
        duration("shutdown_delay", "ShutdownDelay"),
        duration("max_run_duration", "MaxRunDuration"),
        duration("stop_after_client_disconnect", "StopAfterClientDisconnect"),
        duration("max_client_disconnect", "MaxClientDisconnect"),
        bool("prevent_reschedule_on_lost", "PreventRescheduleOnLost"),
    ],
    blocks: &[
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("spread", "Spreads", &SPREAD),
        many("task", "Tasks", &TASK),
        by_label("volume", "Volumes", &VOLUME),
        one("restart", "RestartPolicy", &RESTART),
        one("disconnect", "Disconnect", &DISCONNECT),
        one("reschedule", "ReschedulePolicy", &RESCHEDULE),
        one("ephemeral_disk", "EphemeralDisk", &EPHEMERAL_DISK),
        one("update", "Update", &UPDATE),
        one("migrate", "Migrate", &MIGRATE),
        many("network", "Networks", &NETWORK),
        many("service", "Services", &SERVICE),
        one("scaling", "Scaling", &GROUP_SCALING),
        one("consul", "Consul", &CONSUL),
        one("vault", "~vault", &VAULT),
        many("secret", "~secrets", &SECRET),
    ],
    finish: as_it_is,
};

static TASK: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[
        text("driver", "Driver").required(),
        text("user", "User"),
        free("config", "Config"),
        text_map("env", "Env"),
        text_map("meta", "Meta"),
        duration("kill_timeout", "KillTimeout"),
        text("kill_signal", "KillSignal"),
        text("kind", "Kind"),
        bool("leader", "Leader"),
        duration("shutdown_delay", "ShutdownDelay"),
    ],
    blocks: &[
        one("lifecycle", "Lifecycle", &LIFECYCLE),
        many("constraint", "Constraints", &CONSTRAINT),
        many("affinity", "Affinities", &AFFINITY),
        many("service", "Services", &SERVICE),
        one("resources", "Resources", &RESOURCES),
        one("restart", "RestartPolicy", &RESTART),
        one("logs", "LogConfig", &LOGS),
        many("artifact", "Artifacts", &ARTIFACT),
        one("vault", "Vault", &VAULT),
        one("consul", "Consul", &CONSUL),
        many("template", "Templates", &TEMPLATE),
        one("dispatch_payload", "DispatchPayload", &DISPATCH_PAYLOAD),
        many("volume_mount", "VolumeMounts", &VOLUME_MOUNT),
        one("csi_plugin", "CSIPluginConfig", &CSI_PLUGIN),
        many("scaling", "ScalingPolicies", &TASK_SCALING),
        many("secret", "Secrets", &SECRET),
        many("identity", "Identities", &IDENTITY),
        many("action", "Actions", &ACTION),
        one("schedule", "Schedule", &SCHEDULE),
    ],
    finish: finish::task,
};

static LIFECYCLE: Schema = plain(&[text("hook", "Hook").required(), bool("sidecar", "Sidecar")], &[]);

pub(super) static CONSTRAINT: Schema = Schema {
    label: Label::None,
    fields: &[
        text("attribute", "LTarget"),
        text("value", "RTarget"),
        text("operator", "Operand"),
        text("version", "~version"),
        text("semver", "~semver"),
        text("regexp", "~regexp"),
        text("set_contains", "~set_contains"),
        text("set_contains_all", "~set_contains_all"),
        text("set_contains_any", "~set_contains_any"),
        text("distinct_property", "~distinct_property"),
        bool("distinct_hosts", "~distinct_hosts"),
        bool("is_set", "~is_set"),
        bool("is_not_set", "~is_not_set"),
    ],
    blocks: &[],
    finish: finish::constraint,
};

pub(super) static AFFINITY: Schema = Schema {
    label: Label::None,
    fields: &[
        text("attribute", "LTarget"),
        text("value", "RTarget"),
        text("operator", "Operand"),
        int_in("weight", "Weight", WEIGHT_MIN, WEIGHT_MAX),
        text("version", "~version"),
        text("semver", "~semver"),
        text("regexp", "~regexp"),
        text("set_contains", "~set_contains"),
        text("set_contains_all", "~set_contains_all"),
        text("set_contains_any", "~set_contains_any"),
    ],
    blocks: &[],
    finish: finish::constraint,
};

static SPREAD: Schema = plain(
    &[text("attribute", "Attribute"), int_in("weight", "Weight", WEIGHT_MIN, WEIGHT_MAX)],
    &[many("target", "SpreadTarget", &TARGET)],
);

static TARGET: Schema = Schema {
    label: Label::Optional("Value"),
    fields: &[text("value", "Value"), int_in("percent", "Percent", 0, u8::MAX as i64)],
    blocks: &[],
    finish: as_it_is,
};

static UPDATE: Schema = plain(
    &[
        duration("stagger", "Stagger"),
        int("max_parallel", "MaxParallel"),
        text("health_check", "HealthCheck"),
        duration("min_healthy_time", "MinHealthyTime"),
        duration("healthy_deadline", "HealthyDeadline"),
        duration("progress_deadline", "ProgressDeadline"),
        int("canary", "Canary"),
        bool("auto_revert", "AutoRevert"),
        bool("auto_promote", "AutoPromote"),
    ],
    &[],
);

static MIGRATE: Schema = plain(
    &[
        int("max_parallel", "MaxParallel"),
        text("health_check", "HealthCheck"),
        duration("min_healthy_time", "MinHealthyTime"),
        duration("healthy_deadline", "HealthyDeadline"),
    ],
    &[],
);

static RESTART: Schema = plain(
    &[
        duration("interval", "Interval"),
        int("attempts", "Attempts"),
        duration("delay", "Delay"),
        text("mode", "Mode"),
        bool("render_templates", "RenderTemplates"),
    ],
    &[],
);

static RESCHEDULE: Schema = plain(
    &[
        int("attempts", "Attempts"),
        duration("interval", "Interval"),
        duration("delay", "Delay"),
        text("delay_function", "DelayFunction"),
        duration("max_delay", "MaxDelay"),
        bool("unlimited", "Unlimited"),
    ],
    &[],
);

static DISCONNECT: Schema = plain(
    &[
        duration("lost_after", "LostAfter"),
        duration("stop_on_client_after", "StopOnClientAfter"),
        bool("replace", "Replace"),
        text("reconcile", "Reconcile"),
    ],
    &[],
);

static EPHEMERAL_DISK: Schema =
    plain(&[bool("sticky", "Sticky"), bool("migrate", "Migrate"), int("size", "SizeMB")], &[]);

static VOLUME: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[
        text("type", "Type"),
        text("source", "Source"),
        bool("read_only", "ReadOnly"),
        bool("sticky", "Sticky"),
        text("access_mode", "AccessMode"),
        text("attachment_mode", "AttachmentMode"),
        bool("per_alloc", "PerAlloc"),
    ],
    blocks: &[one("mount_options", "MountOptions", &MOUNT_OPTIONS)],
    finish: as_it_is,
};

static MOUNT_OPTIONS: Schema = plain(&[text("fs_type", "FSType"), texts("mount_flags", "MountFlags")], &[]);

pub(super) static VOLUME_MOUNT: Schema = plain(
    &[
        text("volume", "Volume"),
        text("destination", "Destination"),
        bool("read_only", "ReadOnly"),
        text("propagation_mode", "PropagationMode"),
        text("selinux_label", "SELinuxLabel"),
    ],
    &[],
);

static TEMPLATE: Schema = Schema {
    label: Label::None,
    fields: &[
        text("source", "SourcePath"),
        text("destination", "DestPath"),
        text("data", "EmbeddedTmpl"),
        text("change_mode", "ChangeMode"),
        text("change_signal", "ChangeSignal"),
        bool("once", "Once"),
        duration("splay", "Splay"),
        text("perms", "Perms"),
        int("uid", "Uid"),
        int("gid", "Gid"),
        text("left_delimiter", "LeftDelim"),
        text("right_delimiter", "RightDelim"),
        bool("env", "Envvars"),
        duration("vault_grace", "VaultGrace"),
        bool("error_on_missing_key", "ErrMissingKey"),
    ],
    blocks: &[one("change_script", "ChangeScript", &CHANGE_SCRIPT), one("wait", "Wait", &WAIT)],
    finish: finish::template,
};

static WAIT: Schema = plain(&[duration("min", "Min"), duration("max", "Max")], &[]);

static CHANGE_SCRIPT: Schema = plain(
    &[
        text("command", "Command"),
        texts("args", "Args"),
        duration("timeout", "Timeout"),
        bool("fail_on_error", "FailOnError"),
        bool("run_on_first_render", "RunOnFirstRender"),
    ],
    &[],
);

static ARTIFACT: Schema = plain(
    &[
        text("source", "GetterSource").required(),
        text("destination", "RelativeDest"),
        text("mode", "GetterMode"),
        bool("insecure", "GetterInsecure"),
        bool("chown", "Chown"),
        text_map("options", "GetterOptions"),
        text_map("headers", "GetterHeaders"),
    ],
    &[],
);

pub(super) static LOGS: Schema = plain(
    &[
        int("max_files", "MaxFiles"),
        int("max_file_size", "MaxFileSizeMB"),
        bool("enabled", "Enabled"),
        bool("disabled", "Disabled"),
    ],
    &[],
);

static DISPATCH_PAYLOAD: Schema = plain(&[text("file", "File").required()], &[]);

static VAULT: Schema = Schema {
    label: Label::None,
    fields: &[
        texts("policies", "Policies"),
        text("role", "Role"),
        text("namespace", "Namespace"),
        text("cluster", "Cluster"),
        bool("env", "Env"),
        bool("disable_file", "DisableFile"),
        text("change_mode", "ChangeMode"),
        text("change_signal", "ChangeSignal"),
        bool("allow_token_expiration", "AllowTokenExpiration"),
    ],
    blocks: &[],
    finish: finish::vault,
};

static CONSUL: Schema =
    plain(&[text("namespace", "Namespace"), text("cluster", "Cluster"), text("partition", "Partition")], &[]);

static SECRET: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[
        text("provider", "Provider"),
        text("path", "Path"),
        free("config", "Config"),
        text_map("env", "Env"),
    ],
    blocks: &[],
    finish: as_it_is,
};

pub(super) static IDENTITY: Schema = plain(
    &[
        text("name", "Name"),
        texts("aud", "Audience"),
        text("change_mode", "ChangeMode"),
        text("change_signal", "ChangeSignal"),
        bool("env", "Env"),
        bool("file", "File"),
        text("filepath", "Filepath"),
        text("service_name", "ServiceName"),
        duration("ttl", "TTL"),
        texts("extra_claims", "ExtraClaims"),
    ],
    &[],
);

static ACTION: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[text("command", "Command").required(), texts("args", "Args")],
    blocks: &[],
    finish: as_it_is,
};

static SCHEDULE: Schema = plain(&[], &[one("cron", "Cron", &SCHEDULE_CRON)]);

static SCHEDULE_CRON: Schema =
    plain(&[text("start", "Start"), text("end", "End"), text("timezone", "Timezone")], &[]);

static CSI_PLUGIN: Schema = plain(
    &[
        text("id", "ID").required(),
        text("type", "Type"),
        text("mount_dir", "MountDir"),
        text("stage_publish_base_dir", "StagePublishBaseDir"),
        duration("health_timeout", "HealthTimeout"),
    ],
    &[],
);

static PERIODIC: Schema = plain(
    &[
        bool("enabled", "Enabled"),
        text("cron", "Spec"),
        texts("crons", "Specs"),
        bool("prohibit_overlap", "ProhibitOverlap"),
        text("time_zone", "TimeZone"),
    ],
    &[],
);

static PARAMETERIZED: Schema = plain(
    &[
        text("payload", "Payload"),
        texts("meta_required", "MetaRequired"),
        texts("meta_optional", "MetaOptional"),
    ],
    &[],
);

static GROUP_SCALING: Schema = Schema {
    label: Label::Ignored,
    fields: &[
        int("min", "Min"),
        int("max", "Max").required(),
        bool("enabled", "Enabled"),
        text("type", "Type"),
        free("policy", "Policy"),
    ],
    blocks: &[],
    finish: finish::group_scaling,
};

static TASK_SCALING: Schema = Schema {
    label: Label::Required("~label"),
    fields: &[int("min", "Min"), int("max", "Max"), bool("enabled", "Enabled"), free("policy", "Policy")],
    blocks: &[],
    finish: finish::task_scaling,
};

static UI: Schema = plain(&[text("description", "Description")], &[many("link", "Links", &LINK)]);

static LINK: Schema = Schema {
    label: Label::Ignored,
    fields: &[text("label", "Label"), text("url", "URL")],
    blocks: &[],
    finish: finish::link,
};

static MULTIREGION: Schema =
    plain(&[], &[one("strategy", "Strategy", &STRATEGY), many("region", "Regions", &REGION)]);

static STRATEGY: Schema = plain(&[int("max_parallel", "MaxParallel"), text("on_failure", "OnFailure")], &[]);

static REGION: Schema = Schema {
    label: Label::Required("Name"),
    fields: &[
        int("count", "Count"),
        texts("datacenters", "Datacenters"),
        text("node_pool", "NodePool"),
        text_map("meta", "Meta"),
    ],
    blocks: &[],
    finish: as_it_is,
};
