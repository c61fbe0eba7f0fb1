use std::collections::BTreeMap;

use crate::diagnostic::{Fault, nearest};
use crate::eval::{Value, ValueError, set, to_bool, to_number, to_text};
use crate::hcl::{Expr, ExprKind, Key};

/// The type of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Text,
    Number,
    Bool,
    Any,
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>),
    Tuple(Vec<Type>),
    Object(BTreeMap<String, Type>),
}

const NAMES: [&str; 9] = ["string", "number", "bool", "any", "list", "set", "map", "tuple", "object"];

impl Type {
    /// Reads a type expression such as `map(list(string))`.
    pub(crate) fn read(expr: &Expr) -> Result<Type, Fault> {
        match &expr.kind {
            ExprKind::Root(name) => match name.as_str() {
                "string" => Ok(Type::Text),
                "number" => Ok(Type::Number),
                "bool" => Ok(Type::Bool),
                "any" => Ok(Type::Any),
                "list" => Ok(Type::List(Box::new(Type::Any))),
                "set" => Ok(Type::Set(Box::new(Type::Any))),
                "map" => Ok(Type::Map(Box::new(Type::Any))),
                other => Err(unknown(expr, other)),
            },
            ExprKind::Call { name, arguments, .. } => match (name.text.as_str(), arguments.as_slice()) {
                ("list", [inner]) => Ok(Type::List(Box::new(Type::read(inner)?))),
                ("set", [inner]) => Ok(Type::Set(Box::new(Type::read(inner)?))),
                ("map", [inner]) => Ok(Type::Map(Box::new(Type::read(inner)?))),
                ("tuple", [inner]) => Type::tuple(inner),
                ("object", [inner]) => Type::object(inner),
                (known, _) if NAMES.contains(&known) => {
                    Err(Fault::new(expr.span, format!("the type {known} does not take these arguments")))
                }
                (other, _) => Err(unknown(expr, other)),
            },
            ExprKind::Literal(Value::Text(text)) => {
                Err(unknown(expr, text).hint(format!("types are written without quotes: {text}")))
            }
            _ => Err(Fault::new(expr.span, "expected a type, such as string or list(string)")),
        }
    }

    fn tuple(inner: &Expr) -> Result<Type, Fault> {
        match &inner.kind {
            ExprKind::List(items) => items.iter().map(Type::read).collect::<Result<_, _>>().map(Type::Tuple),
            _ => Err(Fault::new(inner.span, "expected the types of a tuple in brackets")),
        }
    }

    fn object(inner: &Expr) -> Result<Type, Fault> {
        let ExprKind::Object(entries) = &inner.kind else {
            return Err(Fault::new(inner.span, "expected the types of an object in braces"));
        };
        let mut fields = BTreeMap::new();
        for (key, value) in entries {
            let name = match key {
                Key::Name(name) => name.text.clone(),
                Key::Computed(Expr { kind: ExprKind::Literal(Value::Text(text)), .. }) => text.clone(),
                Key::Computed(expr) => return Err(Fault::new(expr.span, "expected the name of a field")),
            };
            fields.insert(name, Type::read(value)?);
        }
        Ok(Type::Object(fields))
    }

    /// True where text from outside is taken as it is, and not read as an expression.
    pub(crate) fn takes_text(&self) -> bool {
        matches!(self, Type::Text | Type::Number)
    }

    /// The value in this type; `null` belongs to every type.
    pub(crate) fn convert(&self, value: Value) -> Result<Value, ValueError> {
        if value == Value::Null {
            return Ok(value);
        }
        match self {
            Type::Any => Ok(value),
            Type::Text => to_text(&value).map(Value::Text),
            Type::Number => to_number(&value),
            Type::Bool => to_bool(&value).map(Value::Bool),
            Type::List(inner) => convert_list(value, inner).map(Value::List),
            Type::Set(inner) => convert_list(value, inner).and_then(set).map(Value::List),
            Type::Map(inner) => convert_map(value, inner),
            Type::Tuple(types) => convert_tuple(value, types),
            Type::Object(fields) => convert_object(value, fields),
        }
    }
}

fn unknown(expr: &Expr, name: &str) -> Fault {
    let fault = Fault::new(expr.span, format!("there is no type \"{name}\""));
    match nearest(name, NAMES) {
        Some(known) => fault.hint(format!("did you mean {known}?")),
        None => fault.hint(format!("known are {}", NAMES.join(", "))),
    }
}

fn items(value: Value) -> Result<Vec<Value>, ValueError> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(format!("expected a list, found {}", other.describe()).into()),
    }
}

fn fields(value: Value) -> Result<BTreeMap<String, Value>, ValueError> {
    match value {
        Value::Object(entries) => Ok(entries),
        other => Err(format!("expected an object, found {}", other.describe()).into()),
    }
}

fn convert_list(value: Value, inner: &Type) -> Result<Vec<Value>, ValueError> {
    let converted = items(value)?
        .into_iter()
        .enumerate()
        .map(|(at, item)| inner.convert(item).map_err(|why| why.within(format!("element {at}"))));
    converted.collect()
}

fn convert_map(value: Value, inner: &Type) -> Result<Value, ValueError> {
    let converted = fields(value)?.into_iter().map(|(key, item)| {
        let item = inner.convert(item).map_err(|why| why.within(format!("\"{key}\"")))?;
        Ok((key, item))
    });
    converted.collect::<Result<_, ValueError>>().map(Value::Object)
}

fn convert_tuple(value: Value, types: &[Type]) -> Result<Value, ValueError> {
    let items = items(value)?;
    if items.len() != types.len() {
        return Err(format!("expected {} elements, found {}", types.len(), items.len()).into());
    }
    let converted = items.into_iter().zip(types).map(|(item, inner)| inner.convert(item));
    converted.collect::<Result<_, _>>().map(Value::List)
}

fn convert_object(value: Value, types: &BTreeMap<String, Type>) -> Result<Value, ValueError> {
    let mut given = fields(value)?;
    let mut object = BTreeMap::new();
    for (name, inner) in types {
        let value = given.remove(name).ok_or_else(|| format!("\"{name}\" is missing"))?;
        object.insert(name.clone(), inner.convert(value).map_err(|why| why.within(format!("\"{name}\"")))?);
    }
    Ok(Value::Object(object))
}
