//! Keeps the Consul agent up to date.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};

use super::client::ConsulError;
use super::{Consul, Registration, STATUS_EVERY, TASK_PREFIX};
use crate::returned::ReturnedToken;

/// How often everything is compared, and the pauses after a failure.
const SYNC_EVERY: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The longest pause before Consul is asked again what it is, until it has answered.
const DESCRIBE_PAUSE_MAX: Duration = Duration::from_secs(15);

/// How long the last calls of an agent that stops may take.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

impl Consul {
    /// Runs until it is dropped.
    pub async fn run(&self) {
        let log_out = |returned: ReturnedToken| self.log_out(returned);
        let giving_back = self.returned.run(log_out);
        tokio::join!(self.describe_itself(), self.follow_statuses(), self.keep_in_sync(), giving_back);
    }

    /// Removes what this agent has registered of itself, and what is to be removed anyway. Services of tasks that go on stay.
    pub async fn leave(&self) {
        let leaving = async {
            let removed = self.lock().removed.clone();
            for id in removed.iter().chain(self.own.iter().map(|own| &own.id)) {
                if let Err(error) = self.client.deregister(id, self.held_token(id).as_deref()).await {
                    tracing::warn!(id, %error, "a service was not removed from Consul");
                    return;
                }
                self.give_back_of(id);
            }
        };
        timeout(LEAVE_WITHIN, leaving).await.ok();
        self.returned.leave(|returned| self.log_out(returned)).await;
    }

    async fn log_out(&self, returned: ReturnedToken) -> Result<(), String> {
        self.client.logout(&returned.token).await.map_err(|error| error.to_string())
    }

    async fn describe_itself(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.client.agent().await {
                Ok(found) => {
                    self.attributes.send_replace(attributes(&found));
                    return;
                }
                Err(error) => tracing::debug!(%error, "Consul does not say what it is"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(DESCRIBE_PAUSE_MAX);
        }
    }

    /// Only while something depends on them.
    async fn follow_statuses(&self) {
        loop {
            let is_needed = self.lock().wanted.values().any(|(.., service)| !service.check_ids.is_empty());
            if is_needed && let Ok(checks) = self.client.checks().await {
                self.note(&checks);
            }
            sleep(STATUS_EVERY).await;
        }
    }

    fn note(&self, checks: &Map<String, Value>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let own = checks.iter().filter(|(id, _)| id.starts_with(super::wanted::CHECK_PREFIX));
        let found = own.map(|(id, check)| (id.clone(), (text(&check["Status"]), text(&check["Output"]))));
        self.statuses.send_replace(found.collect());
    }

    async fn keep_in_sync(&self) {
        let (started, mut pause, mut is_reached) = (Instant::now(), FIRST_PAUSE, true);
        loop {
            match self.pass(started).await {
                Ok(()) => {
                    if !std::mem::replace(&mut is_reached, true) {
                        tracing::info!("Consul is reached again");
                    }
                    pause = FIRST_PAUSE;
                    tokio::select! {
                        () = self.changed.notified() => {}
                        () = sleep(self.next_pass(started)) => {}
                    }
                }
                Err(error) => {
                    if std::mem::replace(&mut is_reached, false) {
                        tracing::warn!(%error, "services are not registered with Consul yet");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// What nobody knows is looked for as soon as it may be removed.
    fn next_pass(&self, started: Instant) -> Duration {
        match self.unknown_for.saturating_sub(started.elapsed()) {
            Duration::ZERO => SYNC_EVERY,
            left => left.min(SYNC_EVERY),
        }
    }

    /// Compares once, and does what follows. One service that is refused holds up no other.
    async fn pass(&self, started: Instant) -> Result<(), ConsulError> {
        let found = self.client.services().await?;
        let checks = self.client.checks().await?;
        self.note(&checks);
        let of_tasks: Vec<Registration> =
            self.lock().wanted.values().map(|(.., service)| service.clone()).collect();
        let mut failed = None;
        for service in self.own.iter().chain(&of_tasks) {
            let sent = self.lock().sent.get(&service.id).cloned();
            let has_checks = service.check_ids.iter().all(|id| checks.contains_key(id));
            let is_there = found.get(&service.id).is_some_and(|known| is_same(known, &service.document));
            let is_current = is_there && has_checks && sent.is_none_or(|sent| sent == service.document);
            if !is_current && let Err(error) = self.register(service).await {
                tracing::debug!(id = service.id, %error, "a service is not registered with Consul");
                failed = Some(error);
                continue;
            }
            self.lock().sent.insert(service.id.clone(), service.document.clone());
        }
        let all = started.elapsed() >= self.unknown_for;
        for id in self.stale(&found, all) {
            if found.contains_key(&id)
                && let Err(error) = self.client.deregister(&id, self.held_token(&id).as_deref()).await
            {
                failed = Some(error);
                continue;
            }
            let mut content = self.lock();
            content.sent.remove(&id);
            // It may be wanted again by now: then it is registered again.
            content.removed.remove(&id);
            let is_wanted = content.wanted.contains_key(&id);
            drop(content);
            if !is_wanted {
                self.give_back_of(&id);
            }
        }
        if all {
            self.give_back_unknown();
        }
        failed.map_or(Ok(()), Err)
    }

    /// What is to be removed: what was wanted, and later also what nobody knows.
    fn stale(&self, found: &Map<String, Value>, all: bool) -> Vec<String> {
        let content = self.lock();
        let unknown = found
            .keys()
            .filter(|id| all && id.starts_with(TASK_PREFIX) && !content.wanted.contains_key(*id))
            .filter(|id| !content.removed.contains(*id));
        content.removed.iter().chain(unknown).cloned().collect()
    }
}

/// Whether Consul has it as it was sent. Tags that others may change are not compared, nor what Consul adds by itself: weights that
/// were not given, and addresses with other names.
fn is_same(known: &Value, document: &Value) -> bool {
    let tags = |service: &Value| service["Tags"].as_array().cloned().unwrap_or_default();
    let same = |field: &str| known[field] == document[field];
    let same_if_given = |field: &str| document[field].is_null() || same(field);
    let is_overridden = |service: &Value| service["EnableTagOverride"] == true;
    let mut tagged = document["TaggedAddresses"].as_object().into_iter().flatten();
    ["Address", "Port", "Meta"].into_iter().all(same)
        && ["Kind", "Weights"].into_iter().all(same_if_given)
        && known["Service"] == document["Name"]
        && is_overridden(known) == is_overridden(document)
        && (is_overridden(document) || tags(known) == tags(document))
        && tagged.all(|(name, place)| known["TaggedAddresses"][name] == *place)
}

fn attributes(agent: &Value) -> BTreeMap<String, String> {
    let (config, stats) = (&agent["Config"], &agent["DebugConfig"]);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    let version = text(&config["Version"]);
    let sku = if version.contains("+ent") { "ent" } else { "oss" };
    let ports = |name: &str| text(&agent["xDS"]["Ports"][name]);
    [
        ("consul.server", text(&config["Server"])),
        ("consul.version", version.clone()),
        ("consul.sku", if version.is_empty() { String::new() } else { sku.to_string() }),
        ("consul.revision", text(&config["Revision"])),
        ("unique.consul.name", text(&config["NodeName"])),
        ("consul.datacenter", text(&config["Datacenter"])),
        ("consul.segment", text(&agent["Member"]["Tags"]["segment"])),
        ("consul.connect", text(&stats["ConnectEnabled"])),
        ("consul.grpc", ports("Plaintext")),
        ("consul.partition", text(&config["Partition"])),
        ("consul.dns.port", text(&stats["DNSPort"])),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(service: &Value, field: &str, value: Value) -> Value {
        let mut changed = service.clone();
        changed[field] = value;
        changed
    }

    #[test]
    fn what_was_changed_in_consul_differs_and_what_it_adds_does_not() {
        let wanted = json!({
            "ID": "a", "Name": "web", "Address": "10.0.0.1", "Port": 80, "Tags": ["v1"], "Meta": {"a": "b"},
            "EnableTagOverride": false, "TaggedAddresses": {"wan": {"Address": "192.0.2.1", "Port": 80}},
        });
        let mut known = with(&wanted, "Service", json!("web"));
        known["Weights"] = json!({"Passing": 1, "Warning": 1});
        known["TaggedAddresses"]["lan_ipv4"] = json!({"Address": "10.0.0.1", "Port": 80});
        assert!(is_same(&known, &wanted));
        for (field, value) in [
            ("Address", json!("10.0.0.2")),
            ("Tags", json!(["v2"])),
            ("EnableTagOverride", json!(true)),
            ("TaggedAddresses", json!({"wan": {"Address": "192.0.2.2", "Port": 80}})),
            ("TaggedAddresses", Value::Null),
        ] {
            assert!(!is_same(&with(&known, field, value), &wanted), "{field}");
        }
        for (field, value) in
            [("Weights", json!({"Passing": 5, "Warning": 1})), ("Kind", json!("api-gateway"))]
        {
            assert!(!is_same(&known, &with(&wanted, field, value)), "{field}");
        }
        let (known, open) =
            (with(&known, "EnableTagOverride", json!(true)), with(&wanted, "EnableTagOverride", json!(true)));
        assert!(is_same(&with(&known, "Tags", json!(["v2"])), &open), "others may change its tags");
    }
}
