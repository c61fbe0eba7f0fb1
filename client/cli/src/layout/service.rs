//! Instances of services.

use sdk::ServiceInstance;

use crate::output::{OutputStyle, Table, fields};

/// Where each instance is reached; a block each with `-verbose`.
pub(crate) fn instances(style: &OutputStyle, instances: &[ServiceInstance]) -> String {
    if style.verbose {
        return instances.iter().map(block).collect::<Vec<_>>().join("\n");
    }
    let mut table = Table::new(["Job ID", "Address", "Tags", "Node ID", "Alloc ID"]);
    for instance in instances {
        table.row([
            instance.job_id.clone(),
            address(instance),
            format!("[{}]", instance.tags.join(",")),
            style.id(&instance.node_id),
            style.id(&instance.alloc_id),
        ]);
    }
    table.render()
}

fn block(instance: &ServiceInstance) -> String {
    fields(&[
        ("ID", instance.id.clone()),
        ("Service Name", instance.service_name.clone()),
        ("Namespace", instance.namespace.clone()),
        ("Job ID", instance.job_id.clone()),
        ("Alloc ID", instance.alloc_id.clone()),
        ("Node ID", instance.node_id.clone()),
        ("Datacenter", instance.datacenter.clone()),
        ("Address", address(instance)),
        ("Tags", format!("[{}]", instance.tags.join(","))),
    ])
}

/// `HOST:PORT`; without a port the host alone.
fn address(instance: &ServiceInstance) -> String {
    match (instance.port, instance.address.contains(':')) {
        (0, _) => instance.address.clone(),
        (port, true) => format!("[{}]:{port}", instance.address),
        (port, false) => format!("{}:{port}", instance.address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_line_or_a_block() {
        let instance = ServiceInstance {
            job_id: "web".into(),
            address: "10.0.0.7".into(),
            port: 25_001,
            tags: vec!["a".to_string(), "b".to_string()].into(),
            node_id: "0badcafe-1111".into(),
            alloc_id: "5d16e7fe-8a2e".into(),
            ..ServiceInstance::default()
        };
        let list = [instance];
        assert_eq!(
            instances(&OutputStyle::for_tests(), &list),
            "Job ID  Address         Tags   Node ID   Alloc ID\n\
             web     10.0.0.7:25001  [a,b]  0badcafe  5d16e7fe\n"
        );
        let verbose = OutputStyle { verbose: true, ..OutputStyle::for_tests() };
        assert!(instances(&verbose, &list).contains("Alloc ID     = 5d16e7fe-8a2e\n"));
    }
}
