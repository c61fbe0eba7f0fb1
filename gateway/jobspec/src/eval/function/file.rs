//! Functions that see the files of whoever runs the program, through [`crate::Files`].

use base::Uuid;

use super::{digest, encode, glob, text};
use crate::diagnostic::{Fault, Span};
use crate::eval::convert::to_text;
use crate::eval::{Evaluator, Value, ValueError};
use crate::hcl::Name;

/// The functions of this module, by name, with the number of their arguments.
pub(super) const NAMES: [(&str, usize); 8] = [
    ("abspath", 1),
    ("basename", 1),
    ("dirname", 1),
    ("file", 1),
    ("filebase64", 1),
    ("fileexists", 1),
    ("fileset", 2),
    ("pathexpand", 1),
];

impl Evaluator<'_> {
    pub(super) fn file(&mut self, name: &Name, arguments: &[Value], span: Span) -> Result<Value, Fault> {
        let failed = |why: ValueError| Fault::new(span, why.within(&name.text));
        let wanted = NAMES.iter().find(|(known, _)| *known == name.text).map_or(1, |(_, count)| *count);
        if arguments.len() != wanted {
            return Err(failed(format!("takes {wanted} arguments, found {}", arguments.len()).into()));
        }
        if !self.files.allowed() {
            return Err(failed("filesystem function disabled".into()));
        }
        let path = to_text(&arguments[0]).map_err(failed)?;
        let result = match name.text.as_str() {
            "abspath" => self.files.absolute(&path).map(Value::Text).map_err(ValueError::new),
            "basename" => text::basename(arguments),
            "dirname" => text::dirname(arguments),
            "fileexists" => Ok(Value::Bool(self.files.read(&path).is_ok())),
            "filebase64" => {
                let content = self.files.read(&path).map_err(ValueError::new);
                content.map(|content| Value::Text(encode::base64(&content)))
            }
            "fileset" => self.file_set(&path, &arguments[1]),
            "pathexpand" => self.expanded(path).map(Value::Text),
            _ => return self.content(&path, span),
        };
        self.made(result.map_err(failed)?, span)
    }

    fn content(&mut self, path: &str, span: Span) -> Result<Value, Fault> {
        let content = self.files.read(path).map_err(|why| Fault::new(span, format!("file: {why}")))?;
        let text = String::from_utf8(content).map_err(|_| {
            let fault = Fault::new(span, format!("file: {path} is not UTF-8 text"));
            fault.hint("filebase64 reads any bytes")
        })?;
        self.made(Value::Text(text), span)
    }

    fn file_set(&self, folder: &str, pattern: &Value) -> Result<Value, ValueError> {
        let patterns = glob::alternatives(&to_text(pattern)?)?;
        let mut paths = self.files.list(folder)?;
        paths.retain(|path| patterns.iter().any(|pattern| glob::fits(pattern, path)));
        paths.sort();
        Ok(Value::List(paths.into_iter().map(Value::Text).collect()))
    }

    /// `~` alone or as the first part of a path is the user's own directory.
    fn expanded(&self, path: String) -> Result<String, ValueError> {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Ok(format!("{}{rest}", self.files.home().ok_or("there is no home directory")?))
            }
            _ => Ok(path),
        }
    }

    pub(super) fn uuid(&self, span: Span) -> Result<Value, Fault> {
        Ok(Value::Text(Uuid::from_random(self.random("uuidv4", span)?).to_string()))
    }

    pub(super) fn bcrypt(&mut self, arguments: &[Value], span: Span) -> Result<Value, Fault> {
        let failed = |why: ValueError| Fault::new(span, why.within("bcrypt"));
        if !(1..=2).contains(&arguments.len()) {
            return Err(failed(format!("takes 1 to 2 arguments, found {}", arguments.len()).into()));
        }
        let password = to_text(&arguments[0]).map_err(failed)?;
        let (cost, weight) = digest::bcrypt_cost(arguments.get(1)).map_err(failed)?;
        self.spend(weight, span)?;
        let salt = self.random("bcrypt", span)?;
        digest::bcrypt(&password, cost, salt).map_err(failed)
    }

    fn random(&self, function: &str, span: Span) -> Result<[u8; 16], Fault> {
        let missing = || Fault::new(span, format!("{function}: no randomness is given here"));
        self.files.random().ok_or_else(missing)
    }
}
