//! The requests of checks: of bounded time and size, each on a connection of its own.

use std::sync::OnceLock;

use base::reasons;
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::check::{Check, FAILURE, HttpProbe, Probe, SUCCESS};

/// Longest output of a check, in bytes.
pub(super) const OUTPUT_MAX: usize = 3 << 10;

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub status: &'static str,
    /// Of the answer; 0 without one.
    pub code: i64,
    pub output: String,
}

/// Makes the requests of all checks of a node.
///
/// Its clients are made when they are needed first: they read what the host trusts. None keeps connections, since a
/// check is about whether new ones are accepted, and none follows a redirect, which a task could lead anywhere with.
#[derive(Debug, Default)]
pub struct Prober {
    verifying: OnceLock<Result<Client, String>>,
    trusting: OnceLock<Result<Client, String>>,
}

impl Prober {
    pub(super) async fn run(&self, check: &Check) -> Outcome {
        let within = check.timeout.to_std();
        let done = timeout(within, async {
            match &check.probe {
                Probe::Tcp { address } => tcp(address).await,
                Probe::Http(http) => self.http(http).await,
                // No check of provider nomad is one.
                Probe::Grpc { .. } | Probe::Script(_) => failure(0, "only Consul has this check"),
            }
        });
        done.await.unwrap_or_else(|_| failure(0, format!("no answer within {}", check.timeout)))
    }

    async fn http(&self, probe: &HttpProbe) -> Outcome {
        let cell = if probe.skips_verification { &self.trusting } else { &self.verifying };
        let client = match cell.get_or_init(|| client(probe.skips_verification)) {
            Ok(client) => client,
            Err(error) => return failure(0, error),
        };
        let Ok(method) = Method::from_bytes(probe.method.to_uppercase().as_bytes()) else {
            return failure(0, format!("method {:?}: expected one of HTTP", probe.method));
        };
        let mut request = client.request(method, &probe.url).body(probe.body.clone());
        for (name, value) in &probe.headers {
            request = request.header(name, value);
        }
        match request.send().await {
            Ok(answer) => judged(answer).await,
            Err(error) => failure(0, reasons(&error)),
        }
    }
}

fn client(skips_verification: bool) -> Result<Client, String> {
    let tls = match skips_verification {
        true => tls::client::config(&tls::client::ClientOptions { skip_verify: true, ..Default::default() }),
        false => tls::client::config_trusting(&[]),
    };
    let tls = tls.map_err(|error| format!("certificates of the host: {error}"))?;
    let builder = Client::builder().no_proxy().redirect(Policy::none()).pool_max_idle_per_host(0);
    let client = builder.user_agent("Sojourn").tls_backend_preconfigured(tls).build();
    client.map_err(|error| reasons(&error))
}

async fn tcp(address: &str) -> Outcome {
    match TcpStream::connect(address).await {
        Ok(_) => Outcome { status: SUCCESS, code: 0, output: "nomad: tcp ok".to_string() },
        Err(error) => failure(0, format!("dial tcp {address}: {error}")),
    }
}

/// The body says why a service is not well; of one that is, nobody needs it.
async fn judged(mut answer: reqwest::Response) -> Outcome {
    let code = answer.status().as_u16();
    if code == 200 {
        return Outcome { status: SUCCESS, code: 200, output: "nomad: http ok".to_string() };
    }
    let mut body = Vec::new();
    while body.len() < OUTPUT_MAX {
        match answer.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk[..chunk.len().min(OUTPUT_MAX - body.len())]),
            Ok(None) => break,
            Err(error) => return failure(code.into(), reasons(&error)),
        }
    }
    let status = if code < 400 { SUCCESS } else { FAILURE };
    Outcome { status, code: code.into(), output: String::from_utf8_lossy(&body).into_owned() }
}

fn failure(code: i64, why: impl std::fmt::Display) -> Outcome {
    let mut output = format!("nomad: {why}");
    output.truncate(output.floor_char_boundary(OUTPUT_MAX));
    Outcome { status: FAILURE, code, output }
}

#[cfg(test)]
mod tests {
    use base::Duration as Span;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn check(probe: Probe, timeout: Span) -> Check {
        let text = String::new;
        Check {
            id: text(),
            name: text(),
            group: text(),
            task: text(),
            service: text(),
            is_readiness: false,
            interval: Span::from_secs(1),
            timeout,
            initial: "pending",
            probe,
            restart: None,
            of_consul: false,
            ignores_warnings: false,
        }
    }

    fn get(url: String) -> HttpProbe {
        HttpProbe {
            method: "get".into(),
            url,
            headers: Vec::new(),
            body: String::new(),
            skips_verification: false,
        }
    }

    /// Answers each connection with this, and hands on what was asked.
    async fn serve(answer: String) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (to, asked) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut seen = vec![0; 4096];
                let n = stream.read(&mut seen).await.unwrap_or(0);
                to.send(String::from_utf8_lossy(&seen[..n]).into_owned()).ok();
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        (address, asked)
    }

    #[tokio::test]
    async fn answers_below_400_are_successes_and_bodies_are_cut() {
        let long = "x".repeat(5000);
        for (answer, status, code, output) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_string(), SUCCESS, 200, "nomad: http ok"),
            (
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".into(),
                SUCCESS,
                302,
                "",
            ),
            ("HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nsick".into(), FAILURE, 503, "sick"),
            (
                format!("HTTP/1.1 500 No\r\nContent-Length: 5000\r\n\r\n{long}"),
                FAILURE,
                500,
                &long[..OUTPUT_MAX],
            ),
        ] {
            let (address, _asked) = serve(answer).await;
            let probe = Probe::Http(Box::new(get(format!("http://{address}/"))));
            let outcome = Prober::default().run(&check(probe, Span::from_secs(20))).await;
            assert_eq!(outcome, Outcome { status, code, output: output.to_string() });
        }
    }

    #[tokio::test]
    async fn method_headers_and_body_are_sent() {
        let (address, mut asked) = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into()).await;
        let probe = HttpProbe {
            method: "POST".into(),
            headers: vec![("X-One".into(), "1".into()), ("Host".into(), "example.com".into())],
            body: "ping".into(),
            ..get(format!("http://{address}/a?b=c"))
        };
        let outcome = Prober::default().run(&check(Probe::Http(Box::new(probe)), Span::from_secs(20))).await;
        assert_eq!(outcome.status, SUCCESS, "{outcome:?}");
        let asked = asked.recv().await.unwrap().to_lowercase();
        assert!(asked.starts_with("post /a?b=c http/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-one: 1\r\n") && asked.contains("host: example.com\r\n"), "{asked}");
        assert!(asked.ends_with("ping"), "{asked}");
    }

    #[tokio::test]
    async fn a_certificate_of_nobody_passes_only_unverified() {
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_string()]).unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                if matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {
                    continue;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.ok();
                stream.shutdown().await.ok();
            }
        });
        let prober = Prober::default();
        for (skips_verification, status) in [(true, SUCCESS), (false, FAILURE)] {
            let probe = HttpProbe { skips_verification, ..get(format!("https://{address}/")) };
            let outcome = prober.run(&check(Probe::Http(Box::new(probe)), Span::from_secs(20))).await;
            assert_eq!(outcome.status, status, "{outcome:?}");
            assert_eq!(outcome.output.contains("certificate"), !skips_verification, "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn who_does_not_answer_in_time_or_at_all_has_failed() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let probe = Probe::Http(Box::new(get(format!("http://{address}/"))));
        let outcome = Prober::default().run(&check(probe, Span(50_000_000))).await;
        assert_eq!(outcome.output, "nomad: no answer within 50ms");
        let tcp = Probe::Tcp { address: address.clone() };
        let outcome = Prober::default().run(&check(tcp.clone(), Span::from_secs(20))).await;
        assert_eq!((outcome.status, outcome.output.as_str()), (SUCCESS, "nomad: tcp ok"));
        drop(silent);
        let outcome = Prober::default().run(&check(tcp, Span::from_secs(20))).await;
        assert_eq!(outcome.status, FAILURE);
        assert!(outcome.output.starts_with(&format!("nomad: dial tcp {address}: ")), "{outcome:?}");
        let probe = Probe::Http(Box::new(get(format!("http://{address}/"))));
        let outcome = Prober::default().run(&check(probe, Span::from_secs(20))).await;
        assert!(outcome.output.to_lowercase().contains("refused"), "{outcome:?}");
    }
}
