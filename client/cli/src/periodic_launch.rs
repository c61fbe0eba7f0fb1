//! The next launch of a periodic job.

use api::JobPlanRequest;
use base::Time;
use model::document::Job;
use sdk::Client;

use crate::output::OutputStyle;

/// The next launch as the servers compute it; `None` when they do not answer.
pub(crate) async fn next(client: &Client, job: &Job) -> Option<Time> {
    let id = job.id.as_ref()?;
    let request = JobPlanRequest { job: Some(job.clone()), ..JobPlanRequest::default() };
    let plan = client.plan(id, &request).await.ok()?;
    Some(plan.next_periodic_launch.time()).filter(|launch| *launch != Time::ZERO)
}

/// A line about the next launch; empty when the servers do not answer.
pub(crate) async fn describe(client: &Client, style: &OutputStyle, job: &Job) -> String {
    match next(client, job).await {
        Some(launch) => {
            format!("Approximate next launch time: {} ({})\n", style.time(launch.0), style.ago(launch.0))
        }
        None => String::new(),
    }
}
