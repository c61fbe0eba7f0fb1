//! `dynamic "kind"` blocks: one block of that kind for each element of a collection.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::diagnostic::Fault;
use crate::eval::{Evaluator, Value, to_text};
use crate::hcl::{Block, Body, Expr, ExprKind, Label, Name};

/// What each block costs of the budget: about the bytes that an empty one takes once it is decoded.
const BLOCK_COST: usize = 1024;

pub(super) struct Dynamic<'b> {
    kind: &'b Name,
    /// What the content calls the element: `iterator.key` and `iterator.value`.
    iterator: &'b str,
    for_each: &'b Expr,
    labels: Option<&'b Expr>,
    content: &'b Rc<Body>,
}

impl<'b> Dynamic<'b> {
    /// # Errors
    /// When the block is not of the form `dynamic "kind" { for_each = …, labels = […], content { … } }`.
    pub(super) fn read(block: &'b Block) -> Result<Dynamic<'b>, Fault> {
        let [kind] = block.labels.as_slice() else {
            let fault =
                Fault::new(block.header, "a dynamic block takes one label: the kind of block it makes");
            return Err(fault.hint("write dynamic \"kind\" { … }"));
        };
        let (mut for_each, mut labels, mut iterator) = (None, None, kind.text.as_str());
        for attribute in &block.body.attributes {
            match attribute.name.text.as_str() {
                "for_each" => for_each = Some(&attribute.value),
                "labels" => labels = Some(&attribute.value),
                "iterator" => iterator = name_of(&attribute.value)?,
                other => {
                    let message = format!("\"{other}\" is not expected in dynamic \"{}\"", kind.text);
                    let fault = Fault::new(attribute.name.span, message);
                    return Err(fault.suggest(other, ["for_each", "labels", "iterator", "content"]));
                }
            }
        }
        let Some(for_each) = for_each else {
            return Err(Fault::new(block.header, format!("dynamic \"{}\" has no \"for_each\"", kind.text)));
        };
        Ok(Dynamic { kind, iterator, for_each, labels, content: content(block, kind)? })
    }

    /// Calls `each` with every block, while the iterator stands for its element. Ends when `each` gives `false`.
    ///
    /// # Errors
    /// When the collection or the labels of a block have no value of the right type.
    pub(super) fn expand<'a, D>(
        &self,
        decoder: &mut D,
        evaluator: impl Fn(&mut D) -> &mut Evaluator<'a>,
        mut each: impl FnMut(&mut D, &Block) -> bool,
    ) -> Result<(), Fault> {
        for (key, value) in evaluator(decoder).entries(self.for_each)? {
            evaluator(decoder).spend(BLOCK_COST, self.for_each.span)?;
            let element = BTreeMap::from([("key".to_string(), key), ("value".to_string(), value)]);
            evaluator(decoder).bind(self.iterator.to_string(), Value::Object(element));
            let go_on = self.block(evaluator(decoder)).map(|block| each(decoder, &block));
            evaluator(decoder).unbind();
            if !go_on? {
                break;
            }
        }
        Ok(())
    }

    fn block(&self, evaluator: &mut Evaluator) -> Result<Block, Fault> {
        let labels = match self.labels {
            None => Vec::new(),
            Some(expr) => labels(evaluator.value(expr)?, expr)?,
        };
        Ok(Block { kind: self.kind.clone(), labels, body: self.content.clone(), header: self.kind.span })
    }
}

fn name_of(expr: &Expr) -> Result<&str, Fault> {
    match &expr.kind {
        ExprKind::Root(name) => Ok(name),
        _ => Err(Fault::new(expr.span, "\"iterator\" is a name, without quotes")),
    }
}

fn content<'b>(block: &'b Block, kind: &Name) -> Result<&'b Rc<Body>, Fault> {
    if let Some(other) = block.body.blocks.iter().find(|inner| inner.kind.text != "content") {
        let message = format!("\"{}\" is not expected in dynamic \"{}\"", other.kind.text, kind.text);
        return Err(
            Fault::new(other.header, message).hint("the body of the made blocks goes into content { … }")
        );
    }
    match block.body.blocks.as_slice() {
        [content] if content.labels.is_empty() => Ok(&content.body),
        [content] => Err(Fault::new(content.header, "a content block takes no label")),
        [] => Err(Fault::new(block.header, format!("dynamic \"{}\" has no content block", kind.text))),
        [_, second, ..] => Err(Fault::new(second.header, "a second content block")),
    }
}

fn labels(value: Value, expr: &Expr) -> Result<Vec<Label>, Fault> {
    let Value::List(items) = value else {
        let message = format!("\"labels\" is a list of text, found {}", value.describe());
        return Err(Fault::new(expr.span, message));
    };
    let label = |item: &Value| match to_text(item) {
        Ok(text) => Ok(Name { text, span: expr.span }),
        Err(why) => Err(Fault::new(expr.span, format!("\"labels\": {why}"))),
    };
    items.iter().map(label).collect()
}
