//! What a job of several regions is in one of them.

use model::document::Job;

/// The job in a region that it names: with the datacenters, the node pool and the metadata of that region, and its count for
/// groups whose own is zero. Nothing, if it does not name the region.
pub fn in_region(job: &Job, name: &str) -> Option<Job> {
    let region = job.multiregion.as_ref()?.regions.iter().find(|region| region.name == name)?;
    let mut own = Job { region: Some(name.to_string()), ..job.clone() };
    if !region.datacenters.is_empty() {
        own.datacenters = region.datacenters.clone();
    }
    if !region.node_pool.is_empty() {
        own.node_pool = Some(region.node_pool.clone());
    }
    own.meta.extend(region.meta.iter().map(|(key, value)| (key.clone(), value.clone())));
    for group in own.task_groups.iter_mut().filter(|group| group.count == Some(0)) {
        group.count = region.count;
    }
    Some(own)
}

#[cfg(test)]
mod tests {
    use model::document::{Multiregion, MultiregionRegion, TaskGroup};

    use super::*;

    #[test]
    fn a_region_has_its_own_places_metadata_and_counts() {
        let meta = |key: &str, value: &str| (key.to_string(), value.to_string());
        let west = MultiregionRegion {
            name: "west".into(),
            count: Some(3),
            datacenters: vec!["west-1".to_string()].into(),
            node_pool: "big".into(),
            meta: [meta("a", "west"), meta("b", "new")].into_iter().collect(),
        };
        let east = MultiregionRegion { name: "east".into(), count: Some(1), ..MultiregionRegion::default() };
        let group = |count: i64| TaskGroup { count: Some(count), ..TaskGroup::default() };
        let job = Job {
            datacenters: vec!["dc1".to_string()].into(),
            node_pool: Some("default".into()),
            meta: [meta("a", "all"), meta("c", "kept")].into_iter().collect(),
            task_groups: vec![group(0), group(2)].into(),
            multiregion: Some(Multiregion { regions: vec![west, east].into(), ..Multiregion::default() }),
            ..Job::default()
        };
        let counts = |job: &Job| job.task_groups.iter().map(|group| group.count).collect::<Vec<_>>();
        let west = in_region(&job, "west").unwrap();
        assert_eq!((west.region.as_deref(), west.node_pool.as_deref()), (Some("west"), Some("big")));
        assert_eq!(*west.datacenters, ["west-1"]);
        assert_eq!(counts(&west), [Some(3), Some(2)]);
        let metadata: Vec<_> = west.meta.iter().map(|(key, value)| meta(key, value)).collect();
        assert_eq!(metadata, [meta("a", "west"), meta("b", "new"), meta("c", "kept")]);
        let east = in_region(&job, "east").unwrap();
        assert_eq!(
            (&east.datacenters, &east.node_pool, &east.meta),
            (&job.datacenters, &job.node_pool, &job.meta)
        );
        assert_eq!(counts(&east), [Some(1), Some(2)]);
        assert_eq!(in_region(&job, "north"), None);
    }
}
