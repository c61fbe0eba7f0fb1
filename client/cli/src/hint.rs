//! Hints at pages of the web UI, for agents that have one.

use std::process::{Command, Stdio};

use model::document::Job;
use serde_json::Value;

use crate::call::{Call, UI};
use crate::output::{OutputStyle, Paint, write_err};

/// Prints the address of a page in the web UI, or opens it with `-ui`.
///
/// Prints nothing when the agent has no web UI or does not answer: the result is already printed.
pub(crate) async fn show(call: &Call, style: &OutputStyle, what: &str, path: &str) {
    let opens = call.args.switch(&UI);
    if !opens && call.environment.hide_hints {
        return;
    }
    let Ok(client) = call.client() else { return };
    let config = match client.agent_self().await {
        Ok(agent) => agent.config,
        Err(_) if !opens => return,
        Err(error) => return write_err(format!("The web UI cannot be opened: {error}")),
    };
    let setting = |key: &str| config.get("UI").and_then(|ui| ui.get(key)).and_then(Value::as_bool);
    if setting("Enabled") != Some(true) {
        if opens {
            write_err("The web UI cannot be opened: the agent has none");
        }
        return;
    }
    if !opens && setting("ShowCLIHints") == Some(false) {
        return;
    }
    let url = format!("{}/ui/{path}", call.web_address());
    write_err(style.paint(Paint::Bold, &format!("\n==> View {what} in the Web UI: {url}")));
    if opens && let Err(error) = open(&url) {
        write_err(format!("The browser cannot be opened: {error}"));
    }
}

/// Points at a job.
pub(crate) async fn job(call: &Call, style: &OutputStyle, job: &Job) {
    let id = segment(job.id.as_deref().unwrap_or_default());
    let namespace = job.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or("default");
    show(call, style, "this job", &format!("jobs/{id}@{namespace}")).await;
}

/// Opens a page in the browser of the desktop.
///
/// # Errors
/// When no program can open it.
pub(crate) fn open(url: &str) -> std::io::Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    Command::new(opener).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().map(drop)
}

/// A name as one part of a page's address.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(escape).collect()
}
