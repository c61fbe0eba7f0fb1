use super::ast::Name;
use super::{Dialect, NESTING_MAX};
use crate::diagnostic::{Fault, Span};

/// A place in the text, and the rules that hold there.
pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub at: usize,
    pub dialect: Dialect,
    /// False inside parentheses, brackets and templates, where a line break is only space.
    pub lines_count: bool,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect) -> Cursor<'a> {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Cursor { text, at, dialect, lines_count: !dialect.is_json(), depth: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn looking_at(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    pub(super) fn here(&self) -> Span {
        let width = self.peek().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        Span { start: self.at, end: self.at + width }
    }

    pub(super) fn since(&self, start: usize) -> Span {
        Span { start, end: self.at }
    }

    /// Takes `token` if it stands here.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.looking_at(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips spaces and comments, and line breaks where they do not count.
    pub(super) fn space(&mut self) -> Result<(), Fault> {
        loop {
            let counted = self.lines_count;
            self.take_while(|c| c == ' ' || c == '\t' || c == '\r' || (c == '\n' && !counted));
            if self.looking_at("/*") {
                self.block_comment()?;
            } else if self.looking_at("#") || self.looking_at("//") {
                self.take_while(|c| c != '\n');
            } else {
                return Ok(());
            }
        }
    }

    /// Skips spaces, comments and every line break.
    pub(super) fn space_and_lines(&mut self) -> Result<(), Fault> {
        let counted = std::mem::replace(&mut self.lines_count, false);
        let skipped = self.space();
        self.lines_count = counted;
        skipped
    }

    fn block_comment(&mut self) -> Result<(), Fault> {
        let opened = Span { start: self.at, end: self.at + 2 };
        let length = self.rest().find("*/");
        let length = length.ok_or_else(|| Fault::new(opened, "this comment is never closed by */"))?;
        self.at += length + 2;
        Ok(())
    }

    pub(super) fn identifier(&mut self) -> Option<Name> {
        if !self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return None;
        }
        let start = self.at;
        // Version 1 of the language has dots in names, as in `driver.raw_exec.enable`.
        let dots = self.dialect == Dialect::Config;
        let text = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '-' || (dots && c == '.'));
        Some(Name { text: text.to_string(), span: self.since(start) })
    }

    /// Enters one level; every way down passes here, so that no text can exhaust the stack.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(self.here()));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Runs `read` with line breaks counting or not.
    pub(super) fn with_lines<T>(
        &mut self,
        count: bool,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let before = std::mem::replace(&mut self.lines_count, count);
        let value = read(self);
        self.lines_count = before;
        value
    }

    /// `expected …, found …` at the cursor.
    pub(super) fn expected(&self, what: &str) -> Fault {
        Fault::new(self.here(), format!("expected {what}, found {}", self.found()))
    }

    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".to_string(),
            Some('\n' | '\r') => "the end of the line".to_string(),
            Some(c) if c.is_alphanumeric() || c == '_' => {
                let word: String =
                    self.rest().chars().take_while(|c| c.is_alphanumeric() || *c == '_').take(40).collect();
                format!("`{word}`")
            }
            Some(c) => format!("`{c}`"),
        }
    }
}

pub(super) fn too_deep(span: Span) -> Fault {
    Fault::new(span, format!("nested more than {NESTING_MAX} levels deep"))
}
