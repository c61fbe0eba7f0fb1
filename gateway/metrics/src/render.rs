use std::fmt::Write as _;

use api::{GaugeValue, MetricsSummary, SampledValue};
use base::Time;
use model::document::Timestamp;

use crate::quantiles::QUANTILES;
use crate::table::{Kind, of};
use crate::{Gauge, Labels, Sampled};

/// Everything that is shown at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub gauges: Vec<Gauge>,
    pub sampled: Vec<Sampled>,
    /// The label that says where a figure comes from; none when the operator disabled it.
    pub host: Option<String>,
}

/// The JSON form: gauges as they are, samples of the newest interval.
pub fn summary(figures: &Figures, now: Time) -> MetricsSummary {
    let seconds = Timestamp::from(Time::from_secs(now.secs())).to_string();
    let labels = |own: &Labels| {
        let host = figures.host.iter().map(|host| ("host".to_string(), host.clone()));
        own.iter().map(|(name, value)| (name.to_string(), value.clone())).chain(host).collect()
    };
    let gauge = |gauge: &Gauge| GaugeValue {
        name: gauge.name.to_string(),
        value: gauge.value as f32,
        labels: labels(&gauge.labels),
    };
    let sampled = |one: &Sampled| SampledValue {
        name: one.name.to_string(),
        count: one.count.into(),
        rate: one.rate,
        sum: one.sum,
        min: one.min,
        max: one.max,
        mean: one.mean,
        stddev: one.stddev,
        labels: labels(&one.labels),
    };
    let (counters, samples): (Vec<_>, Vec<_>) =
        figures.sampled.iter().partition(|one| of(one.name).kind == Kind::Counter);
    MetricsSummary {
        timestamp: format!("{} +0000 UTC", seconds.trim_end_matches('Z').replace('T', " ")),
        gauges: figures.gauges.iter().map(gauge).collect(),
        counters: counters.into_iter().map(sampled).collect(),
        samples: samples.into_iter().map(sampled).collect(),
        ..MetricsSummary::default()
    }
}

/// The text form of Prometheus. Counters, sums and counts are given since the agent started: whoever scrapes them computes
/// the rates. Quantiles are those of the newest interval that is over, and no number if nothing was measured in it.
pub fn exposition(figures: &Figures) -> String {
    let mut text = String::new();
    // The text form wants all lines of a name together.
    let mut gauges: Vec<&Gauge> = figures.gauges.iter().collect();
    gauges.sort_by_key(|gauge| gauge.name);
    let mut last = "";
    for gauge in gauges {
        let name = flat(gauge.name);
        if gauge.name != last {
            // What is counted elsewhere is read like a gauge.
            head(
                &mut text,
                gauge.name,
                if of(gauge.name).kind == Kind::Counter { "counter" } else { "gauge" },
            );
        }
        last = gauge.name;
        let labels = labels(&gauge.labels, figures.host.as_deref());
        let _infallible = writeln!(text, "{name}{labels} {}", gauge.value);
    }
    let mut sampled: Vec<&Sampled> = figures.sampled.iter().collect();
    sampled.sort_by_key(|one| one.name);
    for one in sampled {
        let name = flat(one.name);
        let counts = of(one.name).kind == Kind::Counter;
        if one.name != last {
            head(&mut text, one.name, if counts { "counter" } else { "summary" });
        }
        last = one.name;
        let host = figures.host.as_deref();
        let (labels, sum, count) = (labels(&one.labels, host), one.total_sum, one.total_count);
        let _infallible = match counts {
            true => writeln!(text, "{name}{labels} {sum}"),
            false => {
                quantiles(&mut text, &name, one, host);
                writeln!(text, "{name}_sum{labels} {sum}\n{name}_count{labels} {count}")
            }
        };
    }
    text
}

fn quantiles(text: &mut String, name: &str, one: &Sampled, host: Option<&str>) {
    for (part, value) in QUANTILES.into_iter().zip(one.quantiles.unwrap_or([f64::NAN; 3])) {
        let mut own = one.labels.clone();
        own.push(("quantile", part.to_string()));
        let _infallible = writeln!(text, "{name}{} {value}", labels(&own, host));
    }
}

fn head(text: &mut String, name: &str, kind: &str) {
    let (help, name) = (of(name).help, flat(name));
    let _infallible = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn flat(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

fn labels(own: &[(&'static str, String)], host: Option<&str>) -> String {
    let own = own.iter().map(|(label, value)| (*label, value.as_str()));
    let all: Vec<String> = own
        .chain(host.map(|host| ("host", host)))
        .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
        .collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(host: Option<&str>) -> Figures {
        let of = |job: &str| Gauge::new("nomad.nomad.job_summary.running", 2).with("job", job);
        let sampled =
            |name, sum| Sampled { name, count: 1, sum, total_count: 3, total_sum: 9.5, ..Sampled::default() };
        Figures {
            gauges: vec![of("plain"), Gauge::new("sojourn.leader", 1), of("q\"\\\n")],
            sampled: vec![
                sampled("sojourn.http.requests_total", 1.0),
                Sampled { quantiles: Some([0.5, 2.25, 4.0]), ..sampled("nomad.nomad.plan.evaluate", 2.5) },
                sampled("nomad.nomad.plan.submit", 0.0),
                Sampled { labels: rejected("a"), ..sampled("nomad.nomad.plan.node_rejected", 3.0) },
                Sampled { labels: rejected("b"), ..sampled("nomad.nomad.plan.node_rejected", 3.0) },
            ],
            host: host.map(str::to_string),
        }
    }

    fn rejected(node: &str) -> Labels {
        vec![("node_id", node.to_string())]
    }

    #[test]
    fn lines_of_one_name_stand_together_and_labels_are_escaped() {
        let text = exposition(&figures(None));
        let expected = "# HELP nomad_nomad_job_summary_running Allocations of a task group that run.\n\
            # TYPE nomad_nomad_job_summary_running gauge\n\
            nomad_nomad_job_summary_running{job=\"plain\"} 2\n\
            nomad_nomad_job_summary_running{job=\"q\\\"\\\\\\n\"} 2\n\
            # HELP sojourn_leader 1 while this server leads.\n# TYPE sojourn_leader gauge\nsojourn_leader 1\n\
            # HELP nomad_nomad_plan_evaluate Milliseconds that the check of a plan took.\n\
            # TYPE nomad_nomad_plan_evaluate summary\n\
            nomad_nomad_plan_evaluate{quantile=\"0.5\"} 0.5\n\
            nomad_nomad_plan_evaluate{quantile=\"0.9\"} 2.25\n\
            nomad_nomad_plan_evaluate{quantile=\"0.99\"} 4\n\
            nomad_nomad_plan_evaluate_sum 9.5\nnomad_nomad_plan_evaluate_count 3\n\
            # HELP nomad_nomad_plan_node_rejected Plans of which a node rejected its part, by node.\n\
            # TYPE nomad_nomad_plan_node_rejected counter\n\
            nomad_nomad_plan_node_rejected{node_id=\"a\"} 9.5\nnomad_nomad_plan_node_rejected{node_id=\"b\"} 9.5\n\
            # HELP nomad_nomad_plan_submit Milliseconds that a worker waited for the outcome of its plan.\n\
            # TYPE nomad_nomad_plan_submit summary\n\
            nomad_nomad_plan_submit{quantile=\"0.5\"} NaN\n\
            nomad_nomad_plan_submit{quantile=\"0.9\"} NaN\n\
            nomad_nomad_plan_submit{quantile=\"0.99\"} NaN\n\
            nomad_nomad_plan_submit_sum 9.5\nnomad_nomad_plan_submit_count 3\n\
            # HELP sojourn_http_requests_total Requests that were answered.\n# TYPE sojourn_http_requests_total counter\n\
            sojourn_http_requests_total 9.5\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_host_is_a_label_of_every_figure() {
        let text = exposition(&figures(Some("a")));
        assert!(text.contains("sojourn_leader{host=\"a\"} 1\n"), "{text}");
        assert!(text.contains("{job=\"plain\",host=\"a\"} 2\n"), "{text}");
        assert!(text.contains("nomad_nomad_plan_evaluate_count{host=\"a\"} 3\n"), "{text}");
    }

    #[test]
    fn the_summary_has_counters_and_samples_apart_and_lists_that_are_never_null() {
        let shown = serde_json::to_value(summary(&figures(Some("a")), Time::from_secs(1))).unwrap();
        assert_eq!(shown["Timestamp"], "1970-01-01 00:00:01 +0000 UTC");
        assert_eq!(shown["Counters"][0]["Name"], "sojourn.http.requests_total");
        assert_eq!(shown["Samples"][0]["Name"], "nomad.nomad.plan.evaluate");
        assert_eq!(shown["Gauges"][1]["Labels"], serde_json::json!({"host": "a"}));
        assert_eq!(shown["Counters"][2]["Labels"], serde_json::json!({"node_id": "b", "host": "a"}));
        let empty = serde_json::to_value(summary(&Figures::default(), Time::ZERO)).unwrap();
        for list in ["Gauges", "Points", "Counters", "Samples"] {
            assert_eq!(empty[list], serde_json::json!([]), "{list}");
        }
    }
}
