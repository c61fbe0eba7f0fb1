use std::rc::Rc;

use std::collections::HashSet;

use super::ast::{Attribute, Block, Body, Expr, ExprKind, Name};
use super::cursor::Cursor;
use super::{Dialect, SOURCE_MAX};
use crate::diagnostic::{Fault, Source, Span};

/// Reads a whole text as a body.
pub(crate) fn parse_body(source: &Source, dialect: Dialect) -> Result<Body, Fault> {
    check_size(source)?;
    let mut cursor = Cursor::new(&source.text, dialect);
    let body = cursor.body(None)?;
    Ok(body)
}

/// Reads a whole text as one expression: the value of a flag, or a JSON document.
pub(crate) fn parse_expression(source: &Source, dialect: Dialect) -> Result<Expr, Fault> {
    check_size(source)?;
    let mut cursor = Cursor::new(&source.text, dialect);
    cursor.lines_count = false;
    let value = cursor.expression()?;
    cursor.space_and_lines()?;
    match cursor.peek() {
        None => Ok(value),
        Some(_) => Err(cursor.expected("the end of the value")),
    }
}

/// Reads a JSON document, which must be an object.
pub(crate) fn parse_document(source: &Source, dialect: Dialect) -> Result<Expr, Fault> {
    let document = parse_expression(source, dialect)?;
    match document.kind {
        ExprKind::Object(_) => Ok(document),
        _ => Err(Fault::new(document.span, "expected an object in braces")),
    }
}

fn check_size(source: &Source) -> Result<(), Fault> {
    if source.text.len() > SOURCE_MAX {
        let size = source.text.len();
        return Err(Fault::new(
            Span::default(),
            format!("the text has {size} bytes; at most {SOURCE_MAX} are read"),
        ));
    }
    Ok(())
}

impl Cursor<'_> {
    /// The body up to its `}`, or up to the end of the text when no block was opened.
    fn body(&mut self, opened: Option<&Block>) -> Result<Body, Fault> {
        let mut body = Body::default();
        let mut taken = HashSet::new();
        loop {
            self.space_and_lines()?;
            match (self.peek(), opened) {
                (None, None) => return Ok(body),
                (None, Some(block)) => return Err(unclosed(block)),
                (Some('}'), Some(_)) => {
                    self.at += 1;
                    return Ok(body);
                }
                (Some('}'), None) => {
                    return Err(Fault::new(self.here(), "this `}` closes a block that was never opened"));
                }
                (Some(_), _) => self.item(&mut body, &mut taken, opened)?,
            }
        }
    }

    fn item(
        &mut self,
        body: &mut Body,
        taken: &mut HashSet<String>,
        opened: Option<&Block>,
    ) -> Result<(), Fault> {
        let name = self.item_name()?;
        self.space()?;
        let assigned =
            self.peek() == Some('=') || (self.dialect == Dialect::Config && self.peek() == Some(':'));
        if !assigned {
            let block = self.block(name)?;
            body.blocks.push(block);
            return self.end_of_item("block", opened);
        }
        self.at += 1;
        let value = self.with_lines(true, |cursor| {
            cursor.space()?;
            if matches!(cursor.peek(), None | Some('\n' | '}')) {
                return Err(Fault::new(name.span, format!("\"{}\" has no value", name.text)));
            }
            cursor.expression()
        })?;
        // Agent files may repeat a key: version 1 of the language lets the last one win.
        if !taken.insert(name.text.clone()) && self.dialect == Dialect::Native {
            return Err(Fault::new(name.span, format!("\"{}\" is set twice in the same block", name.text)));
        }
        let what = format!("value of \"{}\"", name.text);
        body.attributes.push(Attribute { name, value });
        self.end_of_item(&what, opened)
    }

    fn item_name(&mut self) -> Result<Name, Fault> {
        if let Some(name) = self.identifier() {
            return Ok(name);
        }
        if self.peek() != Some('"') {
            return Err(self.expected("the name of an argument or block"));
        }
        let name = self.plain_string()?;
        if self.dialect == Dialect::Config {
            return Ok(name);
        }
        let hint = format!("write the enclosing block as an object: = {{ \"{}\" = … }}", name.text);
        Err(Fault::new(name.span, "the name of an argument must not be quoted").hint(hint))
    }

    fn block(&mut self, kind: Name) -> Result<Block, Fault> {
        let mut labels = Vec::new();
        loop {
            self.space()?;
            match self.peek() {
                Some('{') => break,
                Some('"') => labels.push(self.plain_string()?),
                _ => match self.identifier() {
                    Some(label) => labels.push(label),
                    None => return Err(self.after_block_name(&kind)),
                },
            }
        }
        let header = labels.last().map_or(kind.span, |label| kind.span.to(label.span));
        let mut block = Block { kind, labels, body: Rc::default(), header };
        self.at += 1;
        self.enter()?;
        block.body = Rc::new(self.with_lines(true, |cursor| cursor.body(Some(&block)))?);
        self.leave();
        Ok(block)
    }

    fn after_block_name(&self, kind: &Name) -> Fault {
        let wanted = format!("`=`, `{{` or a label after \"{}\"", kind.text);
        match self.peek() {
            Some('.') => self.expected(&wanted).hint("names with dots go into an object: { \"a.b\" = … }"),
            _ => self.expected(&wanted),
        }
    }

    fn end_of_item(&mut self, what: &str, opened: Option<&Block>) -> Result<(), Fault> {
        self.space()?;
        match self.peek() {
            None | Some('\n') => Ok(()),
            Some('}') if opened.is_some() => Ok(()),
            Some(',') if self.dialect == Dialect::Config => {
                self.at += 1;
                Ok(())
            }
            // Version 1 ends an item wherever the next one can start.
            Some(_) if self.dialect == Dialect::Config => Ok(()),
            Some(_) => Err(self.expected(&format!("a new line after the {what}"))),
        }
    }
}

fn unclosed(block: &Block) -> Fault {
    Fault::new(block.header, format!("this \"{}\" block is never closed by `}}`", block.kind.text))
}
