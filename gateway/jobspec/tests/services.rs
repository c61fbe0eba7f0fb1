//! What becomes of services: what nodes of this release do, and what they refuse or ignore by name.

use crate::judge::{parsed, with_group, with_task};

fn texts(body: &str) -> Vec<String> {
    jobspec::findings(&parsed(body), &jobspec::NoNodes).iter().map(ToString::to_string).collect()
}

#[test]
fn services_of_nomads_own_with_checks_are_done() {
    let service = "service {
        name = \"web\"
        provider = \"nomad\"
        port = \"8080\"
        tags = [\"v1\"]
        canary_tags = [\"canary\"]
        check {
            type = \"http\"
            path = \"/\"
            interval = \"5s\"
            timeout = \"2s\"
            check_restart {
                limit = 3
            }
        }
    }";
    assert_eq!(texts(&with_group(service)), [""; 0]);
    assert_eq!(texts(&with_task(service)), [""; 0]);
}

#[test]
fn what_the_provider_has_not_is_named() {
    let check = |extra: &str| {
        with_group(&format!(
            "service {{\n provider = \"nomad\"\n port = \"80\"\n check {{\n type = \"tcp\"\n interval = \"5s\"\n \
             timeout = \"2s\"\n{extra}\n }}\n}}"
        ))
    };
    let service = |extra: &str| with_task(&format!("service {{\n provider = \"nomad\"\n{extra}\n}}"));
    for (body, expected) in [
        (
            check("success_before_passing = 2"),
            "group \"g\": check success_before_passing: the task would fail: ",
        ),
        (
            check("address_mode = \"alloc\""),
            "group \"g\": check address_mode \"alloc\": the task would fail: ",
        ),
        (
            service("address_mode = \"alloc\""),
            "group \"g\", task \"t\": service address_mode \"alloc\": the task would ",
        ),
        (
            service("address_mode = \"driver\""),
            "group \"g\", task \"t\": service address_mode \"driver\": ignored, ",
        ),
        (
            service("enable_tag_override = true"),
            "group \"g\", task \"t\": service enable_tag_override: ignored, ",
        ),
        (service("meta {\n a = \"b\"\n}"), "group \"g\", task \"t\": service meta: ignored, "),
    ] {
        let found = texts(&body);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    }
    let consul = texts(&with_group("service {\n port = \"80\"\n}"));
    assert!(consul.len() == 1 && consul[0].contains("service: never placed"), "{consul:?}");
}

#[test]
fn proxies_of_consul_are_refused_whatever_they_are_for() {
    for connect in [
        "sidecar_service {}",
        "native = true",
        "gateway {\n mesh {}\n }",
        "sidecar_service {\n proxy {\n transparent_proxy {}\n }\n }",
    ] {
        let body = with_group(&format!(
            "service {{\n name = \"w\"\n port = \"80\"\n connect {{\n {connect}\n }}\n}}"
        ));
        let found = texts(&body);
        let refused = "group \"g\": service connect: the task would fail: nodes of this release run no proxies of Consul";
        assert!(found.iter().any(|text| text == refused), "{connect}: {found:?}");
    }
}

#[test]
fn what_needs_consul_or_vault_says_so_whether_the_provider_is_written_or_not() {
    for provider in ["", "provider = \"consul\"\n"] {
        let found = texts(&with_group(&format!("service {{\n name = \"w\"\n {provider}}}")));
        let expected = "none has Consul, the provider of a service that names no other";
        assert!(found.iter().any(|text| text.ends_with(expected)), "{found:?}");
        assert_eq!(found.len(), 1);
    }
    let found = texts(&with_task("vault {\n cluster = \"west\"\n policies = [\"p\"]\n}"));
    assert!(found[0].ends_with("none has Vault \"west\""), "{found:?}");
    assert!(
        found[1].contains("vault policies: the task would fail: a token has the policies of its role"),
        "{found:?}"
    );
}
