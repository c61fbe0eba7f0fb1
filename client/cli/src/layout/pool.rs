//! Node pools.

use model::document::NodePool;

use crate::output::{OutputStyle, Table, fields};

pub(crate) fn table(pools: &[NodePool]) -> String {
    let mut table = Table::new(["Name", "Description"]);
    for pool in pools {
        table.row([pool.name.clone(), pool.description.clone()]);
    }
    table.render()
}

pub(crate) fn block(style: &OutputStyle, pool: &NodePool) -> String {
    let mut text = fields(&[
        ("Name", pool.name.clone()),
        ("Description", pool.description.clone()),
        ("Node Identity TTL", pool.node_identity_ttl.0.to_string()),
    ]);
    let meta: Vec<(&str, String)> =
        pool.meta.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let meta = if meta.is_empty() { "No metadata\n".to_string() } else { fields(&meta) };
    text.push_str(&style.section("Metadata", &meta));
    let rules = match &pool.scheduler_configuration {
        None => "As in the cluster\n".to_string(),
        Some(rules) => {
            let same = || "as in the cluster".to_string();
            let algorithm = Some(rules.scheduler_algorithm.clone()).filter(|word| !word.is_empty());
            let oversubscription = rules.memory_oversubscription_enabled.map(|on| on.to_string());
            fields(&[
                ("Scheduler Algorithm", algorithm.unwrap_or_else(same)),
                ("Memory Oversubscription Enabled", oversubscription.unwrap_or_else(same)),
            ])
        }
    };
    text.push_str(&style.section("Scheduler Configuration", &rules));
    text
}
