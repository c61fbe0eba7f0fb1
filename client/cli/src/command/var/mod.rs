//! Variables.

pub(super) mod forget;
mod get;
mod history;
mod init;
mod list;
mod lock;
mod purge;
mod put;
mod spec;

use api::Variable;
use template::Template;

use anyhow::Context;

use crate::call::{Command, Failure, Outcome};
use crate::layout;
use crate::output::{OutputStyle, json, write_out};

pub(super) const COMMANDS: &[&Command] = &[
    &forget::COMMAND,
    &get::COMMAND,
    &history::HISTORY,
    &history::REVERT,
    &init::COMMAND,
    &list::COMMAND,
    &lock::COMMAND,
    &purge::COMMAND,
    &put::COMMAND,
];

/// How `-out` prints a variable.
enum Out {
    None,
    Table,
    Hcl,
    Json,
    Template(Box<Template>),
}

impl Out {
    /// # Errors
    /// For a format that there is not, and for a template that is missing, unasked for or invalid.
    fn of(given: &str, template: Option<&str>) -> Result<Out, Failure> {
        let out = match (given, template.filter(|text| !text.is_empty())) {
            ("go-template", None) => {
                return Err(anyhow::anyhow!("-out=go-template: expected a template in -template").into());
            }
            ("go-template", Some(text)) => {
                let template = Template::parse(text).context("Error parsing the template")?;
                Out::Template(Box::new(template))
            }
            (_, Some(_)) => return Err(anyhow::anyhow!("-template is for -out=go-template alone").into()),
            ("none", None) => Out::None,
            ("table", None) => Out::Table,
            ("hcl", None) => Out::Hcl,
            ("json", None) => Out::Json,
            (other, None) => {
                let known = "table, hcl, json, go-template or none";
                return Err(anyhow::anyhow!("invalid -out \"{other}\": expected {known}").into());
            }
        };
        Ok(out)
    }

    fn print(&self, style: &OutputStyle, variable: &Variable) -> Outcome {
        match self {
            Out::None => {}
            Out::Table => write_out(layout::variable::block(style, variable)),
            Out::Hcl => write_out(layout::variable::hcl(variable)),
            Out::Json => write_out(json(variable)),
            Out::Template(template) => {
                let value = serde_json::to_value(variable).context("API objects serialize to JSON")?;
                write_out(template.render(&value).context("Error applying the template")? + "\n");
            }
        }
        Ok(0)
    }
}

/// What a check of the index found, in words for who asked for it.
fn conflict(given: u64, now: &Variable) -> Failure {
    let found = match now.modify_index {
        0 => "there is no such variable".to_string(),
        index => format!("the index of the variable at the servers is {index}"),
    };
    anyhow::anyhow!(
        "Check-and-Set conflict\n\nThe check-index {given} does not hold: {found}. Read the variable again, \
         or leave the check out."
    )
    .into()
}

/// Somebody else has it.
fn locked(path: &str) -> Failure {
    anyhow::anyhow!("The variable \"{path}\" is locked: only the holder of its lock can change it").into()
}
