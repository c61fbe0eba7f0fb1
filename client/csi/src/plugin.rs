//! One plugin: how it is reached, and how a call is made.

use std::path::Path;
use std::time::Duration;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::error::CsiError;
use crate::messages::{Nothing, Secrets};

/// How long calls may take, and how often they are made.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until somebody accepts on the socket.
    pub connect: Duration,
    /// What a plugin answers out of its memory: what it is, and whether it is well.
    pub question: Duration,
    /// What it may do work for: disks are made, attached and mounted.
    pub work: Duration,
    /// Times that a call is made at most, as long as the plugin says that it is overloaded or not ready.
    pub attempts: u32,
    /// Before the second one; twice as long each time after that.
    pub pause: Duration,
}

impl Patience {
    /// A cloud takes minutes to attach a disk. What makes no call more than four times ends within nine minutes.
    pub const USUAL: Patience = Patience {
        connect: Duration::from_secs(5),
        question: Duration::from_secs(5),
        work: Duration::from_secs(120),
        attempts: 4,
        pause: Duration::from_millis(500),
    };
}

/// What a plugin says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub name: String,
    pub version: String,
    /// Volumes are attached and detached by a controller, besides.
    pub has_controller: bool,
    /// Volumes are not reached from everywhere.
    pub has_topology: bool,
}

/// A plugin that listens on a socket. Clones share its connection, which is made again when it is lost.
#[derive(Clone, Debug)]
pub struct Plugin {
    id: String,
    channel: Channel,
    patience: Patience,
}

/// A call: its service and name, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub path: &'static str,
    pub kind: CallKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CallKind {
    Question,
    Work,
}

impl Call {
    pub const fn question(path: &'static str) -> Call {
        Call { path, kind: CallKind::Question }
    }

    pub const fn work(path: &'static str) -> Call {
        Call { path, kind: CallKind::Work }
    }

    /// Without the service.
    pub fn name(self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

impl Plugin {
    /// `id` is what errors call it.
    ///
    /// # Errors
    /// [`CsiError::Unreachable`].
    pub async fn connect(id: &str, socket: &Path, patience: Patience) -> Result<Plugin, CsiError> {
        let channel = grpc::connect(socket, patience.connect).await;
        let unreachable =
            |error| CsiError::Unreachable { plugin: id.to_string(), why: base::reasons(&error) };
        Ok(Plugin { id: id.to_string(), channel: channel.map_err(unreachable)?, patience })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn incomplete(&self, call: Call, what: &'static str) -> CsiError {
        CsiError::Incomplete { plugin: self.id.clone(), call: call.name(), what }
    }

    /// Makes a call, again if the plugin says that another time may be better. No value of `secrets` gets into an error.
    pub(crate) async fn call<Q, A>(&self, call: Call, request: Q, secrets: &Secrets) -> Result<A, CsiError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut pause = self.patience.pause;
        let mut left = self.patience.attempts.max(1);
        loop {
            left -= 1;
            let error = match self.call_once(call, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_busy =
                matches!(error, CsiError::Refused { code: Code::Unavailable | Code::ResourceExhausted, .. });
            if left == 0 || !is_busy {
                return Err(match error {
                    CsiError::Refused { plugin, call, code, message } => {
                        CsiError::Refused { plugin, call, code, message: secrets.hide_in(message) }
                    }
                    other => other,
                });
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// A call that has no secrets.
    pub(crate) async fn ask<Q, A>(&self, call: Call, request: Q) -> Result<A, CsiError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.call(call, request, &Secrets::default()).await
    }

    pub(crate) async fn ask_nothing<A: Message + Default + 'static>(
        &self,
        call: Call,
    ) -> Result<A, CsiError> {
        self.ask(call, Nothing {}).await
    }

    async fn call_once<Q, A>(&self, call: Call, request: Q) -> Result<A, CsiError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let within = match call.kind {
            CallKind::Question => self.patience.question,
            CallKind::Work => self.patience.work,
        };
        let mut client = Grpc::new(self.channel.clone()).max_decoding_message_size(grpc::MAX_MESSAGE);
        let made = async {
            let not_ready = |error: tonic::transport::Error| Status::unavailable(base::reasons(&error));
            client.ready().await.map_err(not_ready)?;
            let mut request = Request::new(request);
            // The plugin gives up when we do.
            request.set_timeout(within);
            let codec = ProstCodec::<Q, A>::default();
            client.unary(request, PathAndQuery::from_static(call.path), codec).await
        };
        match tokio::time::timeout(within, made).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(CsiError::Refused {
                plugin: self.id.clone(),
                call: call.name(),
                code: status.code(),
                message: status.message().to_string(),
            }),
            Err(_) => Err(CsiError::Late { plugin: self.id.clone(), call: call.name(), within }),
        }
    }
}
