//! Objects as `-json` and `-t` print them.

use anyhow::Context;
use serde::Serialize;
use template::Template;

use crate::call::{Call, Failure, JSON, Outcome, TEMPLATE};
use crate::flags::Flag;
use crate::output::{json, write_out};

/// How objects are printed, when they are asked for as they are.
pub enum ObjectFormat {
    Json,
    Template(Box<Template>),
}

impl Call {
    /// How objects are asked for, if they are.
    ///
    /// # Errors
    /// When both forms are asked for, or the template makes no sense.
    pub fn object_format(&self) -> Result<Option<ObjectFormat>, Failure> {
        self.object_format_by(&JSON)
    }

    /// As [`Call::objects`], where `-json` means something else.
    ///
    /// # Errors
    /// When both forms are asked for, or the template makes no sense.
    pub fn object_format_by(&self, json: &Flag<bool>) -> Result<Option<ObjectFormat>, Failure> {
        match (self.args.switch(json), self.args.value(&TEMPLATE).filter(|text| !text.is_empty())) {
            (true, Some(_)) => {
                Err(anyhow::anyhow!("Both json and template formatting are not allowed").into())
            }
            (true, None) => Ok(Some(ObjectFormat::Json)),
            (false, Some(text)) => {
                let template = Template::parse(text).context("Error parsing the template")?;
                Ok(Some(ObjectFormat::Template(Box::new(template))))
            }
            (false, None) => Ok(None),
        }
    }
}

impl ObjectFormat {
    /// Prints them; the command is done then.
    ///
    /// # Errors
    /// When the template cannot be applied to them.
    pub fn print(&self, value: &impl Serialize) -> Outcome {
        match self {
            ObjectFormat::Json => write_out(json(value)),
            ObjectFormat::Template(template) => {
                let value = serde_json::to_value(value).context("views hold only what JSON can say")?;
                let text = template.render(&value).context("Error applying the template")?;
                write_out(text + "\n");
            }
        }
        Ok(0)
    }
}
