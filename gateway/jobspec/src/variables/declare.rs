use std::collections::BTreeMap;

use super::types::Type;
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Fault, Source, Span};
use crate::eval::{Evaluator, Files, Value, ValueError, to_bool, to_text};
use crate::hcl::{Attribute, Block, Body, Expr, Label};

/// A rule a variable's value must keep.
pub(super) struct Rule {
    condition: Expr,
    error_message: Expr,
}

/// One declared variable.
pub(super) struct Declaration {
    pub name: Label,
    pub kind: Option<Type>,
    pub value: Option<Value>,
    pub rules: Vec<Rule>,
}

impl Declaration {
    /// Sets the value, in the declared type.
    pub(super) fn assign(&mut self, value: Value) -> Result<(), ValueError> {
        let kind = self.kind.as_ref().unwrap_or(&Type::Any);
        self.value = Some(kind.convert(value)?);
        Ok(())
    }
}

/// All variables a job file declares.
pub(crate) struct Declarations<'a> {
    pub(super) source: &'a Source,
    pub(super) declared: BTreeMap<String, Declaration>,
}

/// What a variable may hold besides its rules, and what the values are.
pub(crate) const VARIABLE: [(&str, &str); 5] = [
    ("type", "type"),
    ("default", "any"),
    ("description", "text"),
    ("sensitive", "bool"),
    ("nullable", "bool"),
];

/// What a rule holds.
pub(crate) const VALIDATION: [(&str, &str); 2] = [("condition", "expression"), ("error_message", "text")];

impl<'a> Declarations<'a> {
    /// Reads every `variable` and `variables` block of a job file.
    pub(crate) fn read(
        source: &'a Source,
        files: &dyn Files,
        body: &Body,
    ) -> Result<Declarations<'a>, Fault> {
        let mut all = Declarations { source, declared: BTreeMap::new() };
        let mut evaluator = Evaluator::new(source, files);
        for block in &body.blocks {
            match block.kind.text.as_str() {
                "variable" => all.variable(&mut evaluator, block)?,
                "variables" => all.shorthand(&mut evaluator, block)?,
                _ => {}
            }
        }
        Ok(all)
    }

    fn variable(&mut self, evaluator: &mut Evaluator, block: &Block) -> Result<(), Fault> {
        let [name] = block.labels.as_slice() else {
            return Err(Fault::new(block.header, "a variable has one label: its name"));
        };
        let mut declaration = Declaration { name: name.clone(), kind: None, value: None, rules: Vec::new() };
        let mut default = None;
        for Attribute { name, value } in &block.body.attributes {
            match name.text.as_str() {
                "type" => declaration.kind = Some(Type::read(value)?),
                "default" => default = Some(value),
                "description" | "sensitive" | "nullable" => {
                    evaluator.value(value)?;
                }
                other => return Err(unexpected(name.span, other)),
            }
        }
        for inner in &block.body.blocks {
            match inner.kind.text.as_str() {
                "validation" => declaration.rules.push(rule(inner)?),
                other => return Err(unexpected(inner.header, other)),
            }
        }
        if let Some(expr) = default {
            let value = evaluator.value(expr)?;
            let fault =
                |why| Fault::new(expr.span, format!("the default of variable \"{}\": {why}", name.text));
            declaration.assign(value).map_err(fault)?;
        }
        self.declare(declaration)
    }

    fn shorthand(&mut self, evaluator: &mut Evaluator, block: &Block) -> Result<(), Fault> {
        if let Some(inner) = block.body.blocks.first() {
            return Err(Fault::new(inner.header, "variables holds only names and their defaults"));
        }
        for Attribute { name, value } in &block.body.attributes {
            let value = evaluator.value(value)?;
            let name = name.clone();
            self.declare(Declaration { name, kind: None, value: Some(value), rules: Vec::new() })?;
        }
        Ok(())
    }

    fn declare(&mut self, declaration: Declaration) -> Result<(), Fault> {
        let name = declaration.name.clone();
        if self.declared.insert(name.text.clone(), declaration).is_some() {
            return Err(Fault::new(name.span, format!("the variable \"{}\" is declared twice", name.text)));
        }
        Ok(())
    }

    /// The values, once all were given: each present and keeping its rules.
    pub(crate) fn values(
        self,
        evaluator: &mut Evaluator,
    ) -> Result<BTreeMap<String, Value>, Vec<Diagnostic>> {
        let mut values = BTreeMap::new();
        let mut wrong = Vec::new();
        for (name, declaration) in &self.declared {
            match &declaration.value {
                Some(value) => {
                    values.insert(name.clone(), value.clone());
                }
                None if wrong.len() < DIAGNOSTICS_MAX => wrong.push(unset(declaration).at(self.source)),
                None => {}
            }
        }
        for declaration in self.declared.values().filter(|declaration| declaration.value.is_some()) {
            let name = &declaration.name.text;
            evaluator.variables = BTreeMap::from([(name.clone(), values[name].clone())]);
            let kept = declaration.rules.iter().try_for_each(|rule| keeps(evaluator, name, rule));
            wrong.extend(kept.err().map(|fault| fault.at(self.source)));
        }
        if wrong.is_empty() { Ok(values) } else { Err(wrong) }
    }
}

fn unset(declaration: &Declaration) -> Fault {
    let name = &declaration.name.text;
    let fault = Fault::new(declaration.name.span, format!("unset variable \"{name}\""));
    fault.hint(format!("give it with -var {name}=…, in a -var-file, as NOMAD_VAR_{name}, or a default"))
}

fn unexpected(span: Span, name: &str) -> Fault {
    Fault::new(span, format!("\"{name}\" is not expected in a variable"))
        .suggest(name, VARIABLE.map(|(known, _)| known).into_iter().chain(["validation"]))
}

fn rule(block: &Block) -> Result<Rule, Fault> {
    let find = |wanted: &str| {
        let found = block.body.attributes.iter().find(|attribute| attribute.name.text == wanted);
        let found = found.map(|attribute| attribute.value.clone());
        found.ok_or_else(|| Fault::new(block.header, format!("validation needs \"{wanted}\"")))
    };
    let rule = Rule { condition: find("condition")?, error_message: find("error_message")? };
    match block.body.attributes.iter().find(|a| !VALIDATION.iter().any(|(known, _)| *known == a.name.text)) {
        Some(other) => {
            Err(Fault::new(other.name.span, format!("\"{}\" is not expected in validation", other.name.text)))
        }
        None => Ok(rule),
    }
}

fn keeps(evaluator: &mut Evaluator, name: &str, rule: &Rule) -> Result<(), Fault> {
    let value = evaluator.value(&rule.condition)?;
    if to_bool(&value).map_err(|why| Fault::new(rule.condition.span, why))? {
        return Ok(());
    }
    let message = evaluator.value(&rule.error_message)?;
    let message = to_text(&message).map_err(|why| Fault::new(rule.error_message.span, why))?;
    Err(Fault::new(rule.condition.span, format!("invalid value for variable \"{name}\": {message}")))
}
