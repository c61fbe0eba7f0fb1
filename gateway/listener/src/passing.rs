//! Requests that are passed on to another agent: one stream of bytes for each, on which HTTP is spoken as ever.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use wire::{CallerAddress, FORWARDED_FOR};

/// Why a request did not get an answer. Whether it had its effect is not known.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Sends a request as it is, with where it came from, and gives the answer as it comes. Afterwards the two ends talk on if
/// the answer changes the protocol. `held` is dropped when all of that has ended.
///
/// # Errors
/// [`PassError`].
pub async fn pass_on(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    mut request: Request<Body>,
    held: impl Clone + Send + 'static,
) -> Result<Response<Body>, PassError> {
    let (mut server, connection) = http1::handshake::<_, Body>(TokioIo::new(stream)).await?;
    let until_it_ends = held.clone();
    // Ends with the exchange: this is its only request.
    tokio::spawn(async move {
        let _held = until_it_ends;
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a request that was passed on ended");
        }
    });
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("sojourn"));
    say_where_from(&mut request);
    let caller = hyper::upgrade::on(&mut request);
    let mut response = server.send_request(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let answering = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let _held = held;
            if let Err(error) = join(caller, answering).await {
                tracing::debug!(%error, "a connection through this agent ended");
            }
        });
    }
    Ok(response.map(Body::new))
}

/// What the caller wrote into the header itself counts for nothing.
fn say_where_from(request: &mut Request<Body>) {
    let address = request.extensions().get::<CallerAddress>().and_then(|caller| caller.0);
    let text = address.and_then(|address| HeaderValue::from_str(&address.to_string()).ok());
    request.headers_mut().remove(FORWARDED_FOR);
    request.headers_mut().extend(text.map(|text| (HeaderName::from_static(FORWARDED_FOR), text)));
}

/// Copies both ways until both ends have finished.
async fn join(one: OnUpgrade, other: OnUpgrade) -> Result<(), PassError> {
    let (one, other) = (one.await?, other.await?);
    tokio::io::copy_bidirectional(&mut TokioIo::new(one), &mut TokioIo::new(other)).await?;
    Ok(())
}
