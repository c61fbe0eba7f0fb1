//! What a job says of a template, checked.

use std::time::Duration;

use model::document::{Template, WaitConfig};
use nix::sys::signal::Signal;
use template::{Dialect, Syntax};

use super::sandbox::{Location, Ownership, Sandbox};
use super::{TemplateSettings, Wait};
use crate::driver::signal_named;
use crate::task::environment::Environment;

/// How long a script may run.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Until templates change at the same moment on many nodes.
const SPLAY: Duration = Duration::from_secs(5);

/// Usual rights of a file.
const MODE: u32 = 0o644;

#[derive(Clone, Debug)]
pub struct Spec {
    pub text: String,
    pub syntax: Syntax,
    /// As the job calls it.
    pub name: String,
    pub destination: Location,
    pub ownership: Ownership,
    /// The lines are variables of the environment.
    pub env: bool,
    /// Not rendered again.
    pub once: bool,
    pub wait: Wait,
    pub splay: Duration,
    pub change: Change,
}

/// What is done when the text has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    Restart,
    Signal(Signal, String),
    Script(Script),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub command: String,
    pub args: Vec<String>,
    pub timeout: Duration,
    pub fail_on_error: bool,
    pub run_on_first_render: bool,
}

/// All templates of a task.
///
/// # Errors
/// The first one that makes no sense, by its destination.
pub fn all(
    templates: &[Template],
    environment: &Environment,
    sandbox: &Sandbox,
    settings: &TemplateSettings,
) -> Result<Vec<Spec>, String> {
    let spec = |template: &Template| {
        let name = template.dest_path.clone().unwrap_or_default();
        spec(template, environment, sandbox, settings).map_err(|why| format!("template \"{name}\": {why}"))
    };
    templates.iter().map(spec).collect()
}

fn spec(
    template: &Template,
    environment: &Environment,
    sandbox: &Sandbox,
    settings: &TemplateSettings,
) -> Result<Spec, String> {
    let text_of = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let name = environment.replace(template.dest_path.as_deref().unwrap_or_default());
    if name.is_empty() {
        return Err("destination is missing".to_string());
    }
    let syntax = Syntax {
        left: text_of(&template.left_delim).unwrap_or_else(|| "{{".to_string()),
        right: text_of(&template.right_delim).unwrap_or_else(|| "}}".to_string()),
        dialect: Dialect::Task,
        missing_key_is_error: template.err_missing_key == Some(true),
    };
    let text = match (text_of(&template.source_path), text_of(&template.embedded_tmpl)) {
        (Some(_), Some(_)) => return Err("source and data exclude each other".to_string()),
        (Some(source), None) => {
            let source = environment.replace(&source);
            let bytes =
                sandbox.locate(&source)?.read().map_err(|error| format!("source \"{source}\": {error}"))?;
            String::from_utf8(bytes).map_err(|_| format!("source \"{source}\" is not UTF-8"))?
        }
        (None, data) => data.ok_or("neither source nor data is given")?,
    };
    Ok(Spec {
        text,
        syntax,
        destination: sandbox.locate(&name)?,
        ownership: ownership(template)?,
        env: template.envvars == Some(true),
        once: template.once == Some(true),
        wait: wait(template.wait.as_ref(), settings),
        splay: template.splay.map_or(SPLAY, |splay| splay.to_std()),
        change: change(template)?,
        name,
    })
}

fn ownership(template: &Template) -> Result<Ownership, String> {
    let mode = match template.perms.as_deref() {
        None | Some("") => MODE,
        Some(perms) => u32::from_str_radix(perms, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777)
            .ok_or_else(|| format!("perms \"{perms}\" is no octal number such as 0644"))?,
    };
    // Negative ones are as good as none.
    let id = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
    Ok(Ownership { mode, uid: id(template.uid), gid: id(template.gid) })
}

fn wait(own: Option<&WaitConfig>, settings: &TemplateSettings) -> Wait {
    let Wait { mut min, mut max } = settings.wait;
    if let Some(own) = own {
        min = own.min.map_or(min, |min| min.to_std());
        // Four times the shorter one, as consul-template has it.
        max = own.max.map_or(min.saturating_mul(4), |max| max.to_std());
    }
    if let Some(bounds) = settings.wait_bounds {
        (min, max) = (min.clamp(bounds.min, bounds.max), max.clamp(bounds.min, bounds.max));
    }
    Wait { min, max: max.max(min) }
}

fn change(template: &Template) -> Result<Change, String> {
    match template.change_mode.as_deref().unwrap_or("restart") {
        "noop" => Ok(Change::Nothing),
        "" | "restart" => Ok(Change::Restart),
        "signal" => {
            let name = template.change_signal.as_deref().filter(|name| !name.is_empty()).unwrap_or("SIGHUP");
            let signal =
                signal_named(name).ok_or_else(|| format!("change_signal \"{name}\" is no signal"))?;
            Ok(Change::Signal(signal, name.to_string()))
        }
        "script" => {
            let script = template.change_script.clone().unwrap_or_default();
            let command = script.command.filter(|command| !command.is_empty());
            Ok(Change::Script(Script {
                command: command.ok_or("change_script has no command")?,
                args: script.args.0,
                timeout: script.timeout.map_or(SCRIPT_TIMEOUT, |timeout| timeout.to_std()),
                fail_on_error: script.fail_on_error == Some(true),
                run_on_first_render: script.run_on_first_render == Some(true),
            }))
        }
        other => Err(format!("change_mode \"{other}\" is none of noop, restart, signal and script")),
    }
}
