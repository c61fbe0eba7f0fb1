//! Statistics of devices.

use api::{DeviceGroupStats, StatValue};

use crate::output::{Table, fields};

/// One line per device with its summary statistic; empty when there are none.
pub(crate) fn usage(title: &str, groups: &[DeviceGroupStats]) -> String {
    let mut entries = Vec::new();
    for group in groups {
        for (id, device) in &group.instance_stats {
            let name = format!("{}/{}/{}[{id}]", group.vendor, group.kind, group.name);
            entries.push((name, device.summary.as_ref().map(shown).unwrap_or_default()));
        }
    }
    if entries.is_empty() {
        return String::new();
    }
    entries.sort();
    format!("\n{title}\n{}", fields(&entries))
}

/// `3 / 8 GiB`, or whatever of it there is.
fn shown(value: &StatValue) -> String {
    let whole = |number: Option<f64>, integer: Option<i64>| {
        number.map(|number| number.to_string()).or(integer.map(|number| number.to_string()))
    };
    let used = whole(value.float_numerator_val, value.int_numerator_val);
    let of = whole(value.float_denominator_val, value.int_denominator_val);
    let text = match (used, of) {
        (Some(used), Some(of)) => format!("{used} / {of}"),
        (Some(used), None) => used,
        _ => match (&value.string_val, value.bool_val) {
            (Some(text), _) => text.clone(),
            (None, Some(yes)) => yes.to_string(),
            (None, None) => String::new(),
        },
    };
    format!("{text} {}", value.unit).trim_end().to_string()
}

/// Names and values of the devices that a node has.
pub(crate) fn attributes(groups: &[model::document::NodeDeviceResource]) -> String {
    let mut text = String::new();
    for group in groups {
        let mut table = Table::new(["Device Group", "Instances"]);
        let name = format!("{}/{}/{}", group.vendor, group.kind, group.name);
        table.row([name, group.instances.len().to_string()]);
        text.push_str(&table.render());
    }
    text
}

#[cfg(test)]
mod tests {
    use api::DeviceStats;

    use super::*;

    #[test]
    fn a_device_is_shown_by_its_most_telling_number() {
        let summary = StatValue {
            int_numerator_val: Some(3),
            int_denominator_val: Some(8),
            unit: "GiB".into(),
            ..StatValue::default()
        };
        let device = DeviceStats { summary: Some(summary), ..DeviceStats::default() };
        let group = DeviceGroupStats {
            vendor: "acme".into(),
            kind: "gpu".into(),
            name: "x1".into(),
            instance_stats: [("0".to_string(), device)].into_iter().collect(),
        };
        assert_eq!(usage("Device Stats", &[group]), "\nDevice Stats\nacme/gpu/x1[0] = 3 / 8 GiB\n");
        assert_eq!(usage("Device Stats", &[]), "");
    }
}
