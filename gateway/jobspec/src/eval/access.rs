use std::collections::BTreeMap;

use super::convert::{to_int, to_text};
use super::{Evaluator, Value, ValueError};
use crate::diagnostic::{Fault, Span};
use crate::hcl::{Expr, ExprKind, Name, Splat, Step};

impl Evaluator<'_> {
    pub(super) fn access(&mut self, base: &Expr, steps: &[Step], span: Span) -> Result<Value, Fault> {
        if let ExprKind::Root(name) = &base.kind {
            return self.root(name, steps, span);
        }
        let value = self.value(base)?;
        self.follow(value, steps)
    }

    /// A reference: a bound name, `var.x`, `local.x`, or text that the node will resolve.
    pub(super) fn root(&mut self, name: &str, steps: &[Step], span: Span) -> Result<Value, Fault> {
        if let Some((_, value)) = self.names.iter().rev().find(|(bound, _)| bound == name) {
            let value = value.clone();
            let value = self.made(value, span)?;
            return self.follow(value, steps);
        }
        match name {
            "var" => self.named(steps, span, "variable"),
            "local" => self.named(steps, span, "local"),
            _ => {
                let written = &self.source.text[span.start..span.end];
                self.made(Value::Text(format!("${{{written}}}")), span)
            }
        }
    }

    fn named(&mut self, steps: &[Step], span: Span, kind: &str) -> Result<Value, Fault> {
        let Some((Step::Attribute(name), rest)) = steps.split_first() else {
            return Err(Fault::new(span, format!("a {kind} is named after a dot")));
        };
        let known = if kind == "variable" { &self.variables } else { &self.locals };
        let Some(value) = known.get(&name.text) else {
            let fault = Fault::new(name.span, format!("there is no {kind} \"{}\"", name.text));
            return Err(fault.suggest(&name.text, known.keys().map(String::as_str)));
        };
        let (value, rest) = narrowed(value, rest);
        let value = value.clone();
        let value = self.made(value, span)?;
        self.follow(value, rest)
    }

    fn follow(&mut self, mut value: Value, steps: &[Step]) -> Result<Value, Fault> {
        for step in steps {
            value = match step {
                Step::Attribute(name) => attribute(value, name)?,
                Step::Index(expr) => {
                    let index = self.value(expr)?;
                    element(value, &index).map_err(|why| Fault::new(expr.span, why))?
                }
            };
        }
        Ok(value)
    }

    pub(super) fn splat(&mut self, splat: &Splat) -> Result<Value, Fault> {
        let items = match self.value(&splat.base)? {
            Value::List(items) => items,
            Value::Null => Vec::new(),
            single => vec![single],
        };
        let followed = items.into_iter().map(|item| self.follow(item, &splat.each));
        followed.collect::<Result<Vec<_>, _>>().map(Value::List)
    }
}

/// Follows attribute steps by reference, so that `var.large.x` copies only `x`.
fn narrowed<'v, 's>(mut value: &'v Value, mut steps: &'s [Step]) -> (&'v Value, &'s [Step]) {
    while let (Value::Object(entries), Some((Step::Attribute(name), rest))) = (value, steps.split_first()) {
        match entries.get(&name.text) {
            Some(inner) => (value, steps) = (inner, rest),
            None => break,
        }
    }
    (value, steps)
}

fn attribute(value: Value, name: &Name) -> Result<Value, Fault> {
    match value {
        Value::Object(mut entries) => match entries.remove(&name.text) {
            Some(inner) => Ok(inner),
            None => {
                let fault = Fault::new(name.span, format!("this object has no \"{}\"", name.text));
                Err(fault.suggest(&name.text, entries.keys().map(String::as_str)))
            }
        },
        other => {
            let message = format!("cannot look for \"{}\" in {}", name.text, other.describe());
            Err(Fault::new(name.span, message))
        }
    }
}

pub(super) fn element(value: Value, index: &Value) -> Result<Value, ValueError> {
    match value {
        Value::List(mut items) => {
            let at = to_int(index)?;
            let held = items.len();
            match usize::try_from(at).ok().filter(|at| *at < held) {
                Some(at) => Ok(items.swap_remove(at)),
                None => Err(format!("there is no element {at} in a list of {held}").into()),
            }
        }
        Value::Object(entries) => entry(entries, &to_text(index)?),
        other => Err(format!("cannot take an element of {}", other.describe()).into()),
    }
}

fn entry(mut entries: BTreeMap<String, Value>, key: &str) -> Result<Value, ValueError> {
    entries.remove(key).ok_or_else(|| format!("this object has no \"{key}\"").into())
}
