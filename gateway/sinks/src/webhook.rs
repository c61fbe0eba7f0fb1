//! A request of HTTP for each event, signed as Standard Webhooks has it.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base::reasons;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use delivery::AddressRules;
use keyring::Items;
use reqwest::StatusCode;

use crate::http::Http;
use crate::target::{Outgoing, Undelivered};

/// Items of the sink's variable.
const SIGNING_KEY: &str = "signing_key";
const AUTHORIZATION: &str = "authorization";
/// What keys of Standard Webhooks begin with.
const KEY_PREFIX: &str = "whsec_";

pub(crate) struct Webhook {
    http: Http,
}

impl Webhook {
    pub(crate) fn new(url: &str, rules: &AddressRules) -> Result<Webhook, String> {
        Ok(Webhook { http: Http::new(url, rules)? })
    }

    pub(crate) async fn deliver(&mut self, event: &Outgoing, secret: &Items) -> Result<(), Undelivered> {
        let mut request = self.http.post(secret).map_err(Undelivered::Later)?.body(event.body.clone());
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let id = message_id(&event.id);
        request = request.header("content-type", "application/cloudevents+json; charset=utf-8");
        request = request.header("webhook-id", &id).header("webhook-timestamp", seconds.to_string());
        if let Some(key) = secret.get(SIGNING_KEY) {
            let signature = signature(key, &id, seconds, &event.body).map_err(Undelivered::Later)?;
            request = request.header("webhook-signature", signature);
        }
        if let Some(value) = secret.get(AUTHORIZATION) {
            request = request.header("authorization", value);
        }
        let answer =
            request.send().await.map_err(|error| Undelivered::Later(reasons(&error.without_url())))?;
        judge(answer.status())
    }
}

/// 4xx says that the same request will not do another time either, but for the two that mean "later".
fn judge(status: StatusCode) -> Result<(), Undelivered> {
    let said = || format!("it answered {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        408 | 429 => Err(Undelivered::Later(said())),
        400..=499 => Err(Undelivered::Rejected(said())),
        _ => Err(Undelivered::Later(said())),
    }
}

/// An event's id without what separates the parts of what is signed.
pub(crate) fn message_id(event: &str) -> String {
    let id: String = event.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("evt_{id}")
}

/// A key is `whsec_` and base64, or whatever else there is, as it is.
fn signature(key: &str, id: &str, seconds: u64, body: &[u8]) -> Result<String, String> {
    let bytes = match key.strip_prefix(KEY_PREFIX) {
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| format!("{SIGNING_KEY}: what follows whsec_ is not base64"))?,
        None => key.as_bytes().to_vec(),
    };
    if bytes.is_empty() {
        return Err(format!("{SIGNING_KEY} is empty"));
    }
    let signed = [format!("{id}.{seconds}.").as_bytes(), body].concat();
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), &signed);
    Ok(format!("v1,{}", STANDARD.encode(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks, as its libraries test it.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signature("whsec_not base64", "a", 1, b"").is_err());
        assert!(signature("", "a", 1, b"").is_err());
    }

    #[test]
    fn what_cannot_become_right_is_told_from_what_may() {
        let of = |status| judge(StatusCode::from_u16(status).unwrap());
        assert_eq!(of(204), Ok(()));
        for status in [400, 401, 404, 410] {
            assert!(matches!(of(status), Err(Undelivered::Rejected(_))), "{status}");
        }
        for status in [302, 408, 429, 500, 503] {
            assert!(matches!(of(status), Err(Undelivered::Later(_))), "{status}");
        }
    }

    #[test]
    fn a_message_has_the_id_of_its_event_without_a_full_stop() {
        assert_eq!(message_id("13.0@9f3c2a71"), "evt_13_0_9f3c2a71");
    }
}
