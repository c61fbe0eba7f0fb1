use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::write_new;
use crate::output::write_out;

const SHORT: Flag<bool> = Flag::switch("short", "Without explanations.");
const CONNECT: Flag<bool> =
    Flag::switch("connect", "A job in a service mesh. Needs Consul, which is not supported.");
const TEMPLATE: Flag<String> =
    Flag::value("template", "PATH", "A template in a variable. Not supported yet.");
const LIST_TEMPLATES: Flag<bool> = Flag::switch("list-templates", "List these templates. Not supported yet.");

pub(super) static COMMAND: Command = Command {
    name: "job init",
    aliases: &["init"],
    arguments: "[<filename>]",
    summary: "Write an example of a job file.",
    details: "The default file name is example.nomad.hcl. Existing files are not overwritten.",
    flags: &[&[&SHORT, &CONNECT, &TEMPLATE, &LIST_TEMPLATES]],
    run: Run::Process(run),
};

const NAME: &str = "example.nomad.hcl";
const EXAMPLE: &str = include_str!("../../examples/job.nomad.hcl");
const EXAMPLE_SHORT: &str = include_str!("../../examples/job-short.nomad.hcl");

fn run(call: Call) -> Outcome {
    let path = call.optional_argument()?.unwrap_or(NAME);
    if call.args.switch(&CONNECT) {
        return Err(anyhow::anyhow!("-connect needs Consul, which this cluster does not support").into());
    }
    if call.args.switch(&LIST_TEMPLATES) || call.args.value(&TEMPLATE).is_some() {
        return Err(anyhow::anyhow!(
            "job templates are not read from variables by this release: leave -template and -list-templates out"
        )
        .into());
    }
    write_new(path, if call.args.switch(&SHORT) { EXAMPLE_SHORT } else { EXAMPLE })?;
    write_out(format!("Example job file written to {path}\n"));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use jobspec::{Source, Variables};

    use super::*;

    struct NoFiles;

    impl jobspec::Files for NoFiles {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Err(format!("{path}: no files here"))
        }

        fn random(&self) -> Option<[u8; 16]> {
            None
        }
    }

    #[test]
    fn the_examples_are_valid_jobs() {
        for text in [EXAMPLE, EXAMPLE_SHORT] {
            let source = Source::new(NAME, text.to_string());
            let mut job = jobspec::parse(&source, &Variables::default(), &NoFiles).unwrap().job;
            jobspec::canonicalize(&mut job);
            let errors = jobspec::validate(&job).errors;
            assert!(errors.is_empty(), "{errors:?}");
        }
    }
}
