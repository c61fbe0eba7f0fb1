//! A command inside a task: its input and output, over a WebSocket.

use api::{ExecData, ExecInput, ExecOutput, TtySize};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use model::document::input;
use reqwest::{Method, StatusCode, Upgraded, header};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::Error;
use crate::client::{Client, Query, segment};

/// Longest message of a server: a piece of output in base64, with much room.
const MESSAGE_MAX: usize = 4 << 20;

/// What to run, and where.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    pub task: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// On a terminal of its own, which has one output.
    pub tty: bool,
}

/// Which action is run, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRequest {
    pub namespace: String,
    pub action: String,
    pub alloc: String,
    pub group: String,
    pub task: String,
    /// Runs it on a terminal.
    pub tty: bool,
}

/// What a command says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// It has ended, with 128 + the signal if one ended it. Nothing follows.
    Exited(i64),
}

/// What is sent to a command. Dropping it together with the reader ends the command.
pub struct ExecWriter(SplitSink<WebSocketStream<Upgraded>, Message>);

/// What listens to a command.
pub struct ExecReader(SplitStream<WebSocketStream<Upgraded>>);

impl Client {
    /// `GET /v1/client/allocation/:id/exec`: runs a command inside a task, asked of the node that runs it.
    ///
    /// # Errors
    /// When there is no session; why a command cannot be run is what the reader says first.
    pub async fn exec(&self, id: &str, request: &ExecRequest) -> Result<(ExecWriter, ExecReader), Error> {
        let command = serde_json::to_string(&request.command).expect("texts have a JSON form");
        let query = Query::new()
            .with("task", &request.task)
            .with("command", command)
            .with("tty", if request.tty { "true" } else { "false" });
        self.session(&format!("/v1/client/allocation/{}/exec", segment(id)), query).await
    }

    /// `GET /v1/job/:id/action`: runs the command of a task's action in one of the job's allocations.
    ///
    /// # Errors
    /// As for [`Client::exec`].
    pub async fn run_action(
        &self,
        job: &str,
        request: &ActionRequest,
    ) -> Result<(ExecWriter, ExecReader), Error> {
        let query = Query::new()
            .namespace(&request.namespace)
            .with("action", &request.action)
            .with("allocID", &request.alloc)
            .with("group", &request.group)
            .with("task", &request.task)
            .with("tty", if request.tty { "true" } else { "false" });
        self.session(&format!("/v1/job/{}/action", segment(job)), query).await
    }

    async fn session(&self, path: &str, query: Query) -> Result<(ExecWriter, ExecReader), Error> {
        let key = generate_key();
        let request = self
            .request(Method::GET, path, query)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key);
        let response = request.send().await.map_err(|e| Error::unreachable(self.address(), &e))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let response = self.checked(response).await?;
            return Err(Error::Stream(format!("the server answered {} to an upgrade", response.status())));
        }
        let proof = response.headers().get(header::SEC_WEBSOCKET_ACCEPT).map(|proof| proof.as_bytes());
        if proof != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(Error::Stream("the server does not speak WebSocket".to_string()));
        }
        let upgraded = response.upgrade().await.map_err(|e| Error::unreachable(self.address(), &e))?;
        let config =
            WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        let (writer, reader) = socket.split();
        Ok((ExecWriter(writer), ExecReader(reader)))
    }
}

impl ExecWriter {
    /// Waits while the command does not read.
    ///
    /// # Errors
    /// When the session is over: the reader knows why.
    pub async fn stdin(&mut self, data: &[u8]) -> Result<(), Error> {
        self.say(&ExecInput { stdin: Some(ExecData::piece(data)), ..ExecInput::default() }).await
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn end_stdin(&mut self) -> Result<(), Error> {
        self.say(&ExecInput { stdin: Some(ExecData::end()), ..ExecInput::default() }).await
    }

    /// Tells how large the terminal is now.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn resize(&mut self, size: TtySize) -> Result<(), Error> {
        self.say(&ExecInput { tty_size: Some(size), ..ExecInput::default() }).await
    }

    /// Keeps whatever stands between here and there from forgetting the session; every ten seconds is customary.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn heartbeat(&mut self) -> Result<(), Error> {
        self.say(&ExecInput::default()).await
    }

    async fn say(&mut self, input: &ExecInput) -> Result<(), Error> {
        let text = serde_json::to_string(input).expect("input has a JSON form");
        self.0.send(Message::text(text)).await.map_err(broken)
    }
}

impl ExecReader {
    /// The next thing the command says; `None` when the session ended without a word about the command.
    ///
    /// # Errors
    /// [`Error::Ended`] with the server's reason, or that the connection broke.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>, Error> {
        loop {
            let output: ExecOutput = match self.0.next().await {
                None => return Ok(None),
                Some(Ok(Message::Text(text))) => {
                    input::from_slice(text.as_bytes()).map_err(|error| Error::Stream(error.to_string()))?
                }
                Some(Ok(Message::Close(frame))) => return ended(frame),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                    continue;
                }
                Some(Err(error)) => return Err(broken(error)),
            };
            if let Some(event) = event(output) {
                return Ok(Some(event));
            }
        }
    }
}

fn ended(frame: Option<CloseFrame>) -> Result<Option<ExecEvent>, Error> {
    match frame {
        Some(frame) if !frame.reason.is_empty() => Err(Error::Ended { reason: frame.reason.to_string() }),
        _ => Ok(None),
    }
}

fn broken(error: tungstenite::Error) -> Error {
    Error::Stream(error.to_string())
}

fn event(output: ExecOutput) -> Option<ExecEvent> {
    let piece = |data: Option<ExecData>| data.map(|data| data.data.0).filter(|data| !data.is_empty());
    if let Some(data) = piece(output.stdout) {
        return Some(ExecEvent::Stdout(data));
    }
    if let Some(data) = piece(output.stderr) {
        return Some(ExecEvent::Stderr(data));
    }
    output.exited.then(|| ExecEvent::Exited(output.result.unwrap_or_default().exit_code))
}
