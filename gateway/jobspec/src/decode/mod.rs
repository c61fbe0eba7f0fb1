//! Bodies to documents, guided by schemas.
//!
//! Collects every problem before it gives up, so that a file is corrected in one go.

mod dynamic;
mod finish;
mod job;
mod json_syntax;
mod network;
mod schema;
mod service;
mod values;

use std::collections::{BTreeMap, HashSet};

use model::document::{Job, input};
use serde_json::{Value as Json, json};

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Fault, Span};
use crate::eval::{Evaluator, Value};
use crate::hcl::{Attribute, Block, Body, Name};
use dynamic::Dynamic;
use schema::{Label, Many, Nested, Object};

pub(crate) use job::JOB;
pub(crate) use json_syntax::body as body_of_json;
pub(crate) use schema::{FieldKind, Schema};

/// What may stand at the top of a job file.
const TOP_LEVEL: [&str; 4] = ["job", "variable", "variables", "locals"];

/// Decodes the one `job` block of a file.
pub(crate) fn job(evaluator: &mut Evaluator, body: &Body) -> Result<Job, Vec<Diagnostic>> {
    let source = evaluator.source;
    let at = |fault: Fault| vec![fault.at(source)];
    check_top_level(body)
        .map_err(|faults| faults.into_iter().map(|fault| fault.at(source)).collect::<Vec<_>>())?;
    let block = job_block(body).map_err(at)?;
    let mut decoder = Decoder { evaluator, wrong: Vec::new() };
    let object = decoder.block(&JOB, block);
    if !decoder.wrong.is_empty() {
        return Err(decoder.wrong.into_iter().take(DIAGNOSTICS_MAX).map(|fault| fault.at(source)).collect());
    }
    // The schemas give each field its type, so a refusal here is a number at the edge of what fits.
    input::from_value(Json::Object(object)).map_err(|why| at(Fault::new(block.header, why.to_string())))
}

fn check_top_level(body: &Body) -> Result<(), Vec<Fault>> {
    let attributes = body.attributes.iter().map(|attribute| &attribute.name);
    let unknown =
        body.blocks.iter().map(|block| &block.kind).filter(|kind| !TOP_LEVEL.contains(&kind.text.as_str()));
    let wrong = attributes.chain(unknown).map(|name| {
        let fault =
            Fault::new(name.span, format!("\"{}\" is not expected at the top of a job file", name.text));
        fault.suggest(&name.text, TOP_LEVEL)
    });
    let wrong: Vec<Fault> = wrong.take(DIAGNOSTICS_MAX).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn job_block(body: &Body) -> Result<&Block, Fault> {
    let mut jobs = body.blocks.iter().filter(|block| block.kind.text == "job");
    let Some(job) = jobs.next() else {
        let fault = Fault::new(Span::default(), "missing job block");
        return Err(fault.hint("a job file holds one block: job \"name\" { … }"));
    };
    match jobs.next() {
        Some(second) => Err(Fault::new(second.header, "duplicate job block: a file holds one job")),
        None => Ok(job),
    }
}

struct Decoder<'e, 'a> {
    evaluator: &'e mut Evaluator<'a>,
    wrong: Vec<Fault>,
}

impl Decoder<'_, '_> {
    fn block(&mut self, schema: &'static Schema, block: &Block) -> Object {
        let mut object = Object::new();
        self.label(schema, block, &mut object);
        for attribute in &block.body.attributes {
            if self.wrong.len() >= DIAGNOSTICS_MAX {
                break;
            }
            self.attribute(schema, block, attribute, &mut object);
        }
        let mut seen = HashSet::new();
        for inner in &block.body.blocks {
            if self.wrong.len() >= DIAGNOSTICS_MAX {
                break;
            }
            self.nested(schema, block, inner, &mut seen, &mut object);
        }
        let missing = schema.fields.iter().filter(|field| field.required && !object.contains_key(field.json));
        for field in missing {
            let message = format!("{} has no \"{}\"", named(block), field.hcl);
            self.wrong.push(Fault::new(block.header, message));
        }
        if self.wrong.is_empty() {
            self.wrong.extend((schema.finish)(&mut object, block).err());
        }
        object
    }

    fn label(&mut self, schema: &Schema, block: &Block, object: &mut Object) {
        let kind = &block.kind.text;
        match (schema.label, block.labels.as_slice()) {
            (Label::None | Label::Optional(_) | Label::Ignored, []) | (Label::Ignored, [_]) => {}
            (Label::Required(json) | Label::Optional(json), [label]) => {
                object.insert(json.to_string(), json!(label.text));
            }
            (Label::Required(_), []) => {
                let fault = Fault::new(block.header, format!("a {kind} block needs a label"));
                self.wrong.push(fault.hint(format!("write {kind} \"name\" {{ … }}")));
            }
            (Label::None, [first, ..]) => {
                self.wrong.push(Fault::new(first.span, format!("a {kind} block takes no label")));
            }
            (_, [_, second, ..]) => {
                self.wrong.push(Fault::new(second.span, format!("a {kind} block takes one label")));
            }
        }
    }

    fn attribute(
        &mut self,
        schema: &'static Schema,
        parent: &Block,
        attribute: &Attribute,
        object: &mut Object,
    ) {
        let Some(field) = schema.field(&attribute.name.text) else {
            let fault = unexpected(schema, parent, &attribute.name);
            return self.wrong.push(fault);
        };
        let decoded = self.evaluator.value(&attribute.value).and_then(|value| {
            let value = values::decode(field.kind, value);
            value.map_err(|why| Fault::new(attribute.value.span, format!("\"{}\": {why}", field.hcl)))
        });
        match decoded {
            // Null leaves the attribute unset, as if it had not been written.
            Ok(Json::Null) => {}
            Ok(value) => {
                object.insert(field.json.to_string(), value);
            }
            Err(fault) => self.wrong.push(fault),
        }
    }

    fn nested(
        &mut self,
        schema: &'static Schema,
        parent: &Block,
        block: &Block,
        seen: &mut HashSet<&'static str>,
        object: &mut Object,
    ) {
        if block.kind.text == "dynamic" {
            let expanded = Dynamic::read(block).and_then(|dynamic| {
                dynamic.expand(
                    self,
                    |decoder| decoder.evaluator,
                    |decoder, made| {
                        decoder.nested(schema, parent, made, seen, object);
                        decoder.wrong.is_empty()
                    },
                )
            });
            return self.wrong.extend(expanded.err());
        }
        if let Some(nested) = schema.block(&block.kind.text) {
            if nested.many == Many::One && !seen.insert(nested.hcl) {
                let message = format!("a second {} block in {}", nested.hcl, named(parent));
                return self.wrong.push(Fault::new(block.header, message));
            }
            let inner = self.block(nested.schema, block);
            return self.put(nested, block, inner, object);
        }
        let field = schema.field(&block.kind.text).filter(|field| field.kind.takes_block());
        let Some(field) = field else {
            let fault = unexpected(schema, parent, &block.kind);
            return self.wrong.push(fault);
        };
        if !seen.insert(field.hcl) || parent.body.attributes.iter().any(|given| given.name.text == field.hcl)
        {
            let message = format!("\"{}\" is given twice in {}", field.hcl, named(parent));
            return self.wrong.push(Fault::new(block.header, message));
        }
        if let Some(value) = self.open_block(field.kind, block) {
            object.insert(field.json.to_string(), value);
        }
    }

    fn put(&mut self, nested: &Nested, block: &Block, inner: Object, object: &mut Object) {
        match nested.many {
            Many::One => {
                object.insert(nested.json.to_string(), Json::Object(inner));
            }
            Many::List => {
                let list = object.entry(nested.json).or_insert_with(|| json!([]));
                list.as_array_mut()
                    .expect("a repeated block is decoded into a list")
                    .push(Json::Object(inner));
            }
            Many::ByLabel => {
                let label = block.labels.first().map_or("", |label| label.text.as_str());
                let map = object.entry(nested.json).or_insert_with(|| json!({}));
                let map = map.as_object_mut().expect("a block by label is decoded into a map");
                if map.insert(label.to_string(), Json::Object(inner)).is_some() {
                    let message = format!("a second {} \"{label}\"", block.kind.text);
                    self.wrong.push(Fault::new(block.header, message));
                }
            }
        }
    }

    /// A block whose names are the user's own, such as `env` or `config`.
    fn open_block(&mut self, kind: FieldKind, block: &Block) -> Option<Json> {
        if let Some(label) = block.labels.first() {
            self.wrong.push(Fault::new(label.span, format!("a {} block takes no label", block.kind.text)));
            return None;
        }
        if kind != FieldKind::Free
            && let Some(inner) = block.body.blocks.first()
        {
            let message = format!("{} holds only name = value, not blocks", block.kind.text);
            self.wrong.push(Fault::new(inner.header, message));
            return None;
        }
        let decoded = self.open_body(&block.body).and_then(|value| {
            let value = values::decode(kind, value);
            value.map_err(|why| Fault::new(block.header, format!("\"{}\": {why}", block.kind.text)))
        });
        decoded.map_err(|fault| self.wrong.push(fault)).ok()
    }

    /// Attributes as they are; each kind of block as a list of objects, nested below its labels.
    fn open_body(&mut self, body: &Body) -> Result<Value, Fault> {
        let mut object = BTreeMap::new();
        for attribute in &body.attributes {
            object.insert(attribute.name.text.clone(), self.evaluator.value(&attribute.value)?);
        }
        let mut lists: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for block in &body.blocks {
            self.open_inner(block, &object, &mut lists)?;
        }
        object.extend(lists.into_iter().map(|(name, blocks)| (name, Value::List(blocks))));
        Ok(Value::Object(object))
    }

    /// Adds one block of an open body to those of its kind.
    fn open_inner(
        &mut self,
        block: &Block,
        attributes: &BTreeMap<String, Value>,
        lists: &mut BTreeMap<String, Vec<Value>>,
    ) -> Result<(), Fault> {
        if block.kind.text == "dynamic" {
            let mut inner = Ok(());
            Dynamic::read(block)?.expand(
                self,
                |decoder| decoder.evaluator,
                |decoder, made| {
                    inner = decoder.open_inner(made, attributes, lists);
                    inner.is_ok()
                },
            )?;
            return inner;
        }
        if attributes.contains_key(&block.kind.text) {
            let message = format!("\"{}\" is both an attribute and a block", block.kind.text);
            return Err(Fault::new(block.header, message));
        }
        let mut value = self.open_body(&block.body)?;
        for label in block.labels.iter().rev() {
            value = Value::Object(BTreeMap::from([(label.text.clone(), Value::List(vec![value]))]));
        }
        lists.entry(block.kind.text.clone()).or_default().push(value);
        Ok(())
    }
}

/// `group "web"`, as messages call a block.
fn named(block: &Block) -> String {
    match block.labels.first() {
        Some(label) => format!("{} \"{}\"", block.kind.text, label.text),
        None => block.kind.text.clone(),
    }
}

fn unexpected(schema: &'static Schema, parent: &Block, name: &Name) -> Fault {
    let written = name.text.as_str();
    let fault = Fault::new(name.span, format!("\"{written}\" is not expected in {}", named(parent)));
    if schema.block(written).is_some() {
        return fault.hint(format!("{written} is a block: write {written} {{ … }} without ="));
    }
    if schema.field(written).is_some() {
        return fault.hint(format!("{written} is an argument: write {written} = …"));
    }
    fault.suggest(written, schema.names())
}
