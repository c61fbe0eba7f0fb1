//! What a process of this host has used, as the kernel counts it.

use anyhow::{Context, anyhow};

/// At one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Processor time in user and kernel mode, of all its threads.
    pub cpu_seconds: f64,
    /// In memory.
    pub resident_bytes: u64,
}

/// Reads `/proc/PID/stat`.
pub(crate) fn usage(pid: u32) -> anyhow::Result<Usage> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("-pid: there is no process {pid} on this host"))?;
    parse(&text).ok_or_else(|| anyhow!("/proc/{pid}/stat is not as expected: {text}"))
}

/// Of this process.
pub(crate) fn own() -> anyhow::Result<Usage> {
    usage(std::process::id())
}

fn parse(stat: &str) -> Option<Usage> {
    // The name before may hold anything, spaces and parentheses too.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    // utime, stime and rss are the fields 14, 15 and 24, and the rest begins with 3.
    let field = |number: usize| fields.get(number - 3)?.trim().parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    Some(Usage {
        cpu_seconds: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
        resident_bytes: field(24)? * rustix::param::page_size() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_moves_nothing() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 100 4096 7 18446744073709551615";
        let usage = parse(&format!("42 (a) b (c) {rest}")).unwrap();
        assert_eq!(usage.cpu_seconds, 200.0 / rustix::param::clock_ticks_per_second() as f64);
        assert_eq!(usage.resident_bytes, 7 * rustix::param::page_size() as u64);
    }

    #[test]
    fn this_process_uses_memory_and_an_impossible_one_is_named() {
        assert!(own().unwrap().resident_bytes > 0);
        let error = usage(u32::MAX).unwrap_err().to_string();
        assert_eq!(error, "-pid: there is no process 4294967295 on this host");
    }
}
