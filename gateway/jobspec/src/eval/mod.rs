//! Expressions to values.
//!
//! Bounded in steps, in bytes and in depth, so that no job file can keep a server busy or exhaust its stack.
//! Performs no I/O: files come from the caller through [`Files`].

mod access;
mod convert;
mod error;
mod function;
mod operator;
mod set;
mod template;
mod value;

use std::collections::BTreeMap;

use crate::diagnostic::{Fault, Source, Span};
use crate::hcl::{Expr, ExprKind, Key, NESTING_MAX};

pub(crate) use convert::{to_bool, to_int, to_number, to_text};
pub(crate) use error::ValueError;
pub(crate) use set::set;
pub(crate) use value::Value;

/// What one text may spend on evaluation, in bytes of the values it makes or copies. Bounds the memory to about this,
/// and, since every expression costs [`STEP_COST`], the time to about a second.
pub const BUDGET: usize = 64 << 20;

/// Cost of evaluating one expression, in the units of [`BUDGET`].
pub(crate) const STEP_COST: usize = 32;

/// Largest value a function may build, in bytes: functions such as `join` and `replace` multiply their input.
pub const RESULT_MAX: usize = 8 << 20;

/// Deepest nesting of a value. Values nest deeper than any expression when locals build on each other.
pub(crate) const VALUE_DEPTH_MAX: usize = 2 * NESTING_MAX;

/// What a job file may take from the world around it: files and randomness.
pub trait Files {
    /// The content of the file at `path`, as written in the job file; relative paths are the caller's to resolve.
    ///
    /// # Errors
    /// A sentence for the user: why there is no content.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// False where job files must not see the disk: then all functions of files and paths are refused.
    fn allowed(&self) -> bool {
        true
    }

    /// The files below a folder, at any depth, as paths from there with `/` between their parts.
    ///
    /// # Errors
    /// A sentence for the user: why they cannot be listed.
    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        Err(format!("the files of {folder} cannot be listed here"))
    }

    /// The path from the root, without `.` and `..`.
    ///
    /// # Errors
    /// A sentence for the user: why it is not known.
    fn absolute(&self, path: &str) -> Result<String, String> {
        Err(format!("where {path} lies is not known here"))
    }

    /// The user's own directory.
    fn home(&self) -> Option<String> {
        None
    }

    /// Fresh random bytes for `uuidv4` and `bcrypt`; `None` where there are none, which makes them errors.
    fn random(&self) -> Option<[u8; 16]> {
        None
    }
}

/// Refuses every file, and has no randomness: for callers whose results must not depend on where they run.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("filesystem function disabled".to_string())
    }

    fn allowed(&self) -> bool {
        false
    }
}

pub(crate) struct Evaluator<'a> {
    pub source: &'a Source,
    pub files: &'a dyn Files,
    /// What `var.name` gives.
    pub variables: BTreeMap<String, Value>,
    /// What `local.name` gives.
    pub locals: BTreeMap<String, Value>,
    /// Names of for expressions, the innermost last.
    names: Vec<(String, Value)>,
    spent: usize,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(source: &'a Source, files: &'a dyn Files) -> Evaluator<'a> {
        Evaluator {
            source,
            files,
            variables: BTreeMap::new(),
            locals: BTreeMap::new(),
            names: Vec::new(),
            spent: 0,
        }
    }

    /// The value of an expression. References that only a node can resolve become their own text in `${ }`.
    pub(crate) fn value(&mut self, expr: &Expr) -> Result<Value, Fault> {
        self.spend(STEP_COST, expr.span)?;
        match &expr.kind {
            ExprKind::Literal(value) => self.copied(value, expr.span),
            ExprKind::Template(parts) => self.template(parts, expr.span),
            ExprKind::List(items) => self.list(items),
            ExprKind::Object(entries) => self.object(entries),
            ExprKind::Root(name) => self.root(name, &[], expr.span),
            ExprKind::Access { base, steps } => self.access(base, steps, expr.span),
            ExprKind::Splat(splat) => self.splat(splat),
            ExprKind::Not(inner) => self.not(inner),
            ExprKind::Negate(inner) => self.negate(inner),
            ExprKind::Binary { operator, left, right } => self.binary(*operator, left, right, expr.span),
            ExprKind::Conditional { condition, yes, no } => self.conditional(condition, yes, no),
            ExprKind::Call { name, arguments, expand_last } => {
                self.call(name, arguments, *expand_last, expr.span)
            }
            ExprKind::For(each) => self.for_each(each),
            ExprKind::Paren(inner) => self.value(inner),
        }
    }

    /// Pays for work done on behalf of `span`.
    pub(crate) fn spend(&mut self, cost: usize, span: Span) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > BUDGET {
            return Err(Fault::new(span, "the expressions of this file need more than the allowed work"));
        }
        Ok(())
    }

    /// Pays for a value that was made and checks its depth.
    pub(crate) fn made(&mut self, value: Value, span: Span) -> Result<Value, Fault> {
        match value.weigh(VALUE_DEPTH_MAX) {
            Some(weight) => self.spend(weight, span).map(|()| value),
            None => {
                Err(Fault::new(span, format!("this value nests more than {VALUE_DEPTH_MAX} levels deep")))
            }
        }
    }

    /// Pays for a copy before making it.
    pub(crate) fn copied(&mut self, value: &Value, span: Span) -> Result<Value, Fault> {
        match value.weigh(VALUE_DEPTH_MAX) {
            Some(weight) => self.spend(weight, span).map(|()| value.clone()),
            None => {
                Err(Fault::new(span, format!("this value nests more than {VALUE_DEPTH_MAX} levels deep")))
            }
        }
    }

    /// Lets `name` stand for `value`, until [`Self::unbind`].
    pub(crate) fn bind(&mut self, name: String, value: Value) {
        self.names.push((name, value));
    }

    pub(crate) fn unbind(&mut self) {
        self.names.pop();
    }

    /// Runs `inner` with names bound; they are gone afterwards.
    pub(crate) fn with_names<T>(
        &mut self,
        names: Vec<(String, Value)>,
        inner: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let before = self.names.len();
        self.names.extend(names);
        let value = inner(self);
        self.names.truncate(before);
        value
    }

    fn list(&mut self, items: &[Expr]) -> Result<Value, Fault> {
        items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>().map(Value::List)
    }

    fn object(&mut self, entries: &[(Key, Expr)]) -> Result<Value, Fault> {
        let mut object = BTreeMap::new();
        for (key, value) in entries {
            let key = self.key(key)?;
            let value = self.value(value)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    pub(crate) fn key(&mut self, key: &Key) -> Result<String, Fault> {
        match key {
            Key::Name(name) => Ok(name.text.clone()),
            Key::Computed(expr) => {
                let value = self.value(expr)?;
                to_text(&value).map_err(|why| Fault::new(expr.span, format!("a key must be text: {why}")))
            }
        }
    }
}
