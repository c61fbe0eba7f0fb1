use super::declare::Declarations;
use super::types::Type;
use super::{ENVIRONMENT_PREFIX, Variables};
use crate::diagnostic::{Diagnostic, Fault, Source, Span};
use crate::eval::{Evaluator, NoFiles, Value};
use crate::hcl::{
    Attribute, Dialect, Expr, ExprKind, Key, Name, parse_body, parse_document, parse_expression,
};

impl Declarations<'_> {
    /// Assigns the values from outside; gives the warnings.
    pub(crate) fn assign(&mut self, given: &Variables) -> Result<Vec<String>, Vec<Diagnostic>> {
        let mut warnings = Vec::new();
        let mut wrong = Vec::new();
        for (name, text) in &given.env {
            let name = name.strip_prefix(ENVIRONMENT_PREFIX).filter(|name| self.declared.contains_key(*name));
            if let Some(name) = name {
                let source = Source::new(format!("{ENVIRONMENT_PREFIX}{name}"), text.clone());
                wrong.extend(self.assign_text(name, &source).err());
            }
        }
        let text = given.text.as_ref().map(|text| Source::new("variables", text.clone()));
        for file in given.files.iter().chain(&text) {
            match self.assign_file(file, given.strict) {
                Ok(more) => warnings.extend(more),
                Err(fault) => wrong.push(fault.at(file)),
            }
        }
        for (name, text) in &given.flags {
            let source = Source::new(format!("-var {name}"), text.clone());
            if self.declared.contains_key(name) {
                wrong.extend(self.assign_text(name, &source).err());
            } else if given.strict {
                wrong.push(self.undeclared(&Name { text: name.clone(), span: Span::default() }).at(&source));
            } else {
                warnings.push(format!("the variable \"{name}\" is given but not declared"));
            }
        }
        if wrong.is_empty() { Ok(warnings) } else { Err(wrong) }
    }

    /// Text from a flag or the environment: taken as it is for text and numbers, else read as an expression.
    fn assign_text(&mut self, name: &str, source: &Source) -> Result<(), Diagnostic> {
        let declaration = self.declared.get_mut(name).expect("the caller looked the variable up");
        let value = match declaration.kind.as_ref().is_none_or(Type::takes_text) {
            true => Ok(Value::Text(source.text.clone())),
            false => parse_expression(source, Dialect::Native)
                .and_then(|expr| Evaluator::new(source, &NoFiles).value(&expr)),
        };
        let value = value.map_err(|fault| fault.at(source))?;
        let whole = Span { start: 0, end: source.text.len() };
        declaration
            .assign(value)
            .map_err(|why| Fault::new(whole, format!("variable \"{name}\": {why}")).at(source))
    }

    fn assign_file(&mut self, file: &Source, strict: bool) -> Result<Vec<String>, Fault> {
        let mut evaluator = Evaluator::new(file, &NoFiles);
        let mut warnings = Vec::new();
        for Attribute { name, value: expr } in file_attributes(file)? {
            let value = evaluator.value(&expr)?;
            match self.declared.get_mut(&name.text) {
                Some(declaration) => declaration
                    .assign(value)
                    .map_err(|why| Fault::new(expr.span, format!("variable \"{}\": {why}", name.text)))?,
                None if strict => return Err(self.undeclared(&name)),
                None => warnings.push(format!(
                    "the variable \"{}\" is given in {} but not declared",
                    name.text, file.name
                )),
            }
        }
        Ok(warnings)
    }

    fn undeclared(&self, name: &Name) -> Fault {
        let fault = Fault::new(name.span, format!("undeclared variable \"{}\"", name.text));
        fault.suggest(&name.text, self.declared.keys().map(String::as_str))
    }
}

fn file_attributes(file: &Source) -> Result<Vec<Attribute>, Fault> {
    if file.name.ends_with(".json") {
        let document = parse_document(file, Dialect::Json)?;
        let ExprKind::Object(entries) = document.kind else {
            return Err(Fault::new(document.span, "expected an object"));
        };
        return entries.into_iter().map(json_attribute).collect();
    }
    let body = parse_body(file, Dialect::Native)?;
    match body.blocks.first() {
        Some(block) if block.kind.text == "variable" => {
            let fault =
                Fault::new(block.header, "a variable is declared in the job file, not in a variable file");
            Err(fault.hint("here a value is given: name = value"))
        }
        Some(block) => Err(Fault::new(block.header, "a variable file holds only name = value")),
        None => Ok(body.attributes),
    }
}

fn json_attribute((key, value): (Key, Expr)) -> Result<Attribute, Fault> {
    match key {
        Key::Computed(Expr { kind: ExprKind::Literal(Value::Text(text)), span, .. }) => {
            Ok(Attribute { name: Name { text, span }, value })
        }
        Key::Computed(other) => Err(Fault::new(other.span, "expected a name in quotes")),
        Key::Name(name) => Ok(Attribute { name, value }),
    }
}
