//! Text to tree.
//!
//! ```text
//! expr       := and ( "or" and )*
//! and        := not ( "and" not )*
//! not        := "not" not | "(" expr ")" | collection | match
//! collection := ("any"|"all") selector "as" binding "{" expr "}"
//! binding    := x | i "," v | i "," "_" | "_" "," v
//! match      := selector ("==" | "!=" | ["not"] "contains" | ["not"] "matches") value
//!             | selector "is" ["not"] ("empty" | "nil")
//!             | value ["not"] "in" selector
//! ```

use regex::RegexBuilder;
use thiserror::Error;

use crate::Filter;
use crate::ast::{Binding, Collection, Expr, Match, Operator, Selector};
use crate::cursor::{Cursor, excerpt};

/// Longest expression, in bytes.
pub const LENGTH_MAX: usize = 64 * 1024;

/// Deepest nesting of parentheses, `not` and collections. Each level takes four frames of the stack.
pub const DEPTH_MAX: usize = 64;

/// Most memory of one compiled pattern, in bytes.
const PATTERN_MAX: usize = 1 << 20;

/// Most patterns of one expression, so that an expression's memory is bounded too.
const PATTERNS_MAX: usize = 64;

/// Why a text is not an expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("column {column}: {message}")]
pub struct ParseError {
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
}

impl Filter {
    /// # Errors
    /// When the text is not an expression, is longer than [`LENGTH_MAX`] or nests deeper than [`DEPTH_MAX`].
    pub fn parse(text: &str) -> Result<Filter, ParseError> {
        if text.len() > LENGTH_MAX {
            let message = format!("more than {LENGTH_MAX} bytes");
            return Err(ParseError { column: 1, message });
        }
        let mut parser = Parser { cursor: Cursor::new(text), depth: 0, patterns: 0 };
        let root = parser.expr()?;
        parser.cursor.skip_blanks();
        match parser.cursor.peek() {
            None => Ok(Filter { root }),
            Some(_) => Err(parser.cursor.expected("\"and\", \"or\" or the end")),
        }
    }
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    depth: usize,
    patterns: usize,
}

/// What stands before an operator: which of the two it is shows only then.
struct Operand {
    at: usize,
    value: String,
    selector: Option<Selector>,
}

impl Parser<'_> {
    fn expr(&mut self) -> Result<Expr, ParseError> {
        self.deeper(|parser| {
            let first = parser.and()?;
            let mut alternatives = vec![first];
            while parser.cursor.take_word("or") {
                alternatives.push(parser.and()?);
            }
            Ok(if alternatives.len() == 1 { alternatives.remove(0) } else { Expr::Any(alternatives) })
        })
    }

    fn and(&mut self) -> Result<Expr, ParseError> {
        let mut parts = vec![self.not()?];
        while self.cursor.take_word("and") {
            parts.push(self.not()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::All(parts) })
    }

    fn not(&mut self) -> Result<Expr, ParseError> {
        let start = self.cursor.at;
        if self.cursor.take_word("not") && !self.at_operator() {
            return self.deeper(|parser| Ok(Expr::Not(Box::new(parser.not()?))));
        }
        self.cursor.at = start;
        if !self.cursor.take("(") {
            return self.leaf();
        }
        let inner = self.expr()?;
        match self.cursor.take(")") {
            true => Ok(inner),
            false => Err(self.cursor.expected("\"and\", \"or\" or \")\"")),
        }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(self.cursor.wrong_at(self.cursor.at, format!("nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Keywords are also names: before an operator they are meant as such.
    fn at_operator(&mut self) -> bool {
        let start = self.cursor.at;
        let symbol = self.cursor.take("==") || self.cursor.take("!=");
        let word = ["contains", "matches", "is", "in"].iter().any(|word| {
            self.cursor.at = start;
            self.cursor.take_word(word)
        });
        self.cursor.at = start;
        symbol || word
    }

    fn leaf(&mut self) -> Result<Expr, ParseError> {
        let start = self.cursor.at;
        for (word, every) in [("any", false), ("all", true)] {
            if self.cursor.take_word(word) && !self.at_operator() {
                return self.collection(every);
            }
            self.cursor.at = start;
        }
        Ok(Expr::Match(self.comparison()?))
    }

    fn collection(&mut self, every: bool) -> Result<Expr, ParseError> {
        self.cursor.skip_blanks();
        let operand = self.operand("a selector")?;
        let selector = self.selector_of(operand)?;
        if !self.cursor.take_word("as") {
            return Err(self.cursor.expected("\"as\""));
        }
        let binding = self.binding()?;
        if !self.cursor.take("{") {
            return Err(self.cursor.expected("\"{\""));
        }
        let inner = Box::new(self.expr()?);
        if !self.cursor.take("}") {
            return Err(self.cursor.expected("\"and\", \"or\" or \"}\""));
        }
        Ok(Expr::Collection(Collection { selector, every, binding, inner }))
    }

    fn binding(&mut self) -> Result<Binding, ParseError> {
        let start = self.cursor.at;
        let first = self.bound_name()?;
        if !self.cursor.take(",") {
            let missing = self.cursor.wrong_at(start, "\"_\" alone binds nothing");
            return first.map(Binding::One).ok_or(missing);
        }
        let second = self.bound_name()?;
        match (&first, &second) {
            (None, None) => Err(self.cursor.wrong_at(start, "\"_, _\" binds nothing")),
            (Some(index), Some(value)) if index == value => {
                Err(self.cursor.wrong_at(start, format!("both are called {index:?}")))
            }
            _ => Ok(Binding::Two(first, second)),
        }
    }

    fn bound_name(&mut self) -> Result<Option<String>, ParseError> {
        if self.cursor.take("_") {
            return Ok(None);
        }
        let name = self.cursor.name().map(str::to_string);
        name.map(Some).ok_or_else(|| self.cursor.expected("a name for the elements"))
    }

    fn comparison(&mut self) -> Result<Match, ParseError> {
        self.cursor.skip_blanks();
        let left = self.operand("a selector or a value")?;
        if self.cursor.take("==") {
            return self.equals(left, false);
        }
        if self.cursor.take("!=") {
            return self.equals(left, true);
        }
        if self.cursor.take_word("is") {
            return self.state(left);
        }
        let negated = self.cursor.take_word("not");
        if self.cursor.take_word("in") {
            self.cursor.skip_blanks();
            let right = self.operand("a selector")?;
            let selector = self.selector_of(right)?;
            return Ok(Match { selector, operator: Operator::Contains(left.value), negated });
        }
        let contains = self.cursor.take_word("contains");
        if !contains && !self.cursor.take_word("matches") {
            return Err(self.cursor.expected(if negated { NEGATABLE } else { OPERATORS }));
        }
        let selector = self.selector_of(left)?;
        let at = self.cursor.at;
        let value = self.value()?;
        let operator = if contains { Operator::Contains(value) } else { self.pattern(at, &value)? };
        Ok(Match { selector, operator, negated })
    }

    fn equals(&mut self, left: Operand, negated: bool) -> Result<Match, ParseError> {
        let selector = self.selector_of(left)?;
        Ok(Match { selector, operator: Operator::Equals(self.value()?), negated })
    }

    fn state(&mut self, left: Operand) -> Result<Match, ParseError> {
        let selector = self.selector_of(left)?;
        let negated = self.cursor.take_word("not");
        let operator = if self.cursor.take_word("empty") {
            Operator::Empty
        } else if self.cursor.take_word("nil") {
            Operator::Nil
        } else {
            return Err(self.cursor.expected("\"empty\" or \"nil\""));
        };
        Ok(Match { selector, operator, negated })
    }

    fn pattern(&mut self, at: usize, text: &str) -> Result<Operator, ParseError> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(self.cursor.wrong_at(at, format!("more than {PATTERNS_MAX} patterns")));
        }
        let compiled = RegexBuilder::new(text).size_limit(PATTERN_MAX).build();
        let reason = |why: regex::Error| match why {
            regex::Error::CompiledTooBig(_) => format!("the pattern needs more than {PATTERN_MAX} bytes"),
            _ => format!("{:?} is not a pattern: {}", excerpt(text), last_line(&why.to_string())),
        };
        compiled.map(Operator::Matches).map_err(|why| self.cursor.wrong_at(at, reason(why)))
    }

    fn value(&mut self) -> Result<String, ParseError> {
        self.cursor.skip_blanks();
        Ok(self.operand("a value")?.value)
    }

    fn operand(&mut self, expected: &str) -> Result<Operand, ParseError> {
        let at = self.cursor.at;
        match self.cursor.peek() {
            Some('"' | '`') => {
                let value = self.text()?;
                let selector = pointer(&value);
                Ok(Operand { at, value, selector })
            }
            Some(c) if c.is_ascii_digit() || c == '-' => self.number(at),
            Some(c) if c.is_ascii_alphabetic() => {
                let selector = self.path()?;
                Ok(Operand { at, value: selector.text.clone(), selector: Some(selector) })
            }
            _ => Err(self.cursor.expected(expected)),
        }
    }

    fn selector_of(&self, operand: Operand) -> Result<Selector, ParseError> {
        let Operand { at, value, selector } = operand;
        selector.ok_or_else(|| {
            let shown = excerpt(&value);
            self.cursor.wrong_at(at, format!("{shown:?} is a value, a selector is expected here"))
        })
    }

    fn path(&mut self) -> Result<Selector, ParseError> {
        let start = self.cursor.at;
        let mut path: Vec<String> = self.cursor.name().map(str::to_string).into_iter().collect();
        loop {
            let step = match self.cursor.peek() {
                Some('.') => self.member()?,
                Some('[') => self.index()?,
                _ => return Ok(Selector { text: self.cursor.since(start).to_string(), path }),
            };
            path.push(step);
        }
    }

    fn member(&mut self) -> Result<String, ParseError> {
        self.cursor.at += 1;
        let digits = self.cursor.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            return Ok(digits.to_string());
        }
        let name = self.cursor.name().map(str::to_string);
        name.ok_or_else(|| self.cursor.expected("a field name or a number"))
    }

    fn index(&mut self) -> Result<String, ParseError> {
        self.cursor.at += 1;
        self.cursor.skip_blanks();
        if !matches!(self.cursor.peek(), Some('"' | '`')) {
            return Err(self.cursor.expected("a key in quotes"));
        }
        let key = self.text()?;
        match self.cursor.take("]") {
            true => Ok(key),
            false => Err(self.cursor.expected("\"]\"")),
        }
    }

    fn number(&mut self, at: usize) -> Result<Operand, ParseError> {
        if self.cursor.peek() == Some('-') {
            self.cursor.at += 1;
        }
        let whole = self.cursor.take_while(|c| c.is_ascii_digit());
        if whole.is_empty() {
            return Err(self.cursor.expected("a digit"));
        }
        let mut ok = true;
        if self.cursor.peek() == Some('.') {
            self.cursor.at += 1;
            ok = !self.cursor.take_while(|c| c.is_ascii_digit()).is_empty();
        }
        let follows = self.cursor.peek();
        if !ok || follows.is_some_and(|c| !matches!(c, ' ' | '\t' | '\r' | '\n' | ')' | '}')) {
            return Err(self.cursor.wrong_at(at, "not a number; text goes in quotes"));
        }
        Ok(Operand { at, value: self.cursor.since(at).to_string(), selector: None })
    }

    fn text(&mut self) -> Result<String, ParseError> {
        let start = self.cursor.at;
        let raw = self.cursor.peek() == Some('`');
        self.cursor.at += 1;
        if raw {
            let text = self.cursor.take_while(|c| c != '`').to_string();
            if self.cursor.peek().is_none() {
                return Err(self.cursor.wrong_at(start, "the text is not closed: expected \"`\""));
            }
            self.cursor.at += 1;
            return Ok(text);
        }
        let mut text = Vec::new();
        loop {
            let plain = self.cursor.take_while(|c| !matches!(c, '"' | '\\' | '\n'));
            text.extend_from_slice(plain.as_bytes());
            match self.cursor.peek() {
                Some('"') => break,
                Some('\\') => self.escape(&mut text)?,
                _ => return Err(self.cursor.wrong_at(start, "the text is not closed: expected '\"'")),
            }
        }
        self.cursor.at += 1;
        // Byte escapes can spell anything; documents hold only text, which such bytes never equal.
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The escapes of a Go string.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), ParseError> {
        let at = self.cursor.at;
        let unknown = || self.cursor.wrong_at(at, "unknown escape; in backticks nothing needs one");
        let kind = self.cursor.rest()[1..].chars().next().ok_or_else(unknown)?;
        let (digits, radix, from) = match kind {
            'x' => (2, 16, 2),
            'u' => (4, 16, 2),
            'U' => (8, 16, 2),
            '0'..='7' => (3, 8, 1),
            _ => {
                let plain = simple_escape(kind).ok_or_else(unknown)?;
                text.push(plain);
                self.cursor.at += 2;
                return Ok(());
            }
        };
        let spelled = self.cursor.rest().get(from..from + digits).ok_or_else(unknown)?;
        let all_digits = spelled.chars().all(|c| c.is_digit(radix));
        let code = u32::from_str_radix(spelled, radix).ok().filter(|_| all_digits).ok_or_else(unknown)?;
        match kind {
            'u' | 'U' => {
                let c = char::from_u32(code).ok_or_else(unknown)?;
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => text.push(u8::try_from(code).map_err(|_| unknown())?),
        }
        self.cursor.at += from + digits;
        Ok(())
    }
}

const OPERATORS: &str =
    "an operator: ==, !=, [not] in, [not] contains, [not] matches, is [not] empty, is [not] nil";
const NEGATABLE: &str = "\"in\", \"contains\" or \"matches\"";

fn simple_escape(kind: char) -> Option<u8> {
    Some(match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '"' => b'"',
        _ => return None,
    })
}

/// The selector that a quoted text stands for, when it is a JSON pointer.
fn pointer(text: &str) -> Option<Selector> {
    let steps = text.strip_prefix('/')?;
    let path = steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    Some(Selector { text: text.to_string(), path })
}

/// Regex errors draw the pattern first; the reason is at the end.
fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line)
}
