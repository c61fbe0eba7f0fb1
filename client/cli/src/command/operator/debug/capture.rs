//! What is read into a bundle: once, in every interval, and as long as the capture lasts.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use futures_util::future::join_all;
use sdk::{Client, Frames, Query};
use tokio::time::{Instant, sleep_until, timeout};

use super::bundle::Bundle;
use crate::hint::segment;
use crate::output::write_out;
use crate::raw;

/// Most bytes of one log or of the events; what comes after is left out, and the index says so.
const STREAM_MAX: usize = 256 << 20;

/// How long one answer may take: an agent that hangs must not keep the bundle from being made.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Read once: the file in `cluster`, and the path.
const CLUSTER: [(&str, &str); 7] = [
    ("agent-self.json", "/v1/agent/self"),
    ("members.json", "/v1/agent/members"),
    ("namespaces.json", "/v1/namespaces"),
    ("node-pools.json", "/v1/node/pools"),
    ("regions.json", "/v1/regions"),
    ("leader.json", "/v1/status/leader"),
    ("peers.json", "/v1/status/peers"),
];

/// Read in every interval: the file in `interval/NUMBER`, and the path.
const INTERVALS: [(&str, &str); 13] = [
    ("allocations.json", "/v1/allocations?namespace=*"),
    ("csi-plugins.json", "/v1/plugins?type=csi"),
    ("csi-volumes.json", "/v1/volumes?type=csi&namespace=*"),
    ("deployments.json", "/v1/deployments?namespace=*"),
    ("evaluations.json", "/v1/evaluations?namespace=*"),
    ("host-volumes.json", "/v1/volumes?type=host&namespace=*"),
    ("jobs.json", "/v1/jobs?namespace=*"),
    ("metrics.json", "/v1/metrics"),
    ("nodes.json", "/v1/nodes"),
    ("operator-autopilot-health.json", "/v1/operator/autopilot/health"),
    ("operator-raft.json", "/v1/operator/raft/configuration"),
    ("operator-scheduler.json", "/v1/operator/scheduler/configuration"),
    ("services.json", "/v1/services?namespace=*"),
];

/// What to capture, of whom and for how long.
pub(super) struct Plan {
    pub duration: Duration,
    pub interval: Duration,
    pub event_index: u64,
    /// Empty for no events.
    pub topics: Vec<String>,
    pub log_level: String,
    pub log_location: bool,
    pub log_files: bool,
    pub stale: bool,
    pub servers: Vec<String>,
    pub nodes: Vec<String>,
}

pub(super) struct Capture<'a> {
    pub client: &'a Client,
    pub bundle: &'a Bundle,
    pub plan: &'a Plan,
    pub verbose: bool,
}

impl Capture<'_> {
    pub(super) async fn run(&self) {
        let end = Instant::now() + self.plan.duration;
        for (file, path) in CLUSTER {
            self.read(&format!("cluster/{file}"), path).await;
        }
        let agents: Vec<_> = self.agents().collect();
        let logs = join_all(agents.iter().map(|(folder, who, id)| self.log(folder, who, id, end)));
        tokio::join!(logs, self.events(end), self.intervals(end));
    }

    /// Each agent: its directory, the parameter that names it, its name.
    fn agents(&self) -> impl Iterator<Item = (String, &'static str, &str)> {
        let servers =
            self.plan.servers.iter().map(|name| (format!("server/{name}"), "server_id", name.as_str()));
        servers.chain(self.plan.nodes.iter().map(|id| (format!("client/{id}"), "node_id", id.as_str())))
    }

    /// What an agent says of its host, its log file if that is asked, and its log until the end.
    async fn log(&self, folder: &str, who: &str, id: &str, end: Instant) {
        let path = format!("/v1/agent/host?{who}={}", segment(id));
        self.read(&format!("{folder}/agent-host.json"), &path).await;
        if self.plan.log_files {
            let query = Query::new().flag("on_disk", true).with(who, id);
            let file = format!("{folder}/monitor_export.log");
            match self.client.monitor_export(query).await {
                // The end of a file is the end of it.
                Ok(frames) => self.frames(&file, frames, end + ANSWER_MAX).await,
                Err(error) => self.failed(&file, &error.to_string()),
            }
        }
        let query = Query::new()
            .with("log_level", &self.plan.log_level)
            .flag("log_include_location", self.plan.log_location)
            .with(who, id);
        let file = format!("{folder}/monitor.log");
        match self.client.monitor(query).await {
            Ok(frames) => self.frames(&file, frames, end).await,
            Err(error) => self.failed(&file, &error.to_string()),
        }
    }

    async fn frames(&self, path: &str, mut frames: Frames, end: Instant) {
        let Some(mut file) = self.created(path) else { return };
        let mut written = 0;
        while let Ok(next) = tokio::time::timeout_at(end, frames.next()).await {
            let data = match next {
                Ok(Some(frame)) => frame.data.0,
                Ok(None) => return,
                Err(error) => return self.note(path, &error.to_string()),
            };
            written += data.len();
            if written > STREAM_MAX {
                return self.note(path, "longer than is kept: the rest is left out");
            }
            if let Err(error) = file.write_all(&data) {
                return self.note(path, &error.to_string());
            }
        }
    }

    async fn events(&self, end: Instant) {
        if self.plan.topics.is_empty() {
            return;
        }
        let topics =
            self.plan.topics.iter().map(|topic| format!("&topic={}", segment(topic).replace("%3A", ":")));
        let path = format!(
            "/v1/event/stream?namespace=*&index={}{}",
            self.plan.event_index,
            topics.collect::<String>()
        );
        let file = "cluster/eventstream.json";
        let mut response = match self.client.call_raw(raw::request("GET", &path, String::new())).await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => {
                let status = response.status();
                return self.failed(file, &format!("{status} {}", response.text().await.unwrap_or_default()));
            }
            Err(error) => return self.failed(file, &error.to_string()),
        };
        let Some(mut to) = self.created(file) else { return };
        let mut written = 0;
        while let Ok(Ok(Some(piece))) = tokio::time::timeout_at(end, response.chunk()).await {
            written += piece.len();
            if written > STREAM_MAX {
                return self.note(file, "longer than is kept: the rest is left out");
            }
            if let Err(error) = to.write_all(&piece) {
                return self.note(file, &error.to_string());
            }
        }
    }

    /// At once, and every interval that begins before the end.
    async fn intervals(&self, end: Instant) {
        let (mut next, mut number) = (Instant::now(), 0);
        while next < end {
            sleep_until(next).await;
            write_out(format!("    Capture interval {number:04}\n"));
            for (file, path) in INTERVALS {
                let path = match (self.plan.stale, path.contains('?')) {
                    (false, _) => path.to_string(),
                    (true, false) => format!("{path}?stale"),
                    (true, true) => format!("{path}&stale"),
                };
                self.read(&format!("interval/{number:04}/{file}"), &path).await;
            }
            number += 1;
            next += self.plan.interval;
        }
        sleep_until(end).await;
    }

    async fn read(&self, file: &str, path: &str) {
        let asked = raw::answer(self.client, "GET", path, None, "querying");
        match timeout(ANSWER_MAX, asked).await {
            Ok(Ok((200..300, bytes))) => {
                if let Err(error) = self.bundle.write(file, &bytes) {
                    self.note(file, &format!("{error:#}"));
                }
            }
            Ok(Ok((status, bytes))) => {
                self.failed(file, &format!("{status} {}", String::from_utf8_lossy(&bytes).trim()));
            }
            Ok(Err(_)) => self.failed(file, "the agent did not answer"),
            Err(_) => self.failed(file, "no answer within 30 seconds"),
        }
    }

    fn created(&self, path: &str) -> Option<File> {
        match self.bundle.file(path) {
            Ok(file) => Some(file),
            Err(error) => {
                self.note(path, &format!("{error:#}"));
                None
            }
        }
    }

    /// Something is missing: its file says why.
    fn failed(&self, file: &str, error: &str) {
        self.note(file, error);
        if let Err(error) = self.bundle.fail(file, error) {
            write_out(format!("{file}: {error:#}\n"));
        }
    }

    /// Something is not whole: what there is stays, and the index says why.
    fn note(&self, file: &str, error: &str) {
        self.bundle.note(file, error);
        if self.verbose {
            write_out(format!("    {file}: {error}\n"));
        }
    }
}
