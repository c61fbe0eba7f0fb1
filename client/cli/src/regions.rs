//! Jobs that are in several regions: how far each of them is.

use futures_util::future::join_all;
use model::document::Job;
use sdk::{Client, Query};

use crate::layout::deployment::RegionStatus;

/// The newest deployment of a job in each of its regions; nothing for a job of one.
pub(crate) async fn statuses(client: &Client, job: &Job) -> Vec<RegionStatus> {
    let (namespace, id) =
        (job.namespace.as_deref().unwrap_or_default(), job.id.as_deref().unwrap_or_default());
    let names =
        job.multiregion.iter().flat_map(|block| block.regions.iter().map(|region| region.name.clone()));
    let asked = names.map(async |name| {
        let query = Query::new().namespace(namespace).with("region", &name);
        let known = client.job_deployment(id, query).await;
        (name, known.map(|answer| answer.value).map_err(|error| error.to_string()))
    });
    join_all(asked).await
}
