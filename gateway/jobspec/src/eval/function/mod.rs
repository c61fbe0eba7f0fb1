//! The functions of job files: one table, by name.

mod collection;
mod encode;
mod format;
mod number;
mod text;

use super::convert::to_text;
use super::{Evaluator, Value};
use crate::diagnostic::{Fault, Span};
use crate::hcl::{Expr, Name};

/// What a function is: at least and at most so many arguments, and the work.
struct Function {
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&[Value]) -> Result<Value, String>,
}

/// For functions that take any number of arguments.
const ANY: usize = usize::MAX;

const fn function(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&[Value]) -> Result<Value, String>,
) -> Function {
    Function { name, least, most, run }
}

const FUNCTIONS: &[Function] = &[
    function("abs", 1, 1, number::abs),
    function("base64decode", 1, 1, encode::base64decode),
    function("base64encode", 1, 1, encode::base64encode),
    function("basename", 1, 1, text::basename),
    function("ceil", 1, 1, number::ceil),
    function("chomp", 1, 1, text::chomp),
    function("chunklist", 2, 2, collection::chunklist),
    function("coalesce", 1, ANY, collection::coalesce),
    function("coalescelist", 1, ANY, collection::coalescelist),
    function("compact", 1, 1, collection::compact),
    function("concat", 1, ANY, collection::concat),
    function("contains", 2, 2, collection::contains),
    function("dirname", 1, 1, text::dirname),
    function("distinct", 1, 1, collection::distinct),
    function("element", 2, 2, collection::element),
    function("flatten", 1, 1, collection::flatten),
    function("floor", 1, 1, number::floor),
    function("format", 1, ANY, format::format),
    function("formatlist", 1, ANY, format::formatlist),
    function("indent", 2, 2, text::indent),
    function("index", 2, 2, collection::index),
    function("join", 2, ANY, text::join),
    function("jsondecode", 1, 1, encode::jsondecode),
    function("jsonencode", 1, 1, encode::jsonencode),
    function("keys", 1, 1, collection::keys),
    function("length", 1, 1, collection::length),
    function("log", 2, 2, number::log),
    function("lookup", 2, 3, collection::lookup),
    function("lower", 1, 1, text::lower),
    function("max", 1, ANY, number::max),
    function("merge", 1, ANY, collection::merge),
    function("min", 1, ANY, number::min),
    function("parseint", 2, 2, number::parseint),
    function("pow", 2, 2, number::pow),
    function("range", 1, 3, collection::range),
    function("regex_replace", 3, 3, text::regex_replace),
    function("replace", 3, 3, text::replace),
    function("reverse", 1, 1, text::reverse),
    function("setintersection", 1, ANY, collection::setintersection),
    function("setproduct", 2, ANY, collection::setproduct),
    function("setunion", 1, ANY, collection::setunion),
    function("signum", 1, 1, number::signum),
    function("slice", 3, 3, collection::slice),
    function("sort", 1, 1, collection::sort),
    function("split", 2, 2, text::split),
    function("strlen", 1, 1, text::strlen),
    function("strrev", 1, 1, text::reverse),
    function("substr", 3, 3, text::substr),
    function("timeadd", 2, 2, encode::timeadd),
    function("title", 1, 1, text::title),
    function("tobool", 1, 1, encode::tobool),
    function("tolist", 1, 1, collection::tolist),
    function("tonumber", 1, 1, encode::tonumber),
    function("toset", 1, 1, collection::toset),
    function("tostring", 1, 1, encode::tostring),
    function("trim", 2, 2, text::trim),
    function("trimprefix", 2, 2, text::trimprefix),
    function("trimspace", 1, 1, text::trimspace),
    function("trimsuffix", 2, 2, text::trimsuffix),
    function("upper", 1, 1, text::upper),
    function("urlencode", 1, 1, encode::urlencode),
    function("values", 1, 1, collection::values),
    function("zipmap", 2, 2, collection::zipmap),
];

/// Functions that take expressions or files, handled by the evaluator itself.
const SPECIAL: &[&str] = &["can", "try", "uuidv4", "file", "filebase64", "fileexists"];

/// Functions of the language that this release does not have; naming them tells a gap from a typing slip.
const LATER: &[&str] = &[
    "abspath",
    "bcrypt",
    "cidrhost",
    "cidrnetmask",
    "cidrsubnet",
    "cidrsubnets",
    "convert",
    "csvdecode",
    "fileset",
    "formatdate",
    "md5",
    "pathexpand",
    "rsadecrypt",
    "sha1",
    "sha256",
    "sha512",
    "uuidv5",
    "yamldecode",
    "yamlencode",
];

impl Evaluator<'_> {
    pub(super) fn call(
        &mut self,
        name: &Name,
        arguments: &[Expr],
        expand_last: bool,
        span: Span,
    ) -> Result<Value, Fault> {
        match name.text.as_str() {
            "try" => return self.attempt(arguments, span),
            "can" => return Ok(Value::Bool(self.attempt(arguments, span).is_ok())),
            "uuidv4" if arguments.is_empty() => return self.uuid(span),
            _ => {}
        }
        let arguments = self.arguments(arguments, expand_last)?;
        if SPECIAL.contains(&name.text.as_str()) {
            return self.file(name, &arguments, span);
        }
        let Some(function) = FUNCTIONS.iter().find(|known| known.name == name.text) else {
            return Err(unknown(name));
        };
        check_count(function, arguments.len()).map_err(|why| Fault::new(span, why))?;
        let result =
            (function.run)(&arguments).map_err(|why| Fault::new(span, format!("{}: {why}", name.text)))?;
        self.made(result, span)
    }

    fn arguments(&mut self, arguments: &[Expr], expand_last: bool) -> Result<Vec<Value>, Fault> {
        let mut values = arguments.iter().map(|expr| self.value(expr)).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = values.pop_if(|_| expand_last) {
            match last {
                Value::List(items) => values.extend(items),
                other => {
                    let span = arguments.last().map_or(Span::default(), |last| last.span);
                    let message = format!("`...` spreads a list, found {}", other.describe());
                    return Err(Fault::new(span, message));
                }
            }
        }
        Ok(values)
    }

    /// The first argument that has a value.
    fn attempt(&mut self, arguments: &[Expr], span: Span) -> Result<Value, Fault> {
        let mut failed = Fault::new(span, "needs at least one argument");
        for argument in arguments {
            match self.value(argument) {
                Ok(value) => return Ok(value),
                Err(fault) => failed = fault,
            }
        }
        Err(failed)
    }

    fn uuid(&self, span: Span) -> Result<Value, Fault> {
        let random =
            self.files.random().ok_or_else(|| Fault::new(span, "uuidv4: no randomness is given here"))?;
        Ok(Value::Text(base::Uuid::from_random(random).to_string()))
    }

    fn file(&mut self, name: &Name, arguments: &[Value], span: Span) -> Result<Value, Fault> {
        let [path] = arguments else {
            return Err(Fault::new(span, format!("{} takes one argument: a path", name.text)));
        };
        let path = to_text(path).map_err(|why| Fault::new(span, format!("{}: {why}", name.text)))?;
        let content = self.files.read(&path);
        if name.text == "fileexists" {
            return Ok(Value::Bool(content.is_ok()));
        }
        let content = content.map_err(|why| Fault::new(span, format!("{}: {why}", name.text)))?;
        let text = match name.text.as_str() {
            "filebase64" => encode::base64(&content),
            _ => String::from_utf8(content).map_err(|_| {
                let fault = Fault::new(span, format!("file: {path} is not UTF-8 text"));
                fault.hint("filebase64 reads any bytes")
            })?,
        };
        self.made(Value::Text(text), span)
    }
}

fn unknown(name: &Name) -> Fault {
    if LATER.contains(&name.text.as_str()) {
        return Fault::new(name.span, format!("the function \"{}\" is not available yet", name.text));
    }
    let known = FUNCTIONS.iter().map(|function| function.name).chain(SPECIAL.iter().copied());
    Fault::new(name.span, format!("there is no function \"{}\"", name.text)).suggest(&name.text, known)
}

fn check_count(function: &Function, given: usize) -> Result<(), String> {
    if (function.least..=function.most).contains(&given) {
        return Ok(());
    }
    let wanted = match (function.least, function.most) {
        (least, most) if least == most => least.to_string(),
        (least, ANY) => format!("at least {least}"),
        (least, most) => format!("{least} to {most}"),
    };
    Err(format!("{} takes {wanted} arguments, found {given}", function.name))
}
