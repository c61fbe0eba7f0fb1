//! What drivers share whose tasks are containers of an engine that somebody else runs.
//!
//! [`Engine`] is all that such a driver has to know of its engine. [`task`] stays with a container, [`logs`] writes what it
//! says, [`exec`] runs commands inside, [`images`] counts images, and [`sweep`] removes containers that no task is.
//! [`Shared`] holds what all tasks of one engine have in common.
//!
//! The engine owns the containers, so they outlive the agent. An engine that does not answer has not said that a task
//! ended: it is asked until it does.

pub mod auth;
pub mod exec;
pub mod images;
pub mod logs;
pub mod mounts;
pub mod parts;
pub mod settings;
pub mod shared;
pub mod state;
pub mod sweep;
pub mod task;
pub mod usage;

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::watch;

pub use self::shared::Shared;
pub use self::state::State;

use self::images::Wanted;
use crate::driver::{Exec, ExecConfig, ExecError, StartError, Usage};

/// Why an engine did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no such container or image.
    #[error("{0}")]
    Missing(String),
    /// It is so already, or cannot be so now.
    #[error("{0}")]
    Conflict(String),
    /// It did not answer, or has decided nothing yet.
    #[error("{0}")]
    Unreached(String),
    #[error("{0}")]
    Failed(String),
}

/// What an engine says of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Or it is about to run again.
    pub is_running: bool,
    pub exit_code: i64,
    pub oom_killed: bool,
    pub pid: Option<i64>,
    /// Its own word for it.
    pub text: Option<String>,
    pub image: Option<String>,
}

/// One line of an engine's list of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub names: Vec<String>,
    /// In seconds of the host's clock; None when the engine does not say it.
    pub created: Option<i64>,
    pub is_running: bool,
    /// It has the network of a group, and goes with that.
    pub has_network: bool,
    /// By its label.
    pub alloc: Option<String>,
}

/// The words of a driver where Nomad has one for each.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub exited: &'static str,
    pub out_of_memory: &'static str,
    pub progress: &'static str,
    pub no_auth: &'static str,
}

/// One engine; it may come and go.
pub trait Engine: Debug + Send + Sync + 'static {
    type Settings: Debug + Send + Sync;

    const WORDS: Words;

    fn status(&self, container: &str) -> impl Future<Output = Result<Status, Fault>> + Send;

    /// Returns when the container has ended, and whenever it is time to look at it again.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn await_exit(&self, container: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    fn kill(&self, container: &str, signal: Signal) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Sends the signal that the image names, and SIGKILL after the grace.
    fn stop(&self, container: &str, grace: Duration) -> impl Future<Output = Result<(), Fault>> + Send;

    /// None when the container does not run any more.
    fn stats(&self, container: &str) -> impl Future<Output = Result<Option<Usage>, Fault>> + Send;

    fn exec(
        &self,
        container: &str,
        config: ExecConfig,
    ) -> impl Future<Output = Result<Exec, ExecError>> + Send;

    /// Ends a container that runs, and removes it with its volumes. One that is gone or going is no error.
    fn remove(&self, container: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Containers that this node has made. Those of other agents on the host, Nomad's too, are theirs.
    fn own_containers(&self, node_id: &str) -> impl Future<Output = Result<Vec<Listed>, Fault>> + Send;

    /// The id of an image, by its name or its id.
    fn find_image(&self, name: &str) -> impl Future<Output = Result<Option<String>, Fault>> + Send;

    fn remove_image(&self, id: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    /// `said` gets how far the download has come.
    fn pull(
        &self,
        wanted: &Wanted,
        said: &watch::Sender<String>,
    ) -> impl Future<Output = Result<(), StartError>> + Send;

    /// Takes over an archive; returns the name of the image in it, if the engine says it.
    fn load(
        &self,
        archive: &Path,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<String>, StartError>> + Send;
}
