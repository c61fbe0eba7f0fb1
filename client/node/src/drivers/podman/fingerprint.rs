//! Whether there are engines, and what they can do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::engine::{Call, NO_ENGINE};
use super::settings::DEFAULT;
use super::{One, Shared, misconfigured, same_engine};
use crate::driver::{Fingerprint, Health};

/// How often engines are asked what they are: each of them starts programs to find out.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often it is seen whether they have come or gone.
const PING_EVERY: Duration = Duration::from_secs(2);

/// How long one may take to say what it is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The first at once, then one whenever an engine may have come, gone or changed.
pub fn fingerprints(engines: Arc<Vec<One>>) -> BoxStream<'static, Fingerprint> {
    let next = move |is_first: bool| {
        let engines = Arc::clone(&engines);
        async move {
            if !is_first {
                // When the time is over they are looked at all the same.
                timeout(LOOK_EVERY, until_changed(&engines)).await.ok();
            }
            Some((fingerprint(&engines).await, false))
        }
    };
    stream::unfold(true, next).boxed()
}

/// Returns when an engine answers that did not, or the other way round.
async fn until_changed(engines: &[One]) {
    loop {
        sleep(PING_EVERY).await;
        for one in engines {
            let ping = timeout(ANSWER_TIMEOUT, one.shared.engine.ask(Call::get("/_ping"), None)).await;
            if matches!(ping, Ok(Ok(_))) != one.answers.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// The driver is as healthy as the engine of tasks that name none.
async fn fingerprint(engines: &[One]) -> Fingerprint {
    let mut attributes = BTreeMap::new();
    let mut first = None;
    for one in engines {
        let shared = &one.shared;
        let info = timeout(ANSWER_TIMEOUT, shared.engine.read::<Value>(Call::get("/info"))).await;
        one.answers.store(matches!(info, Ok(Ok(_))), Ordering::Relaxed);
        let health = match info {
            Ok(Ok(info)) => {
                shared.seen.store(true, Ordering::Relaxed);
                let rootless = info["host"]["security"]["rootless"].as_bool() == Some(true);
                one.is_rootless.store(rootless, Ordering::Relaxed);
                *one.storage.lock().unwrap_or_else(PoisonError::into_inner) = storage_of(&info);
                attributes.extend(attributes_of(shared, &info));
                (Health::Healthy, "Healthy".to_string())
            }
            _ if shared.seen.load(Ordering::Relaxed) => (Health::Unhealthy, NO_ENGINE.to_string()),
            Ok(Err(error)) => (Health::Undetected, error.to_string()),
            Err(_) => (Health::Undetected, format!("{NO_ENGINE}: it did not answer in time")),
        };
        first.get_or_insert(health);
    }
    if let Some(wrong) = same_engine(engines) {
        return Fingerprint::undetected(&misconfigured(&wrong));
    }
    let (health, description) = first.expect("there is an engine of tasks that name none");
    if health == Health::Healthy {
        attributes.insert("driver.podman".to_string(), "1".to_string());
        return Fingerprint::healthy(attributes);
    }
    Fingerprint { health, description, attributes: BTreeMap::new() }
}

/// However the engine writes it: a link may lead to the same directory.
fn storage_of(info: &Value) -> Option<PathBuf> {
    let told = PathBuf::from(info["store"]["graphRoot"].as_str()?);
    Some(std::fs::canonicalize(&told).unwrap_or(told))
}

fn attributes_of(shared: &Shared, info: &Value) -> BTreeMap<String, String> {
    let socket = shared.settings.socket.as_str();
    let prefix =
        if socket == DEFAULT { "driver.podman".to_string() } else { format!("driver.podman.{socket}") };
    let (host, security) = (&info["host"], &info["host"]["security"]);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    [
        ("version", text(&info["version"]["Version"])),
        ("health", "healthy".to_string()),
        ("rootless", text(&security["rootless"])),
        ("cgroupVersion", text(&host["cgroupVersion"])),
        ("appArmor", text(&security["apparmorEnabled"])),
        ("seccompEnabled", text(&security["seccompEnabled"])),
        ("selinuxEnabled", text(&security["selinuxEnabled"])),
        ("capabilities", text(&security["capabilities"])),
        ("ociRuntime", text(&host["ociRuntime"]["path"])),
        ("socket", shared.settings.path.display().to_string()),
        ("socketName", socket.to_string()),
        ("defaultPodman", (socket == DEFAULT).to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (format!("{prefix}.{name}"), value))
    .collect()
}
