use super::{Evaluator, RESULT_MAX, Value, to_text};
use crate::diagnostic::{Fault, Span};
use crate::hcl::Part;

impl Evaluator<'_> {
    /// The text of a template; a template that is only one interpolation gives that value itself.
    pub(super) fn template(&mut self, parts: &[Part], span: Span) -> Result<Value, Fault> {
        if let [Part::Value(only)] = parts {
            return self.value(only);
        }
        let mut text = String::new();
        self.parts(parts, &mut text, span)?;
        Ok(Value::Text(text))
    }

    fn parts(&mut self, parts: &[Part], text: &mut String, span: Span) -> Result<(), Fault> {
        for part in parts {
            match part {
                Part::Text(literal) => self.append(text, literal, span)?,
                Part::Value(expr) => {
                    let value = self.value(expr)?;
                    let piece = to_text(&value).map_err(|why| {
                        Fault::new(
                            expr.span,
                            format!("only text, numbers and bools can stand inside text: {why}"),
                        )
                    })?;
                    self.append(text, &piece, expr.span)?;
                }
                Part::If { condition, yes, no } => {
                    let chosen = if self.condition(condition)? { yes } else { no };
                    self.parts(chosen, text, span)?;
                }
                Part::For { key_name, value_name, collection, body } => {
                    for (key, item) in self.entries(collection)? {
                        let mut names = vec![(value_name.text.clone(), item)];
                        names.extend(key_name.as_ref().map(|name| (name.text.clone(), key)));
                        self.with_names(names, |inner| inner.parts(body, text, span))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, text: &mut String, piece: &str, span: Span) -> Result<(), Fault> {
        self.spend(1 + piece.len(), span)?;
        if text.len() + piece.len() > RESULT_MAX {
            return Err(Fault::new(span, format!("this text grows beyond {RESULT_MAX} bytes")));
        }
        text.push_str(piece);
        Ok(())
    }
}
