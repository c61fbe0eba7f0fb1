//! Samples of events of recordings.

use base::{Time, Uuid};
use model::event::*;
use model::*;

use crate::samples::id;

pub fn samples(name: &str) -> Vec<Event> {
    let source = || "http://nomad-ż:4646".to_string();
    match name {
        "Observed" => vec![
            Observed {
                source: String::new(),
                index: 0,
                seen: Time::ZERO,
                objects: vec![],
                indexes: vec![],
                happened: vec![],
            }
            .into(),
            Observed {
                source: source(),
                index: 1 << 40,
                seen: Time(1_700_000_000_000_000_000),
                objects: vec!["job/default/web".into(), "namespace/ünïcode".into()],
                indexes: vec![7, 0],
                happened: vec![Time(1_699_999_999_000_000_000), Time::ZERO],
            }
            .into(),
        ],
        "ObservationGap" => vec![
            ObservationGap { source: String::new(), from: 0, to: 0, reason: String::new() }.into(),
            ObservationGap { source: source(), from: 1 << 40, to: 12, reason: "restored".into() }.into(),
        ],
        "DeploymentProgressObserved" => {
            let progress = ObservedProgress {
                group: "web".into(),
                promoted: true,
                placed_canaries: vec![AllocId(id(3))],
                placed: 3,
                healthy: 2,
                unhealthy: 1,
                require_progress_by: Time(9),
            };
            let groups = vec![progress, ObservedProgress::default()];
            vec![
                DeploymentProgressObserved { deployment: DeploymentId(Uuid::NIL), groups: vec![] }.into(),
                DeploymentProgressObserved { deployment: DeploymentId(id(6)), groups }.into(),
            ]
        }
        "JobEndObserved" => vec![
            JobEndObserved { key: JobKey::default() }.into(),
            JobEndObserved { key: JobKey::new("default", "wéb") }.into(),
        ],
        other => panic!("{other} has no samples yet"),
    }
}
