//! The jobs of a run: one document that was made once, with the job's name put into each copy.

use base::Uuid;
use memchr::memmem;
use serde_json::json;

use crate::http::Agent;
use crate::options::{ClusterOptions, JOB_MHZ, JOB_MIB};

/// Digits of a job's number.
const DIGITS: usize = 8;

/// Racks of the fleet. Those with even numbers are suitable for jobs.
pub(crate) const RACKS: u32 = 25;
const SUITABLE: &str = "^r[0-9]?[02468]$";

/// The names of a run: of its jobs, nodes and node pool.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub pool: String,
    prefix: String,
}

impl Names {
    pub(crate) fn new(run: &str) -> Names {
        Names { pool: format!("bench-{run}"), prefix: format!("bench-{run}-") }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn job(&self, number: u32) -> String {
        format!("{}{number:0width$}", self.prefix, width = DIGITS)
    }

    /// The number of the job whose name is what follows the prefix.
    pub(crate) fn number(rest: &[u8]) -> Option<u32> {
        let digits = rest.get(..DIGITS)?;
        digits.iter().try_fold(0u32, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })
    }
}

/// The request that registers a job.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    bytes: Vec<u8>,
    /// Where the digits of its number stand.
    at: Vec<usize>,
}

impl Registration {
    pub(crate) fn new(agent: &Agent, names: &Names, options: &ClusterOptions) -> Registration {
        let name = names.job(0);
        let task = json!({
            "Name": "task", "Driver": "mock_driver", "Config": {"run_for": "24h"},
            "Resources": {"CPU": JOB_MHZ, "MemoryMB": JOB_MIB},
            "LogConfig": {"MaxFiles": 1, "MaxFileSizeMB": 1},
        });
        let group = json!({
            "Name": "group", "Count": options.count, "EphemeralDisk": {"SizeMB": 10}, "Tasks": [task],
        });
        let mut job = json!({
            "ID": name, "Name": name, "Type": if options.batch { "batch" } else { "service" }, "Priority": 50,
            "Datacenters": ["dc1"], "NodePool": names.pool,
            "Constraints": [
                {"LTarget": "${attr.kernel.name}", "RTarget": "linux", "Operand": "="},
                {"LTarget": "${meta.rack}", "RTarget": SUITABLE, "Operand": "regexp"},
            ],
            "TaskGroups": [group],
        });
        if !options.namespace.is_empty() {
            job["Namespace"] = json!(options.namespace);
        }
        let body = json!({ "Job": job }).to_string();
        let bytes = agent.request("PUT", &in_namespace("/v1/jobs", options), body.as_bytes());
        let digits = name.len() - DIGITS;
        let at = memmem::find_iter(&bytes, name.as_bytes()).map(|at| at + digits).collect();
        Registration { bytes, at }
    }

    /// The request for this job.
    pub(crate) fn of(&mut self, number: u32) -> &[u8] {
        let mut rest = number;
        for place in (0..DIGITS).rev() {
            let digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            for at in &self.at {
                self.bytes[at + place] = digit;
            }
        }
        &self.bytes
    }
}

/// A path with the namespace of the run, which begins the query.
pub(crate) fn in_namespace(path: &str, options: &ClusterOptions) -> String {
    let namespace = if options.namespace.is_empty() { "default" } else { &options.namespace };
    format!("{path}?namespace={namespace}")
}

/// An id as JSON has it.
pub(crate) fn parse_id(text: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(text.get(..36)?).ok()?;
    text.parse::<Uuid>().ok().map(|id| id.as_u128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::usual;

    #[tokio::test]
    async fn a_registration_differs_from_the_next_by_the_name_alone() {
        let agent = Agent::find("http://127.0.0.1:4646", "secret").await.unwrap();
        let names = Names::new("0a1b2c3d");
        let mut registration = Registration::new(&agent, &names, &usual());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let first = text(registration.of(0));
        let other = text(registration.of(10_203_040));
        assert_eq!(other, first.replace("00000000", "10203040"));
        assert_eq!(other.matches("bench-0a1b2c3d-10203040").count(), 2);
        assert!(
            first.starts_with("PUT /v1/jobs?namespace=default HTTP/1.1\r\nHost: 127.0.0.1:4646\r\n"),
            "{first}"
        );
        assert_eq!(names.job(10_203_040), "bench-0a1b2c3d-10203040");
        assert_eq!(Names::number(b"10203040\",\"Job"), Some(10_203_040));
        assert_eq!(Names::number(b"1020304\""), None);
    }
}
