//! What is wrong with a file, where, and what to write instead.

use std::fmt;

/// A named text: a job file, a variable file or an agent configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As messages call it: usually the path the user gave.
    pub name: String,
    pub text: String,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// The diagnostics for one problem at `span`; what readers of a parsed tree report with.
    pub fn wrong(&self, span: Span, message: impl Into<String>) -> Diagnostics {
        Fault::new(span, message).at(self).into()
    }
}

/// A range of bytes in a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub(crate) fn to(self, last: Span) -> Span {
        Span { start: self.start, end: last.end }
    }
}

/// A problem before it is tied to its source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the known name nearest to the one that was written, if one is near enough.
    pub(crate) fn suggest<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Fault {
        match nearest(written, known) {
            Some(name) => self.hint(format!("did you mean \"{name}\"?")),
            None => self,
        }
    }

    pub(crate) fn at(self, source: &Source) -> Diagnostic {
        let text = source.text.as_str();
        let start = floor(text, self.span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = floor(text, self.span.end).clamp(start, line_end);
        Diagnostic {
            file: source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            source_line: excerpt(text[line_start..line_end].trim_end()),
            width: text[start..end].chars().count().max(1),
            message: self.message.chars().map(printable).collect(),
            hint: self.hint,
        }
    }
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Longest source line shown, in characters: a minified file must not fill the terminal.
pub(crate) const EXCERPT_MAX: usize = 240;

fn excerpt(line: &str) -> String {
    line.chars().take(EXCERPT_MAX).map(|c| if c == '\t' { ' ' } else { printable(c) }).collect()
}

/// Control characters of an untrusted file must not reach the terminal that shows its errors.
fn printable(c: char) -> char {
    if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }
}

/// One problem, where it is, and a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub source_line: String,
    /// Characters the caret line marks.
    pub width: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// `file:line:column: message; hint`, for places that have one line.
    pub fn one_line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}:{}:{}: {}{hint}", self.file, self.line, self.column, self.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        writeln!(f, " {number} | {}", self.source_line)?;
        let shown = self.source_line.chars().count();
        let before = (self.column - 1).min(shown);
        let carets = self.width.min((shown - before).max(1));
        write!(f, " {margin} | {}{}", " ".repeat(before), "^".repeat(carets))?;
        match &self.hint {
            Some(hint) => write!(f, " {hint}"),
            None => Ok(()),
        }
    }
}

/// Most problems looked for in one file: one that is wrong throughout says the same thing over and over.
pub const DIAGNOSTICS_MAX: usize = 20;

/// What is wrong with a file; never empty, at most [`DIAGNOSTICS_MAX`]. `Display` shows source lines and carets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", shown(.0))]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Every problem in the one-line form, joined by `\n`: what HTTP answers carry.
    pub fn plain(&self) -> String {
        self.0.iter().map(Diagnostic::one_line).collect::<Vec<_>>().join("\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Diagnostics {
        Diagnostics(vec![one])
    }
}

fn shown(problems: &[Diagnostic]) -> String {
    let mut shown: Vec<String> = problems.iter().map(Diagnostic::to_string).collect();
    if problems.len() >= DIAGNOSTICS_MAX {
        shown.push(format!("no more than {DIAGNOSTICS_MAX} problems are shown"));
    }
    shown.join("\n\n")
}

/// Longest name for which a suggestion is looked for; the comparison is quadratic in it.
const SUGGESTION_NAME_MAX: usize = 64;

/// The known name that needs the fewest edits, when that is at most a third of its letters.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > SUGGESTION_NAME_MAX {
        return None;
    }
    let scored = known.into_iter().map(|name| (distance(written, name), name));
    let (edits, name) = scored.min()?;
    (edits <= (name.len().max(3) / 3)).then_some(name)
}

/// Edit distance in which swapping two neighbours is one edit, like every other typing slip.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            next[j] = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}
