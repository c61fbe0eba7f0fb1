//! A tree becomes text.

use std::collections::BTreeMap;

use crate::builtin::Outcome;
use crate::parse::{Branch, Command, Node, Pipe, Word};
use crate::task::Session;
use crate::value::Value;
use crate::{Error, Template, builtin, sprig, task};

/// How deep templates may call each other: a template that calls itself for ever must end somehow.
const CALLS_MAX: usize = 100;

/// Longest text: a loop over a large number must not eat the machine.
const TEXT_MAX: usize = 256 << 20;

/// The bytes that a template makes of `data`; `session` has the functions of templates of tasks.
pub fn render(template: &Template, data: Value, session: Option<&Session<'_>>) -> Result<Vec<u8>, Error> {
    let variables = vec![("$".to_string(), data.clone())];
    let Template { body, named, strict } = template;
    let mut run = Run { named, strict: *strict, session, variables, out: Vec::new(), calls: 0 };
    run.nodes(body, &data)?;
    Ok(run.out)
}

struct Run<'a> {
    named: &'a BTreeMap<String, Vec<Node>>,
    /// A key that a map does not have is an error.
    strict: bool,
    session: Option<&'a Session<'a>>,
    variables: Vec<(String, Value)>,
    out: Vec<u8>,
    calls: usize,
}

/// How a run of nodes ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, Error> {
        for node in nodes {
            let flow = self.node(node, dot)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// As [`Run::nodes`]; variables that are declared within are gone afterwards.
    fn scoped(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, Error> {
        let known = self.variables.len();
        let flow = self.nodes(nodes, dot);
        self.variables.truncate(known);
        flow
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<Flow, Error> {
        match node {
            Node::Text(text) => self.write(text.as_bytes(), 0)?,
            Node::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                match value {
                    _ if !pipe.variables.is_empty() => {}
                    Value::Bytes(bytes) => self.write(&bytes, pipe.line)?,
                    value => self.write(value.shown().as_bytes(), pipe.line)?,
                }
            }
            Node::If(branch) => return self.choose(branch, dot, false),
            Node::With(branch) => return self.choose(branch, dot, true),
            Node::Range(branch) => return self.range(branch, dot),
            Node::Template { name, data, line } => self.template(name, data.as_ref(), *line, dot)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, text: &[u8], line: usize) -> Result<(), Error> {
        if self.out.len() + text.len() > TEXT_MAX {
            return Err(Error { line, reason: format!("the text is longer than {TEXT_MAX} bytes") });
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn choose(&mut self, branch: &Branch, dot: &Value, moves_dot: bool) -> Result<Flow, Error> {
        let known = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        let flow = if value.is_true() {
            self.scoped(&branch.then, if moves_dot { &value } else { dot })
        } else {
            self.scoped(&branch.otherwise, dot)
        };
        self.variables.truncate(known);
        flow
    }

    fn range(&mut self, branch: &Branch, dot: &Value) -> Result<Flow, Error> {
        let (known, line) = (self.variables.len(), branch.pipe.line);
        let value = self.commands(&branch.pipe, dot)?.plain();
        let entries: Vec<(Value, Value)> = match &value {
            Value::List(items) => {
                items.iter().enumerate().map(|(at, item)| (Value::size(at), item.clone())).collect()
            }
            Value::Map(map) => map.iter().map(|(key, item)| (Value::text(key), item.clone())).collect(),
            Value::Int(count) => (0..*count).map(|at| (Value::Int(at), Value::Int(at))).collect(),
            Value::Missing | Value::Nil => Vec::new(),
            other => {
                return Err(Error { line, reason: format!("range can't iterate over {}", other.shown()) });
            }
        };
        if entries.is_empty() {
            return self.scoped(&branch.otherwise, dot);
        }
        for (key, item) in entries {
            let values = match branch.pipe.variables.len() {
                2 => vec![key, item.clone()],
                1 => vec![item.clone()],
                _ => Vec::new(),
            };
            for (name, value) in branch.pipe.variables.iter().zip(values) {
                self.set(name, value, branch.pipe.assigns, line)?;
            }
            let flow = self.scoped(&branch.then, &item)?;
            self.variables.truncate(known);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(Flow::Next)
    }

    fn template(&mut self, name: &str, data: Option<&Pipe>, line: usize, dot: &Value) -> Result<(), Error> {
        let named = self.named;
        let body = named.get(name);
        let body = body.ok_or_else(|| Error { line, reason: format!("template {name:?} not defined") })?;
        let data = data.map_or(Ok(Value::Nil), |data| self.pipe(data, dot))?;
        if self.calls == CALLS_MAX {
            return Err(Error { line, reason: format!("more than {CALLS_MAX} templates call each other") });
        }
        self.calls += 1;
        let outside = std::mem::replace(&mut self.variables, vec![("$".to_string(), data.clone())]);
        let done = self.nodes(body, &data);
        self.variables = outside;
        self.calls -= 1;
        done.map(drop)
    }

    fn set(&mut self, name: &str, value: Value, assigns: bool, line: usize) -> Result<(), Error> {
        if !assigns {
            self.variables.push((name.to_string(), value));
            return Ok(());
        }
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value,
            None => return Err(Error { line, reason: format!("undefined variable {name:?}") }),
        }
        Ok(())
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Error> {
        let value = self.commands(pipe, dot)?;
        for name in &pipe.variables {
            self.set(name, value.clone(), pipe.assigns, pipe.line)?;
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, Error> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(command, dot, value, pipe.line)?);
        }
        Ok(value.unwrap_or(Value::Missing))
    }

    /// `last` is what the command before it gave: the last argument of this one.
    fn command(
        &mut self,
        command: &Command,
        dot: &Value,
        last: Option<Value>,
        line: usize,
    ) -> Result<Value, Error> {
        let (first, rest) = command.words.split_first().expect("a command has a word");
        let (name, fields) = match first {
            Word::Function(name, fields) => (name, fields.as_slice()),
            _ if rest.is_empty() && last.is_none() => return self.word(first, dot, line),
            _ => return self.method(first, rest, dot, last, line),
        };
        if !fields.is_empty() {
            return self.method(first, rest, dot, last, line);
        }
        // These look at their arguments only as far as they have to.
        if matches!(name.as_str(), "and" | "or") {
            return self.lazy(name, rest, dot, last, line);
        }
        let arguments = self.arguments(rest, dot, last, line)?;
        self.call(name, arguments, line)
    }

    fn arguments(
        &mut self,
        words: &[Word],
        dot: &Value,
        last: Option<Value>,
        line: usize,
    ) -> Result<Vec<Value>, Error> {
        let mut arguments = Vec::new();
        for word in words {
            arguments.push(self.word(word, dot, line)?.plain());
        }
        arguments.extend(last.map(Value::plain));
        Ok(arguments)
    }

    fn call(&self, name: &str, arguments: Vec<Value>, line: usize) -> Result<Value, Error> {
        let done = match (name.strip_prefix(sprig::PREFIX), self.session) {
            (Some(name), _) => sprig::call(name, &arguments),
            (None, Some(session)) if task::is_known(name) => session.call(name, &arguments),
            (None, _) => builtin::call(name, &arguments),
        };
        done.map_err(|reason| Error { line, reason: format!("error calling {name}: {reason}") })
    }

    /// `value.Method argument argument`.
    fn method(
        &mut self,
        word: &Word,
        rest: &[Word],
        dot: &Value,
        last: Option<Value>,
        line: usize,
    ) -> Result<Value, Error> {
        let no_function = || Error { line, reason: "can't give argument to non-function".to_string() };
        let mut owner = word.clone();
        let fields = match &mut owner {
            Word::Fields(fields)
            | Word::Variable(_, fields)
            | Word::Function(_, fields)
            | Word::Pipe(_, fields) => fields,
            Word::Dot | Word::Nil | Word::Value(_) => return Err(no_function()),
        };
        let name = fields.pop().ok_or_else(no_function)?;
        let owner = match owner {
            Word::Fields(fields) if fields.is_empty() => dot.clone(),
            owner => self.word(&owner, dot, line)?,
        };
        let arguments = self.arguments(rest, dot, last, line)?;
        match task::method(&owner, &name, &arguments) {
            Some(done) => {
                done.map_err(|reason| Error { line, reason: format!("error calling {name}: {reason}") })
            }
            None if arguments.is_empty() => self.walk(owner, &[name], line),
            None => Err(no_function()),
        }
    }

    fn lazy(
        &mut self,
        name: &str,
        words: &[Word],
        dot: &Value,
        last: Option<Value>,
        line: usize,
    ) -> Result<Value, Error> {
        let mut value = None;
        for word in words {
            let next = self.word(word, dot, line)?;
            let decided = next.is_true() == (name == "or");
            value = Some(next);
            if decided {
                return Ok(value.expect("it was set just above"));
            }
        }
        let none =
            || Error { line, reason: format!("wrong number of args for {name}: want at least 1 got 0") };
        last.or(value).ok_or_else(none)
    }

    fn word(&mut self, word: &Word, dot: &Value, line: usize) -> Result<Value, Error> {
        match word {
            Word::Dot => Ok(dot.clone()),
            Word::Nil => Ok(Value::Nil),
            Word::Value(value) => Ok(value.clone()),
            Word::Fields(fields) => self.walk(dot.clone(), fields, line),
            Word::Variable(name, fields) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let unknown = || Error { line, reason: format!("undefined variable {name:?}") };
                let value = found.ok_or_else(unknown)?.1.clone();
                self.walk(value, fields, line)
            }
            Word::Pipe(pipe, fields) => {
                let value = self.pipe(pipe, dot)?;
                self.walk(value, fields, line)
            }
            Word::Function(..) => self.command(&Command { words: vec![word.clone()] }, dot, None, line),
        }
    }

    /// The field of a field. What is missing has no fields; that is a mistake only where the template says so.
    fn walk(&self, mut value: Value, fields: &[String], line: usize) -> Result<Value, Error> {
        for field in fields {
            let found = task::method(&value, field, &[]).unwrap_or_else(|| self.field(&value, field));
            value = found.map_err(|reason| Error { line, reason })?;
        }
        Ok(value)
    }

    fn field(&self, value: &Value, field: &str) -> Outcome {
        let absent = |map: &BTreeMap<String, Value>, absent: &Value| match map.get(field) {
            Some(value) => Ok(value.clone()),
            None if self.strict => Err(format!("map has no entry for key {field:?}")),
            None => Ok(absent.clone()),
        };
        match value {
            Value::Map(entries) => absent(entries, &Value::Missing),
            Value::Object(object) => match (object.methods.get(field), &object.plain) {
                (Some(value), _) => Ok(value.clone()),
                (None, Value::Map(entries)) => absent(entries, &object.absent),
                (None, other) => Err(format!("can't evaluate field {field} in type {}", other.kind())),
            },
            Value::Missing | Value::Nil if self.strict => {
                Err(format!("nil data; no entry for key {field:?}"))
            }
            Value::Missing | Value::Nil => Ok(Value::Missing),
            other => Err(format!("can't evaluate field {field} in type {}", other.kind())),
        }
    }
}
