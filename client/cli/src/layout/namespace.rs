//! Namespaces.

use api::Namespace;
use model::document::List;

use crate::output::{OutputStyle, Table, fields};

/// The list of namespaces.
pub(crate) fn table(namespaces: &[Namespace]) -> String {
    let mut table = Table::new(["Name", "Description"]);
    for namespace in namespaces {
        table.row([namespace.name.clone(), namespace.description.clone()]);
    }
    table.render()
}

/// One namespace. Empty sections are left out.
pub(crate) fn block(style: &OutputStyle, namespace: &Namespace) -> String {
    let capabilities = namespace.capabilities.clone().unwrap_or_default();
    let any = |names: &List<String>| match names.is_empty() {
        true => "*".to_string(),
        false => names.join(","),
    };
    let mut text = fields(&[
        ("Name", namespace.name.clone()),
        ("Description", namespace.description.clone()),
        ("Quota", namespace.quota.clone()),
        ("Enabled Drivers", any(&capabilities.enabled_task_drivers)),
        ("Disabled Drivers", capabilities.disabled_task_drivers.join(",")),
        ("Enabled Network Modes", any(&capabilities.enabled_network_modes)),
        ("Disabled Network Modes", capabilities.disabled_network_modes.join(",")),
    ]);
    if !namespace.meta.is_empty() {
        let meta: Vec<_> = namespace.meta.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        text.push_str(&style.section("Metadata", &fields(&meta)));
    }
    if let Some(pools) = &namespace.node_pool_configuration {
        let part = choice(&pools.default, &pools.allowed, &pools.denied);
        text.push_str(&style.section("Node Pool Configuration", &part));
    }
    if let Some(vault) = &namespace.vault_configuration {
        let part = choice(&vault.default, &vault.allowed, &vault.denied);
        text.push_str(&style.section("Vault Configuration", &part));
    }
    if let Some(consul) = &namespace.consul_configuration {
        let part = choice(&consul.default, &consul.allowed, &consul.denied);
        text.push_str(&style.section("Consul Configuration", &part));
    }
    text
}

fn choice(default: &str, allowed: &List<String>, denied: &List<String>) -> String {
    fields(&[("Default", default.to_string()), ("Allowed", allowed.join(",")), ("Denied", denied.join(","))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_sections_are_left_out() {
        let namespace = Namespace { name: "ops".into(), ..Namespace::default() };
        assert_eq!(
            block(&OutputStyle::for_tests(), &namespace),
            "Name                   = ops\n\
             Description            = <none>\n\
             Quota                  = <none>\n\
             Enabled Drivers        = *\n\
             Disabled Drivers       = <none>\n\
             Enabled Network Modes  = *\n\
             Disabled Network Modes = <none>\n"
        );
        let meta = [("team".to_string(), "sre".to_string())].into_iter().collect();
        let text = block(&OutputStyle::for_tests(), &Namespace { meta, ..namespace });
        assert!(text.ends_with("\nMetadata\nteam = sre\n"), "{text}");
    }
}
