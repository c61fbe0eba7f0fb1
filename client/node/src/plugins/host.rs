//! One plugin of the node: launched or found again, configured, and kept running.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use executor::process::ProcessIdentity;
use executor::spec;
use futures_util::future::BoxFuture;
use plugin::hclspec;
use plugin::identify::{Identity, configure, identify};
use plugin::launch::{Address, HANDSHAKE_TIMEOUT, Program, Running, attach, kill};
use plugin::proto::base::NomadConfig;
use plugin::supervisor::{Instance, Supervisor};
use plugin::{CallError, Caller};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::{copier, log};
use crate::settings::ExternalPlugin;

/// Where a plugin runs, in its directory.
const RECORD_FILE: &str = "process.json";

/// A plugin that runs, and that another agent may find again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    address: Address,
    /// What it was started from: a plugin of another program or with another configuration is not the same.
    made_of: Value,
}

/// What is needed to start a plugin.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The name of its file, and of its block.
    pub file: String,
    pub path: PathBuf,
    pub block: ExternalPlugin,
    pub nomad_config: Option<NomadConfig>,
    /// Its own; made 0700.
    pub directory: PathBuf,
    /// What copies its output.
    pub executor_program: PathBuf,
}

/// A plugin. Dropping it leaves the program running: the next agent finds it.
#[derive(Debug)]
pub struct Hosted {
    pub identity: Identity,
    supervisor: Supervisor,
    /// Its own.
    pub directory: PathBuf,
    _logs: [AbortOnDropHandle<()>; 2],
}

impl Hosted {
    /// The plugin as it runs, waited for while it is started again.
    ///
    /// # Errors
    /// When it does not run within `patience`.
    pub async fn instance(&self, patience: Duration) -> Result<Instance, CallError> {
        self.supervisor.get(patience).await
    }

    /// Its connection.
    ///
    /// # Errors
    /// As [`Hosted::instance`].
    pub async fn caller(&self, patience: Duration) -> Result<Caller, CallError> {
        Ok(self.instance(patience).await?.running.caller)
    }

    pub fn watch(&self) -> watch::Receiver<Option<Instance>> {
        self.supervisor.watch()
    }

    /// Follows a stream in each life of the plugin, and again after a pause where it ends while the plugin lives: ever longer,
    /// from the first to the longest, until `again` says that something came.
    pub async fn repeat(
        &self,
        (first, longest): (Duration, Duration),
        mut again: impl FnMut(Caller) -> BoxFuture<'static, bool>,
    ) {
        let mut pause = first;
        while let Ok(instance) = self.instance(Duration::MAX).await {
            if again(instance.running.caller).await {
                pause = first;
            }
            // One that has died is asked again as soon as it runs.
            let mut lives = self.watch();
            let next = lives.wait_for(|now| now.as_ref().map(|now| now.number) != Some(instance.number));
            if tokio::time::timeout(pause, next).await.is_err() {
                pause = (pause * 2).min(longest);
            }
        }
    }

    /// Ends the program for good, with what copies its output.
    pub async fn end(&self) {
        self.supervisor.end().await;
        copier::end(&self.directory).await;
    }
}

/// A plugin that no record names yet: nobody would find it, so it is killed if that is given up.
struct Unrecorded(Option<ProcessIdentity>);

impl Drop for Unrecorded {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            kill(process);
        }
    }
}

/// Ends the plugins of earlier agents below `directory` that the configuration does not name any more.
pub async fn end_others(directory: &Path, named: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if named(&name) {
            continue;
        }
        if let Ok(Some(record)) = spec::read::<Record>(&entry.path(), RECORD_FILE) {
            tracing::warn!(plugin = name, "a plugin is ended: the configuration does not name it any more");
            end_recorded(&record).await;
        }
        copier::end(&entry.path()).await;
    }
}

async fn end_recorded(record: &Record) {
    match attach(&record.address).await {
        Ok(running) => running.end().await,
        Err(_) => kill(&record.address.process),
    }
}

impl Recipe {
    /// Finds the plugin of an earlier agent again if it still is what it would be now, or starts it.
    ///
    /// # Errors
    /// When it does not start, or rejects its configuration.
    pub async fn host(self) -> Result<Hosted, String> {
        let directory = self.directory.clone();
        let hosted = self.found_or_launched().await;
        if hosted.is_err() {
            // What it wrote stays, to be read.
            copier::stop(&directory).await;
        }
        hosted
    }

    async fn found_or_launched(self) -> Result<Hosted, String> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|error| format!("{}: {error}", self.directory.display()))?;
        let log = AbortOnDropHandle::new(tokio::spawn(log::follow(
            self.file.clone(),
            log::Tail::at_end(&self.directory),
        )));
        let found = self.find().await;
        let (running, unrecorded) = match found {
            Some(running) => (running, None),
            None => self.start().await.map(|(running, unrecorded)| (running, Some(unrecorded)))?,
        };
        let prepared = async {
            let identity = identify(&running.caller).await?;
            let config = self.config(&identity)?;
            if let Some(unrecorded) = unrecorded {
                self.make_ready(&running, unrecorded, config.clone()).await?;
            }
            Ok::<_, String>((identity, config))
        };
        let prepared = prepared.await;
        let (identity, config) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // What it says of itself on its way out is worth reading.
                running.end().await;
                return Err(error);
            }
        };
        let (name, directory) = (self.file.clone(), self.directory.clone());
        let recipe = Arc::new(self);
        let launch = move || {
            let (recipe, config) = (Arc::clone(&recipe), config.clone());
            Box::pin(async move {
                let (running, unrecorded) = recipe.start().await?;
                recipe.make_ready(&running, unrecorded, config).await?;
                Ok(running)
            }) as BoxFuture<'static, _>
        };
        let supervisor = Supervisor::new(&name, running, Arc::new(launch));
        let stdio = AbortOnDropHandle::new(tokio::spawn(log::follow_stdio(name, supervisor.watch())));
        Ok(Hosted { identity, supervisor, directory, _logs: [log, stdio] })
    }

    /// The configuration as the plugin gets it.
    fn config(&self, identity: &Identity) -> Result<Vec<u8>, String> {
        match &identity.schema {
            Some(schema) => {
                let owner = format!("plugin {}", self.file);
                Ok(hclspec::encode(&hclspec::read(&owner, schema, &self.block.config)?))
            }
            None => match self.block.config.keys().next() {
                None => Ok(hclspec::encode(&json!({}))),
                Some(key) => Err(format!("plugin {} has no config key \"{key}\"", self.file)),
            },
        }
    }

    /// The plugin of an earlier agent; one that is not what it would be now is ended.
    async fn find(&self) -> Option<Running> {
        let record: Record = spec::read(&self.directory, RECORD_FILE).ok().flatten()?;
        let found = match record.made_of == self.made_of() {
            true => attach(&record.address).await.ok(),
            false => None,
        };
        match (&found, record.address.process.is_alive()) {
            (Some(_), _) => tracing::info!(plugin = self.file, "a plugin was found running"),
            (None, true) => {
                tracing::info!(
                    plugin = self.file,
                    "a plugin is started anew: it or its configuration has changed"
                );
                end_recorded(&record).await;
            }
            (None, false) => {}
        }
        found
    }

    fn made_of(&self) -> Value {
        let file = self.path.metadata().ok();
        let file = file.map(|file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec()));
        json!({"path": self.path, "file": file, "args": self.block.args, "config": self.block.config})
    }

    async fn start(&self) -> Result<(Running, Unrecorded), String> {
        let stderr = self.stderr().await?;
        let (path, args) = (self.path.clone(), self.block.args.clone());
        let program = Program { path, args, patience: HANDSHAKE_TIMEOUT };
        let launched = program.launch(stderr).await;
        let running =
            launched.map_err(|error| format!("{error}; what it wrote is in {}", self.directory.display()))?;
        let unrecorded = Unrecorded(Some(running.address.process.clone()));
        Ok((running, unrecorded))
    }

    async fn make_ready(
        &self,
        running: &Running,
        mut unrecorded: Unrecorded,
        config: Vec<u8>,
    ) -> Result<(), String> {
        let configured = configure(&running.caller, config, self.nomad_config.clone()).await;
        configured.map_err(|error| error.to_string())?;
        let record = Record { address: running.address.clone(), made_of: self.made_of() };
        spec::write(&self.directory, RECORD_FILE, &record).map_err(|error| error.to_string())?;
        unrecorded.0 = None;
        Ok(())
    }

    async fn stderr(&self) -> Result<Stdio, String> {
        let streams = [(log::STREAM, log::files(&self.directory))];
        copier::ensure(&self.executor_program, &self.directory, &streams).await?;
        let path = copier::pipe(&self.directory, log::STREAM);
        let opened = std::fs::OpenOptions::new().write(true).open(&path);
        opened.map(Stdio::from).map_err(|error| format!("{}: {error}", path.display()))
    }
}
