//! Takes the steps of the keyring on this server.

use std::sync::Arc;
use std::time::Duration;

use base::Time;
use control::{Control, SubmitError};
use keyring::{
    KeyError, RootKeySettings, ServerSecret, Signer, SigningKey, Step, Viewpoint, is_used, next_rekey,
    next_step,
};
use model::{Actor, Command, Request};
use state::State;
use tokio::time::{Instant, sleep};

use crate::start::since_1970;

/// How often the keyring is looked at while the cluster has no key, and once it has one.
const POLL: Duration = Duration::from_millis(250);
const POLL_IDLE: Duration = Duration::from_secs(5);
/// How long to wait after a step that failed.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("the key is not drawn: {0}")]
    Panic(#[from] tokio::task::JoinError),
}

/// Goes on for as long as the server runs.
pub(crate) async fn keep(control: Control, signer: Arc<Signer>, settings: RootKeySettings) {
    let secret = signer.secret();
    let mut leading: Option<Instant> = None;
    let mut looked = Instant::now();
    loop {
        let state = control.state();
        if !control.leads() {
            leading = None;
        } else if leading.is_none() {
            leading = Some(Instant::now());
        }
        let looks = looked.elapsed() >= settings.every.to_std();
        let own = Viewpoint {
            server: secret.server(),
            public: secret.public(),
            leading_for: leading.map(|since| since.elapsed()),
            now: Time::ZERO.plus(since_1970().into()),
            old_after: looks.then(|| settings.old_after()),
        };
        // The log begins with the founding of its cluster.
        let step = if state.cluster.is_nil() {
            None
        } else {
            next_step(&state.keyring, &own, |key| is_used(&state, key, own.now))
        };
        match step {
            None if control.leads() && !state.keyring.rekeying().is_empty() => {
                match rekey(&control, &state, &signer).await {
                    Ok(true) => tracing::info!("variables were sealed with the active root key"),
                    Ok(false) => sleep(POLL_IDLE).await,
                    Err(error) => {
                        tracing::debug!(%error, "variables stay sealed as they are for now");
                        sleep(AGAIN).await;
                    }
                }
            }
            None => {
                if looks {
                    looked = Instant::now();
                }
                sleep(if state.keyring.active().is_none() { POLL } else { POLL_IDLE }).await;
            }
            Some(step) => match take(&control, &state, secret, step).await {
                Ok(true) => tracing::info!(?step, "the keyring changed"),
                // Another server was quicker, and this one does not see it yet.
                Ok(false) => sleep(POLL).await,
                Err(error) => {
                    tracing::debug!(?step, %error, "the keyring stays as it is for now");
                    sleep(AGAIN).await;
                }
            },
        }
    }
}

/// Goes on with a full rotation. Whether something was written.
async fn rekey(control: &Control, state: &Arc<State>, signer: &Arc<Signer>) -> Result<bool, StepError> {
    let (state, signer) = (Arc::clone(state), Arc::clone(signer));
    let next = tokio::task::spawn_blocking(move || next_rekey(&signer, &state)).await?;
    let Some(command) = next else { return Ok(false) };
    let actor = Actor::Server("keyring".to_string());
    Ok(control.submit(Request::unnamed(actor, command)).await?.wrote)
}

/// Whether something was written.
async fn take(
    control: &Control,
    state: &Arc<State>,
    secret: &ServerSecret,
    step: Step,
) -> Result<bool, StepError> {
    let command = match step {
        Step::Announce => Command::AnnounceServerKey { server: secret.server(), public: secret.public() },
        Step::Activate { after } => {
            let state = Arc::clone(state);
            let draw = move || {
                let key = SigningKey::generate(state.keyring.algorithm())?;
                key.activation(&state.keyring, Some(after))
            };
            Command::ActivateRootKey(Box::new(tokio::task::spawn_blocking(draw).await??))
        }
        Step::Remove { key } => Command::RemoveRootKey { key },
        Step::Share { key, server } => {
            let (Some(of), Some(peer)) =
                (state.keyring.keys().get(&key), state.keyring.servers().get(&server))
            else {
                return Ok(false);
            };
            let own = of.sealed.get(&secret.server()).ok_or(KeyError::Open(key))?;
            let sealed = secret.open(key, own)?.seal_for(server, &peer.public)?;
            Command::SealRootKey { key, sealed }
        }
    };
    let actor = Actor::Server("keyring".to_string());
    let receipt = control.submit(Request::unnamed(actor, command)).await?;
    Ok(receipt.wrote)
}
