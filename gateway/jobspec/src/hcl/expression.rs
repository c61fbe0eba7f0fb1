use super::ast::{Expr, ExprKind, For, Key, Name, Operator, Splat, Step};
use super::cursor::{Cursor, too_deep};
use super::{Dialect, NESTING_MAX};
use crate::diagnostic::{Fault, Span};
use crate::eval::Value;

/// Every operator and how tightly it binds. Longer spellings stand before their prefixes.
const OPERATORS: [(&str, Operator, u8); 13] = [
    ("||", Operator::Or, 1),
    ("&&", Operator::And, 2),
    ("==", Operator::Equal, 3),
    ("!=", Operator::NotEqual, 3),
    ("<=", Operator::LessOrEqual, 4),
    (">=", Operator::GreaterOrEqual, 4),
    ("<", Operator::Less, 4),
    (">", Operator::Greater, 4),
    ("+", Operator::Add, 5),
    ("-", Operator::Subtract, 5),
    ("*", Operator::Multiply, 6),
    ("/", Operator::Divide, 6),
    ("%", Operator::Modulo, 6),
];

impl Cursor<'_> {
    pub(super) fn node(&self, kind: ExprKind, span: Span) -> Result<Expr, Fault> {
        let depth = 1 + kind.depth_below();
        if depth > NESTING_MAX { Err(too_deep(span)) } else { Ok(Expr { kind, span, depth }) }
    }

    pub(super) fn expression(&mut self) -> Result<Expr, Fault> {
        self.enter()?;
        self.space()?;
        let value = if self.dialect.is_json() { self.unary()? } else { self.conditional()? };
        self.leave();
        Ok(value)
    }

    fn conditional(&mut self) -> Result<Expr, Fault> {
        let condition = self.binary(1)?;
        self.space()?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.space()?;
        if !self.take(":") {
            return Err(self.expected("`:` and the value for when the condition is false"));
        }
        let no = self.expression()?;
        let span = condition.span.to(no.span);
        let (condition, yes, no) = (Box::new(condition), Box::new(yes), Box::new(no));
        self.node(ExprKind::Conditional { condition, yes, no }, span)
    }

    /// Operators that bind at least as tightly as `least`; those of one strength group to the left.
    fn binary(&mut self, least: u8) -> Result<Expr, Fault> {
        let mut left = self.unary()?;
        loop {
            self.space()?;
            let Some((sign, operator, strength)) = self.operator().filter(|found| found.2 >= least) else {
                return Ok(left);
            };
            self.at += sign.len();
            self.space()?;
            let right = self.binary(strength + 1)?;
            let span = left.span.to(right.span);
            let (a, b) = (Box::new(left), Box::new(right));
            left = self.node(ExprKind::Binary { operator, left: a, right: b }, span)?;
        }
    }

    fn operator(&self) -> Option<(&'static str, Operator, u8)> {
        OPERATORS.into_iter().find(|(sign, ..)| self.looking_at(sign))
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        let start = self.at;
        let negate = self.looking_at("-");
        if !negate && !self.looking_at("!") {
            return self.postfix();
        }
        self.at += 1;
        self.enter()?;
        self.space()?;
        let inner = Box::new(self.unary()?);
        self.leave();
        let kind = match inner.kind {
            ExprKind::Literal(Value::Int(n)) if negate => ExprKind::Literal(Value::Int(n.wrapping_neg())),
            ExprKind::Literal(Value::Float(n)) if negate => ExprKind::Literal(Value::Float(-n)),
            _ if negate => ExprKind::Negate(inner),
            _ => ExprKind::Not(inner),
        };
        self.node(kind, self.since(start))
    }

    fn postfix(&mut self) -> Result<Expr, Fault> {
        let mut base = self.primary()?;
        if self.dialect.is_json() {
            return Ok(base);
        }
        loop {
            let (steps, splat) = self.steps()?;
            if !steps.is_empty() {
                let span = self.since(base.span.start);
                base = self.node(ExprKind::Access { base: Box::new(base), steps }, span)?;
            }
            let Some(whole) = splat else { return Ok(base) };
            let each = if whole { self.steps_without_splat()? } else { self.attribute_steps()? };
            let span = self.since(base.span.start);
            base = self.node(ExprKind::Splat(Box::new(Splat { base, each })), span)?;
        }
    }

    /// The steps up to the end of the reference or up to a splat, which is `[*]` (true) or `.*` (false).
    fn steps(&mut self) -> Result<(Vec<Step>, Option<bool>), Fault> {
        let mut steps = Vec::new();
        loop {
            if self.take("[*]") {
                return Ok((steps, Some(true)));
            }
            if self.take(".*") {
                return Ok((steps, Some(false)));
            }
            match self.step()? {
                Some(step) => steps.push(step),
                None => return Ok((steps, None)),
            }
        }
    }

    fn steps_without_splat(&mut self) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        while !self.looking_at("[*]") && !self.looking_at(".*") {
            match self.step()? {
                Some(step) => steps.push(step),
                None => break,
            }
        }
        Ok(steps)
    }

    fn attribute_steps(&mut self) -> Result<Vec<Step>, Fault> {
        let mut steps = Vec::new();
        while self.looking_at(".") && !self.looking_at(".*") {
            match self.step()? {
                Some(step) => steps.push(step),
                None => break,
            }
        }
        Ok(steps)
    }

    fn step(&mut self) -> Result<Option<Step>, Fault> {
        if self.looking_at("...") {
            return Ok(None);
        }
        if self.take(".") {
            return self.attribute_step().map(Some);
        }
        if !self.take("[") {
            return Ok(None);
        }
        let opened = Span { start: self.at - 1, end: self.at };
        let index = self.with_lines(false, |cursor| cursor.expression())?;
        self.space_and_lines()?;
        if !self.take("]") {
            return Err(self.unclosed(opened, "`]` after the index"));
        }
        Ok(Some(Step::Index(index)))
    }

    fn attribute_step(&mut self) -> Result<Step, Fault> {
        if let Some(name) = self.identifier() {
            return Ok(Step::Attribute(name));
        }
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse::<i128>() {
            Ok(index) => Ok(Step::Index(self.node(ExprKind::Literal(Value::Int(index)), self.since(start))?)),
            Err(_) => Err(self.expected("a name after the dot")),
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        match self.peek() {
            Some('"') => self.string(),
            Some('[') => self.list(),
            Some('{') => self.object(),
            Some('(') if !self.dialect.is_json() => self.parenthesis(),
            Some('<') if self.looking_at("<<") && !self.dialect.is_json() => self.heredoc(),
            Some(c) if c.is_ascii_digit() => self.number(),
            _ => self.word(),
        }
    }

    fn number(&mut self) -> Result<Expr, Fault> {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        if self.looking_at(".") && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        let exponent = self.rest().trim_start_matches(['e', 'E']);
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if self.rest().starts_with(['e', 'E']) && exponent.starts_with(|c: char| c.is_ascii_digit()) {
            self.at = self.text.len() - exponent.len();
            self.take_while(|c| c.is_ascii_digit());
        }
        let span = self.since(start);
        if self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return Err(self.expected("a number to end here").hint("text needs quotes"));
        }
        match Value::number(&self.text[span.start..span.end]) {
            Some(number) => self.node(ExprKind::Literal(number), span),
            None => Err(Fault::new(span, "this number is too large")),
        }
    }

    fn word(&mut self) -> Result<Expr, Fault> {
        let Some(name) = self.identifier() else { return Err(self.expected("a value")) };
        let literal = match name.text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            return self.node(ExprKind::Literal(literal), name.span);
        }
        if self.looking_at("(") && self.dialect == Dialect::Native {
            return self.call(name);
        }
        if matches!(self.dialect, Dialect::Native | Dialect::JsonTemplates) {
            return self.node(ExprKind::Root(name.text), name.span);
        }
        Err(Fault::new(name.span, format!("expected a value, found `{}`", name.text))
            .hint("text needs quotes"))
    }

    fn call(&mut self, name: Name) -> Result<Expr, Fault> {
        let opened = self.here();
        self.at += 1;
        let (arguments, expand_last) = self.with_lines(false, |cursor| cursor.arguments(opened))?;
        let span = self.since(name.span.start);
        self.node(ExprKind::Call { name, arguments, expand_last }, span)
    }

    fn arguments(&mut self, opened: Span) -> Result<(Vec<Expr>, bool), Fault> {
        let mut arguments = Vec::new();
        let mut expand = false;
        loop {
            self.space()?;
            if self.take(")") {
                return Ok((arguments, expand));
            }
            self.more(opened)?;
            arguments.push(self.expression()?);
            self.space()?;
            expand = self.take("...");
            self.space()?;
            if !self.take(",") && !self.looking_at(")") {
                return Err(self.unclosed(opened, "`,` or `)` after the argument"));
            }
        }
    }

    /// Refuses the end of the text inside of what was opened.
    fn more(&self, opened: Span) -> Result<(), Fault> {
        match self.peek() {
            None => Err(self.unclosed(opened, "more")),
            Some(_) => Ok(()),
        }
    }

    /// What was expected here; at the end of the text, the opening that lacks its end.
    fn unclosed(&self, opened: Span, expected: &str) -> Fault {
        let open = &self.text[opened.start..opened.end];
        match self.peek() {
            None => Fault::new(opened, format!("this `{open}` is never closed")),
            Some(_) => self.expected(expected),
        }
    }

    fn parenthesis(&mut self) -> Result<Expr, Fault> {
        let opened = self.here();
        self.at += 1;
        let inner = self.with_lines(false, |cursor| {
            let inner = cursor.expression()?;
            cursor.space()?;
            Ok(inner)
        })?;
        if !self.take(")") {
            return Err(self.unclosed(opened, "`)`"));
        }
        self.node(ExprKind::Paren(Box::new(inner)), self.since(opened.start))
    }

    fn list(&mut self) -> Result<Expr, Fault> {
        let opened = self.here();
        self.at += 1;
        let kind = self.with_lines(false, |cursor| {
            cursor.space()?;
            if cursor.at_for() { cursor.for_each("]") } else { cursor.list_items(opened).map(ExprKind::List) }
        })?;
        self.node(kind, self.since(opened.start))
    }

    fn list_items(&mut self, opened: Span) -> Result<Vec<Expr>, Fault> {
        let mut items = Vec::new();
        loop {
            self.space()?;
            if self.take("]") {
                return Ok(items);
            }
            self.more(opened)?;
            items.push(self.expression()?);
            self.space()?;
            if !self.take(",") && !self.looking_at("]") {
                return Err(self.unclosed(opened, "`,` or `]` after the item"));
            }
        }
    }

    fn object(&mut self) -> Result<Expr, Fault> {
        let opened = self.here();
        self.at += 1;
        let lines = !self.dialect.is_json();
        self.space_and_lines()?;
        let kind = if self.at_for() {
            self.with_lines(false, |cursor| cursor.for_each("}"))?
        } else {
            ExprKind::Object(self.with_lines(lines, |cursor| cursor.object_items(opened))?)
        };
        self.node(kind, self.since(opened.start))
    }

    fn object_items(&mut self, opened: Span) -> Result<Vec<(Key, Expr)>, Fault> {
        let mut items = Vec::new();
        loop {
            self.space_and_lines()?;
            if self.take("}") {
                return Ok(items);
            }
            self.more(opened)?;
            let key = self.key()?;
            self.space()?;
            let nested = self.dialect == Dialect::Config && self.looking_at("{");
            if !nested && !self.take("=") && !self.take(":") {
                return Err(self.expected("`=` or `:` after the key"));
            }
            items.push((key, self.expression()?));
            self.space()?;
            let ended = self.take(",") || self.looking_at("}") || self.looking_at("\n");
            if !ended && self.dialect != Dialect::Config {
                return Err(self.unclosed(opened, "`,`, a new line or `}` after the value"));
            }
        }
    }

    fn key(&mut self) -> Result<Key, Fault> {
        let start = self.at;
        if let Some(name) = self.identifier().filter(|_| !self.dialect.is_json()) {
            self.space()?;
            if self.looking_at("=") || self.looking_at(":") || self.dialect == Dialect::Config {
                return Ok(Key::Name(name));
            }
            self.at = start;
        }
        self.expression().map(Key::Computed)
    }

    /// True at `for` followed by a name, which no other expression starts with.
    fn at_for(&self) -> bool {
        let Some(after) = self.rest().strip_prefix("for") else { return false };
        let name = after.trim_start();
        let spaced = name.len() < after.len();
        self.dialect.has_templates() && spaced && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }

    fn for_each(&mut self, close: &str) -> Result<ExprKind, Fault> {
        self.at += "for".len();
        let (key_name, value_name, collection) = self.for_head()?;
        if !self.take(":") {
            return Err(self.expected("`:` after the collection"));
        }
        let mut value = self.expression()?;
        self.space()?;
        let mut key = None;
        if close == "}" {
            if !self.take("=>") {
                return Err(self.expected("`=>` between the key and the value"));
            }
            key = Some(std::mem::replace(&mut value, self.expression()?));
        }
        self.space()?;
        let grouping = close == "}" && self.take("...");
        self.space()?;
        let condition = if self.take("if") { Some(self.expression()?) } else { None };
        self.space()?;
        if !self.take(close) {
            return Err(self.expected(&format!("`{close}` at the end of the for expression")));
        }
        let parts = For { key_name, value_name, collection, key, value, grouping, condition };
        Ok(ExprKind::For(Box::new(parts)))
    }

    /// `k, v in collection`, after the word `for`.
    pub(super) fn for_head(&mut self) -> Result<(Option<Name>, Name, Expr), Fault> {
        let first = self.for_name()?;
        let second = if self.take(",") { Some(self.for_name()?) } else { None };
        if !self.take("in") {
            return Err(self.expected("`in` and a collection"));
        }
        let collection = self.expression()?;
        self.space()?;
        Ok(match second {
            Some(value) => (Some(first), value, collection),
            None => (None, first, collection),
        })
    }

    fn for_name(&mut self) -> Result<Name, Fault> {
        self.space()?;
        let name = self.identifier().ok_or_else(|| self.expected("a name"))?;
        self.space()?;
        Ok(name)
    }
}
