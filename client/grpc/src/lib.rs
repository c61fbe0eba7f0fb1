//! gRPC over a unix socket, as plugins speak it: the one way in which this program connects to one.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Error};

/// The largest message that is taken from a plugin or sent to one, in bytes: what gRPC's own libraries take by default.
/// A client that has been made with a [`Channel`] asks for it with `max_decoding_message_size`.
pub const MAX_MESSAGE: usize = 4 << 20;

/// Connects to the plugin that listens at `socket`; fails when nothing accepts within `timeout`. A connection that ends
/// is made again with the next call, so a plugin may be restarted on the same path.
pub async fn connect(socket: &Path, timeout: Duration) -> Result<Channel, Error> {
    let path = socket.to_owned();
    // The address is what the `:authority` of a request says; some servers refuse one that is not a host's name.
    let endpoint = Endpoint::from_static("http://localhost").connect_timeout(timeout);
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { dial(&path).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await
}

/// An address of a socket holds 107 bytes, and paths of plugins may be longer: it is reached through its directory.
async fn dial(socket: &Path) -> io::Result<UnixStream> {
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return UnixStream::connect(socket).await;
    };
    if socket.as_os_str().len() < 108 {
        return UnixStream::connect(socket).await;
    }
    let directory = std::fs::File::open(directory)?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    UnixStream::connect(short).await
}
