use std::rc::Rc;

use crate::diagnostic::Span;
use crate::eval::Value;

#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// A block label: like a name, but any text.
pub(crate) type Label = Name;

#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub name: Name,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub kind: Name,
    pub labels: Vec<Label>,
    /// Shared: `dynamic` makes many blocks of one body.
    pub body: Rc<Body>,
    /// From the kind to the last label.
    pub header: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// Levels of expressions below and including this one; at most [`super::NESTING_MAX`].
    pub depth: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Value),
    Template(Vec<Part>),
    List(Vec<Expr>),
    Object(Vec<(Key, Expr)>),
    /// A name that is not a keyword: the start of a reference.
    Root(String),
    Access {
        base: Box<Expr>,
        steps: Vec<Step>,
    },
    Splat(Box<Splat>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary {
        operator: Operator,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Conditional {
        condition: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
    },
    Call {
        name: Name,
        arguments: Vec<Expr>,
        expand_last: bool,
    },
    For(Box<For>),
    Paren(Box<Expr>),
}

#[derive(Clone, Debug)]
pub(crate) enum Key {
    Name(Name),
    Computed(Expr),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Attribute(Name),
    Index(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Splat {
    pub base: Expr,
    pub each: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct For {
    pub key_name: Option<Name>,
    pub value_name: Name,
    pub collection: Expr,
    /// Present for the form that builds an object.
    pub key: Option<Expr>,
    pub value: Expr,
    pub grouping: bool,
    pub condition: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// Which sides of a template sequence swallow the white space beside them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trim {
    pub before: bool,
    pub after: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Value(Expr),
    If { condition: Expr, yes: Vec<Part>, no: Vec<Part> },
    For { key_name: Option<Name>, value_name: Name, collection: Expr, body: Vec<Part> },
}

impl Part {
    pub(crate) fn depth(&self) -> usize {
        let deepest = |parts: &[Part]| parts.iter().map(Part::depth).max().unwrap_or(0);
        match self {
            Part::Text(_) => 0,
            Part::Value(value) => value.depth,
            Part::If { condition, yes, no } => 1 + condition.depth.max(deepest(yes)).max(deepest(no)),
            Part::For { collection, body, .. } => 1 + collection.depth.max(deepest(body)),
        }
    }
}

impl Step {
    fn depth(&self) -> usize {
        match self {
            Step::Attribute(_) => 0,
            Step::Index(index) => index.depth,
        }
    }
}

impl ExprKind {
    /// Levels below this expression.
    pub(crate) fn depth_below(&self) -> usize {
        let deepest = |items: &[Expr]| items.iter().map(|item| item.depth).max().unwrap_or(0);
        let steps = |steps: &[Step]| steps.iter().map(Step::depth).max().unwrap_or(0);
        match self {
            ExprKind::Literal(_) | ExprKind::Root(_) => 0,
            ExprKind::Template(parts) => parts.iter().map(Part::depth).max().unwrap_or(0),
            ExprKind::List(items) | ExprKind::Call { arguments: items, .. } => deepest(items),
            ExprKind::Object(entries) => entries.iter().map(entry_depth).max().unwrap_or(0),
            ExprKind::Access { base, steps: each } => base.depth.max(steps(each)),
            ExprKind::Splat(splat) => splat.base.depth.max(steps(&splat.each)),
            ExprKind::Not(inner) | ExprKind::Negate(inner) | ExprKind::Paren(inner) => inner.depth,
            ExprKind::Binary { left, right, .. } => left.depth.max(right.depth),
            ExprKind::Conditional { condition, yes, no } => condition.depth.max(yes.depth).max(no.depth),
            ExprKind::For(each) => for_depth(each),
        }
    }
}

fn entry_depth((key, value): &(Key, Expr)) -> usize {
    match key {
        Key::Name(_) => value.depth,
        Key::Computed(key) => key.depth.max(value.depth),
    }
}

fn for_depth(each: &For) -> usize {
    let optional = |part: &Option<Expr>| part.as_ref().map_or(0, |part| part.depth);
    let parts = [each.collection.depth, each.value.depth, optional(&each.key), optional(&each.condition)];
    parts.into_iter().max().unwrap_or(0)
}
