//! Access control: policies, roles and tokens.

use api::{ACLPolicyListStub, ACLTokenListStub};
use model::document::{ACLPolicy, ACLRole, ACLToken, Timestamp};

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// What a management token shows where others have their policies and roles.
const EVERYTHING: &str = "n/a";

/// The list of policies.
pub(crate) fn policies(policies: &[ACLPolicyListStub]) -> String {
    let mut table = Table::new(["Name", "Description"]);
    for policy in policies {
        table.row([policy.name.clone(), policy.description.clone()]);
    }
    table.render()
}

/// The policies that a caller has, and whose tasks have them too.
pub(crate) fn own_policies(policies: &[ACLPolicy]) -> String {
    let mut table = Table::new(["Name", "Job ID", "Group Name", "Task Name"]);
    for policy in policies {
        let tasks = policy.job_acl.clone().unwrap_or_default();
        table.row([policy.name.clone(), tasks.job_id, tasks.group, tasks.task]);
    }
    table.render()
}

/// One policy.
pub(crate) fn policy(style: &OutputStyle, policy: &ACLPolicy) -> String {
    let mut text = fields(&[
        ("Name", policy.name.clone()),
        ("Description", policy.description.clone()),
        ("CreateIndex", cell(policy.create_index)),
        ("ModifyIndex", cell(policy.modify_index)),
    ]);
    if let Some(tasks) = &policy.job_acl {
        let tasks = fields(&[
            ("Namespace", tasks.namespace.clone()),
            ("JobID", tasks.job_id.clone()),
            ("Group", tasks.group.clone()),
            ("Task", tasks.task.clone()),
        ]);
        text.push_str(&style.section("Associated Workload", &tasks));
    }
    text.push_str(&style.section("Rules", &format!("{}\n", policy.rules.trim_end())));
    text
}

/// The list of roles.
pub(crate) fn roles(roles: &[ACLRole]) -> String {
    let mut table = Table::new(["ID", "Name", "Description", "Policies"]);
    for role in roles {
        table.row([role.id.clone(), role.name.clone(), role.description.clone(), policies_of(role)]);
    }
    table.render()
}

/// One role.
pub(crate) fn role(role: &ACLRole) -> String {
    fields(&[
        ("ID", role.id.clone()),
        ("Name", role.name.clone()),
        ("Description", role.description.clone()),
        ("Policies", policies_of(role)),
        ("Create Index", cell(role.create_index)),
        ("Modify Index", cell(role.modify_index)),
    ])
}

/// The list of tokens.
pub(crate) fn tokens(style: &OutputStyle, tokens: &[ACLTokenListStub]) -> String {
    let mut table = Table::new(["Name", "Type", "Global", "Accessor ID", "Expired"]);
    for token in tokens {
        let expires = token.expiration_time.and_then(|at| at.0);
        let has_expired = expires.is_some_and(|expires| expires <= style.now);
        table.row([
            token.name.clone(),
            token.kind.clone(),
            cell(token.global),
            token.accessor_id.clone(),
            cell(has_expired),
        ]);
    }
    table.render()
}

/// One token, with its secret.
pub(crate) fn token(style: &OutputStyle, token: &ACLToken) -> String {
    let time = |at: Timestamp| at.0.map(|at| style.time(at.0)).unwrap_or_default();
    let mut entries = vec![
        ("Accessor ID", token.accessor_id.clone()),
        ("Secret ID", token.secret_id.clone()),
        ("Name", token.name.clone()),
        ("Type", token.kind.clone()),
        ("Global", cell(token.global)),
        ("Create Time", time(token.create_time)),
        ("Expiry Time", token.expiration_time.map(time).unwrap_or_default()),
        ("Create Index", cell(token.create_index)),
        ("Modify Index", cell(token.modify_index)),
    ];
    if token.is_management() {
        entries.push(("Policies", EVERYTHING.to_string()));
        entries.push(("Roles", EVERYTHING.to_string()));
        return fields(&entries);
    }
    entries.push(("Policies", format!("[{}]", token.policies.join(" "))));
    let mut table = Table::new(["ID", "Name"]);
    for role in &token.roles {
        table.row([role.id.clone(), role.name.clone()]);
    }
    let roles = if token.roles.is_empty() { "<none>\n".to_string() } else { table.render() };
    fields(&entries) + &style.section("Roles", &roles)
}

fn policies_of(role: &ACLRole) -> String {
    let names: Vec<&str> = role.policies.iter().map(|link| link.name.as_str()).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use base::{Duration, Time};
    use model::document::{ACLTokenRoleLink, JobACL};

    use super::*;

    #[test]
    fn a_token_shows_what_gives_it_its_rights() {
        let style = OutputStyle::for_tests();
        let client = ACLToken {
            accessor_id: "a1".into(),
            secret_id: "s1".into(),
            kind: ACLToken::CLIENT.into(),
            policies: vec!["dev".to_string(), "ops".to_string()].into(),
            roles: vec![ACLTokenRoleLink { id: "r1".into(), name: "staff".into() }].into(),
            create_time: style.now.into(),
            create_index: 7,
            modify_index: 8,
            ..ACLToken::default()
        };
        assert_eq!(
            token(&style, &client),
            "Accessor ID  = a1\n\
             Secret ID    = s1\n\
             Name         = <none>\n\
             Type         = client\n\
             Global       = false\n\
             Create Time  = 2026-01-02T03:04:05Z\n\
             Expiry Time  = <none>\n\
             Create Index = 7\n\
             Modify Index = 8\n\
             Policies     = [dev ops]\n\
             \nRoles\nID  Name\nr1  staff\n"
        );
        let management = ACLToken { kind: ACLToken::MANAGEMENT.into(), ..ACLToken::default() };
        let text = token(&style, &management);
        assert!(text.ends_with("Policies     = n/a\nRoles        = n/a\n"), "{text}");
    }

    #[test]
    fn a_token_has_expired_from_the_moment_on() {
        let style = OutputStyle::for_tests();
        let until = |expires: Option<Time>| ACLTokenListStub {
            name: "t".into(),
            kind: "client".into(),
            accessor_id: "a1".into(),
            expiration_time: expires.map(Timestamp::from),
            ..ACLTokenListStub::default()
        };
        let later = style.now.plus(Duration::from_secs(1));
        assert_eq!(
            tokens(&style, &[until(None), until(Some(style.now)), until(Some(later))]),
            "Name  Type    Global  Accessor ID  Expired\n\
             t     client  false   a1           false\n\
             t     client  false   a1           true\n\
             t     client  false   a1           false\n"
        );
    }

    #[test]
    fn a_policy_for_tasks_says_for_which() {
        let tasks = JobACL { namespace: "default".into(), job_id: "web".into(), ..JobACL::default() };
        let own = ACLPolicy { name: "p".into(), rules: "node {}\n".into(), ..ACLPolicy::default() };
        let plain = policy(&OutputStyle::for_tests(), &own);
        assert!(plain.ends_with("ModifyIndex = 0\n\nRules\nnode {}\n"), "{plain}");
        let own = ACLPolicy { job_acl: Some(tasks), ..own };
        let text = policy(&OutputStyle::for_tests(), &own);
        let section = "Associated Workload\nNamespace = default\nJobID     = web\nGroup     = <none>\n";
        assert!(text.contains(section), "{text}");
        assert_eq!(
            own_policies(&[own]),
            "Name  Job ID  Group Name  Task Name\np     web     <none>      <none>\n"
        );
    }
}
