//! Objects as `-json` and `-t` print them.

use anyhow::Context;
use serde::Serialize;
use template::Template;

use crate::call::{Call, Failure, JSON, OUTPUT, Outcome, TEMPLATE};
use crate::flags::Flag;
use crate::output::{json, write_out};

/// How `-json` and `-t` print objects.
pub(crate) enum ObjectFormat {
    Json,
    Template(Box<Template>),
}

impl Call {
    /// The format that `-json` or `-t` ask for, if any.
    ///
    /// # Errors
    /// When both flags are given, or `-o` with one of them or with a format that there is not, or the template is invalid.
    pub(crate) fn object_format(&self) -> Result<Option<ObjectFormat>, Failure> {
        let is_table = self.args.parsed(&OUTPUT)?.is_some();
        if is_table && (self.args.switch(&JSON) || self.args.value(&TEMPLATE).is_some()) {
            return Err(self.usage("-o is about tables: it cannot be used with -json or -t"));
        }
        self.object_format_by(&JSON)
    }

    /// As [`Call::object_format`], where `-json` means something else.
    ///
    /// # Errors
    /// When both flags are given, or the template is invalid.
    pub(crate) fn object_format_by(&self, json: &Flag<bool>) -> Result<Option<ObjectFormat>, Failure> {
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
    /// Prints a value in this format.
    ///
    /// # Errors
    /// When the template cannot be applied to them.
    pub(crate) fn print(&self, value: &impl Serialize) -> Outcome {
        match self {
            ObjectFormat::Json => write_out(json(value)),
            ObjectFormat::Template(template) => {
                let value = serde_json::to_value(value).context("API objects serialize to JSON")?;
                let text = template.render(&value).context("Error applying the template")?;
                write_out(text + "\n");
            }
        }
        Ok(0)
    }
}
