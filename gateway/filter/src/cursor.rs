//! Walking over the text of an expression, one character at a time.

use crate::parse::ParseError;

pub(crate) struct Cursor<'t> {
    text: &'t str,
    pub at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// Takes `literal`, after blanks.
    pub(crate) fn take(&mut self, literal: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    /// Takes a keyword, after blanks, if it stands alone and is not the beginning of a longer name.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let follows = self.rest().strip_prefix(word).map(|after| after.chars().next());
        let alone = follows.is_some_and(|next| !next.is_some_and(|c| is_name(c) || matches!(c, '.' | '[')));
        if alone {
            self.at += word.len();
        }
        alone
    }

    /// Takes the characters that `belongs` accepts.
    pub(crate) fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A name: a letter, then letters, digits, `_` and `/`.
    pub(crate) fn name(&mut self) -> Option<&'t str> {
        self.peek().filter(char::is_ascii_alphabetic)?;
        Some(self.take_while(is_name))
    }

    pub(crate) fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// What is wrong here: what was expected, and what stands there instead.
    pub(crate) fn expected(&self, what: &str) -> ParseError {
        let found = match self.peek() {
            None => "the end".to_string(),
            Some(_) => format!("{:?}", excerpt(self.rest())),
        };
        self.wrong_at(self.at, format!("expected {what}, found {found}"))
    }

    pub(crate) fn wrong_at(&self, at: usize, message: impl Into<String>) -> ParseError {
        let column = self.text[..at].chars().count() + 1;
        ParseError { column, message: message.into() }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '/')
}

/// Enough of a text to recognise the place.
pub(crate) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 24;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
