use tokio::sync::watch;

use super::*;
use crate::testing;

/// What the hooks of a test have done, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// Writes down each of its steps.
#[derive(Debug)]
struct Recorder {
    name: &'static str,
    log: Log,
    fails: bool,
    once: bool,
    again_at: Option<Time>,
}

impl Recorder {
    fn note(&self, step: &str) -> HookFuture<'static> {
        self.log.lock().unwrap().push(format!("{} {step}", self.name));
        ready(if self.fails { Err(HookError::fatal(self.name, step)) } else { Ok(()) })
    }
}

impl AllocHook for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prerun<'a>(&'a self, _: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        state.done = self.once;
        self.note("prerun")
    }

    fn update<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("update")
    }

    fn check(&self, _: &AllocContext, _: Time) -> Check {
        Check { again_at: self.again_at, stop: None }
    }

    fn prerestart<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("prerestart")
    }

    fn postrestart<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("postrestart")
    }

    fn prekill<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("prekill")
    }

    fn postrun<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("postrun")
    }

    fn destroy<'a>(&'a self, _: &'a AllocContext) -> HookFuture<'a> {
        self.note("destroy")
    }
}

/// The hooks `a`, `b` and `c`, of which some fail at every step and some are done after their first `prerun`.
fn hooks(failing: &str, once: &str) -> (AllocHooks, Log) {
    let log = Log::default();
    let recorder = |name: &'static str| -> Box<dyn AllocHook> {
        let again_at = (name != "a").then(|| Time::from_secs(name.as_bytes()[0].into()));
        let (fails, once) = (failing.contains(name), once.contains(name));
        Box::new(Recorder { name, log: log.clone(), fails, once, again_at })
    };
    (AllocHooks::of(["a", "c", "b"].map(recorder).into()), log)
}

fn taken(log: &Log) -> String {
    std::mem::take(&mut *log.lock().unwrap()).join(", ")
}

#[tokio::test]
async fn every_step_runs_in_the_order_of_the_list() {
    let base = tempfile::tempdir().unwrap();
    let alloc = testing::alloc_context(&testing::context(base.path()));
    let (hooks, log) = hooks("", "");
    hooks.prerun(&alloc).await.unwrap();
    assert_eq!(taken(&log), "a prerun, c prerun, b prerun");
    hooks.update(&alloc).await;
    assert_eq!(taken(&log), "a update, c update, b update");
    assert_eq!(
        hooks.check(&alloc, Time::ZERO).1,
        Some(Time::from_secs(i64::from(b'b'))),
        "the first of all times"
    );
    hooks.prerestart(&alloc).await;
    assert_eq!(taken(&log), "a prerestart, c prerestart, b prerestart");
    hooks.postrestart(&alloc).await;
    assert_eq!(taken(&log), "a postrestart, c postrestart, b postrestart");
    hooks.prekill(&alloc).await;
    assert_eq!(taken(&log), "a prekill, c prekill, b prekill");
    hooks.postrun(&alloc).await;
    assert_eq!(taken(&log), "a postrun, c postrun, b postrun");
    hooks.destroy(&alloc).await;
    assert_eq!(taken(&log), "a destroy, c destroy, b destroy");
}

#[tokio::test]
async fn a_failing_prerun_keeps_the_rest_from_running_and_cleaning_up_goes_on_in_spite_of_errors() {
    let base = tempfile::tempdir().unwrap();
    let alloc = testing::alloc_context(&testing::context(base.path()));
    let (hooks, log) = hooks("c", "");
    assert_eq!(hooks.prerun(&alloc).await.unwrap_err().hook, "c");
    assert_eq!(taken(&log), "a prerun, c prerun");
    hooks.postrun(&alloc).await;
    hooks.destroy(&alloc).await;
    assert_eq!(taken(&log), "a postrun, c postrun, b postrun, a destroy, c destroy, b destroy");
}

#[tokio::test]
async fn after_a_restart_of_the_agent_only_what_is_not_done_runs_again() {
    let base = tempfile::tempdir().unwrap();
    {
        let alloc = testing::alloc_context(&testing::context(base.path()));
        let (hooks, log) = hooks("c", "a");
        hooks.prerun(&alloc).await.unwrap_err();
        assert_eq!(taken(&log), "a prerun, c prerun");
    }
    let alloc = testing::alloc_context(&testing::context(base.path()));
    let (hooks, log) = hooks("", "a");
    hooks.prerun(&alloc).await.unwrap();
    assert_eq!(taken(&log), "c prerun, b prerun");
}

#[tokio::test]
async fn a_stopped_allocation_is_not_set_up() {
    let base = tempfile::tempdir().unwrap();
    let mut alloc = testing::alloc_context(&testing::context(base.path()));
    let mut stopped = Allocation::clone(&testing::alloc());
    stopped.desired_status = "stop".to_string();
    alloc.versions = watch::channel(Arc::new(stopped)).1;
    let (hooks, log) = hooks("", "");
    hooks.prerun(&alloc).await.unwrap();
    assert_eq!(taken(&log), "");
}

#[test]
fn the_list_is_in_the_order_of_nomad() {
    let names: Vec<&str> = all().iter().map(|hook| hook.name()).collect();
    let expected = [
        "alloc_dir",
        "max_run_duration",
        "await_previous_allocations",
        "migrate_disk",
        "alloc_health_watcher",
        "network",
        "group_services",
        "csi_hook",
        "group_shutdown_delay",
    ];
    assert_eq!(names, expected);
}
