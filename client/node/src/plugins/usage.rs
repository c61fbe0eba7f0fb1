//! What a task of a plugin uses. A plugin says how many percent of a core that are; here they become what was used so far, as
//! of all tasks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use executor::process::TICKS_PER_SECOND;
use futures_util::stream::BoxStream;
use plugin::Caller;
use plugin::proto::driver::{self as proto, CpuField, MemoryField};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::driver::{Outcome, Usage, sampled};

/// How often a plugin is asked to say it.
const EVERY: Duration = Duration::from_secs(1);

/// Before a plugin that says no more is asked again.
const RETRY: Duration = Duration::from_secs(30);

/// Nobody asks a plugin before somebody wants to know.
#[derive(Debug)]
pub struct Meter {
    caller: Caller,
    task_id: String,
    reading: Arc<Mutex<Reading>>,
    reader: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Debug, Default)]
struct Reading {
    usage: Usage,
    user_ticks: f64,
    system_ticks: f64,
}

impl Meter {
    pub fn new(caller: Caller, task_id: String) -> Meter {
        Meter { caller, task_id, reading: Arc::default(), reader: OnceLock::new() }
    }

    /// Until the task has ended.
    pub fn readings(
        &self,
        interval: Duration,
        outcome: watch::Receiver<Option<Outcome>>,
    ) -> BoxStream<'static, Usage> {
        self.reader.get_or_init(|| {
            let reading = read(self.caller.clone(), self.task_id.clone(), Arc::clone(&self.reading));
            AbortOnDropHandle::new(tokio::spawn(reading))
        });
        let reading = Arc::clone(&self.reading);
        sampled(interval, move || {
            let usage = reading.lock().unwrap_or_else(PoisonError::into_inner).usage;
            outcome.borrow().is_none().then_some(usage)
        })
    }
}

async fn read(caller: Caller, task_id: String, reading: Arc<Mutex<Reading>>) {
    loop {
        let request =
            proto::TaskStatsRequest { task_id: task_id.clone(), collection_interval: Some(EVERY.into()) };
        let stream = caller.stream::<_, proto::TaskStatsResponse>(proto::SERVICE, "TaskStats", request).await;
        let mut last = Instant::now();
        if let Ok(mut stream) = stream {
            while let Ok(Some(answer)) = stream.message().await {
                let now = Instant::now();
                let total = answer.stats.and_then(|stats| stats.agg_resource_usage);
                if let Some(total) = total {
                    let mut reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
                    reading.take_in(&total, now - std::mem::replace(&mut last, now));
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl Reading {
    /// What was used since the last time.
    fn take_in(&mut self, used: &proto::TaskResourceUsage, since: Duration) {
        let cpu = used.cpu.clone().unwrap_or_default();
        let measures = |field: CpuField| cpu.measured_fields().any(|measured| measured == field);
        let split = measures(CpuField::UserMode) || cpu.user_mode > 0.0 || cpu.system_mode > 0.0;
        let (user, system) = if split { (cpu.user_mode, cpu.system_mode) } else { (cpu.percent, 0.0) };
        let ticks = |percent: f64| percent.max(0.0) / 100.0 * since.as_secs_f64() * TICKS_PER_SECOND as f64;
        self.user_ticks += ticks(user);
        self.system_ticks += ticks(system);
        self.usage.user_ticks = self.user_ticks as u64;
        self.usage.system_ticks = self.system_ticks as u64;
        if measures(CpuField::ThrottledPeriods) {
            self.usage.group.throttled_periods = Some(cpu.throttled_periods);
        }
        if measures(CpuField::ThrottledTime) {
            self.usage.group.throttled_ns = Some(cpu.throttled_time);
        }
        let memory = used.memory.clone().unwrap_or_default();
        let of = |field, value| memory.measured_fields().any(|measured| measured == field).then_some(value);
        self.usage.resident_bytes = if memory.rss > 0 { memory.rss } else { memory.usage };
        self.usage.group.cache_bytes = of(MemoryField::Cache, memory.cache);
        self.usage.group.swap_bytes = of(MemoryField::Swap, memory.swap);
        self.usage.group.kernel_bytes = of(MemoryField::KernelUsage, memory.kernel_usage);
        self.usage.group.memory_max_bytes = of(MemoryField::MaxUsage, memory.max_usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_become_what_was_used_so_far() {
        let used = proto::TaskResourceUsage {
            cpu: Some(proto::CpuUsage { percent: 50.0, ..Default::default() }),
            memory: Some(proto::MemoryUsage {
                usage: 7,
                cache: 3,
                swap: 9,
                measured_fields: vec![MemoryField::Cache.into()],
                ..Default::default()
            }),
        };
        let mut reading = Reading::default();
        reading.take_in(&used, Duration::from_secs(2));
        reading.take_in(&used, Duration::from_secs(1));
        let usage = reading.usage;
        assert_eq!((usage.user_ticks, usage.resident_bytes), (150, 7));
        assert_eq!((usage.group.cache_bytes, usage.group.swap_bytes), (Some(3), None));
        let cpu = proto::CpuUsage { user_mode: 10.0, system_mode: 20.0, percent: 30.0, ..Default::default() };
        let used = proto::TaskResourceUsage { cpu: Some(cpu), memory: None };
        reading.take_in(&used, Duration::from_secs(1));
        assert_eq!((reading.usage.user_ticks, reading.usage.system_ticks), (160, 20));
    }
}
