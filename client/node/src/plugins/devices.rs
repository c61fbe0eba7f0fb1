//! Devices of this node that plugins know: what there are, what a task needs to use them, and what they say of themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use model::document::{
    AllocatedDeviceResource, Attribute, List, Map, NodeDevice, NodeDeviceLocality, NodeDeviceResource,
};
use plugin::identify::ANSWER_TIMEOUT;
use plugin::proto::base::Empty;
use plugin::proto::device as proto;
use plugin::proto::structs::{self, AttributeValue};
use plugin::{CallError, Caller};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::host::Hosted;

/// How long a plugin may take for its first fingerprint.
const FIRST_FINGERPRINT: Duration = Duration::from_secs(10);

/// How often a plugin is asked to give statistics.
const STATS_EVERY: Duration = Duration::from_secs(1);

/// Between two attempts to follow a plugin that runs and does not answer; doubled after each, up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30 * 60));

/// How long a reservation waits for a plugin that has died.
const RESERVE_PATIENCE: Duration = Duration::from_secs(30);

/// One plugin with devices.
#[derive(Debug)]
pub struct DevicePlugin {
    name: String,
    hosted: Arc<Hosted>,
    groups: watch::Receiver<Option<Vec<NodeDeviceResource>>>,
    stats: Arc<Mutex<Vec<api::DeviceGroupStats>>>,
    _followers: [AbortOnDropHandle<()>; 2],
}

impl DevicePlugin {
    /// Follows what a plugin says, from now on.
    pub fn open(hosted: Arc<Hosted>) -> DevicePlugin {
        let ((sender, groups), stats) = (watch::channel(None), Arc::default());
        let followers = [
            AbortOnDropHandle::new(tokio::spawn(follow(Arc::clone(&hosted), sender))),
            AbortOnDropHandle::new(tokio::spawn(measure(Arc::clone(&hosted), Arc::clone(&stats)))),
        ];
        let name = hosted.identity.name.clone();
        DevicePlugin { name, hosted, groups, stats, _followers: followers }
    }

    fn has(&self, wanted: &AllocatedDeviceResource) -> bool {
        let known = self.groups.borrow();
        let same = |group: &NodeDeviceResource| {
            (&group.vendor, &group.kind, &group.name) == (&wanted.vendor, &wanted.kind, &wanted.name)
        };
        known.iter().flatten().any(same)
    }

    async fn reserve(&self, wanted: &AllocatedDeviceResource) -> Result<proto::Reservation, String> {
        let fails = |error: CallError| format!("plugin {}: {error}", self.name);
        let caller = self.hosted.caller(RESERVE_PATIENCE).await.map_err(fails)?;
        let request = proto::ReserveRequest { device_ids: wanted.device_ids.to_vec() };
        let answer: proto::ReserveResponse =
            caller.call(proto::SERVICE, "Reserve", request, ANSWER_TIMEOUT).await.map_err(fails)?;
        Ok(answer.reservation.unwrap_or_default())
    }
}

/// All devices of the node.
#[derive(Debug, Default)]
pub struct Devices(pub Vec<DevicePlugin>);

impl Devices {
    /// What is known now, waited for as long as a plugin has said nothing yet; one that takes too long comes later.
    pub async fn first(&self) -> List<NodeDeviceResource> {
        for plugin in &self.0 {
            let mut groups = plugin.groups.clone();
            let said = tokio::time::timeout(FIRST_FINGERPRINT, groups.wait_for(Option::is_some)).await;
            if said.is_err() {
                tracing::warn!(plugin = plugin.name, "a plugin has not said yet which devices there are");
            }
        }
        self.known()
    }

    pub fn known(&self) -> List<NodeDeviceResource> {
        self.0.iter().flat_map(|plugin| plugin.groups.borrow().clone().unwrap_or_default()).collect()
    }

    /// Returns when a plugin has said something since `seen` was made; never without plugins.
    pub async fn changed(&self, seen: &mut Seen) {
        let changes = seen.0.iter_mut().map(|groups| Box::pin(groups.changed()));
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() || select_all(changes).await.0.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn seen(&self) -> Seen {
        Seen(self.0.iter().map(|plugin| plugin.groups.clone()).collect())
    }

    /// What a task needs to use the devices that it was given.
    ///
    /// # Errors
    /// When no plugin has them any more, or theirs does not give them.
    pub async fn reserve(&self, wanted: &AllocatedDeviceResource) -> Result<proto::Reservation, String> {
        let plugin = self.0.iter().find(|plugin| plugin.has(wanted)).ok_or_else(|| {
            format!("no plugin of this node has {}/{}/{}", wanted.vendor, wanted.kind, wanted.name)
        })?;
        plugin.reserve(wanted).await
    }

    /// What the plugins have measured last.
    pub fn stats(&self) -> List<api::DeviceGroupStats> {
        let of = |plugin: &DevicePlugin| plugin.stats.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.0.iter().flat_map(of).collect()
    }

    /// The same of some devices.
    pub fn stats_of(&self, devices: &[AllocatedDeviceResource]) -> List<api::DeviceGroupStats> {
        if devices.is_empty() {
            return List::default();
        }
        let all = self.stats();
        let of = |own: &AllocatedDeviceResource| {
            let group = all.iter().find(|group| {
                (&group.vendor, &group.kind, &group.name) == (&own.vendor, &own.kind, &own.name)
            })?;
            let mut group = group.clone();
            group.instance_stats.0.retain(|id, _| own.device_ids.contains(id));
            Some(group)
        };
        devices.iter().filter_map(of).collect()
    }
}

/// What somebody has seen of what the plugins have said.
#[derive(Debug)]
pub struct Seen(Vec<watch::Receiver<Option<Vec<NodeDeviceResource>>>>);

/// Passes on which devices there are; none of them is healthy while the plugin does not say so.
async fn follow(hosted: Arc<Hosted>, groups: watch::Sender<Option<Vec<NodeDeviceResource>>>) {
    let (groups, name) = (Arc::new(groups), hosted.identity.name.clone());
    let again = |caller| report(caller, name.clone(), Arc::clone(&groups)).boxed();
    hosted.repeat(RETRY, again).await;
}

/// Passes on fingerprints until they end; true if there were any.
async fn report(
    caller: Caller,
    plugin: String,
    groups: Arc<watch::Sender<Option<Vec<NodeDeviceResource>>>>,
) -> bool {
    let mut reported = false;
    let following = async {
        let mut stream = caller.stream(proto::SERVICE, "Fingerprint", Empty {}).await?;
        while let Some(found) = stream.message().await? {
            reported = true;
            let next = Some(read(found));
            groups.send_if_modified(|known| {
                let is_new = *known != next;
                *known = next;
                is_new
            });
        }
        Ok::<(), CallError>(())
    };
    let why = match following.await {
        Ok(()) => "it reports no more".to_string(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(plugin, why, "the devices of a plugin are not known to be healthy");
    groups.send_modify(|known| {
        let all = known.iter_mut().flatten().flat_map(|group| group.instances.0.iter_mut());
        all.for_each(|device| {
            device.healthy = false;
            device.health_description = format!("the plugin does not report: {why}");
        });
    });
    reported
}

async fn measure(hosted: Arc<Hosted>, stats: Arc<Mutex<Vec<api::DeviceGroupStats>>>) {
    hosted.repeat(RETRY, |caller| measure_once(caller, Arc::clone(&stats)).boxed()).await;
}

/// The same for statistics.
async fn measure_once(caller: Caller, stats: Arc<Mutex<Vec<api::DeviceGroupStats>>>) -> bool {
    let mut reported = false;
    let request = proto::StatsRequest { collection_interval: Some(STATS_EVERY.into()) };
    if let Ok(mut stream) = caller.stream::<_, proto::Stats>(proto::SERVICE, "Stats", request).await {
        while let Ok(Some(found)) = stream.message().await {
            reported = true;
            *stats.lock().unwrap_or_else(PoisonError::into_inner) =
                found.groups.into_iter().map(group_stats).collect();
        }
    }
    stats.lock().unwrap_or_else(PoisonError::into_inner).clear();
    reported
}

fn read(found: proto::Fingerprint) -> Vec<NodeDeviceResource> {
    let device = |device: proto::DetectedDevice| NodeDevice {
        id: device.id,
        healthy: device.healthy,
        health_description: device.health_description,
        locality: device.locality.map(|place| NodeDeviceLocality { pci_bus_id: place.pci_bus_id }),
    };
    let group = |group: proto::DeviceGroup| NodeDeviceResource {
        vendor: group.vendor,
        kind: group.kind,
        name: group.name,
        instances: group.devices.into_iter().map(device).collect(),
        attributes: Map(group.attributes.into_iter().map(|(key, value)| (key, attribute(value))).collect()),
    };
    found.groups.into_iter().map(group).collect()
}

fn attribute(given: structs::Attribute) -> Attribute {
    let unit = given.unit;
    match given.value {
        None => Attribute { unit, ..Attribute::default() },
        Some(AttributeValue::Float(float)) => Attribute { float: Some(float), unit, ..Attribute::default() },
        Some(AttributeValue::Int(int)) => Attribute { int: Some(int), unit, ..Attribute::default() },
        Some(AttributeValue::Text(text)) => Attribute { string: Some(text), unit, ..Attribute::default() },
        Some(AttributeValue::Bool(flag)) => Attribute { bool: Some(flag), unit, ..Attribute::default() },
    }
}

fn group_stats(group: proto::GroupStats) -> api::DeviceGroupStats {
    let device = |stats: proto::DeviceStats| api::DeviceStats {
        summary: stats.summary.map(value),
        stats: stats.stats.map(object),
        timestamp: base::Time(stats.timestamp.unwrap_or_default().unix_nanos()).into(),
    };
    let instances = group.instances.into_iter().map(|(id, stats)| (id, device(stats)));
    api::DeviceGroupStats {
        vendor: group.vendor,
        kind: group.kind,
        name: group.name,
        instance_stats: Map(instances.collect()),
    }
}

fn object(given: structs::StatObject) -> api::StatObject {
    api::StatObject {
        nested: Map(given.nested.into_iter().map(|(key, inner)| (key, object(inner))).collect()),
        attributes: Map(given.attributes.into_iter().map(|(key, one)| (key, value(one))).collect()),
    }
}

fn value(given: structs::StatValue) -> api::StatValue {
    api::StatValue {
        float_numerator_val: given.float_numerator.map(|number| number.value),
        float_denominator_val: given.float_denominator.map(|number| number.value),
        int_numerator_val: given.int_numerator.map(|number| number.value),
        int_denominator_val: given.int_denominator.map(|number| number.value),
        string_val: given.string.map(|text| text.value),
        bool_val: given.bool.map(|flag| flag.value),
        unit: given.unit,
        desc: given.desc,
    }
}
