//! The job files users start from: they parse, are valid, and ask for nothing that is not executed.

use jobspec::{
    NoFiles, Parsed, Source, Variables, canonicalize, imply_constraints, parse, parse_json, validate,
};

const EXAMPLES: [(&str, &str); 14] = [
    ("hello.nomad.hcl", include_str!("../../../examples/hello.nomad.hcl")),
    ("web.nomad.hcl", include_str!("../../../examples/web.nomad.hcl")),
    ("system.nomad.hcl", include_str!("../../../examples/system.nomad.hcl")),
    ("consul.nomad.hcl", include_str!("../../../examples/consul.nomad.hcl")),
    ("secrets.nomad.hcl", include_str!("../../../examples/secrets.nomad.hcl")),
    ("variables.nomad.hcl", include_str!("../../../examples/variables.nomad.hcl")),
    ("templates.nomad.hcl", include_str!("../../../examples/templates.nomad.hcl")),
    ("artifact.nomad.hcl", include_str!("../../../examples/artifact.nomad.hcl")),
    ("services.nomad.hcl", include_str!("../../../examples/services.nomad.hcl")),
    ("exec.nomad.hcl", include_str!("../../../examples/exec.nomad.hcl")),
    ("podman.nomad.hcl", include_str!("../../../examples/podman.nomad.hcl")),
    ("qemu.nomad.hcl", include_str!("../../../examples/qemu.nomad.hcl")),
    ("vault.nomad.hcl", include_str!("../../../examples/vault.nomad.hcl")),
    ("volume.nomad.hcl", include_str!("../../../examples/volume.nomad.hcl")),
];

fn variables() -> Variables {
    let file = Source::new("variables.vars", include_str!("../../../examples/variables.vars"));
    Variables { files: vec![file], strict: false, ..Variables::default() }
}

fn judge(name: &str, parsed: Parsed) {
    let mut job = parsed.job;
    assert_eq!(texts(&job), [""; 0], "{name}");
    canonicalize(&mut job);
    imply_constraints(&mut job);
    let validation = validate(&job);
    assert_eq!(validation.errors, [], "{name}");
    assert_eq!(validation.warnings, [""; 0], "{name}");
}

#[test]
fn every_example_is_valid_and_wholly_executed() {
    for (name, text) in EXAMPLES {
        let parsed = parse(&Source::new(name, text), &variables(), &NoFiles);
        judge(name, parsed.unwrap_or_else(|wrong| panic!("{wrong}")));
    }
}

#[test]
fn the_json_example_is_valid_and_wholly_executed() {
    let source = Source::new("hello.json", include_str!("../../../examples/hello.json"));
    judge("hello.json", parse_json(&source, &Variables::default(), &NoFiles).unwrap());
}

#[test]
fn the_variables_example_takes_its_values_from_the_file() {
    let (name, text) = EXAMPLES.into_iter().find(|(name, _)| *name == "variables.nomad.hcl").unwrap();
    let job = parse(&Source::new(name, text), &variables(), &NoFiles).unwrap().job;
    assert_eq!(job.task_groups[0].count, Some(2));
    assert_eq!(job.meta["greeted"], "world");
    let args = job.task_groups[0].tasks[0].config["args"][1].as_str().unwrap();
    assert!(args.contains("hello, WORLD from $NOMAD_ALLOC_INDEX"), "{args}");
    assert!(args.contains("team is platform, tier is test"), "{args}");
}

#[test]
fn no_truncated_example_is_more_than_an_error() {
    for (name, text) in EXAMPLES {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let source = Source::new(name, &text[..end]);
            if let Err(wrong) = parse(&source, &variables(), &NoFiles) {
                assert!(!wrong.to_string().is_empty());
            }
        }
    }
}

/// Nodes with all that an example asks for: Consul, for one.
struct Equipped;

impl jobspec::Nodes for Equipped {
    fn any(&self) -> bool {
        true
    }

    fn any_foreign(&self) -> bool {
        false
    }

    fn has_driver(&self, _: &str) -> bool {
        true
    }

    fn has_attribute(&self, _: &str) -> bool {
        true
    }

    fn has_devices(&self) -> bool {
        true
    }
}

fn texts(job: &model::document::Job) -> Vec<String> {
    jobspec::findings(job, &Equipped).iter().map(ToString::to_string).collect()
}
