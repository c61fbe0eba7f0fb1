use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::convert::{to_bool, to_f64, to_number, to_text};
use super::{Evaluator, Value, ValueError};
use crate::diagnostic::{Fault, Span};
use crate::hcl::{Expr, For, Operator};

impl Evaluator<'_> {
    pub(super) fn condition(&mut self, expr: &Expr) -> Result<bool, Fault> {
        let value = self.value(expr)?;
        to_bool(&value).map_err(|why| Fault::new(expr.span, why))
    }

    fn operand(&mut self, expr: &Expr) -> Result<Value, Fault> {
        let value = self.value(expr)?;
        to_number(&value).map_err(|why| Fault::new(expr.span, why))
    }

    pub(super) fn not(&mut self, inner: &Expr) -> Result<Value, Fault> {
        Ok(Value::Bool(!self.condition(inner)?))
    }

    pub(super) fn negate(&mut self, inner: &Expr) -> Result<Value, Fault> {
        Ok(match self.operand(inner)? {
            Value::Int(whole) => whole.checked_neg().map_or(Value::Float(-(whole as f64)), Value::Int),
            Value::Float(number) => Value::Float(-number),
            other => other,
        })
    }

    pub(super) fn conditional(&mut self, condition: &Expr, yes: &Expr, no: &Expr) -> Result<Value, Fault> {
        if self.condition(condition)? { self.value(yes) } else { self.value(no) }
    }

    pub(super) fn binary(
        &mut self,
        operator: Operator,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Result<Value, Fault> {
        match operator {
            Operator::Or | Operator::And => self.logic(operator, left, right),
            Operator::Equal => Ok(Value::Bool(self.value(left)? == self.value(right)?)),
            Operator::NotEqual => Ok(Value::Bool(self.value(left)? != self.value(right)?)),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                self.compare(operator, left, right)
            }
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                let (a, b) = (self.operand(left)?, self.operand(right)?);
                arithmetic(operator, &a, &b).map_err(|why| Fault::new(span, why))
            }
        }
    }

    fn logic(&mut self, operator: Operator, left: &Expr, right: &Expr) -> Result<Value, Fault> {
        let left = self.condition(left)?;
        let decided = left == (operator == Operator::Or);
        Ok(Value::Bool(if decided { left } else { self.condition(right)? }))
    }

    fn compare(&mut self, operator: Operator, left: &Expr, right: &Expr) -> Result<Value, Fault> {
        let (a, b) = (self.operand(left)?, self.operand(right)?);
        let order = match (&a, &b) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            _ => float(&a).partial_cmp(&float(&b)),
        };
        Ok(Value::Bool(order.is_some_and(|order| match operator {
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            _ => order.is_ge(),
        })))
    }

    pub(super) fn for_each(&mut self, each: &For) -> Result<Value, Fault> {
        let entries = self.entries(&each.collection)?;
        let mut list = Vec::new();
        let mut object: BTreeMap<String, Value> = BTreeMap::new();
        for (key, item) in entries {
            let mut names = vec![(each.value_name.text.clone(), item)];
            names.extend(each.key_name.as_ref().map(|name| (name.text.clone(), key)));
            let Some((key, value)) = self.with_names(names, |inner| inner.for_item(each))? else { continue };
            let Some(key) = key else {
                list.push(value);
                continue;
            };
            match object.entry(key) {
                Entry::Vacant(free) if each.grouping => {
                    free.insert(Value::List(vec![value]));
                }
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(mut taken) => match taken.get_mut() {
                    Value::List(items) if each.grouping => items.push(value),
                    _ => return Err(repeated(each, taken.key())),
                },
            }
        }
        Ok(if each.key.is_some() { Value::Object(object) } else { Value::List(list) })
    }

    fn for_item(&mut self, each: &For) -> Result<Option<(Option<String>, Value)>, Fault> {
        if let Some(condition) = &each.condition
            && !self.condition(condition)?
        {
            return Ok(None);
        }
        let key = match &each.key {
            None => None,
            Some(expr) => {
                let key = self.value(expr)?;
                Some(to_text(&key).map_err(|why| Fault::new(expr.span, why))?)
            }
        };
        Ok(Some((key, self.value(&each.value)?)))
    }

    /// Keys and values of a collection: positions for lists, names for objects.
    pub(crate) fn entries(&mut self, collection: &Expr) -> Result<Vec<(Value, Value)>, Fault> {
        match self.value(collection)? {
            Value::List(items) => {
                Ok(items.into_iter().enumerate().map(|(at, item)| (Value::Int(at as i128), item)).collect())
            }
            Value::Object(entries) => {
                Ok(entries.into_iter().map(|(key, value)| (Value::Text(key), value)).collect())
            }
            other => {
                let message = format!("cannot go through {}: expected a list or an object", other.describe());
                Err(Fault::new(collection.span, message))
            }
        }
    }
}

fn repeated(each: &For, key: &str) -> Fault {
    let span = each.key.as_ref().map_or(each.value.span, |key| key.span);
    let fault = Fault::new(span, format!("the key \"{key}\" is made twice"));
    fault.hint("`...` after the value groups values by key")
}

fn float(value: &Value) -> f64 {
    to_f64(value).unwrap_or(f64::NAN)
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value, ValueError> {
    let divides = matches!(operator, Operator::Divide | Operator::Modulo);
    if divides && float(right) == 0.0 {
        return Err("cannot divide by zero".into());
    }
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let exact = match operator {
            Operator::Add => a.checked_add(*b),
            Operator::Subtract => a.checked_sub(*b),
            Operator::Multiply => a.checked_mul(*b),
            Operator::Divide => a.checked_div(*b).filter(|whole| whole.checked_mul(*b) == Some(*a)),
            _ => a.checked_rem(*b),
        };
        if let Some(exact) = exact {
            return Ok(Value::Int(exact));
        }
    }
    let (a, b) = (float(left), float(right));
    let number = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => a % b,
    };
    Value::from_f64(rounded(number)).ok_or_else(|| "the result is too large".into())
}

/// The language computes with more digits than a float has: `0.1 + 0.2` is `0.3` there. So the last bits, which only
/// come from rounding, are dropped where a shorter number is as near.
fn rounded(number: f64) -> f64 {
    let shorter: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if (shorter - number).abs() <= 2.0 * f64::EPSILON * number.abs() { shorter } else { number }
}
