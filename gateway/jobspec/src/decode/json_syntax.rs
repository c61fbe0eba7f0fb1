//! HCL's JSON syntax: the same blocks, written as objects keyed by kind and label.

use std::rc::Rc;

use super::job::JOB;
use super::schema::{Label, Schema};
use crate::diagnostic::Fault;
use crate::eval::Value;
use crate::hcl::{Attribute, Block, Body, Expr, ExprKind, Key, Name};

/// The body that a JSON document stands for. Only its shape decides which members are blocks.
pub(crate) fn body(document: Expr) -> Result<Body, Fault> {
    let mut body = Body::default();
    for (name, value) in members(document)? {
        match name.text.as_str() {
            "job" => push_blocks(&mut body, &name, value, &JOB)?,
            "variable" => push_open(&mut body, &name, value, 1)?,
            "variables" | "locals" => push_open(&mut body, &name, value, 0)?,
            _ => body.attributes.push(Attribute { name, value }),
        }
    }
    Ok(body)
}

fn members(object: Expr) -> Result<Vec<(Name, Expr)>, Fault> {
    let ExprKind::Object(entries) = object.kind else {
        return Err(Fault::new(object.span, "expected an object"));
    };
    let named = entries.into_iter().map(|(key, value)| match key {
        Key::Name(name) => Ok((name, value)),
        Key::Computed(Expr { kind: ExprKind::Literal(Value::Text(text)), span, .. }) => {
            Ok((Name { text, span }, value))
        }
        Key::Computed(other) => Err(Fault::new(other.span, "expected a name in quotes")),
    });
    named.collect()
}

/// One object, or a list of objects for a repeated block.
fn several(value: Expr) -> Vec<Expr> {
    match value.kind {
        ExprKind::List(items) => items,
        _ => vec![value],
    }
}

fn push_blocks(body: &mut Body, kind: &Name, value: Expr, schema: &'static Schema) -> Result<(), Fault> {
    for value in several(value) {
        if !matches!(schema.label, Label::Required(_) | Label::Optional(_)) {
            let inner = schema_body(value, schema)?;
            body.blocks.push(block(kind, Vec::new(), inner));
            continue;
        }
        for (label, value) in members(value)? {
            for value in several(value) {
                let inner = schema_body(value, schema)?;
                body.blocks.push(block(kind, vec![label.clone()], inner));
            }
        }
    }
    Ok(())
}

fn schema_body(value: Expr, schema: &'static Schema) -> Result<Body, Fault> {
    let mut body = Body::default();
    for (name, value) in members(value)? {
        match schema.block(&name.text) {
            Some(nested) => push_blocks(&mut body, &name, value, nested.schema)?,
            None if name.text == "dynamic" => push_dynamic(&mut body, &name, value, schema)?,
            None => body.attributes.push(attribute(name, value, schema)),
        }
    }
    Ok(body)
}

/// Those that are also written as blocks, such as `env`, may stand in a list as blocks do.
fn attribute(name: Name, value: Expr, schema: &Schema) -> Attribute {
    let open = schema.field(&name.text).is_some_and(|field| field.kind.takes_block());
    Attribute { name, value: if open { alone(value) } else { value } }
}

/// The one object of a list, where there is place for one.
fn alone(value: Expr) -> Expr {
    match value.kind {
        ExprKind::List(mut items) if is_one_object(&items) => items.remove(0),
        kind => Expr { kind, ..value },
    }
}

fn is_one_object(items: &[Expr]) -> bool {
    matches!(items, [Expr { kind: ExprKind::Object(_), .. }])
}

/// `"dynamic": {"kind": {"for_each": …, "content": {…}}}`.
fn push_dynamic(body: &mut Body, name: &Name, value: Expr, schema: &'static Schema) -> Result<(), Fault> {
    let kinds = several(value).into_iter().map(members).collect::<Result<Vec<_>, _>>()?;
    for (kind, value) in kinds.into_iter().flatten() {
        let Some(nested) = schema.block(&kind.text) else {
            let fault = Fault::new(kind.span, format!("there is no block \"{}\" to make here", kind.text));
            return Err(fault.suggest(&kind.text, schema.blocks.iter().map(|block| block.hcl)));
        };
        for value in several(value) {
            let inner = dynamic_body(value, nested.schema)?;
            body.blocks.push(block(name, vec![kind.clone()], inner));
        }
    }
    Ok(())
}

fn dynamic_body(value: Expr, made: &'static Schema) -> Result<Body, Fault> {
    let mut body = Body::default();
    for (part, value) in members(value)? {
        match part.text.as_str() {
            "content" => {
                let content = schema_body(alone(value), made)?;
                body.blocks.push(block(&part, Vec::new(), content));
            }
            "iterator" => body.attributes.push(Attribute { name: part, value: as_name(value) }),
            _ => body.attributes.push(Attribute { name: part, value }),
        }
    }
    Ok(body)
}

/// A name can only be written in quotes here.
fn as_name(value: Expr) -> Expr {
    match value.kind {
        ExprKind::Literal(Value::Text(text)) => Expr { kind: ExprKind::Root(text), ..value },
        _ => value,
    }
}

fn push_open(body: &mut Body, kind: &Name, value: Expr, labels: usize) -> Result<(), Fault> {
    for value in several(value) {
        if labels == 0 {
            let attributes =
                members(value)?.into_iter().map(|(name, value)| Attribute { name, value }).collect();
            body.blocks.push(block(kind, Vec::new(), Body { attributes, blocks: Vec::new() }));
            continue;
        }
        for (label, value) in members(value)? {
            let members = members(alone(value))?.into_iter();
            let attributes = members.map(|(name, value)| Attribute { name, value }).collect();
            body.blocks.push(block(kind, vec![label], Body { attributes, blocks: Vec::new() }));
        }
    }
    Ok(())
}

fn block(kind: &Name, labels: Vec<Name>, body: Body) -> Block {
    Block { kind: kind.clone(), labels, body: Rc::new(body), header: kind.span }
}
