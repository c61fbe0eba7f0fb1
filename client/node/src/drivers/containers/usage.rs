//! What a container uses, as engines say it.

use bollard::models::ContainerStatsResponse;
use executor::cgroup::GroupUsage;
use executor::process::TICKS_PER_SECOND;

use crate::driver::Usage;

/// None when the container does not run any more.
pub fn usage(stats: &ContainerStatsResponse) -> Option<Usage> {
    let cpu = stats.cpu_stats.as_ref()?;
    let spent = cpu.cpu_usage.as_ref()?;
    let memory = stats.memory_stats.as_ref()?;
    let details = memory.stats.as_ref();
    let detail = |names: [&str; 2]| names.iter().find_map(|name| details?.get(*name).copied());
    let ticks = |nanos: Option<u64>| nanos.unwrap_or(0) / (1_000_000_000 / TICKS_PER_SECOND);
    let throttling = cpu.throttling_data.as_ref();
    // What control groups of version 1 call it, then those of version 2.
    let resident = detail(["rss", "anon"]).or(memory.usage)?;
    Some(Usage {
        user_ticks: ticks(spent.usage_in_usermode),
        system_ticks: ticks(spent.usage_in_kernelmode),
        resident_bytes: resident,
        processes: stats.pids_stats.as_ref().and_then(|pids| pids.current).unwrap_or(0),
        group: GroupUsage {
            cache_bytes: detail(["cache", "file"]),
            mapped_bytes: detail(["mapped_file", "file_mapped"]),
            swap_bytes: detail(["swap", "swap"]),
            kernel_bytes: detail(["kernel", "kernel"]),
            memory_max_bytes: memory.max_usage,
            throttled_periods: throttling.and_then(|throttling| throttling.throttled_periods),
            throttled_ns: throttling.and_then(|throttling| throttling.throttled_time),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_read_from_both_versions_of_control_groups() {
        let read = |memory: serde_json::Value| {
            let stats = json!({
                "cpu_stats": {"cpu_usage": {"usage_in_usermode": 20_000_000, "usage_in_kernelmode": 10_000_000},
                    "throttling_data": {"throttled_periods": 2, "throttled_time": 5}},
                "memory_stats": memory, "pids_stats": {"current": 3}
            });
            usage(&serde_json::from_value(stats).unwrap()).unwrap()
        };
        let old = read(json!({"usage": 9000, "max_usage": 9500, "stats": {"rss": 4096, "cache": 100}}));
        assert_eq!((old.user_ticks, old.system_ticks, old.processes), (2, 1, 3));
        assert_eq!(
            (old.resident_bytes, old.group.cache_bytes, old.group.throttled_ns),
            (4096, Some(100), Some(5))
        );
        let new = read(json!({"usage": 9000, "stats": {"anon": 4000, "file": 50, "file_mapped": 7}}));
        assert_eq!(
            (new.resident_bytes, new.group.cache_bytes, new.group.mapped_bytes),
            (4000, Some(50), Some(7))
        );
    }
}
