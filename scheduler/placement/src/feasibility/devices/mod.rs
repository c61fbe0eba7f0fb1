//! Devices of nodes, such as GPUs: whether a node has what a group requests, and which instances each task gets.

mod constraint;
mod value;

use std::collections::BTreeSet;

use model::document::{AllocatedDeviceResource, Node, NodeDeviceResource, RequestedDevice, TaskGroup};

use constraint::DeviceConstraint;

/// One instance of a device on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    pub vendor: String,
    pub kind: String,
    pub name: String,
    pub instance: String,
}

impl DeviceId {
    /// The instances that an allocation has.
    pub fn all<'a>(given: impl IntoIterator<Item = &'a AllocatedDeviceResource>) -> BTreeSet<DeviceId> {
        let of = |device: &'a AllocatedDeviceResource| {
            device.device_ids.iter().map(|id| DeviceId::of(&device.vendor, &device.kind, &device.name, id))
        };
        given.into_iter().flat_map(of).collect()
    }

    /// An instance of a node's device.
    pub fn on(device: &NodeDeviceResource, instance: &str) -> DeviceId {
        DeviceId::of(&device.vendor, &device.kind, &device.name, instance)
    }

    fn of(vendor: &str, kind: &str, name: &str, instance: &str) -> DeviceId {
        let [vendor, kind, name, instance] = [vendor, kind, name, instance].map(str::to_string);
        DeviceId { vendor, kind, name, instance }
    }
}

/// The device requests of a group, in the order of its tasks.
#[derive(Clone, Debug, Default)]
pub struct DeviceRequests {
    requests: Vec<DeviceRequest>,
}

/// The devices of one placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceAssignment {
    /// By name of the task, in the order of the group.
    pub tasks: Vec<(String, Vec<AllocatedDeviceResource>)>,
    /// How far the affinities of all requests are met, -1 to 1; `None` if there are none.
    pub score: Option<f64>,
}

impl DeviceRequests {
    pub fn of(group: &TaskGroup) -> DeviceRequests {
        let requests = group.tasks.iter().flat_map(|task| {
            let devices = task.resources.iter().flat_map(|resources| &resources.devices);
            devices.map(|device| DeviceRequest::of(&task.name, device))
        });
        DeviceRequests { requests: requests.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests of all tasks.
    pub fn requests(&self) -> &[DeviceRequest] {
        &self.requests
    }

    /// The node has enough healthy instances, in use or not. If not, the reason is `missing devices`.
    pub fn exists(&self, node: &Node) -> bool {
        let mut groups: Vec<(&NodeDeviceResource, usize)> =
            sorted(node).into_iter().map(|device| (device, healthy(device).count())).collect();
        self.requests.iter().all(|request| {
            let mut wanted = request.count;
            for (_, left) in groups.iter_mut().filter(|(device, _)| request.accepts(device)) {
                let taken = wanted.min(*left);
                (*left, wanted) = (*left - taken, wanted - taken);
            }
            wanted == 0 && !groups.is_empty()
        })
    }

    /// Free instances for each task. All of one request are of one kind; of several kinds the one that meets the
    /// affinities best is taken, the first by vendor, type and name if they meet them alike. Instances go by id.
    ///
    /// # Errors
    /// What follows `devices: ` in the exhausted dimension.
    pub fn assign(&self, node: &Node, taken: &BTreeSet<DeviceId>) -> Result<DeviceAssignment, String> {
        let (devices, mut taken) = (sorted(node), taken.clone());
        let mut assigned = DeviceAssignment::default();
        let (mut met, mut all) = (0.0, 0.0);
        for request in &self.requests {
            let (device, instances) = request.choose(&devices, &taken)?;
            met += request.met(device);
            all += request.weights();
            taken.extend(instances.iter().map(|instance| DeviceId::on(device, instance)));
            let given = AllocatedDeviceResource {
                vendor: device.vendor.clone(),
                kind: device.kind.clone(),
                name: device.name.clone(),
                device_ids: instances.into_iter().map(str::to_string).collect(),
            };
            match assigned.tasks.last_mut().filter(|(task, _)| *task == request.task) {
                Some((_, devices)) => devices.push(given),
                None => assigned.tasks.push((request.task.clone(), vec![given])),
            }
        }
        assigned.score = (all > 0.0).then(|| met / all);
        Ok(assigned)
    }
}

/// One `device` block.
#[derive(Clone, Debug)]
pub struct DeviceRequest {
    task: String,
    vendor: Option<String>,
    kind: String,
    name: Option<String>,
    count: usize,
    constraints: Vec<DeviceConstraint>,
    affinities: Vec<(DeviceConstraint, f64)>,
}

impl DeviceRequest {
    fn of(task: &str, asked: &RequestedDevice) -> DeviceRequest {
        let parts: Vec<&str> = asked.name.splitn(3, '/').collect();
        let (vendor, kind, name) = match parts[..] {
            [vendor, kind, name] => (Some(vendor), kind, Some(name)),
            [vendor, kind] => (Some(vendor), kind, None),
            _ => (None, asked.name.as_str(), None),
        };
        let affinities = asked.affinities.iter().map(|affinity| {
            let rule = DeviceConstraint::of(&affinity.l_target, &affinity.operand, &affinity.r_target);
            (rule, f64::from(affinity.weight.unwrap_or(50)))
        });
        DeviceRequest {
            task: task.to_string(),
            vendor: vendor.map(str::to_string),
            kind: kind.to_string(),
            name: name.map(str::to_string),
            count: usize::try_from(asked.count.unwrap_or(1)).unwrap_or(usize::MAX),
            constraints: asked
                .constraints
                .iter()
                .map(|constraint| {
                    DeviceConstraint::of(&constraint.l_target, &constraint.operand, &constraint.r_target)
                })
                .collect(),
            affinities: affinities.collect(),
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The device matches the request, in use or not.
    pub fn accepts(&self, device: &NodeDeviceResource) -> bool {
        self.kind == device.kind
            && self.vendor.as_ref().is_none_or(|vendor| *vendor == device.vendor)
            && self.name.as_ref().is_none_or(|name| *name == device.name)
            && self.constraints.iter().all(|rule| rule.holds(device, None))
    }

    /// The healthy instances of a device that meet the constraints on ids, including those in use.
    pub fn instances<'d>(&self, device: &'d NodeDeviceResource) -> Vec<&'d str> {
        let mut ids: Vec<&str> = healthy(device).collect();
        ids.retain(|id| {
            self.constraints.iter().filter(|rule| rule.is_of_ids()).all(|rule| rule.holds(device, Some(id)))
        });
        ids.sort_unstable();
        ids
    }

    /// A device and its instances for this request.
    pub fn choose<'d>(
        &self,
        devices: &[&'d NodeDeviceResource],
        taken: &BTreeSet<DeviceId>,
    ) -> Result<(&'d NodeDeviceResource, Vec<&'d str>), String> {
        if devices.is_empty() {
            return Err("no devices available".to_string());
        }
        if self.count == 0 {
            return Err("invalid request of zero devices".to_string());
        }
        let mut best: Option<(f64, &NodeDeviceResource, Vec<&str>)> = None;
        for device in devices.iter().filter(|device| self.accepts(device)) {
            let mut free = self.instances(device);
            free.retain(|instance| !taken.contains(&DeviceId::on(device, instance)));
            free.truncate(self.count);
            let met = self.met(device);
            if free.len() == self.count && best.as_ref().is_none_or(|(least, ..)| met > *least) {
                best = Some((met, device, free));
            }
        }
        let (_, device, free) = best.ok_or_else(|| "no devices match request".to_string())?;
        Ok((device, free))
    }

    /// The weights of the affinities that the device meets. They are divided by the same sum for every device.
    fn met(&self, device: &NodeDeviceResource) -> f64 {
        let met = self.affinities.iter().filter(|(rule, _)| rule.holds(device, None));
        met.fold(0.0, |sum, (_, weight)| sum + weight)
    }

    pub fn weights(&self) -> f64 {
        self.affinities.iter().fold(0.0, |sum, (_, weight)| sum + weight.abs())
    }
}

/// A node's devices by vendor, type and name.
pub fn sorted(node: &Node) -> Vec<&NodeDeviceResource> {
    let mut devices: Vec<_> = node.node_resources.iter().flat_map(|resources| &resources.devices).collect();
    devices.sort_by_key(|device| (&device.vendor, &device.kind, &device.name));
    devices
}

fn healthy(device: &NodeDeviceResource) -> impl Iterator<Item = &str> {
    device.instances.iter().filter(|instance| instance.healthy).map(|instance| instance.id.as_str())
}

#[cfg(test)]
mod tests;
