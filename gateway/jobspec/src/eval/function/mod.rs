//! The functions of job files: one table, by name.

mod address;
mod collection;
mod date;
mod digest;
mod encode;
mod file;
mod format;
mod glob;
mod number;
mod rsa;
mod table;
mod text;
mod yaml;

use super::{Evaluator, Value, ValueError};
use crate::diagnostic::{Fault, Span};
use crate::hcl::{Expr, Name};
use crate::variables::Type;

/// What a function is: at least and at most so many arguments, and the work.
struct Function {
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&[Value]) -> Result<Value, ValueError>,
}

/// For functions that take any number of arguments.
const ANY: usize = usize::MAX;

const fn function(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&[Value]) -> Result<Value, ValueError>,
) -> Function {
    Function { name, least, most, run }
}

const FUNCTIONS: &[Function] = &[
    function("abs", 1, 1, number::abs),
    function("base64decode", 1, 1, encode::base64decode),
    function("base64encode", 1, 1, encode::base64encode),
    function("ceil", 1, 1, number::ceil),
    function("chomp", 1, 1, text::chomp),
    function("chunklist", 2, 2, collection::chunklist),
    function("cidrhost", 2, 2, address::cidrhost),
    function("cidrnetmask", 1, 1, address::cidrnetmask),
    function("cidrsubnet", 3, 3, address::cidrsubnet),
    function("cidrsubnets", 1, ANY, address::cidrsubnets),
    function("coalesce", 1, ANY, collection::coalesce),
    function("coalescelist", 1, ANY, collection::coalescelist),
    function("compact", 1, 1, collection::compact),
    function("concat", 1, ANY, collection::concat),
    function("contains", 2, 2, collection::contains),
    function("csvdecode", 1, 1, table::csvdecode),
    function("distinct", 1, 1, collection::distinct),
    function("element", 2, 2, collection::element),
    function("flatten", 1, 1, collection::flatten),
    function("floor", 1, 1, number::floor),
    function("format", 1, ANY, format::format),
    function("formatdate", 2, 2, date::formatdate),
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
    function("md5", 1, 1, digest::md5),
    function("merge", 1, ANY, collection::merge),
    function("min", 1, ANY, number::min),
    function("parseint", 2, 2, number::parseint),
    function("pow", 2, 2, number::pow),
    function("range", 1, 3, collection::range),
    function("regex_replace", 3, 3, text::regex_replace),
    function("replace", 3, 3, text::replace),
    function("reverse", 1, 1, text::reverse),
    function("rsadecrypt", 2, 2, rsa::rsadecrypt),
    function("setintersection", 1, ANY, collection::setintersection),
    function("setproduct", 2, ANY, collection::setproduct),
    function("setunion", 1, ANY, collection::setunion),
    function("sha1", 1, 1, digest::sha1),
    function("sha256", 1, 1, digest::sha256),
    function("sha512", 1, 1, digest::sha512),
    function("signum", 1, 1, number::signum),
    function("slice", 3, 3, collection::slice),
    function("sort", 1, 1, collection::sort),
    function("split", 2, 2, text::split),
    function("strlen", 1, 1, text::strlen),
    function("strrev", 1, 1, text::reverse),
    function("substr", 3, 3, text::substr),
    function("timeadd", 2, 2, date::timeadd),
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
    function("uuidv5", 2, 2, digest::uuidv5),
    function("values", 1, 1, collection::values),
    function("yamldecode", 1, 1, yaml::yamldecode),
    function("yamlencode", 1, 1, yaml::yamlencode),
    function("zipmap", 2, 2, collection::zipmap),
];

/// Functions that take expressions, types or randomness, handled by the evaluator itself.
const SPECIAL: &[&str] = &["bcrypt", "can", "convert", "try", "uuidv4"];

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
            "convert" => return self.convert(arguments, span),
            "uuidv4" if arguments.is_empty() => return self.uuid(span),
            _ => {}
        }
        let arguments = self.arguments(arguments, expand_last)?;
        if name.text == "bcrypt" {
            return self.bcrypt(&arguments, span);
        }
        if file::NAMES.iter().any(|(known, _)| *known == name.text) {
            return self.file(name, &arguments, span);
        }
        let Some(function) = FUNCTIONS.iter().find(|known| known.name == name.text) else {
            return Err(unknown(name));
        };
        check_count(function, arguments.len()).map_err(|why| Fault::new(span, why))?;
        let result = (function.run)(&arguments).map_err(|why| Fault::new(span, why.within(&name.text)))?;
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

    /// The second argument is a type, not a value.
    fn convert(&mut self, arguments: &[Expr], span: Span) -> Result<Value, Fault> {
        let [value, kind] = arguments else {
            return Err(Fault::new(span, "convert takes a value and a type"));
        };
        let kind = Type::read(kind)?;
        let converted = kind.convert(self.value(value)?);
        converted.map_err(|why| Fault::new(span, why.within("convert")))
    }
}

fn unknown(name: &Name) -> Fault {
    let files = file::NAMES.iter().map(|(known, _)| *known);
    let known = FUNCTIONS.iter().map(|function| function.name).chain(SPECIAL.iter().copied()).chain(files);
    Fault::new(name.span, format!("there is no function \"{}\"", name.text)).suggest(&name.text, known)
}

fn check_count(function: &Function, given: usize) -> Result<(), ValueError> {
    if (function.least..=function.most).contains(&given) {
        return Ok(());
    }
    let wanted = match (function.least, function.most) {
        (least, most) if least == most => least.to_string(),
        (least, ANY) => format!("at least {least}"),
        (least, most) => format!("{least} to {most}"),
    };
    Err(format!("{} takes {wanted} arguments, found {given}", function.name).into())
}
