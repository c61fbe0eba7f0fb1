use super::Dialect;
use super::ast::{Expr, ExprKind, Name, Part, Trim};
use super::cursor::Cursor;
use crate::diagnostic::{Fault, Span};
use crate::eval::Value;

/// A piece of a template as it stands in the text, before directives are paired.
enum Piece {
    Text(String),
    Value { value: Expr, trim: Trim },
    Directive { what: Directive, trim: Trim, span: Span },
}

enum Directive {
    If(Expr),
    Else,
    EndIf,
    For { key_name: Option<Name>, value_name: Name, collection: Expr },
    EndFor,
}

impl Cursor<'_> {
    /// A quoted string that may hold templates.
    pub(super) fn string(&mut self) -> Result<Expr, Fault> {
        let start = self.at;
        let mut pieces = self.quoted()?;
        trim(&mut pieces);
        let span = self.since(start);
        self.template(pieces, span)
    }

    /// A quoted string that is only text: a label or the name of a key.
    pub(super) fn plain_string(&mut self) -> Result<Name, Fault> {
        let start = self.at;
        let pieces = self.quoted()?;
        let span = self.since(start);
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(&part),
                Piece::Value { .. } | Piece::Directive { .. } => {
                    return Err(Fault::new(span, "a label must be plain text, without ${ } or %{ }"));
                }
            }
        }
        Ok(Name { text, span })
    }

    fn quoted(&mut self) -> Result<Vec<Piece>, Fault> {
        let opened = self.here();
        self.at += 1;
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    let fault = Fault::new(opened, "this string is never closed by a quote on the same line");
                    return Err(fault.hint("text over several lines is written <<EOT … EOT"));
                }
                Some('"') => {
                    self.at += 1;
                    push_text(&mut pieces, text);
                    return Ok(pieces);
                }
                Some('\\') => text.push(self.escape()?),
                Some(_) => self.template_char(&mut pieces, &mut text)?,
            }
        }
    }

    /// One character of text, an escaped `${` or `%{`, or a whole sequence.
    fn template_char(&mut self, pieces: &mut Vec<Piece>, text: &mut String) -> Result<(), Fault> {
        if self.dialect.has_templates() {
            for (escaped, plain) in [("$${", "${"), ("%%{", "%{")] {
                if self.take(escaped) {
                    text.push_str(plain);
                    return Ok(());
                }
            }
            if self.looking_at("${") || self.looking_at("%{") {
                push_text(pieces, std::mem::take(text));
                let piece = self.sequence()?;
                pieces.push(piece);
                return Ok(());
            }
        }
        let c = self.peek().expect("the caller saw a character");
        self.at += c.len_utf8();
        text.push(c);
        Ok(())
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 1;
        let c = self.peek().unwrap_or('\n');
        self.at += c.len_utf8().min(self.rest().len());
        let json = self.dialect.is_json();
        match c {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            '"' | '\\' => Ok(c),
            '/' if json => Ok('/'),
            'b' if json => Ok('\u{8}'),
            'f' if json => Ok('\u{c}'),
            'u' => self.code_point(start, 4),
            'U' if !json => self.code_point(start, 8),
            _ => {
                let fault = Fault::new(self.since(start), "there is no such escape in a string");
                Err(fault.hint(r#"a backslash itself is written \\; known are \n \r \t \" \\ \uNNNN"#))
            }
        }
    }

    fn code_point(&mut self, start: usize, digits: usize) -> Result<char, Fault> {
        let first = self.hex(digits);
        let paired = first.filter(|high| (0xd800..0xdc00).contains(high) && self.take("\\u"));
        let value = match paired {
            Some(high) => self
                .hex(4)
                .filter(|low| (0xdc00..0xe000).contains(low))
                .map(|low| 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
            None => first,
        };
        let known = value.and_then(char::from_u32);
        known.ok_or_else(|| {
            Fault::new(self.since(start), format!("expected {digits} hexadecimal digits of a character"))
        })
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.rest().get(..digits)?;
        let value = u32::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+'))?;
        self.at += digits;
        Some(value)
    }

    /// `${ … }` or `%{ … }`.
    fn sequence(&mut self) -> Result<Piece, Fault> {
        let opened = Span { start: self.at, end: self.at + 2 };
        let directive = self.looking_at("%{");
        self.at += 2;
        let before = self.take("~");
        self.enter()?;
        let outside = std::mem::replace(&mut self.dialect, Dialect::Native);
        let what = self.with_lines(false, |cursor| {
            cursor.space()?;
            let what = if directive { Err(cursor.directive()?) } else { Ok(cursor.expression()?) };
            cursor.space()?;
            Ok(what)
        })?;
        self.dialect = outside;
        self.leave();
        let after = self.take("~");
        if !self.take("}") {
            let fault = match self.peek() {
                None => Fault::new(opened, "this is never closed by `}`"),
                Some(_) => self.expected("`}` at the end of the interpolation"),
            };
            return Err(fault.hint("write $${ for the text ${ itself"));
        }
        let trim = Trim { before, after };
        Ok(match what {
            Ok(value) => Piece::Value { value, trim },
            Err(what) => Piece::Directive { what, trim, span: self.since(opened.start) },
        })
    }

    fn directive(&mut self) -> Result<Directive, Fault> {
        let word = self.identifier();
        match word.as_ref().map_or("", |word| word.text.as_str()) {
            "if" => Ok(Directive::If(self.expression()?)),
            "else" => Ok(Directive::Else),
            "endif" => Ok(Directive::EndIf),
            "endfor" => Ok(Directive::EndFor),
            "for" => {
                let (key_name, value_name, collection) = self.for_head()?;
                Ok(Directive::For { key_name, value_name, collection })
            }
            _ => {
                let span = word.map_or(self.here(), |word| word.span);
                let fault = Fault::new(span, "expected if, else, endif, for or endfor after %{");
                Err(fault.hint("write %%{ for the text %{ itself"))
            }
        }
    }

    /// `<<WORD` or `<<-WORD`, the lines after it, and a line with only the word.
    pub(super) fn heredoc(&mut self) -> Result<Expr, Fault> {
        let start = self.at;
        self.at += 2;
        let flush = self.take("-");
        let Some(word) = self.identifier() else {
            return Err(self.expected("a word that will end the text"));
        };
        let opened = self.since(start);
        self.take_while(|c| c == '\r' || c == ' ' || c == '\t');
        if !self.take("\n") {
            return Err(self.expected(&format!("a new line after <<{}", word.text)));
        }
        let mut pieces = self.heredoc_lines(&word.text, opened)?;
        // Before the indentation: text after a `~` that took its line break does not begin a line any more.
        trim(&mut pieces);
        if flush {
            remove_common_indent(&mut pieces);
        }
        let span = self.since(start);
        self.template(pieces, span)
    }

    /// One text piece for every line or part of a line, so that indentation can be removed from line starts.
    fn heredoc_lines(&mut self, word: &str, opened: Span) -> Result<Vec<Piece>, Fault> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            let line = self.rest().split('\n').next().unwrap_or("");
            if line.trim() == word {
                self.at += line.trim_end().len();
                push_text(&mut pieces, text);
                return Ok(pieces);
            }
            loop {
                match self.peek() {
                    None => {
                        let message = format!("this text is never closed by a line with only {word}");
                        return Err(Fault::new(opened, message));
                    }
                    Some('\n') => break,
                    Some(_) => self.template_char(&mut pieces, &mut text)?,
                }
            }
            self.at += 1;
            text.push('\n');
            push_text(&mut pieces, std::mem::take(&mut text));
        }
    }

    fn template(&self, pieces: Vec<Piece>, span: Span) -> Result<Expr, Fault> {
        let mut pieces = pieces.into_iter();
        let (parts, end) = pair(&mut pieces, 0)?;
        if let Some((_, span)) = end {
            return Err(Fault::new(span, "this ends or continues nothing that was opened with %{"));
        }
        let kind = match parts.as_slice() {
            [] => ExprKind::Literal(Value::Text(String::new())),
            [Part::Text(text)] => ExprKind::Literal(Value::Text(text.clone())),
            _ => ExprKind::Template(parts),
        };
        self.node(kind, span)
    }
}

fn push_text(pieces: &mut Vec<Piece>, text: String) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// Removes the white space beside sequences marked with `~`, up to and including one line break.
fn trim(pieces: &mut [Piece]) {
    for at in 0..pieces.len() {
        let marks = match &pieces[at] {
            Piece::Text(_) => continue,
            Piece::Value { trim, .. } | Piece::Directive { trim, .. } => *trim,
        };
        if let Some(Piece::Text(text)) = at.checked_sub(1).filter(|_| marks.before).map(|i| &mut pieces[i]) {
            text.truncate(text.trim_end().len());
        }
        if let Some(Piece::Text(text)) = pieces.get_mut(at + 1).filter(|_| marks.after) {
            *text = text.trim_start().to_string();
        }
    }
}

/// Removes the indentation all lines share; blank lines and the insides of sequences do not take part.
fn remove_common_indent(pieces: &mut [Piece]) {
    let mut starts = Vec::new();
    let mut common = usize::MAX;
    let mut at_line_start = true;
    for (at, piece) in pieces.iter().enumerate() {
        let line_start = std::mem::replace(&mut at_line_start, false);
        let Piece::Text(text) = piece else {
            common = if line_start { 0 } else { common };
            continue;
        };
        at_line_start = text.ends_with('\n');
        let blank = at_line_start && text.trim().is_empty();
        if line_start && !blank {
            common = common.min(indent(text));
            starts.push(at);
        }
    }
    for at in starts {
        if let Piece::Text(text) = &mut pieces[at] {
            *text = text.chars().skip(common).collect();
        }
    }
}

fn indent(text: &str) -> usize {
    text.chars().take_while(|c| c.is_whitespace()).count()
}

type End = Option<(Directive, Span)>;

/// Pairs directives with their ends; stops at an `else` or end that belongs to the caller.
fn pair(pieces: &mut std::vec::IntoIter<Piece>, depth: usize) -> Result<(Vec<Part>, End), Fault> {
    let mut parts = Vec::new();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(text) => parts.push(Part::Text(text)),
            Piece::Value { value, .. } => parts.push(Part::Value(value)),
            Piece::Directive { what: Directive::If(condition), span, .. } => {
                check_depth(depth, span)?;
                parts.push(pair_if(pieces, condition, span, depth + 1)?);
            }
            Piece::Directive { what: Directive::For { key_name, value_name, collection }, span, .. } => {
                check_depth(depth, span)?;
                let (body, end) = pair(pieces, depth + 1)?;
                if !matches!(end, Some((Directive::EndFor, _))) {
                    return Err(Fault::new(span, "this %{for} is never closed by %{endfor}"));
                }
                parts.push(Part::For { key_name, value_name, collection, body });
            }
            Piece::Directive { what, span, .. } => return Ok((parts, Some((what, span)))),
        }
    }
    Ok((parts, None))
}

fn check_depth(depth: usize, span: Span) -> Result<(), Fault> {
    if depth >= super::NESTING_MAX { Err(super::cursor::too_deep(span)) } else { Ok(()) }
}

fn pair_if(
    pieces: &mut std::vec::IntoIter<Piece>,
    condition: Expr,
    span: Span,
    depth: usize,
) -> Result<Part, Fault> {
    let unclosed = || Fault::new(span, "this %{if} is never closed by %{endif}");
    let (yes, end) = pair(pieces, depth)?;
    let (no, end) = match end {
        Some((Directive::Else, _)) => pair(pieces, depth)?,
        end => (Vec::new(), end),
    };
    match end {
        Some((Directive::EndIf, _)) => Ok(Part::If { condition, yes, no }),
        _ => Err(unclosed()),
    }
}
