use std::sync::Mutex;

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
}

impl Recorder {
    fn note(&self, step: &str) -> HookFuture<'static> {
        self.log.lock().unwrap().push(format!("{} {step}", self.name));
        ready(if self.fails { Err(HookError::recoverable(self.name, step)) } else { Ok(()) })
    }
}

impl TaskHook for Recorder {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prestart<'a>(
        &'a mut self,
        _: &'a TaskContext,
        _: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        state.done = self.once;
        state.env.insert(format!("FROM_{}", self.name), "1".to_string());
        self.note("prestart")
    }

    fn restored<'a>(&'a mut self, _: &'a TaskContext, _: &'a mut HookState) -> HookFuture<'a> {
        self.note("restored")
    }

    fn poststart<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.note("poststart")
    }

    fn prerestart<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.note("prerestart")
    }

    fn prekill<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.note("prekill")
    }

    fn exited<'a>(&'a mut self, _: &'a TaskContext, _: &'a Exit) -> HookFuture<'a> {
        self.note("exited")
    }

    fn stop<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.note("stop")
    }

    fn update<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.note("update")
    }
}

/// The hooks `a`, `b` and `c`, of which some fail at every step and some are done after their first start.
fn hooks(task: &TaskContext, failing: &str, once: &str) -> (TaskHooks, Log) {
    let log = Log::default();
    let recorder = |name: &'static str| -> Box<dyn TaskHook> {
        Box::new(Recorder {
            name,
            log: log.clone(),
            fails: failing.contains(name),
            once: once.contains(name),
        })
    };
    (TaskHooks::of(["a", "b", "c"].map(recorder).into(), task), log)
}

fn taken(log: &Log) -> String {
    std::mem::take(&mut *log.lock().unwrap()).join(", ")
}

#[tokio::test]
async fn every_step_runs_in_the_order_of_the_list() {
    let base = tempfile::tempdir().unwrap();
    let task = testing::task_context(&testing::context(base.path()));
    let (mut hooks, log) = hooks(&task, "", "");
    hooks.prestart(&task).await.unwrap();
    assert_eq!(taken(&log), "a prestart, b prestart, c prestart");
    hooks.restored(&task).await;
    assert_eq!(taken(&log), "a restored, b restored, c restored");
    hooks.poststart(&task).await;
    assert_eq!(taken(&log), "a poststart, b poststart, c poststart");
    hooks.update(&task).await;
    assert_eq!(taken(&log), "a update, b update, c update");
    hooks.prerestart(&task).await;
    assert_eq!(taken(&log), "a prerestart, b prerestart, c prerestart");
    hooks.prekill(&task).await;
    assert_eq!(taken(&log), "a prekill, b prekill, c prekill");
    hooks.exited(&task, &Exit::default()).await;
    assert_eq!(taken(&log), "a exited, b exited, c exited");
    hooks.stop(&task).await;
    assert_eq!(taken(&log), "a stop, b stop, c stop");
}

#[tokio::test]
async fn a_failing_prestart_ends_the_start_and_other_failures_stop_nobody() {
    let base = tempfile::tempdir().unwrap();
    let task = testing::task_context(&testing::context(base.path()));
    let (mut hooks, log) = hooks(&task, "b", "");
    let error = hooks.prestart(&task).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.recoverable), ("b: prestart", true));
    assert_eq!(taken(&log), "a prestart, b prestart");
    hooks.stop(&task).await;
    assert_eq!(taken(&log), "a stop, b stop, c stop");
}

#[tokio::test]
async fn after_a_restart_of_the_agent_only_what_is_not_done_runs_again() {
    let base = tempfile::tempdir().unwrap();
    {
        let task = testing::task_context(&testing::context(base.path()));
        // The agent dies while `c` has yet to run.
        let (mut hooks, log) = hooks(&task, "b", "a");
        hooks.prestart(&task).await.unwrap_err();
        assert_eq!(taken(&log), "a prestart, b prestart");
    }
    let context = testing::context(base.path());
    let task = testing::task_context(&context);
    let (mut hooks, log) = hooks(&task, "", "a");
    let start = hooks.prestart(&task).await.unwrap();
    assert_eq!(taken(&log), "b prestart, c prestart");
    assert_eq!(start.environment.variables["FROM_a"], "1", "what a done hook has added stays");
    context.store.forget(testing::ALLOC_ID);
    assert_eq!(context.store.load_hook(testing::ALLOC_ID, Some("t"), "a"), HookState::default());
}

#[test]
fn the_list_is_in_the_order_of_nomad() {
    let names: Vec<&str> = all().iter().map(|hook| hook.name()).collect();
    assert_eq!(
        names,
        [
            "validate",
            "workload_users",
            "task_dir",
            "environment",
            "identities",
            "consul_task",
            "vault",
            "secrets",
            "logmon",
            "log_shipping",
            "dispatch_payload",
            "volumes",
            "devices",
            "network",
            "artifacts",
            "api",
            "csi_plugin_supervisor",
            "template",
            "task_services",
            "shutdown_delay"
        ]
    );
}
