//! Commands inside a container.

use bollard::Docker;
use bollard::exec::{CreateExecOptions, ResizeExecOptions, StartExecOptions, StartExecResults};

use super::super::containers::exec::{Command, CommandStatus, attach};
use super::engine::{self, Engine};
use crate::driver::{Exec, ExecConfig, ExecError};

pub async fn exec(engine: &Engine, container: &str, config: ExecConfig) -> Result<Exec, ExecError> {
    let failed = |error: bollard::errors::Error| match engine::status(&error) {
        Some(_) => ExecError::Refused(engine::text(&error)),
        None => ExecError::Failed(engine::text(&error)),
    };
    let client = engine.client().await.map_err(failed)?;
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(config.tty),
        cmd: Some(config.command),
        ..CreateExecOptions::default()
    };
    let id = client.create_exec(container, options).await.map_err(failed)?.id;
    let options = StartExecOptions { detach: false, tty: config.tty, output_capacity: None };
    let started = client.start_exec(&id, Some(options)).await.map_err(failed)?;
    let StartExecResults::Attached { output, input } = started else {
        return Err(ExecError::failed("the engine did not attach to the command"));
    };
    attach(Started { client, id, container: container.to_string() }, output, input, config.tty)
}

#[derive(Clone)]
struct Started {
    client: Docker,
    id: String,
    container: String,
}

impl Command for Started {
    fn container(&self) -> &str {
        &self.container
    }

    async fn status(&self) -> Result<CommandStatus, String> {
        let found = self.client.inspect_exec(&self.id).await.map_err(|error| engine::text(&error))?;
        let (is_running, pid) = (found.running == Some(true), found.pid);
        Ok(CommandStatus { is_running, exit_code: found.exit_code, pid })
    }

    async fn resize(&self, size: api::TtySize) -> Result<(), String> {
        let options = ResizeExecOptions { height: size.height, width: size.width };
        self.client.resize_exec(&self.id, options).await.map_err(|error| engine::text(&error))
    }
}
