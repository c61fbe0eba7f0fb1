//! Renders the templates of the task before it starts, and follows what they read while it lives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::document::Allocation;
use template::Dependency;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::{StartRequest, TaskContext, TaskHook, environment, identities, parts};
use crate::driver::FsIsolation;
use crate::hook::{HookError, HookFuture, HookState};
use crate::task::environment::Environment;
use crate::task::events;
use crate::task::parts::TaskParts;
use crate::templates::change::{Follower, SharedEnv, run_script};
use crate::templates::render::{Attempt, Parts, Renderer};
use crate::templates::sandbox::Sandbox;
use crate::templates::spec::{self, Change, Script};
use crate::templates::watches::Reader;
use crate::vault::reads::Access;

const NAME: &str = "template";

/// Between two events that name what is missing, and before the first.
const MISSING_EVENT_EVERY: Duration = Duration::from_secs(3);

/// How many missing things an event names.
const MISSING_SHOWN: usize = 3;

#[derive(Debug, Default)]
pub struct Templates {
    rendered: Option<RenderedOnce>,
    /// Scripts that are run after the first rendering, once the task runs.
    first_scripts: Vec<Script>,
}

/// What goes on after the first rendering.
#[derive(Debug)]
struct RenderedOnce {
    env: SharedEnv,
    /// None where nothing can change.
    following: Option<AbortOnDropHandle<()>>,
}

impl RenderedOnce {
    fn failed(&self) -> bool {
        self.following.as_ref().is_some_and(|following| following.is_finished())
    }
}

impl TaskHook for Templates {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: the next agent has to follow what they read. A restart of the task renders nothing anew unless the job
    /// wants that.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let parts = parts(&alloc, task, NAME)?;
            if parts.task.templates.is_empty() {
                state.env.clear();
                return Ok(());
            }
            match &self.rendered {
                Some(rendered) if !rendered.failed() && !renders_again(parts) => {
                    state.env = rendered.env.lock().unwrap_or_else(PoisonError::into_inner).clone();
                }
                _ => {
                    self.rendered = None;
                    let failed = |why: String| HookError::kills(NAME, format!("Template failed: {why}"));
                    let mut renderer = renderer(task, &alloc, parts, &start.environment).map_err(failed)?;
                    render_all(&mut renderer, task, &alloc).await.map_err(failed)?;
                    state.env = renderer.env().map_err(failed)?;
                    let first = renderer.specs.iter().filter_map(|spec| match &spec.change {
                        Change::Script(script) if script.run_on_first_render => Some(script.clone()),
                        _ => None,
                    });
                    self.first_scripts = first.collect();
                    self.follow(task, renderer, state, false);
                }
            }
            Ok(())
        })
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, state: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = task.alloc();
            let parts = parts(&alloc, task, NAME)?;
            if parts.task.templates.is_empty() {
                return Ok(());
            }
            let environment = environment::of_task(&task.context, &task.alloc_dir, &alloc, parts);
            let renderer = renderer(task, &alloc, parts, &environment);
            let mut renderer = renderer.map_err(|why| HookError::fatal(NAME, why))?;
            renderer.restore();
            self.follow(task, renderer, state, true);
            Ok(())
        })
    }

    fn poststart<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        Box::pin(async move {
            for script in std::mem::take(&mut self.first_scripts) {
                if let Err(why) = run_script(task, &script).await {
                    let reason = format!("Template failed: {why}");
                    // The loop of the task runs this hook: it takes the order afterwards.
                    if let Some(requests) = task.requests.upgrade() {
                        tokio::spawn(async move {
                            requests.send(crate::task::requests::TaskRequest::Fail { reason }).await.ok();
                        });
                    }
                }
            }
            Ok(())
        })
    }

    fn stop<'a>(&'a mut self, _: &'a TaskContext) -> HookFuture<'a> {
        self.rendered = None;
        crate::hook::ready(Ok(()))
    }
}

impl Templates {
    fn follow(&mut self, task: &TaskContext, mut renderer: Renderer, state: &HookState, at_once: bool) {
        let env: SharedEnv = Arc::new(Mutex::new(state.env.clone()));
        renderer.tidy();
        let task = task.clone();
        let follows = at_once || renderer.follows();
        let follower = Follower { renderer, task: task.clone(), env: Arc::clone(&env) };
        let following = follows.then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                let mut follower = follower;
                // An earlier agent's token is not stored.
                if at_once {
                    let alloc = task.alloc();
                    match identities::default_token(&task, &alloc).await {
                        Ok(token) => follower.renderer.set_token(token),
                        Err(why) => tracing::warn!(task = task.name, why, "templates are not followed"),
                    }
                }
                follower.run(at_once).await;
            }))
        });
        self.rendered = Some(RenderedOnce { env, following });
    }
}

fn renders_again(parts: TaskParts<'_>) -> bool {
    let policy = parts.task.restart_policy.as_ref().or(parts.group.restart_policy.as_ref());
    policy.is_some_and(|policy| policy.render_templates == Some(true))
}

fn renderer(
    task: &TaskContext,
    alloc: &Allocation,
    parts: TaskParts<'_>,
    environment: &Environment,
) -> Result<Renderer, String> {
    let settings = &task.context.settings.templates;
    let isolation = task.context.drivers.capabilities(&parts.task.driver).map(|can| can.fs_isolation);
    let sandbox = Sandbox::new(
        &task.alloc_dir,
        &task.alloc_dir.task(&task.name),
        isolation.unwrap_or(FsIsolation::None),
        settings.disable_file_sandbox,
    );
    Ok(Renderer::new(Parts {
        context: Arc::clone(&task.context),
        specs: spec::all(&parts.task.templates, environment, &sandbox, settings)?,
        environment: environment.clone(),
        sandbox,
        reader: Reader::of(alloc, &task.name),
        alloc_id: alloc.id.clone(),
        vault: Access::of(&task.context, alloc, &task.name),
    }))
}

/// Returns when every template was rendered once.
async fn render_all(renderer: &mut Renderer, task: &TaskContext, alloc: &Allocation) -> Result<(), String> {
    let mut pending: BTreeSet<usize> = (0..renderer.specs.len()).collect();
    let (mut reported, mut next_report) = (BTreeSet::new(), Instant::now() + MISSING_EVENT_EVERY);
    loop {
        let mut missing = BTreeSet::new();
        for at in pending.clone() {
            match renderer.attempt(at)? {
                Attempt::Done(bytes) => {
                    renderer.write(at, bytes)?;
                    pending.remove(&at);
                }
                Attempt::Missing(names) => missing.extend(names),
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        if !renderer.has_token() {
            renderer.set_token(identities::default_token(task, alloc).await?);
            continue;
        }
        tokio::select! {
            // One that was rendered already may read it too.
            dependency = renderer.changed() => pending.extend(renderer.readers_of(&dependency)),
            () = sleep_until(next_report), if missing != reported => {
                task.tasks.add_event(&task.name, events::template(&missing_text(&missing)));
                next_report = Instant::now() + MISSING_EVENT_EVERY;
                reported = missing;
            }
        }
    }
}

fn missing_text(missing: &BTreeSet<Dependency>) -> String {
    let shown: Vec<String> = missing.iter().take(MISSING_SHOWN).map(Dependency::to_string).collect();
    let more = missing.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 { format!("Missing: {shown}") } else { format!("Missing: {shown}, and {more} more") }
}

#[cfg(test)]
mod tests {
    use template::Place;

    use super::*;

    #[test]
    fn three_missing_things_are_named() {
        let names = |count: usize| -> BTreeSet<Dependency> {
            let variable = |at| Dependency::Variable { path: format!("v{at}"), place: Place::default() };
            (0..count).map(variable).collect()
        };
        assert_eq!(missing_text(&names(1)), "Missing: nomad.var.block(v0)");
        let many = "Missing: nomad.var.block(v0), nomad.var.block(v1), nomad.var.block(v2), and 2 more";
        assert_eq!(missing_text(&names(5)), many);
    }
}
