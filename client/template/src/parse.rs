//! Tokens become a tree.

use std::collections::BTreeMap;

use crate::lex::{self, Delimiters, Kind, Piece, Token};
use crate::value::Value;
use crate::{Dialect, Error, Syntax, Template, builtin, sprig, task};

#[derive(Clone, Debug)]
pub enum Node {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: String, data: Option<Pipe>, line: usize },
    Break,
    Continue,
}

#[derive(Clone, Debug)]
pub struct Branch {
    pub pipe: Pipe,
    pub then: Vec<Node>,
    pub otherwise: Vec<Node>,
}

/// `$a, $b := command | command`.
#[derive(Clone, Debug)]
pub struct Pipe {
    pub line: usize,
    pub variables: Vec<String>,
    /// `=` rather than `:=`.
    pub assigns: bool,
    pub commands: Vec<Command>,
}

/// A word and what it is applied to, or a value alone.
#[derive(Clone, Debug)]
pub struct Command {
    pub words: Vec<Word>,
}

#[derive(Clone, Debug)]
pub enum Word {
    Dot,
    Nil,
    Value(Value),
    Fields(Vec<String>),
    Variable(String, Vec<String>),
    /// A function, and the fields of what it gives.
    Function(String, Vec<String>),
    Pipe(Box<Pipe>, Vec<String>),
}

/// How deep templates may nest: far more than people write, far less than the stack holds.
const DEPTH_MAX: usize = 100;

pub fn template(text: &str, syntax: &Syntax) -> Result<Template, Error> {
    let pieces = lex::pieces(text, Delimiters { left: &syntax.left, right: &syntax.right })?;
    let mut parser =
        Parser { pieces, dialect: syntax.dialect, at: 0, named: BTreeMap::new(), depth: 0, ranges: 0 };
    let (body, end) = parser.nodes()?;
    match end {
        Stop::Text => Ok(Template { body, named: parser.named, strict: syntax.missing_key_is_error }),
        Stop::Else(_, line) => Err(Error { line, reason: "unexpected {{else}}".to_string() }),
        Stop::End(line) => Err(Error { line, reason: "unexpected {{end}}".to_string() }),
    }
}

struct Parser {
    pieces: Vec<Piece>,
    dialect: Dialect,
    at: usize,
    named: BTreeMap<String, Vec<Node>>,
    depth: usize,
    /// Ranges around what is read now: `break` needs one.
    ranges: usize,
}

/// Why a run of nodes is over.
enum Stop {
    Text,
    /// `else`, and what follows it: `if …` or `with …`.
    Else(Vec<Token>, usize),
    End(usize),
}

impl Parser {
    fn nodes(&mut self) -> Result<(Vec<Node>, Stop), Error> {
        self.depth += 1;
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.get(self.at).cloned() {
            self.at += 1;
            let tokens = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(tokens) => tokens,
            };
            let Some(first) = tokens.first() else {
                return Err(Error { line: 0, reason: "missing value for command".to_string() });
            };
            let line = first.line;
            if self.depth > DEPTH_MAX {
                return Err(Error { line, reason: format!("more than {DEPTH_MAX} levels") });
            }
            match keyword(first) {
                Some("end") => {
                    self.depth -= 1;
                    return Ok((nodes, Stop::End(line)));
                }
                Some("else") => {
                    self.depth -= 1;
                    return Ok((nodes, Stop::Else(tokens[1..].to_vec(), line)));
                }
                Some("define") => self.define(&tokens[1..], line)?,
                Some(word) => nodes.push(self.statement(word, &tokens[1..], line)?),
                None => nodes.push(Node::Action(pipe(&tokens, self.dialect, line)?)),
            }
        }
        self.depth -= 1;
        Ok((nodes, Stop::Text))
    }

    fn statement(&mut self, word: &str, tokens: &[Token], line: usize) -> Result<Node, Error> {
        match word {
            "if" => Ok(Node::If(self.branch("if", tokens, line)?)),
            "with" => Ok(Node::With(self.branch("with", tokens, line)?)),
            "range" => {
                self.ranges += 1;
                let branch = self.branch("range", tokens, line);
                self.ranges -= 1;
                Ok(Node::Range(branch?))
            }
            "break" | "continue" if self.ranges == 0 => {
                Err(Error { line, reason: format!("{{{{{word}}}}} outside {{{{range}}}}") })
            }
            "break" => Ok(Node::Break),
            "continue" => Ok(Node::Continue),
            "template" => {
                let (name, rest) = named(tokens, "template", line)?;
                let data = if rest.is_empty() { None } else { Some(pipe(rest, self.dialect, line)?) };
                Ok(Node::Template { name, data, line })
            }
            _ => {
                let (name, rest) = named(tokens, "block", line)?;
                let data = pipe(rest, self.dialect, line)?;
                let body = self.body("block", line)?;
                self.named.insert(name.clone(), body);
                Ok(Node::Template { name, data: Some(data), line })
            }
        }
    }

    fn branch(&mut self, word: &str, tokens: &[Token], line: usize) -> Result<Branch, Error> {
        let pipe = pipe(tokens, self.dialect, line)?;
        if word != "range" && pipe.variables.len() > 1 {
            return Err(Error { line, reason: format!("too many declarations in {word}") });
        }
        let (then, end) = self.nodes()?;
        let otherwise = match end {
            Stop::End(_) => Vec::new(),
            Stop::Text => return Err(Error { line, reason: format!("unclosed {{{{{word}}}}}") }),
            Stop::Else(rest, line) => match rest.first().and_then(keyword) {
                None if rest.is_empty() => self.body(word, line)?,
                Some(next @ ("if" | "with")) if next == word => {
                    vec![self.statement(next, &rest[1..], line)?]
                }
                _ => return Err(Error { line, reason: format!("unexpected words after else of {word}") }),
            },
        };
        Ok(Branch { pipe, then, otherwise })
    }

    /// Everything up to `end`.
    fn body(&mut self, word: &str, line: usize) -> Result<Vec<Node>, Error> {
        match self.nodes()? {
            (body, Stop::End(_)) => Ok(body),
            (_, Stop::Text) => Err(Error { line, reason: format!("unclosed {{{{{word}}}}}") }),
            (_, Stop::Else(_, line)) => {
                Err(Error { line, reason: format!("unexpected {{{{else}}}} in {word}") })
            }
        }
    }

    fn define(&mut self, tokens: &[Token], line: usize) -> Result<(), Error> {
        let (name, rest) = named(tokens, "define", line)?;
        if !rest.is_empty() {
            return Err(Error { line, reason: "unexpected words after the name in define".to_string() });
        }
        let ranges = std::mem::take(&mut self.ranges);
        let body = self.body("define", line)?;
        self.ranges = ranges;
        self.named.insert(name, body);
        Ok(())
    }
}

fn keyword(token: &Token) -> Option<&'static str> {
    const WORDS: [&str; 10] =
        ["if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"];
    let Kind::Word(word) = &token.kind else { return None };
    WORDS.into_iter().find(|known| known == word)
}

/// The quoted name after `define` and its like.
fn named<'a>(tokens: &'a [Token], word: &str, line: usize) -> Result<(String, &'a [Token]), Error> {
    match tokens.first() {
        Some(Token { kind: Kind::Text(name), .. }) => Ok((name.clone(), &tokens[1..])),
        _ => Err(Error { line, reason: format!("{word} needs a quoted name") }),
    }
}

fn pipe(tokens: &[Token], dialect: Dialect, line: usize) -> Result<Pipe, Error> {
    // Each parenthesis is read by a call of its own.
    if tokens.iter().filter(|token| token.kind == Kind::Open).count() > DEPTH_MAX {
        return Err(Error { line, reason: format!("more than {DEPTH_MAX} parentheses") });
    }
    let (variables, assigns, rest) = declared(tokens);
    let mut commands = Vec::new();
    let mut depth = 0_usize;
    let bars = |token: &Token| {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        token.kind == Kind::Pipe && depth == 0
    };
    for part in rest.split(bars) {
        let Some(first) = part.first() else {
            return Err(Error { line, reason: "missing value for command".to_string() });
        };
        let line = first.line;
        let command = Command { words: words(part, dialect)? };
        if !commands.is_empty() && !matches!(command.words[0], Word::Function(..)) {
            return Err(Error { line, reason: "non executable command in pipeline".to_string() });
        }
        commands.push(command);
    }
    Ok(Pipe { line, variables, assigns, commands })
}

/// `$a :=`, `$a, $b :=` or `$a =` before a pipeline.
fn declared(tokens: &[Token]) -> (Vec<String>, bool, &[Token]) {
    let name = |at: usize| match tokens.get(at).map(|token| &token.kind) {
        Some(Kind::Variable(name)) => Some(name.clone()),
        _ => None,
    };
    let is = |at: usize, kind: &Kind| tokens.get(at).is_some_and(|token| token.kind == *kind);
    match (name(0), name(2)) {
        (Some(first), _) if is(1, &Kind::Declare) => (vec![first], false, &tokens[2..]),
        (Some(first), _) if is(1, &Kind::Assign) => (vec![first], true, &tokens[2..]),
        (Some(first), Some(second)) if is(1, &Kind::Comma) && is(3, &Kind::Declare) => {
            (vec![first, second], false, &tokens[4..])
        }
        (Some(first), Some(second)) if is(1, &Kind::Comma) && is(3, &Kind::Assign) => {
            (vec![first, second], true, &tokens[4..])
        }
        _ => (Vec::new(), false, tokens),
    }
}

fn words(tokens: &[Token], dialect: Dialect) -> Result<Vec<Word>, Error> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let line = token.line;
        let unexpected = |what: &str| Error { line, reason: format!("unexpected {what} in command") };
        at += 1;
        let word = match &token.kind {
            Kind::Dot => Word::Dot,
            Kind::Field(name) => Word::Fields(chain(tokens, &mut at, vec![name.clone()])),
            Kind::Variable(name) => Word::Variable(name.clone(), chain(tokens, &mut at, Vec::new())),
            Kind::Text(text) => Word::Value(Value::text(text)),
            Kind::Int(number) => Word::Value(Value::Int(*number)),
            Kind::Float(number) => Word::Value(Value::Float(*number)),
            Kind::Word(word) => match word.as_str() {
                "true" => Word::Value(Value::Bool(true)),
                "false" => Word::Value(Value::Bool(false)),
                "nil" => Word::Nil,
                name if is_function(name, dialect) => {
                    Word::Function(name.to_string(), chain(tokens, &mut at, Vec::new()))
                }
                name => {
                    return Err(Error { line, reason: format!("function {name:?} not defined") });
                }
            },
            Kind::Open => {
                let close =
                    closing(tokens, at).ok_or(Error { line, reason: "unclosed left paren".into() })?;
                let inside = pipe(&tokens[at..close], dialect, line)?;
                at = close + 1;
                Word::Pipe(Box::new(inside), chain(tokens, &mut at, Vec::new()))
            }
            Kind::Close => return Err(unexpected("right paren")),
            Kind::Pipe | Kind::Declare | Kind::Assign | Kind::Comma => return Err(unexpected("operator")),
        };
        words.push(word);
    }
    Ok(words)
}

fn is_function(name: &str, dialect: Dialect) -> bool {
    builtin::is_known(name) || sprig::is_known(name) || (dialect == Dialect::Task && task::is_known(name))
}

/// Fields that follow without a blank.
fn chain(tokens: &[Token], at: &mut usize, mut fields: Vec<String>) -> Vec<String> {
    while let Some(Token { kind: Kind::Field(name), spaced: false, .. }) = tokens.get(*at) {
        fields.push(name.clone());
        *at += 1;
    }
    fields
}

/// Where the parenthesis that is open at `from` closes.
fn closing(tokens: &[Token], from: usize) -> Option<usize> {
    let mut depth = 1;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
