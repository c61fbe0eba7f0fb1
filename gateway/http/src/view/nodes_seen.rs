//! What the nodes of the cluster are, for what is said of a job.

use jobspec::Nodes;
use model::document::Node;
use state::State;

/// The attribute that nodes of this release have, and no others.
const OWN: &str = "sojourn.version";

pub(crate) struct NodesSeen<'s>(pub &'s State);

impl NodesSeen<'_> {
    fn some(&self, is: impl Fn(&Node) -> bool) -> bool {
        let mut nodes = self.0.nodes.rows().map(|row| &*self.0.nodes.cold(row).document);
        nodes.any(is)
    }
}

impl Nodes for NodesSeen<'_> {
    fn any(&self) -> bool {
        !self.0.nodes.is_empty()
    }

    fn any_foreign(&self) -> bool {
        self.some(|node| !node.attributes.contains_key(OWN))
    }

    fn has_driver(&self, name: &str) -> bool {
        let attribute = format!("driver.{name}");
        self.some(|node| {
            node.drivers.get(name).is_some_and(|driver| driver.detected)
                || node.attributes.contains_key(&attribute)
        })
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.some(|node| node.attributes.contains_key(name))
    }

    fn has_devices(&self) -> bool {
        self.some(|node| node.node_resources.as_ref().is_some_and(|resources| !resources.devices.is_empty()))
    }
}
