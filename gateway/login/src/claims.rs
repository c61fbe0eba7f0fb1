//! What a token says, against what an auth method demands.

use base::{Duration, Time};
use model::document::ACLAuthMethodConfig;
use serde_json::Value;

use crate::{LoginError, unproven};

/// How long a token is good for that does not say it, and before which it is not.
const LEEWAY: Duration = Duration::from_secs(150);
/// How far clocks may be apart.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// What the claims must be.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// Any of them; empty: whoever.
    pub issuers: Vec<String>,
    /// Any of them; empty: for whomever.
    pub audiences: Vec<String>,
    expiration_leeway: Duration,
    not_before_leeway: Duration,
    clock_skew: Duration,
}

impl Demands {
    pub fn of(config: &ACLAuthMethodConfig, issuers: Vec<String>, audiences: Vec<String>) -> Demands {
        // Zero is the default, and less than that is none at all.
        let leeway = |set: Duration, default: Duration| match set {
            Duration::ZERO => default,
            set => set.max(Duration::ZERO),
        };
        Demands {
            issuers,
            audiences,
            expiration_leeway: leeway(config.expiration_leeway.0, LEEWAY),
            not_before_leeway: leeway(config.not_before_leeway.0, LEEWAY),
            clock_skew: leeway(config.clock_skew_leeway.0, CLOCK_SKEW),
        }
    }
}

/// # Errors
/// [`LoginError::Unproven`]: it was said by somebody else, for somebody else, or is not true now.
pub fn check(said: &Value, demands: &Demands, now: Time) -> Result<(), LoginError> {
    let issuer = said["iss"].as_str().unwrap_or_default();
    if !demands.issuers.is_empty() && !demands.issuers.iter().any(|bound| bound == issuer) {
        return unproven(format!(
            "the token is of issuer {issuer:?}: expected {}",
            demands.issuers.join(", ")
        ));
    }
    let audiences = audiences(said);
    if !demands.audiences.is_empty() && !demands.audiences.iter().any(|bound| audiences.contains(&&**bound)) {
        return unproven(format!(
            "the token is for {}: expected {}",
            if audiences.is_empty() { "nobody".to_string() } else { audiences.join(", ") },
            demands.audiences.join(", ")
        ));
    }
    check_times(said, demands, now)
}

/// `aud` is one or several.
pub(crate) fn audiences(said: &Value) -> Vec<&str> {
    match &said["aud"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn check_times(said: &Value, demands: &Demands, now: Time) -> Result<(), LoginError> {
    let (issued, not_before, expires) = (time(said, "iat")?, time(said, "nbf")?, time(said, "exp")?);
    let Some(first) = issued.into_iter().chain(not_before).chain(expires).next() else {
        return unproven("the token has none of the claims iat, nbf and exp");
    };
    let expires = expires.unwrap_or_else(|| {
        let from = issued.unwrap_or(first).max(not_before.unwrap_or(first));
        from.plus(demands.expiration_leeway)
    });
    let back = Duration(demands.not_before_leeway.0.saturating_neg());
    let not_before = not_before.or(issued).unwrap_or_else(|| expires.plus(back));
    let (latest, earliest) =
        (now.plus(Duration(demands.clock_skew.0.saturating_neg())), now.plus(demands.clock_skew));
    if latest >= expires {
        return unproven("the token has expired");
    }
    if earliest < not_before {
        return unproven("the token is not valid yet");
    }
    if issued.is_some_and(|issued| earliest < issued) {
        return unproven("the token was issued in the future");
    }
    Ok(())
}

/// Seconds, also with a fraction.
fn time(said: &Value, claim: &str) -> Result<Option<Time>, LoginError> {
    let secs = match &said[claim] {
        Value::Null => return Ok(None),
        number => number.as_f64().filter(|secs| secs.is_finite() && (0.0..9e9).contains(secs)),
    };
    match secs {
        Some(secs) => Ok(Some(Time((secs * 1e9) as i64))),
        None => unproven(format!("claim {claim}: expected a time in seconds")),
    }
}
