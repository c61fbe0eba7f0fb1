//! What this server does about key trees, one step at a time.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::Uuid;
use control::{Control, SubmitError};
use http_gateway::ClusterAdmin;
use keyring::{KeyError, KeyTree, STUCK_AFTER, ServerSecret, Signer};
use model::{Actor, Command, KEY_TREE_EPOCH, KeyTreeCommand, Request};
use state::State;
use state::erasure::{Erasure, Holder};
use tokio::sync::watch::error::RecvError;
use tokio::time::{Instant, sleep, timeout};

use super::KeyTreeFiles;

/// How often to look while this server has no tree, and once it has one; a change of it is seen at once.
const POLL: Duration = Duration::from_millis(250);
const POLL_IDLE: Duration = Duration::from_secs(5);
/// How long to wait after a step that failed.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error("the files of key trees: {0}")]
    Files(#[from] io::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("the step ended early: {0}")]
    Panic(#[from] tokio::task::JoinError),
}

/// Keeps the files of key trees, and this server's part of the facts about them.
pub(crate) struct Keeper {
    pub control: Control,
    pub signer: Arc<Signer>,
    pub files: Arc<KeyTreeFiles>,
    pub cluster: Arc<dyn ClusterAdmin>,
}

/// What a step follows from, besides the state.
pub(super) struct Viewpoint {
    pub server: Uuid,
    /// How long this server has led; `None` while it does not.
    pub leading_for: Option<Duration>,
    /// Members of the cluster; `None` if the id of one is not known.
    pub members: Option<BTreeSet<Uuid>>,
}

impl Keeper {
    /// Opens the files and gives their trees to the signer.
    ///
    /// # Errors
    /// As [`KeyTreeFiles::open`].
    pub(crate) fn open_files(server_dir: &Path, signer: &Signer) -> io::Result<Arc<KeyTreeFiles>> {
        let (files, trees) = KeyTreeFiles::open(server_dir)?;
        trees.into_iter().for_each(|tree| signer.trees().put(tree));
        Ok(Arc::new(files))
    }

    /// Goes on for as long as the server runs.
    pub(crate) async fn keep(self) {
        let mut leading: Option<Instant> = None;
        let mut news = self.control.watch();
        loop {
            leading = if self.control.leads() { leading.or_else(|| Some(Instant::now())) } else { None };
            let state = self.control.state();
            let seen = state.erasure.changed();
            let has_tree = state.erasure.tree().is_some_and(|tree| self.signer.trees().has(tree));
            let view = self.viewpoint(leading.map(|since| since.elapsed()));
            match self.step(state, view).await {
                Ok(true) => {}
                Ok(false) => {
                    let changed = async {
                        while self.control.state().erasure.changed() == seen {
                            news.changed().await?;
                        }
                        Ok::<_, RecvError>(())
                    };
                    // The server stops.
                    if let Ok(Err(_)) = timeout(if has_tree { POLL_IDLE } else { POLL }, changed).await {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the key tree stays as it is for now");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    fn viewpoint(&self, leading_for: Option<Duration>) -> Viewpoint {
        let servers = self.cluster.raft_configuration().servers;
        Viewpoint {
            server: self.signer.secret().server(),
            leading_for,
            members: servers.iter().map(|server| server.id.parse().ok()).collect(),
        }
    }

    /// Whether something was written to the log.
    async fn step(&self, state: Arc<State>, view: Viewpoint) -> Result<bool, StepError> {
        // A state that is not the cluster's is nothing to destroy keys for.
        if state.cluster.is_nil() || self.control.diverged().borrow().is_some() {
            return Ok(false);
        }
        let (signer, files) = (Arc::clone(&self.signer), Arc::clone(&self.files));
        let next = move || next(&signer, &files, &state, &view);
        let Some(command) = tokio::task::spawn_blocking(next).await?? else { return Ok(false) };
        let actor = Actor::Server("key-trees".to_string());
        let request = Request::unnamed(actor, Command::KeyTree(Box::new(command)));
        let receipt = self.control.submit(request).await?;
        // The next step follows from what this one led to.
        self.control.reach(receipt.index).await.map_err(|_| SubmitError::NotLeading)?;
        Ok(receipt.wrote)
    }
}

/// Does to the files what is due, and returns what is to be said about it.
pub(super) fn next(
    signer: &Signer,
    files: &KeyTreeFiles,
    state: &State,
    view: &Viewpoint,
) -> Result<Option<KeyTreeCommand>, StepError> {
    let erasure = &state.erasure;
    let given_up: Vec<Uuid> = erasure.given_up().into_iter().map(|(key, _)| key).collect();
    for tree in signer.trees().without(&given_up) {
        files.write(&tree)?;
        signer.trees().put(tree);
    }
    let own = erasure.holders().get(&view.server);
    let mut once = files.once(view.server)?;
    if let (Some(tree), Some(holder)) = (erasure.tree(), own) {
        if !signer.trees().has(tree) && !receive(signer, files, tree, holder, once.as_ref(), &given_up)? {
            // What was sealed for another key is of no use: a new one is announced.
            once = None;
        }
        if signer.trees().has(tree) {
            files.destroy_once()?;
            let last = erasure.forgotten().last().map_or(base::Index::ZERO, |one| one.at);
            if holder.has != Some(tree) || holder.erased < last {
                let up_to = state.index;
                return Ok(Some(KeyTreeCommand::ReportErased { server: view.server, tree, up_to }));
            }
        }
    }
    // Servers of a release without key trees may be in the cluster.
    if state.epoch() < KEY_TREE_EPOCH {
        return Ok(None);
    }
    let has = erasure.tree().is_some_and(|tree| signer.trees().has(tree));
    let is_known = own.is_some_and(|own| once.as_ref().is_some_and(|once| once.public() == own.public));
    if own.is_none() || !(has || is_known) {
        let once = match once {
            Some(once) => once,
            None => files.draw_once(view.server)?,
        };
        return Ok(Some(KeyTreeCommand::Request { server: view.server, public: once.public() }));
    }
    for_others(signer, erasure, view)
}

/// Opens the tree that was sealed for this server, and keeps it. False if it cannot be opened.
fn receive(
    signer: &Signer,
    files: &KeyTreeFiles,
    tree: Uuid,
    holder: &Holder,
    once: Option<&ServerSecret>,
    given_up: &[Uuid],
) -> Result<bool, StepError> {
    let (Some(sealed), Some(once)) = (&holder.sealed, once) else { return Ok(true) };
    let opened = match once.open_tree(tree, sealed) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(%error, "the key tree that this server was given is of no use");
            files.destroy_once()?;
            return Ok(false);
        }
    };
    let opened = opened.without(given_up);
    files.write(&opened)?;
    signer.trees().put(opened);
    Ok(true)
}

/// Any server that has the tree shares it; the leader founds one, and takes note of who has left.
fn for_others(
    signer: &Signer,
    erasure: &Erasure,
    view: &Viewpoint,
) -> Result<Option<KeyTreeCommand>, StepError> {
    let waits = |holder: &Holder| holder.sealed.is_none() && holder.has.is_none();
    let own = erasure.tree().and_then(|tree| signer.trees().get(tree));
    let waiting = erasure.holders().iter().find(|(_, holder)| waits(holder));
    if let (Some(tree), Some((server, holder))) = (own, waiting) {
        let sealed = tree.seal_for(*server, &holder.public)?;
        return Ok(Some(KeyTreeCommand::Share { tree: tree.id(), public: holder.public, sealed }));
    }
    let Some(leading_for) = view.leading_for else { return Ok(None) };
    // One that fewer servers get would be lost with their disks, and so would what was acknowledged meanwhile.
    let requested = |server: &Uuid| erasure.holders().contains_key(server);
    let all_requested = view.members.as_ref().is_some_and(|members| members.iter().all(requested));
    // One that is down may have it, and brings it when it is back.
    let nobody_has_it = erasure.holders().values().all(waits) && leading_for >= STUCK_AFTER;
    let is_due = if erasure.tree().is_none() { all_requested } else { nobody_has_it };
    if is_due {
        let tree = KeyTree::generate()?;
        let sealed = erasure.holders().iter().map(|(server, holder)| tree.seal_for(*server, &holder.public));
        let sealed = sealed.collect::<Result<_, _>>()?;
        return Ok(Some(KeyTreeCommand::Found { tree: tree.id(), sealed, after: erasure.tree() }));
    }
    let Some(members) = view.members.as_ref().filter(|_| leading_for >= STUCK_AFTER) else { return Ok(None) };
    let left = erasure.holders().keys().find(|server| !members.contains(server));
    Ok(left.map(|server| KeyTreeCommand::RemoveHolder { server: *server }))
}
