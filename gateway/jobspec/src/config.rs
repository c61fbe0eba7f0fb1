//! Agent configuration files, read by name: what nobody asked for is an error with its position.
//!
//! The syntax is HCL version 1 or JSON; blocks and objects are the same thing. `${ }` has no meaning here.
//!
//! ```
//! let source = jobspec::Source::new("agent.hcl", "region = \"eu\"\nclient { enabled = true }\n");
//! let mut top = jobspec::config::Section::parse(&source)?;
//! let region: Option<String> = top.take("region")?;
//! let mut enabled = None;
//! for mut client in top.sections("client")? {
//!     enabled = client.take::<bool>("enabled")?;
//!     client.finish()?;
//! }
//! top.finish()?;
//! assert_eq!((region.as_deref(), enabled), (Some("eu"), Some(true)));
//! # Ok::<(), jobspec::Diagnostics>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use model::document::input;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Diagnostics, Fault, Source, Span};
use crate::eval::{Evaluator, NoFiles, Value};
use crate::hcl::{Block, Body, Dialect, Expr, ExprKind, Key, Label, Name, parse_body, parse_document};

/// A block or an object of a configuration file.
#[derive(Debug)]
pub struct Section {
    source: Arc<Source>,
    /// Of the block's kind and labels, or of the object.
    pub span: Span,
    /// What stands between the kind and the brace, like `"docker"` in `plugin "docker" { … }`.
    pub labels: Vec<String>,
    entries: Vec<Entry>,
    asked: Vec<String>,
    /// The names of the blocks that it is in, and its own.
    path: Vec<String>,
    record: Record,
}

/// Every name that was asked for, in a file and in the blocks of it: what its reader accepts.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<Names>>);

/// Each behind the names of its blocks.
type Names = BTreeSet<(Vec<String>, Asked)>;

/// As what a name was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    Value,
    Block,
    /// For a caller that makes no use of it.
    Nothing,
}

impl Record {
    /// The names, each behind those of the blocks that it was asked for in.
    pub fn names(&self) -> Vec<(Vec<String>, Asked)> {
        self.names_so_far().iter().cloned().collect()
    }

    fn names_so_far(&self) -> std::sync::MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Entry {
    name: String,
    span: Span,
    item: Item,
}

#[derive(Debug)]
enum Item {
    Value { value: Json, span: Span },
    Section(Section),
}

impl Section {
    fn new(source: &Arc<Source>, span: Span, entries: Vec<Entry>) -> Section {
        let (labels, asked, path) = (Vec::new(), Vec::new(), Vec::new());
        Section { source: source.clone(), span, labels, entries, asked, path, record: Record::default() }
    }

    /// Reads a file; as JSON when its name ends in `.json` or it starts with a brace.
    ///
    /// # Errors
    /// What is wrong with the syntax, with its position.
    pub fn parse(source: &Source) -> Result<Section, Diagnostics> {
        let shared = Arc::new(source.clone());
        let json = source.name.ends_with(".json") || source.text.trim_start().starts_with('{');
        let section = if json {
            parse_document(source, Dialect::Json).and_then(|object| of_object(&shared, object))
        } else {
            parse_body(source, Dialect::Config)
                .and_then(|body| of_body(&shared, Span::default(), Vec::new(), body))
        };
        section.map_err(|fault| fault.at(source).into())
    }

    /// Takes the value under `name`, if it is there; the last one when it is repeated.
    ///
    /// # Errors
    /// When it has another shape than `T`.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Diagnostics> {
        let mut taken = None;
        for entry in self.remove(name, Asked::Value) {
            let (value, span) = match entry.item {
                Item::Value { value, span } => (value, span),
                Item::Section(section) => (section.into_json(), entry.span),
            };
            let value = input::from_value(value);
            taken = Some(value.map_err(|why| self.source.wrong(span, format!("\"{name}\": {why}")))?);
        }
        Ok(taken)
    }

    /// Takes what stands under `name` for a caller that makes no use of it: one problem for each value that is not
    /// `accepted`, at its position.
    pub fn refuse(
        &mut self,
        name: &str,
        accepted: impl Fn(&Json) -> bool,
        message: impl Fn() -> String,
    ) -> Vec<Diagnostic> {
        let entries = self.remove(name, Asked::Nothing).into_iter().map(|entry| match entry.item {
            Item::Value { value, span } => (value, span),
            Item::Section(section) => (section.into_json(), entry.span),
        });
        let refused = entries.filter(|(value, _)| !accepted(value));
        refused.map(|(_, span)| Fault::new(span, message()).at(&self.source)).collect()
    }

    /// Takes every block or object called `name`, in order. In a list of objects each is one section.
    ///
    /// # Errors
    /// When something else stands under the name.
    pub fn sections(&mut self, name: &str) -> Result<Vec<Section>, Diagnostics> {
        let mut sections = Vec::new();
        let path: Vec<String> = self.path.iter().cloned().chain([name.to_string()]).collect();
        for entry in self.remove(name, Asked::Block) {
            match entry.item {
                Item::Section(section) => {
                    sections.push(Section { path: path.clone(), record: self.record.clone(), ..section });
                }
                Item::Value { span, .. } => {
                    let message = format!("\"{name}\" is a block: write {name} {{ … }}");
                    return Err(self.source.wrong(span, message));
                }
            }
        }
        Ok(sections)
    }

    /// Every name that has not been taken yet, in order: for sections whose names are the user's own.
    pub fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.name.clone()).collect()
    }

    /// Takes everything as text by name: for sections of scalars, such as `meta` and `options`.
    ///
    /// # Errors
    /// When a value is not text, a number or a bool.
    pub fn into_texts(mut self) -> Result<BTreeMap<String, String>, Diagnostics> {
        let mut texts = BTreeMap::new();
        for name in self.names() {
            let text = match self.take(&name)? {
                Some(Json::String(text)) => text,
                Some(value @ (Json::Bool(_) | Json::Number(_))) => value.to_string(),
                _ => return Err(self.wrong(format!("\"{name}\" is not text"))),
            };
            texts.insert(name, text);
        }
        Ok(texts)
    }

    /// A problem with the value under `name`, which need not be taken yet; for rules that several values have to fit.
    /// `None` when it is not there.
    pub fn problem(&self, name: &str, message: impl Into<String>) -> Option<Diagnostic> {
        let entry = self.entries.iter().rev().find(|entry| entry.name == name)?;
        let span = match &entry.item {
            Item::Value { span, .. } => *span,
            Item::Section(_) => entry.span,
        };
        Some(Fault::new(span, message.into()).at(&self.source))
    }

    /// An error at this section; for rules about what was taken from it.
    pub fn wrong(&self, message: impl Into<String>) -> Diagnostics {
        self.source.wrong(self.span, message)
    }

    /// Makes sure that nothing is left that nobody asked for.
    ///
    /// # Errors
    /// Every name that is left, with a suggestion among those that were asked for.
    pub fn finish(self) -> Result<(), Diagnostics> {
        let left = self.entries.iter().map(|entry| {
            let fault = Fault::new(entry.span, format!("unexpected key \"{}\"", entry.name));
            fault.suggest(&entry.name, self.asked.iter().map(String::as_str)).at(&self.source)
        });
        let left: Vec<_> = left.collect();
        if left.is_empty() { Ok(()) } else { Err(Diagnostics(left)) }
    }

    /// What was asked for so far of the file. Of a section that stands in another it is the same.
    pub fn record(&self) -> Record {
        self.record.clone()
    }

    fn remove(&mut self, name: &str, asked: Asked) -> Vec<Entry> {
        self.asked.push(name.to_string());
        let path = self.path.iter().cloned().chain([name.to_string()]).collect();
        self.record.names_so_far().insert((path, asked));
        let (found, others) =
            std::mem::take(&mut self.entries).into_iter().partition(|entry| entry.name == name);
        self.entries = others;
        found
    }

    fn into_json(self) -> Json {
        let of = |item| match item {
            Item::Value { value, .. } => value,
            Item::Section(section) => section.into_json(),
        };
        let object = self.entries.into_iter().map(|entry| (entry.name, of(entry.item))).collect();
        let object = Json::Object(object);
        self.labels
            .into_iter()
            .rev()
            .fold(object, |inner, label| Json::Object([(label, inner)].into_iter().collect()))
    }
}

fn of_body(source: &Arc<Source>, span: Span, labels: Vec<Label>, body: Body) -> Result<Section, Fault> {
    let mut entries = Vec::new();
    for attribute in body.attributes {
        push(source, &mut entries, attribute.name, attribute.value)?;
    }
    for Block { kind, labels, body, header } in body.blocks {
        let section = of_body(source, header, labels, Rc::unwrap_or_clone(body))?;
        entries.push(Entry { name: kind.text, span: kind.span, item: Item::Section(section) });
    }
    let labels = labels.into_iter().map(|label| label.text).collect();
    Ok(Section { labels, ..Section::new(source, span, entries) })
}

fn of_object(source: &Arc<Source>, object: Expr) -> Result<Section, Fault> {
    let span = object.span;
    let ExprKind::Object(members) = object.kind else {
        return Err(Fault::new(span, "expected an object"));
    };
    let mut entries = Vec::new();
    for (key, value) in members {
        let name = match key {
            Key::Name(name) => name,
            Key::Computed(Expr { kind: ExprKind::Literal(Value::Text(text)), span, .. }) => {
                Name { text, span }
            }
            Key::Computed(other) => return Err(Fault::new(other.span, "expected a name")),
        };
        push(source, &mut entries, name, value)?;
    }
    Ok(Section::new(source, span, entries))
}

/// Objects and lists of objects become sections, everything else is a value.
fn push(source: &Arc<Source>, entries: &mut Vec<Entry>, name: Name, value: Expr) -> Result<(), Fault> {
    let is_object = |expr: &Expr| matches!(expr.kind, ExprKind::Object(_));
    let Name { text: name, span } = name;
    match value.kind {
        ExprKind::Object(_) => {
            let section = of_object(source, value)?;
            entries.push(Entry { name, span, item: Item::Section(section) });
        }
        ExprKind::List(items) if !items.is_empty() && items.iter().all(is_object) => {
            for item in items {
                let section = of_object(source, item)?;
                entries.push(Entry { name: name.clone(), span, item: Item::Section(section) });
            }
        }
        _ => {
            let json = Evaluator::new(source, &NoFiles).value(&value)?.into_json();
            entries.push(Entry { name, span, item: Item::Value { value: json, span: value.span } });
        }
    }
    Ok(())
}
