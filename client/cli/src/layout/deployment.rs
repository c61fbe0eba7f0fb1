//! Deployments: the block and how far each group has come.

use model::document::{Deployment, DeploymentState};

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// The list of deployments.
pub(crate) fn table(style: &OutputStyle, deployments: &[Deployment]) -> String {
    let wide = style.wide.then_some(["Namespace", "Desired", "Placed", "Healthy", "Unhealthy"]);
    let head = ["ID", "Job ID", "Job Version", "Status", "Description"];
    let mut table = Table::new(head.into_iter().chain(wide.into_iter().flatten()));
    for deployment in deployments {
        let mut row = vec![
            style.id(&deployment.id),
            deployment.job_id.clone(),
            cell(deployment.job_version),
            deployment.status.clone(),
            deployment.status_description.clone(),
        ];
        if style.wide {
            let sum =
                |of: fn(&DeploymentState) -> i64| cell(deployment.task_groups.values().map(of).sum::<i64>());
            row.push(deployment.namespace.clone());
            row.extend([
                sum(|group| group.desired_total),
                sum(|group| group.placed_allocs),
                sum(|group| group.healthy_allocs),
                sum(|group| group.unhealthy_allocs),
            ]);
        }
        table.row(row);
    }
    table.render()
}

/// How far one region is with a job that is in several: its deployment, or why that is not known.
pub(crate) type RegionStatus = (String, Result<Option<Deployment>, String>);

/// The deployments of a job in all its regions; nothing for a job of one.
fn regions(style: &OutputStyle, regions: &[RegionStatus]) -> String {
    if regions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["Region", "ID", "Status"]);
    for (region, known) in regions {
        let (id, status) = match known {
            Ok(Some(deployment)) => (style.id(&deployment.id), deployment.status.clone()),
            Ok(None) => (String::new(), "none".to_string()),
            Err(why) => (String::new(), why.clone()),
        };
        table.row(vec![region.clone(), id, status]);
    }
    style.section("Multiregion Deployment", &table.render())
}

/// The whole view of one deployment.
pub(crate) fn view(style: &OutputStyle, deployment: &Deployment, of_regions: &[RegionStatus]) -> String {
    let entries = [
        ("ID", style.id(&deployment.id)),
        ("Job ID", deployment.job_id.clone()),
        ("Job Version", cell(deployment.job_version)),
        ("Status", deployment.status.clone()),
        ("Description", deployment.status_description.clone()),
    ];
    fields(&entries) + &regions(style, of_regions) + &style.section("Deployed", &groups(style, deployment))
}

/// A job's latest deployment, as a part of the job's status.
pub(crate) fn latest(style: &OutputStyle, deployment: &Deployment, of_regions: &[RegionStatus]) -> String {
    let entries = [
        ("ID", style.id(&deployment.id)),
        ("Status", deployment.status.clone()),
        ("Description", deployment.status_description.clone()),
    ];
    style.section("Latest Deployment", &fields(&entries))
        + &regions(style, of_regions)
        + &style.section("Deployed", &groups(style, deployment))
}

/// What to do when only a person's word is missing; empty while that is not so.
pub(crate) fn promotion(style: &OutputStyle, deployment: &Deployment) -> String {
    let groups =
        || deployment.task_groups.values().filter(|group| group.desired_canaries > 0 && !group.promoted);
    let healthy = |group: &DeploymentState| group.healthy_allocs >= group.desired_canaries;
    let waits = groups().next().is_some() && groups().all(|group| healthy(group) && !group.auto_promote);
    if !waits || !matches!(deployment.status.as_str(), "running" | "paused") {
        return String::new();
    }
    let (program, id) = (&style.program, style.id(&deployment.id));
    format!(
        "\nThe canaries are healthy, and the deployment waits for their promotion.\n\
         To go on:  {program} deployment promote {id}\n\
         To give up: {program} deployment fail {id}\n"
    )
}

/// One line a group. Columns that no group uses are left out.
fn groups(style: &OutputStyle, deployment: &Deployment) -> String {
    let groups = &deployment.task_groups;
    let any = |uses: fn(&DeploymentState) -> bool| groups.values().any(uses);
    let (revert, canaries) = (any(|group| group.auto_revert), any(|group| group.desired_canaries > 0));
    let deadline = any(|group| group.progress_deadline.0.0 != 0);
    let mut head = vec!["Task Group"];
    head.extend(revert.then_some("Auto Revert"));
    head.extend(canaries.then_some("Promoted"));
    head.push("Desired");
    head.extend(canaries.then_some("Canaries"));
    head.extend(["Placed", "Healthy", "Unhealthy"]);
    head.extend(deadline.then_some("Progress Deadline"));
    let mut table = Table::new(head);
    for (name, group) in groups {
        let promoted = || if group.desired_canaries > 0 { cell(group.promoted) } else { "N/A".to_string() };
        let mut row = vec![name.clone()];
        row.extend(revert.then(|| cell(group.auto_revert)));
        row.extend(canaries.then(promoted));
        row.push(cell(group.desired_total));
        row.extend(canaries.then(|| cell(group.desired_canaries)));
        row.extend([group.placed_allocs, group.healthy_allocs, group.unhealthy_allocs].map(cell));
        row.extend(deadline.then(|| style.time(group.require_progress_by.time().0)));
        table.row(row);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_that_waits_for_promotion_says_how() {
        let style = OutputStyle::for_tests();
        let group = DeploymentState { desired_canaries: 1, healthy_allocs: 1, ..Default::default() };
        let of = |group: DeploymentState| Deployment {
            id: "dddddddd-1".into(),
            status: "running".into(),
            task_groups: [("api".to_string(), group)].into_iter().collect(),
            ..Deployment::default()
        };
        let text = promotion(&style, &of(group.clone()));
        assert!(text.contains("To go on:  sojourn deployment promote dddddddd\n"), "{text}");
        for silent in [
            DeploymentState { promoted: true, ..group.clone() },
            DeploymentState { auto_promote: true, ..group.clone() },
            DeploymentState { healthy_allocs: 0, ..group.clone() },
            DeploymentState { desired_canaries: 0, ..group },
        ] {
            assert_eq!(promotion(&style, &of(silent)), "");
        }
    }

    #[test]
    fn columns_that_no_group_uses_are_left_out() {
        let group =
            DeploymentState { desired_total: 3, placed_allocs: 2, healthy_allocs: 1, ..Default::default() };
        let mut deployment = Deployment {
            id: "dddddddd-1".into(),
            job_id: "web".into(),
            job_version: 2,
            status: "running".into(),
            status_description: "Deployment is running".into(),
            task_groups: [("api".to_string(), group)].into_iter().collect(),
            ..Deployment::default()
        };
        assert_eq!(
            view(&OutputStyle::for_tests(), &deployment, &[]),
            "ID          = dddddddd\n\
             Job ID      = web\n\
             Job Version = 2\n\
             Status      = running\n\
             Description = Deployment is running\n\
             \nDeployed\n\
             Task Group  Desired  Placed  Healthy  Unhealthy\n\
             api         3        2       1        0\n"
        );
        let canary = DeploymentState { desired_canaries: 1, auto_revert: true, ..Default::default() };
        deployment.task_groups.insert("web".into(), canary);
        let text = groups(&OutputStyle::for_tests(), &deployment);
        assert_eq!(
            text,
            "Task Group  Auto Revert  Promoted  Desired  Canaries  Placed  Healthy  Unhealthy\n\
             api         false        N/A       3        0         2       1        0\n\
             web         true         false     0        1         0       0        0\n"
        );
    }

    #[test]
    fn regions_are_listed_with_what_is_known_of_them() {
        let deployment =
            Deployment { id: "dddddddd-1".into(), status: "blocked".into(), ..Default::default() };
        let all = [
            ("eu".to_string(), Ok(Some(deployment))),
            ("us".to_string(), Ok(None)),
            ("mars".to_string(), Err("No path to region".to_string())),
        ];
        assert_eq!(
            regions(&OutputStyle::for_tests(), &all),
            "\nMultiregion Deployment\n\
             Region  ID        Status\n\
             eu      dddddddd  blocked\n\
             us      <none>    none\n\
             mars    <none>    No path to region\n"
        );
        assert_eq!(regions(&OutputStyle::for_tests(), &[]), "");
    }
}
