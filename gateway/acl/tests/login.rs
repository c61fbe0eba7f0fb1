//! From claims to rights.

use std::collections::BTreeMap;

use acl::login::{BindKind, Rule, Selectable, bind, check_selector, check_template, selects, token_name};
use serde_json::{Value, json};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
}

fn found(claims: &Value, values: &[(&str, &str)], lists: &[(&str, &str)]) -> Selectable {
    Selectable::of(claims, &map(values), &map(lists)).expect("the claims fit")
}

fn engineer() -> Selectable {
    let claims = json!({"sub": "alice", "dept": "Eng", "groups": ["dev", "", "ops"], "org": {"level": 3}});
    let values = [("sub", "user"), ("dept", "team"), ("/org/level", "level")];
    found(&claims, &values, &[("groups", "groups")])
}

#[test]
fn claims_are_found_by_name_and_by_pointer() {
    let claims = json!({
        "sub": "alice", "n": 7, "ok": true, "all": ["a", 1], "org": {"a/b": ["x", "y"], "id": "o1"},
        "nothing": null, "one": "single", "mixed": ["a", "", 3, false],
    });
    let values = [
        ("sub", "sub"),
        ("n", "n"),
        ("ok", "ok"),
        ("all", "all"),
        ("/org/id", "org"),
        ("/org/a~1b/1", "second"),
        ("nothing", "nothing"),
        ("/not/there", "absent"),
    ];
    let found = found(&claims, &values, &[("mixed", "mixed"), ("one", "one"), ("/org/a~1b", "deep")]);
    let value =
        [("all", "[\"a\",1]"), ("n", "7"), ("ok", "true"), ("org", "o1"), ("second", "y"), ("sub", "alice")];
    assert_eq!(found.value, map(&value));
    assert_eq!(found.list["mixed"], ["a", "3", "false"]);
    assert_eq!(
        (&found.list["one"][..], &found.list["deep"][..]),
        (&["single".into()][..], &["x".into(), "y".into()][..])
    );
}

#[test]
fn what_a_claim_cannot_be_is_an_error() {
    let claims = json!({"org": {"id": 1}, "lists": [["a"]]});
    let object = Selectable::of(&claims, &map(&[("org", "org")]), &map(&[])).unwrap_err();
    assert_eq!(object.to_string(), "claim \"org\": expected text, a number, a boolean or a list");
    let nested = Selectable::of(&claims, &map(&[]), &map(&[("lists", "x")])).unwrap_err();
    assert_eq!(nested.to_string(), "claim \"lists\": expected a list of texts, numbers or booleans");
}

#[test]
fn a_selector_that_cannot_be_evaluated_matches_nobody() {
    let claims = engineer();
    let holds = [
        "",
        "  ",
        "value.user == alice",
        "\"dev\" in list.groups and value.team == Eng",
        "value.level == \"3\"",
        "value.user matches \"^al\"",
        "not (\"admins\" in list.groups)",
        "\"admins\" not in list.groups",
    ];
    for selector in holds {
        assert!(selects(selector, &claims), "{selector}");
    }
    let fails = [
        "value.user == bob",
        "value.absent == alice",
        "\"admins\" in list.groups",
        "\"dev\" in list.absent",
        "user == alice",
        "value.user ==",
        "other.user == alice",
    ];
    for selector in fails {
        assert!(!selects(selector, &claims), "{selector}");
    }
    assert!(check_selector("value.user == alice").is_ok());
    assert!(check_selector("value.user ==").is_err());
}

#[test]
fn rules_give_what_exists_and_the_first_that_gives_everything_ends_it() {
    let claims = engineer();
    let rule = |id: u8, selector: &'static str, kind, name: &'static str| Rule { id, selector, kind, name };
    let exists = |_: BindKind, name: &str| name != "absent";
    let rules = [
        rule(1, "", BindKind::Policy, "${value.team}-readers"),
        rule(2, "value.user == bob", BindKind::Policy, "bobs"),
        rule(3, "", BindKind::Role, "absent"),
        rule(4, "\"ops\" in list.groups", BindKind::Role, "on-call-${ value.user }"),
        rule(5, "", BindKind::Policy, "${value.missing}"),
        rule(6, "", BindKind::Policy, "not a name"),
        rule(7, "", BindKind::Policy, "Plain"),
    ];
    let bindings = bind(&claims, rules.clone(), exists);
    assert!(!bindings.management);
    assert!(bindings.policies.iter().eq(["Plain", "eng-readers"]), "only claims are lower-cased");
    assert!(bindings.roles.iter().eq(["on-call-alice"]));
    assert_eq!(bindings.rules, [1, 4, 7]);

    let management = [rules[0].clone(), rule(9, "value.user == alice", BindKind::Management, "")];
    let bindings = bind(&claims, management, exists);
    assert!(bindings.management && bindings.policies.is_empty());
    assert_eq!(bindings.rules, [9]);
    assert!(bind(&claims, [rules[1].clone()], exists).rules.is_empty());
}

#[test]
fn a_token_is_named_after_who_gets_it() {
    let claims = engineer();
    let name = |format: &str| token_name(format, "JWT", "corp", &claims);
    assert_eq!(name("${auth_method_type}-${auth_method_name}").as_deref(), Some("JWT-corp"));
    assert_eq!(name("who: ${value.user}/${value.team}").as_deref(), Some("who: alice/Eng"));
    assert_eq!((name("${value.missing}"), name("${user}"), name("${value.user")), (None, None, None));
    let check = |template: &str| check_template(template, &["auth_method_type"]);
    assert!(check("plain").is_ok() && check("${auth_method_type} ${value.x}").is_ok());
    for wrong in ["${auth_method_name}", "${value.}", "${x", "${}"] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
