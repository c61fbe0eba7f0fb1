//! What an expression says about one document.

use std::borrow::Cow;

use serde_json::Value as Json;
use thiserror::Error;

use crate::Filter;
use crate::ast::{Binding, Collection, Expr, Match, Operator, Selector};
use crate::coerce::{self, describe};
use crate::schema::{Schema, Type};

/// Most comparisons for one document: nested collections multiply.
pub const STEPS_MAX: usize = 100_000;

/// Bytes of text that are searched in one step.
const BYTES_A_STEP: usize = 256;

/// Why an expression says nothing about a document.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EvalError {
    #[error("Nomad's API has no object {0:?}")]
    UnknownType(String),
    #[error(
        "error finding value in datum: {selector}: {kind} has no such field: couldn't find key: struct field with name {field:?}"
    )]
    UnknownField { selector: String, kind: String, field: String },
    #[error("{selector}: {message}")]
    Unfit { selector: String, message: String },
    #[error("more than {STEPS_MAX} comparisons for one object")]
    TooMuchWork,
}

impl Filter {
    /// Whether the expression holds for `document`, an object of type `kind` of the schema.
    ///
    /// Fields that the document leaves out have their zero value, and so have the fields of an object left out. A map
    /// without a key that is asked for answers every positive question with no, and is empty and nil there.
    ///
    /// # Errors
    /// When the expression names a field that the type has not, compares values of different kinds, or takes more
    /// than [`STEPS_MAX`] comparisons.
    pub fn matches(&self, schema: &Schema, kind: &str, document: &Json) -> Result<bool, EvalError> {
        if !schema.has(kind) {
            return Err(EvalError::UnknownType(kind.to_string()));
        }
        let kind = Type::Object(kind.to_string());
        let root = Place { kind: &kind, value: Cow::Borrowed(document) };
        Evaluation { schema, root, bound: Vec::new(), steps: 0 }.holds(&self.root)
    }
}

struct Evaluation<'a> {
    schema: &'a Schema,
    root: Place<'a>,
    /// The innermost last.
    bound: Vec<(&'a str, Place<'a>)>,
    steps: usize,
}

/// A value and what it is.
#[derive(Clone, Debug)]
struct Place<'a> {
    kind: &'a Type,
    /// Owned only for keys and indexes.
    value: Cow<'a, Json>,
}

static NOTHING: Json = Json::Null;
static ANY: Type = Type::Any;
static TEXT: Type = Type::Text;
static INT: Type = Type::Int;

impl<'a> Evaluation<'a> {
    fn holds(&mut self, expr: &'a Expr) -> Result<bool, EvalError> {
        match expr {
            Expr::Not(inner) => Ok(!self.holds(inner)?),
            Expr::Any(parts) => self.first(parts, true),
            Expr::All(parts) => Ok(!self.first(parts, false)?),
            Expr::Match(comparison) => self.compare(comparison),
            Expr::Collection(collection) => self.collection(collection),
        }
    }

    /// Whether one of the parts gives `wanted`; those after it are not looked at.
    fn first(&mut self, parts: &'a [Expr], wanted: bool) -> Result<bool, EvalError> {
        for part in parts {
            if self.holds(part)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn collection(&mut self, collection: &'a Collection) -> Result<bool, EvalError> {
        let Some(place) = self.find(&collection.selector)? else { return Ok(collection.every) };
        let Some(elements) = place.elements() else {
            let found = describe(place.kind, &place.value);
            return Err(unfit(&collection.selector, format!("is {found}, not a list or a map")));
        };
        let keyed = place.is_map();
        for (key, element) in elements {
            self.spend(1)?;
            let before = self.bound.len();
            match &collection.binding {
                Binding::One(name) => self.bound.push((name, if keyed { key } else { element })),
                Binding::Two(first, second) => {
                    self.bound.extend(first.as_deref().map(|name| (name, key)));
                    self.bound.extend(second.as_deref().map(|name| (name, element)));
                }
            }
            let holds = self.holds(&collection.inner);
            self.bound.truncate(before);
            if holds? != collection.every {
                return Ok(!collection.every);
            }
        }
        Ok(collection.every)
    }

    fn compare(&mut self, comparison: &Match) -> Result<bool, EvalError> {
        self.spend(1)?;
        let Match { selector, operator, negated } = comparison;
        let holds = match self.find(selector)? {
            // A key that is not there.
            None => matches!(operator, Operator::Empty | Operator::Nil),
            Some(place) => {
                self.spend(place.work(operator))?;
                place.answers(operator).map_err(|message| unfit(selector, message))?
            }
        };
        Ok(holds != *negated)
    }

    fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        self.steps += steps;
        if self.steps > STEPS_MAX { Err(EvalError::TooMuchWork) } else { Ok(()) }
    }

    /// The value that a selector leads to; `None` when it leads to a key that its map has not.
    fn find(&self, selector: &Selector) -> Result<Option<Place<'a>>, EvalError> {
        let bound = |name: &str| self.bound.iter().rev().find(|(known, _)| *known == name);
        let first = selector.path.first().and_then(|name| bound(name));
        let (mut place, path) = match first {
            Some((_, place)) => (place.clone(), &selector.path[1..]),
            None => (self.root.clone(), &selector.path[..]),
        };
        for step in path {
            match place.step(self.schema, selector, step)? {
                Some(next) => place = next,
                None => return Ok(None),
            }
        }
        Ok(Some(place))
    }
}

fn unfit(selector: &Selector, message: impl Into<String>) -> EvalError {
    EvalError::Unfit { selector: selector.text.clone(), message: message.into() }
}

impl<'a> Place<'a> {
    fn is_map(&self) -> bool {
        matches!(self.kind, Type::Map(_)) || (*self.kind == Type::Any && self.value.is_object())
    }

    fn step(
        &self,
        schema: &'a Schema,
        selector: &Selector,
        step: &str,
    ) -> Result<Option<Place<'a>>, EvalError> {
        match self.kind {
            Type::Object(object) => {
                let kind = schema.field(object, step).ok_or_else(|| EvalError::UnknownField {
                    selector: selector.text.clone(),
                    kind: object.clone(),
                    field: step.to_string(),
                })?;
                Ok(Some(Place { kind, value: self.member(step).unwrap_or(Cow::Borrowed(&NOTHING)) }))
            }
            Type::Map(kind) => Ok(self.member(step).map(|value| Place { kind, value })),
            Type::List(kind) => self.element(kind, step).map(Some).map_err(|why| unfit(selector, why)),
            Type::Any if self.value.is_array() => {
                self.element(&ANY, step).map(Some).map_err(|why| unfit(selector, why))
            }
            Type::Any if self.value.is_object() || self.value.is_null() => {
                Ok(self.member(step).map(|value| Place { kind: &ANY, value }))
            }
            kind => {
                let message = format!("{} has no member {step:?}", describe(kind, &self.value));
                Err(unfit(selector, message))
            }
        }
    }

    fn member(&self, name: &str) -> Option<Cow<'a, Json>> {
        match &self.value {
            Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
            Cow::Owned(_) => None,
        }
    }

    fn element(&self, kind: &'a Type, step: &str) -> Result<Place<'a>, String> {
        let index: usize =
            step.parse().map_err(|_| format!("a list has no member {step:?}; use a number"))?;
        let Cow::Borrowed(value) = &self.value else { return Err("is not a list".to_string()) };
        let length = value.as_array().map_or(0, Vec::len);
        match value.get(index) {
            Some(value) => Ok(Place { kind, value: Cow::Borrowed(value) }),
            None => Err(format!("the list has {length} elements, none at {index}")),
        }
    }

    /// Keys or indexes, and elements; `None` for what has no elements.
    fn elements(&self) -> Option<Vec<(Place<'a>, Place<'a>)>> {
        let Cow::Borrowed(value) = self.value else { return None };
        let inner = match self.kind {
            Type::List(inner) | Type::Map(inner) => &**inner,
            Type::Any => &ANY,
            _ => return None,
        };
        let pair = |kind, key: Json, value| {
            (Place { kind, value: Cow::Owned(key) }, Place { kind: inner, value: Cow::Borrowed(value) })
        };
        match value {
            Json::Null => Some(Vec::new()),
            Json::Array(items) => {
                Some(items.iter().enumerate().map(|(at, item)| pair(&INT, Json::from(at), item)).collect())
            }
            Json::Object(members) => Some(
                members.iter().map(|(key, value)| pair(&TEXT, Json::from(key.as_str()), value)).collect(),
            ),
            _ => None,
        }
    }

    /// Steps that answering takes, beyond the one every comparison costs.
    fn work(&self, operator: &Operator) -> usize {
        match (operator, &*self.value) {
            (Operator::Contains(_) | Operator::Equals(_), Json::Array(items)) => items.len(),
            (Operator::Contains(_) | Operator::Matches(_), Json::String(text)) => text.len() / BYTES_A_STEP,
            _ => 0,
        }
    }

    fn answers(&self, operator: &Operator) -> Result<bool, String> {
        match operator {
            Operator::Equals(text) => equals(self.kind, &self.value, text),
            Operator::Contains(text) => self.contains(text),
            Operator::Matches(pattern) => match (self.kind, &*self.value) {
                (Type::Text | Type::Any, Json::String(text)) => Ok(pattern.is_match(text)),
                (Type::Text, Json::Null) => Ok(pattern.is_match("")),
                (kind, value) => Err(format!("is {}; only text can match a pattern", describe(kind, value))),
            },
            Operator::Empty => self.is_empty(),
            Operator::Nil => Ok(self.value.is_null() && self.may_be_nil()),
        }
    }

    fn contains(&self, text: &str) -> Result<bool, String> {
        match (self.kind, &*self.value) {
            (Type::Text, Json::Null) => Ok(text.is_empty()),
            (Type::Text | Type::Any, Json::String(whole)) => Ok(whole.contains(text)),
            (Type::Map(_) | Type::Any, Json::Object(members)) => Ok(members.contains_key(text)),
            (Type::Map(_), Json::Null) => Ok(false),
            // A value that no element could have is a mistake, also while the list is empty.
            (Type::List(kind), Json::Null) => equals(kind, &NOTHING, text).map(|_| false),
            (Type::List(kind), Json::Array(items)) => {
                equals(kind, &NOTHING, text)?;
                items
                    .iter()
                    .map(|item| equals(kind, item, text))
                    .find(|holds| *holds != Ok(false))
                    .unwrap_or(Ok(false))
            }
            (Type::Any, Json::Array(items)) => {
                Ok(items.iter().any(|item| equals(&ANY, item, text) == Ok(true)))
            }
            (kind, value) => Err(format!("is {}, which contains nothing", describe(kind, value))),
        }
    }

    fn is_empty(&self) -> Result<bool, String> {
        match (self.kind, &*self.value) {
            (Type::Text | Type::List(_) | Type::Map(_) | Type::Bytes | Type::Any, Json::Null) => Ok(true),
            (Type::Text | Type::Bytes | Type::Any, Json::String(text)) => Ok(text.is_empty()),
            (Type::List(_) | Type::Any, Json::Array(items)) => Ok(items.is_empty()),
            (Type::Map(_) | Type::Any, Json::Object(members)) => Ok(members.is_empty()),
            (kind, value) => {
                Err(format!("is {}; only text, lists and maps can be empty", describe(kind, value)))
            }
        }
    }

    fn may_be_nil(&self) -> bool {
        match self.kind {
            Type::List(_) | Type::Map(_) | Type::Object(_) | Type::Bytes | Type::Any => true,
            Type::Text | Type::Bool | Type::Int | Type::Uint | Type::Float | Type::Duration => false,
        }
    }
}

fn equals(kind: &Type, value: &Json, text: &str) -> Result<bool, String> {
    if *kind == Type::Any && value.is_null() {
        return Ok(false);
    }
    let found = coerce::of_document(kind, value)?;
    Ok(coerce::like(&found, kind, text)? == found)
}
