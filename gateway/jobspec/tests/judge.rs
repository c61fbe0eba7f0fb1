//! Validation, implied constraints and the list of what is not executed.

use jobspec::{NoFiles, Source, Variables, canonicalize, imply_constraints, parse, validate};
use model::document::Job;

pub fn parsed(body: &str) -> Job {
    let source = Source::new("j.hcl", format!("job \"j\" {{\n{body}\n}}\n"));
    parse(&source, &Variables::default(), &NoFiles).unwrap_or_else(|wrong| panic!("{wrong}")).job
}

pub fn with_group(body: &str) -> String {
    format!("group \"g\" {{\n task \"t\" {{\n driver = \"raw_exec\"\n }}\n{body}\n}}")
}

pub fn with_task(body: &str) -> String {
    format!("group \"g\" {{\n task \"t\" {{\n driver = \"raw_exec\"\n{body}\n }}\n}}")
}

/// `path: message` of every error of a canonical job.
pub fn errors(body: &str) -> Vec<String> {
    let mut job = parsed(body);
    canonicalize(&mut job);
    validate(&job).errors.into_iter().map(|wrong| format!("{}: {}", wrong.path, wrong.message)).collect()
}

#[test]
fn a_plain_job_of_each_type_is_valid() {
    for kind in ["service", "batch", "system", "sysbatch"] {
        assert_eq!(errors(&format!("type = \"{kind}\"\n{}", with_group(""))), [""; 0], "{kind}");
    }
}

#[test]
fn errors_name_the_path_the_group_and_the_task() {
    let body = with_task("resources {\n memory = 5\n}");
    let expected = "Job.TaskGroups[0].Tasks[0].Resources.MemoryMB: group \"g\", task \"t\", resources: 5 MB of memory; at least 10 are needed";
    assert_eq!(errors(&body), [expected]);
}

#[test]
fn rules_of_the_job_are_kept() {
    let cases = [
        (format!("id = \"a b\"\n{}", with_group("")), "must not contain spaces"),
        (format!("type = \"cron\"\n{}", with_group("")), "there is no job type \"cron\""),
        (format!("priority = 101\n{}", with_group("")), "priority 101 is not between 1 and 100"),
        (String::new(), "the job has no groups"),
        (format!("{0}\n{0}", with_group("")), "a second group of this name"),
        (
            format!("type = \"batch\"\nupdate {{\n max_parallel = 1\n}}\n{}", with_group("")),
            "does not allow update block",
        ),
        (
            format!("periodic {{\n cron = \"@daily\"\n}}\n{}", with_group("")),
            "only batch and sysbatch jobs can be periodic",
        ),
        (
            format!("type = \"batch\"\nperiodic {{\n cron = \"daily please\"\n}}\n{}", with_group("")),
            "is not a cron expression",
        ),
        (
            format!("type = \"batch\"\nparameterized {{\n payload = \"maybe\"\n}}\n{}", with_group("")),
            "is not one of optional, required, forbidden",
        ),
        (
            format!(
                "type = \"batch\"\nparameterized {{\n meta_required = [\"a\"]\n meta_optional = [\"a\"]\n}}\n{}",
                with_group("")
            ),
            "both required and optional",
        ),
        (format!("multiregion {{}}\n{}", with_group("")), "a job of several regions names at least one"),
        (
            format!(
                "type = \"system\"\naffinity {{\n attribute = \"a\"\n value = \"b\"\n}}\n{}",
                with_group("")
            ),
            "system jobs may not have affinities",
        ),
    ];
    for (body, message) in cases {
        let errors = errors(&body);
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{body}: {errors:?}");
    }
}

#[test]
fn what_is_too_large_is_not_compiled_to_find_out_what_else_is_wrong() {
    let pattern = format!("constraint {{\n operator = \"regexp\"\n value = \"({}\"\n}}", "x".repeat(5_000));
    let errors = errors(&pattern);
    assert!(errors.len() == 1 && errors[0].contains("5001 bytes: expected at most 4096"), "{errors:?}");
}

#[test]
fn rules_of_groups_are_kept() {
    let cases = [
        ("count = -1", "count -1 is negative"),
        ("task \"t\" {\n driver = \"x\"\n}", "a second task of this name"),
        ("max_run_duration = \"1h\"", "only batch and sysbatch jobs have max_run_duration"),
        ("restart {\n attempts = 0\n mode = \"delay\"\n}", "never restarts and never fails"),
        ("restart {\n attempts = 10\n interval = \"10s\"\n delay = \"5s\"\n}", "do not fit in 10s"),
        ("restart {\n interval = \"1s\"\n attempts = 0\n}", "shorter than 5s"),
        ("reschedule {\n attempts = 5\n unlimited = true\n}", "unlimited contradicts 5 attempts"),
        (
            "reschedule {\n attempts = 5\n interval = \"1m\"\n delay = \"30s\"\n unlimited = false\n}",
            "do not fit in the interval",
        ),
        ("reschedule {\n delay = \"1s\"\n}", "a delay shorter than 5s"),
        ("reschedule {\n delay_function = \"linear\"\n}", "is not one of constant, exponential, fibonacci"),
        ("update {\n auto_promote = true\n}", "auto_promote needs canaries"),
        ("update {\n progress_deadline = \"1m\"\n}", "longer than healthy_deadline"),
        ("update {\n min_healthy_time = \"6m\"\n}", "longer than min_healthy_time"),
        ("disconnect {\n lost_after = \"1m\"\n stop_on_client_after = \"1m\"\n}", "exclude each other"),
        ("max_client_disconnect = \"1m\"\ndisconnect {\n}", "say the same; keep the block"),
        ("ephemeral_disk {\n size = 5\n}", "5 MB of disk"),
        ("volume \"v\" {\n type = \"disk\"\n source = \"s\"\n}", "there is no volume type \"disk\""),
        (
            "network {\n port \"a\" {\n static = 80\n }\n port \"b\" {\n static = 80\n }\n}",
            "the static port 80 is asked for twice",
        ),
        ("network {\n port \"a\" {}\n port \"a\" {}\n}", "a second port with the label \"a\""),
        ("network {\n mode = \"overlay\"\n}", "there is no network mode \"overlay\""),
        ("network {\n port \"a\" {\n static = 70000\n }\n}", "is not between 1 and 65535"),
        ("network {}\nnetwork {}", "at most one network block"),
        ("scaling {\n min = 5\n max = 2\n}", "does not fit the maximum 2"),
        (
            "constraint {\n attribute = \"a\"\n operator = \"~\"\n value = \"b\"\n}",
            "there is no operator \"~\"",
        ),
        ("constraint {\n attribute = \"a\"\n regexp = \"(\"\n}", "is not a regular expression"),
        ("constraint {\n attribute = \"a\"\n version = \"latest\"\n}", "is not a version constraint"),
        ("constraint {\n value = \"b\"\n}", "needs an attribute"),
        ("affinity {\n attribute = \"a\"\n value = \"b\"\n weight = 0\n}", "weight 0 is not between"),
        (
            "spread {\n attribute = \"a\"\n target \"x\" {\n percent = 60\n }\n target \"y\" {\n percent = 60\n }\n}",
            "add up to 120 percent",
        ),
        ("service {\n name = \"a_b\"\n}", "not \"a_b\""),
        (
            "service {\n provider = \"nomad\"\n check {\n type = \"grpc\"\n interval = \"1s\"\n timeout = \"1s\"\n }\n}",
            "http and tcp checks only",
        ),
        (
            "service {\n check {\n type = \"tcp\"\n interval = \"1s\"\n timeout = \"1s\"\n }\n}",
            "neither the check nor its service has a port",
        ),
        (
            "service {\n name = \"a\"\n}\nservice {\n name = \"b\"\n provider = \"nomad\"\n}",
            "have one provider",
        ),
        (
            "service {\n name = \"a\"\n}\nservice {\n name = \"a\"\n}",
            "a second service of this name and port",
        ),
        (
            "service {\n port = \"1\"\n check {\n type = \"http\"\n path = \"http://x/y\"\n interval = \"1s\"\n timeout = \"1s\"\n }\n}",
            "has no scheme and no host",
        ),
    ];
    for (body, message) in cases {
        let errors = errors(&with_group(body));
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{body}: {errors:?}");
    }
}

/// Two checks that differ in their paths only; neither has a name.
const SAME_CHECKS: &str = r#"service {
  name = "a"
  port = "1"
  check {
    type = "http"
    path = "/a"
    interval = "1s"
    timeout = "1s"
  }
  check {
    type = "http"
    path = "/b"
    interval = "1s"
    timeout = "1s"
  }
}"#;

#[test]
fn checks_of_a_group_may_share_a_name() {
    assert_eq!(errors(&with_group(SAME_CHECKS)), [""; 0]);
}

#[test]
fn a_group_and_its_tasks_may_have_the_same_service() {
    let service = "service {\n name = \"a\"\n port = \"1\"\n}";
    let task = format!("task \"u\" {{\n driver = \"raw_exec\"\n{service}\n}}");
    let body = format!("{service}\n{task}\n{}", task.replace("\"u\"", "\"v\""));
    assert_eq!(errors(&with_group(&body)), [""; 0]);
}

#[test]
fn rules_of_tasks_are_kept() {
    let cases = [
        ("kill_timeout = \"20m\"", "longer than the progress_deadline"),
        ("resources {\n cpu = 100\n cores = 2\n}", "give cpu or cores, not both"),
        ("resources {\n memory_max = 100\n}", "memory_max 100 is less than memory 300"),
        ("resources {\n disk = 100\n}", "as size in ephemeral_disk"),
        ("lifecycle {\n hook = \"before\"\n}", "prestart, poststart or poststop"),
        ("lifecycle {\n hook = \"prestart\"\n}", "at least one main task is needed"),
        ("logs {\n max_files = 0\n}", "at least 1"),
        ("logs {\n max_files = 100\n}", "do not fit in the 300 MB"),
        ("constraint {\n distinct_hosts = true\n}", "belongs into the group or the job"),
        (
            "artifact {\n source = \"x\"\n destination = \"../../etc\"\n}",
            "outside of the allocation directory",
        ),
        ("template {\n data = \"x\"\n}", "the template has no destination"),
        ("template {\n destination = \"a\"\n}", "neither source nor data"),
        (
            "template {\n data = \"x\"\n destination = \"a\"\n change_mode = \"script\"\n}",
            "needs change_script",
        ),
        (
            "template {\n data = \"x\"\n destination = \"a\"\n env = true\n change_mode = \"signal\"\n}",
            "cannot be renewed by a signal",
        ),
        ("volume_mount {\n volume = \"v\"\n destination = \"/d\"\n}", "the group has no volume \"v\""),
        ("identity {\n name = \"a b\"\n}", "an identity name has"),
        ("identity {\n ttl = \"1h\"\n}", "the default identity has no ttl"),
        ("secret \"s\" {\n provider = \"vault\"\n path = \"p\"\n}", "needs a vault block"),
        ("csi_plugin {\n id = \"i\"\n type = \"x\"\n}", "node, controller or monolith"),
        (SAME_CHECKS, "a second check of this name"),
        (
            "service {\n port = \"1\"\n}\nservice {\n port = \"1\"\n}",
            "a second service of this name and port",
        ),
    ];
    for (body, message) in cases {
        let errors = errors(&with_task(body));
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{body}: {errors:?}");
    }
    let errors = errors(
        "group \"g\" {\n task \"alloc\" {\n driver = \"x\"\n }\n task \"a/b\" {\n driver = \"x\"\n }\n}",
    );
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[test]
fn old_arguments_are_warned_about() {
    let job = parsed(&with_group("count = 0\nnetwork {\n mbits = 10\n}"));
    let warnings = validate(&job).warnings;
    assert_eq!(
        warnings,
        [
            "group \"g\": count is 0, so nothing is started",
            "group \"g\", network: mbits is obsolete and has no effect"
        ]
    );
}

#[test]
fn what_a_group_uses_becomes_constraints_once() {
    let mut job = parsed(
        r#"group "g" {
  network { mode = "bridge" }
  service { provider = "nomad"
    port = "80"
    check { type = "tcp"
      interval = "5s"
      timeout = "5s" }
  }
  constraint { attribute = "${attr.vault.version}"
    operator = "is_set" }
  task "t" {
    driver = "raw_exec"
    kill_signal = "SIGUSR1"
    vault {}
    template { data = "x"
      destination = "a"
      change_mode = "signal"
      change_signal = "sighup" }
  }
}"#,
    );
    canonicalize(&mut job);
    imply_constraints(&mut job);
    let before = job.clone();
    imply_constraints(&mut job);
    assert_eq!(job, before);
    let shown: Vec<String> = job.task_groups[0]
        .constraints
        .iter()
        .map(|constraint| format!("{} {} {}", constraint.l_target, constraint.operand, constraint.r_target))
        .collect();
    assert_eq!(
        shown,
        [
            "${attr.vault.version} is_set ",
            "${attr.os.signals} set_contains SIGHUP,SIGUSR1",
            "${attr.nomad.version} semver >= 1.4.0",
            "${attr.plugins.cni.version.bridge} semver >= 0.4.0",
            "${attr.plugins.cni.version.firewall} semver >= 0.4.0",
            "${attr.plugins.cni.version.host-local} semver >= 0.4.0",
            "${attr.plugins.cni.version.loopback} semver >= 0.4.0",
            "${attr.plugins.cni.version.portmap} semver >= 0.4.0",
        ]
    );
}

#[test]
fn services_of_consul_constrain_the_group_and_their_task() {
    let mut job = parsed(&with_task("service {\n port = \"80\"\n}"));
    imply_constraints(&mut job);
    let group = &job.task_groups[0];
    assert_eq!(group.constraints[0].l_target, "${attr.consul.version}");
    assert_eq!(group.tasks[0].constraints, group.constraints);
}

#[test]
fn what_is_not_executed_is_named_where_it_stands() {
    let job = parsed(
        r#"periodic { cron = "@daily" }
group "web" {
  network { mode = "bridge" 
    port "http" {} }
  ephemeral_disk { size = 500 
    sticky = true }
  task "t" {
    driver = "docker"
    user   = "root"
    config { image = "x" }
    artifact { source = "file:///etc/passwd" }
    resources { cores = 2 
      memory_max = 900 }
  }
}"#,
    );
    assert_eq!(
        texts(&job),
        [
            "group \"web\": network mode \"bridge\": never placed on the nodes you have: none has a bridge",
            "group \"web\", task \"t\": artifact: the task would fail: files of the node itself are no artifacts",
        ]
    );
}

#[test]
fn what_is_executed_is_not_warned_about() {
    let mut job = parsed(
        r#"type = "service"
constraint { distinct_hosts = true }
group "g" {
  count = 2
  shutdown_delay = "1s"
  restart { attempts = 1 }
  network { port "http" { static = 8080 } }
  task "init" {
    driver = "raw_exec"
    lifecycle { hook = "prestart" }
  }
  task "t" {
    driver = "raw_exec"
    leader = true
    kill_signal = "SIGTERM"
    kill_timeout = "3s"
    env { A = "b" }
    meta { c = "d" }
    logs { max_files = 2 }
    resources { cpu = 10 
      memory = 10 }
  }
}"#,
    );
    assert_eq!(texts(&job), [""; 0]);
    canonicalize(&mut job);
    assert_eq!(texts(&job), [""; 0], "nor what servers filled in, in a job that is read and given back");
}

#[test]
fn absurd_amounts_are_rejected_before_they_are_summed_up() {
    let most = i64::from(i32::MAX);
    for (field, written) in [("CPU", "cpu"), ("MemoryMB", "memory"), ("Cores", "cores")] {
        let wrong = errors(&with_task(&format!("resources {{\n {written} = {}\n}}", most + 1)));
        let expected = format!("Resources.{field}");
        assert!(wrong[0].contains(&expected) && wrong[0].contains("more than the"), "{wrong:?}");
    }
    let disk = errors(&with_group(&format!("ephemeral_disk {{\n size = {}\n}}", most + 1)));
    assert!(disk[0].contains("EphemeralDisk.SizeMB"), "{disk:?}");
    assert_eq!(errors(&with_task(&format!("resources {{\n memory = {most}\n}}"))), [""; 0]);
}

#[test]
fn names_that_leave_the_allocation_directory_are_refused() {
    for name in [".", ".."] {
        let wrong = errors(&format!("group \"g\" {{\n task \"{name}\" {{\n driver = \"raw_exec\"\n }}\n}}"));
        assert!(wrong[0].contains("must not be . or .."), "{wrong:?}");
    }
}

#[test]
fn a_port_without_a_positive_number_is_dynamic() {
    let body = with_group(
        "network {\n port \"a\" {\n static = -1\n }\n port \"b\" {\n static = -1\n }\n port \"c\" {\n static = 0\n }\n}",
    );
    assert_eq!(errors(&body), [""; 0]);
    let network = parsed(&body).task_groups.remove(0).networks.remove(0);
    let values: Vec<i64> = network.dynamic_ports.iter().map(|port| port.value).collect();
    assert_eq!((values, network.reserved_ports.len()), (vec![-1, -1, 0], 0));
}

#[test]
fn port_labels_of_json_jobs_are_judged_too() {
    let mut job = parsed(&with_group("network {\n port \"http\" {}\n}"));
    job.task_groups[0].networks[0].dynamic_ports[0].label = "a b".to_string();
    let wrong = validate(&job).errors;
    assert!(wrong.iter().any(|wrong| wrong.message.contains("is not a port label")), "{wrong:?}");
}

#[test]
fn distinct_hosts_takes_other_values_for_true_and_warns() {
    let body = with_group("constraint {\n operator = \"distinct_hosts\"\n value = \"3\"\n}");
    assert_eq!(errors(&body), [""; 0]);
    let warnings = validate(&parsed(&body)).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("\"3\" is taken to be true")), "{warnings:?}");
}

#[test]
fn more_rules_of_tasks_and_schedules_are_kept() {
    for (body, message) in [
        ("identity {\n env = true\n}\nidentity {\n name = \"default\"\n}", "a second default identity"),
        ("resources {\n numa {\n devices = [\"gpu\"]\n }\n}", "asks for no device \"gpu\""),
    ] {
        let errors = errors(&with_task(body));
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{body}: {errors:?}");
    }
    for (body, message) in [
        ("cron = \"61 * * * *\"", "\"61 * * * *\" is not a cron expression"),
        ("cron = \"@daily\"\n time_zone = \"Mars/Olympus\"", "there is no time zone \"Mars/Olympus\""),
    ] {
        let errors = errors(
            &with_group("").replace("group", &format!("type = \"batch\"\nperiodic {{\n {body}\n}}\ngroup")),
        );
        assert!(errors.iter().any(|wrong| wrong.contains(message)), "{body}: {errors:?}");
    }
}

#[test]
fn the_local_time_zone_is_utc_with_a_warning() {
    let schedule = "periodic {\n cron = \"@daily\"\n time_zone = \"Local\"\n}\n";
    let body = format!("type = \"batch\"\n{schedule}{}", with_group(""));
    assert_eq!(errors(&body), [""; 0]);
    let warnings = validate(&parsed(&body)).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("\"Local\" is UTC")), "{warnings:?}");
}

#[test]
fn promotion_is_automatic_everywhere_or_nowhere() {
    let group = |name: &str, update: &str| {
        format!(
            "group \"{name}\" {{\n update {{\n canary = 1\n {update}\n }}\n task \"t\" {{\n driver = \"raw_exec\"\n }}\n}}\n"
        )
    };
    let warnings = |body: &str| {
        let mut job = parsed(body);
        jobspec::canonicalize(&mut job);
        jobspec::validate(&job).warnings
    };
    let mixed = format!("{}{}", group("a", "auto_promote = true"), group("b", ""));
    assert!(
        warnings(&mixed).iter().any(|warning| warning.contains("nothing is promoted")),
        "{:?}",
        warnings(&mixed)
    );
    let alike = format!("{}{}", group("a", "auto_promote = true"), group("b", "auto_promote = true"));
    assert_eq!(warnings(&alike), [""; 0]);
}

#[test]
fn a_volume_for_one_allocation_is_not_given_to_several() {
    let with = |count: u8, mode: &str, more: &str| {
        let modes = format!("access_mode = \"{mode}\"\n attachment_mode = \"file-system\"");
        let volume = format!("volume \"v\" {{\n type = \"csi\"\n source = \"s\"\n {modes}\n {more}\n}}");
        errors(&with_group(&format!("count = {count}\n{volume}")))
    };
    for mode in ["single-node-reader-only", "single-node-writer", "multi-node-single-writer"] {
        assert_eq!(with(1, mode, ""), [""; 0], "{mode}");
        assert_eq!(with(2, mode, "per_alloc = true"), [""; 0], "{mode}");
        let wrong = with(2, mode, "");
        let message = format!("access mode \"{mode}\" is for one allocation");
        assert!(wrong.len() == 1 && wrong[0].contains(&message), "{wrong:?}");
    }
    for mode in ["multi-node-reader-only", "multi-node-multi-writer"] {
        assert_eq!(with(2, mode, ""), [""; 0], "{mode}");
    }
    assert_eq!(with(2, "multi-node-single-writer", "read_only = true"), [""; 0]);
}

#[test]
fn checksums_of_artifacts_have_a_kind_and_its_number_of_digits() {
    let with = |checksum: &str| {
        let options = format!("options {{\n checksum = \"{checksum}\"\n }}");
        errors(&with_task(&format!("artifact {{\n source = \"http://x/y\"\n {options}\n}}")))
    };
    for (kind, digits) in [("md5", 32), ("sha1", 40), ("sha256", 64), ("sha512", 128)] {
        assert_eq!(with(&format!("{kind}:{}", "aF".repeat(digits / 2))), [""; 0], "{kind}");
        for wrong in ["a".repeat(digits - 1), "g".repeat(digits), String::new()] {
            let errors = with(&format!("{kind}:{wrong}"));
            assert!(errors.len() == 1 && errors[0].contains("is not a checksum"), "{errors:?}");
        }
    }
    for good in ["file:https://x/SHA256SUMS", "${meta.checksum}", "md5:${meta.digest}"] {
        assert_eq!(with(good), [""; 0], "{good}");
    }
    for wrong in ["", "crc32:00000000", &"a".repeat(32)] {
        assert!(with(wrong)[0].contains("GetterOptions[checksum]"), "{wrong}");
    }
}

#[test]
fn jobs_of_every_node_have_no_reschedule_block() {
    let block = |says: &str| format!("reschedule {{\n{says}\n}}");
    for kind in ["system", "sysbatch"] {
        for says in
            ["", "attempts = 0\n unlimited = false", "attempts = 1\n interval = \"1h\"\n delay = \"5s\""]
        {
            let message = format!("{kind} jobs do not allow a reschedule block");
            for body in [with_group(&block(says)), format!("{}\n{}", block(says), with_group(""))] {
                let wrong = errors(&format!("type = \"{kind}\"\n{body}"));
                assert!(wrong.iter().any(|wrong| wrong.contains(&message)), "{body}: {wrong:?}");
            }
        }
    }
    assert_eq!(errors(&with_group(&block("attempts = 0\n unlimited = false"))), [""; 0]);
}

/// Nodes with a driver, of this program or another.
struct Some {
    driver: &'static str,
    foreign: bool,
}

impl jobspec::Nodes for Some {
    fn any(&self) -> bool {
        true
    }

    fn any_foreign(&self) -> bool {
        self.foreign
    }

    fn has_driver(&self, name: &str) -> bool {
        name == self.driver
    }

    fn has_attribute(&self, _: &str) -> bool {
        false
    }

    fn has_devices(&self) -> bool {
        false
    }
}

#[test]
fn what_becomes_of_a_job_depends_on_the_nodes_there_are() {
    let seen = |driver: &str, task: &str, nodes: &dyn jobspec::Nodes| {
        let job = parsed(&format!("group \"g\" {{\n task \"t\" {{\n driver = \"{driver}\"\n{task}\n }}\n}}"));
        let found = jobspec::findings(&job, nodes).into_iter();
        found.map(|finding| format!("{:?} {}", finding.effect, finding.why)).collect::<Vec<_>>()
    };
    let (own, docker) =
        (Some { driver: "raw_exec", foreign: false }, Some { driver: "docker", foreign: true });
    assert_eq!(seen("raw_exec", "", &own), [""; 0]);
    assert_eq!(seen("docker", "", &docker), [""; 0]);
    assert_eq!(seen("docker", "", &own), ["NeverPlaced none has a container engine that answers"]);
    assert_eq!(
        seen("raw_exec", "", &docker),
        ["NeverPlaced none has it enabled: see plugin \"raw_exec\" in the agent's configuration"]
    );
    assert_eq!(seen("rawexec", "", &own), ["Fails no driver has that name: did you mean \"raw_exec\"?"]);
    assert_eq!(seen("exec2", "", &own), ["NeverPlaced none has it"], "it is a driver of others");
    let artifact = "artifact {\n source = \"file::/etc/passwd\"\n}";
    let fetched = "artifact {\n source = \"https://example.org/x\"\n}";
    assert_eq!(seen("raw_exec", fetched, &own), [""; 0]);
    assert_eq!(seen("raw_exec", artifact, &own), ["Fails files of the node itself are no artifacts"]);
    assert_eq!(seen("docker", artifact, &docker), ["MayFail files of the node itself are no artifacts"]);
}

fn texts(job: &model::document::Job) -> Vec<String> {
    jobspec::findings(job, &jobspec::NoNodes).iter().map(ToString::to_string).collect()
}
