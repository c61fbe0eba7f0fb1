//! Variables as files and arguments describe them.

use std::io::Read;

use anyhow::Context;
use api::Variable;
use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::{Map, input};

use crate::call::Failure;

/// How a file describes a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Hcl,
    Json,
}

impl Format {
    /// Its name says so, else `given` does.
    ///
    /// # Errors
    /// For any other word than `hcl` and `json`.
    pub(super) fn of(path: &str, given: Option<&str>) -> Result<Format, Failure> {
        match given {
            Some("hcl") => Ok(Format::Hcl),
            Some("json") => Ok(Format::Json),
            Some(other) => Err(anyhow::anyhow!("invalid -in \"{other}\": expected hcl or json").into()),
            None if path.ends_with(".hcl") => Ok(Format::Hcl),
            None => Ok(Format::Json),
        }
    }
}

/// Everything that standard input has.
///
/// # Errors
/// If it is no text.
pub(super) fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}

/// # Errors
/// What is wrong with it, and where.
pub(super) fn read(name: &str, text: &str, format: Format) -> Result<Variable, Failure> {
    match format {
        Format::Json => {
            let read = input::from_slice(text.as_bytes());
            read.map_err(|wrong| anyhow::anyhow!("{name} does not describe a variable: {wrong}").into())
        }
        Format::Hcl => {
            let read = from_hcl(&Source::new(name, text.to_string()));
            read.map_err(|wrong| anyhow::anyhow!("{name} does not describe a variable\n\n{wrong}").into())
        }
    }
}

fn from_hcl(source: &Source) -> Result<Variable, Diagnostics> {
    let mut top = Section::parse(source)?;
    let variable = Variable {
        namespace: top.take("namespace")?.unwrap_or_default(),
        path: top.take("path")?.unwrap_or_default(),
        create_index: top.take("create_index")?.unwrap_or_default(),
        modify_index: top.take("modify_index")?.unwrap_or_default(),
        create_time: top.take("create_time")?.unwrap_or_default(),
        modify_time: top.take("modify_time")?.unwrap_or_default(),
        items: top.take::<Map<String, String>>("items")?.unwrap_or_default(),
        lock: None,
    };
    top.finish()?;
    Ok(variable)
}

/// `key=value`, `key=@file` and `key=-` for standard input. `\@` and `\-` begin a value that is meant as it is.
///
/// # Errors
/// For anything else, and for a file that is no text.
pub(super) fn item(argument: &str) -> Result<(String, String), Failure> {
    let (key, value) = argument
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| anyhow::anyhow!("\"{argument}\": expected KEY=VALUE"))?;
    let value = match value {
        "-" => standard_input()?,
        _ if value.starts_with('@') => {
            let file = &value[1..];
            std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?
        }
        _ if value.starts_with("\\@") || value == "\\-" => value[1..].to_string(),
        _ => value.to_string(),
    };
    Ok((key.to_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_arguments_describe_variables() {
        let hcl = "path = \"a/b\"\nmodify_index = 7\nitems {\n  user = \"me\"\n  \"a key\" = \"x\"\n}\n";
        let variable = read("a.hcl", hcl, Format::Hcl).unwrap();
        assert_eq!((variable.path.as_str(), variable.modify_index, variable.items.len()), ("a/b", 7, 2));
        let json = r#"{"Path": "a/b", "Items": {"user": "me"}}"#;
        assert_eq!(read("a.json", json, Format::Json).unwrap().items["user"], "me");
        assert!(read("a.hcl", "color = \"red\"", Format::Hcl).is_err());
        assert!(read("a.json", "[]", Format::Json).is_err());
        let item = |text: &str| item(text).ok();
        assert_eq!(item("a=b=c"), Some(("a".to_string(), "b=c".to_string())));
        assert_eq!(item("a=\\@b"), Some(("a".to_string(), "@b".to_string())));
        assert_eq!(item("a="), Some(("a".to_string(), String::new())));
        assert_eq!((item("a"), item("=b"), item("a=@/no/such/file")), (None, None, None));
        assert_eq!(Format::of("x.nv.hcl", None).unwrap(), Format::Hcl);
        assert_eq!(Format::of("x.nv.hcl", Some("json")).unwrap(), Format::Json);
        assert!(Format::of("x", Some("yaml")).is_err());
    }
}
