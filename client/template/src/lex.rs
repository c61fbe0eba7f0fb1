//! Text and the tokens between `{{` and `}}`, or what else is chosen for them.

use crate::Error;

/// What a template is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Action(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub line: usize,
    /// Whether a blank stands before it: `.A .B` is two things, `.A.B` is one.
    pub spaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `.Name`.
    Field(String),
    Dot,
    /// `$` or `$name`, with the dollar.
    Variable(String),
    Word(String),
    Text(String),
    Int(i64),
    Float(f64),
    Pipe,
    Declare,
    Assign,
    Comma,
    Open,
    Close,
}

/// What begins an action, and what ends it.
#[derive(Clone, Copy, Debug)]
pub struct Delimiters<'a> {
    pub left: &'a str,
    pub right: &'a str,
}

/// Cuts a template into text and actions; blanks beside trim markers are gone.
pub fn pieces(text: &str, delimiters: Delimiters<'_>) -> Result<Vec<Piece>, Error> {
    let (mut pieces, mut rest, mut line) = (Vec::new(), text, 1);
    let mut trims = false;
    while !rest.is_empty() {
        let Some(begin) = rest.find(delimiters.left) else {
            push_text(&mut pieces, rest, trims, false);
            break;
        };
        let (before, after) = rest.split_at(begin);
        let inside = &after[delimiters.left.len()..];
        let trims_before = inside.starts_with('-') && inside[1..].starts_with([' ', '\t', '\r', '\n']);
        push_text(&mut pieces, before, trims, trims_before);
        line += lines(before);
        let inside = if trims_before { &inside[1..] } else { inside };
        let (action, left) = action(inside, delimiters.right, line)?;
        line += lines(&inside[..inside.len() - left.len()]);
        let (body, trims_after) = match action.strip_suffix('-') {
            Some(body) if body.ends_with([' ', '\t', '\r', '\n']) => (body, true),
            _ => (action, false),
        };
        trims = trims_after;
        if !is_comment(body) {
            let start = line - lines(&inside[..inside.len() - left.len()]);
            pieces.push(Piece::Action(tokens(body, start)?));
        }
        rest = left;
    }
    Ok(pieces)
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

fn push_text(pieces: &mut Vec<Piece>, text: &str, trim_start: bool, trim_end: bool) {
    let blank = [' ', '\t', '\r', '\n'];
    let text = if trim_start { text.trim_start_matches(blank) } else { text };
    let text = if trim_end { text.trim_end_matches(blank) } else { text };
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_string()));
    }
}

fn is_comment(body: &str) -> bool {
    body.trim().starts_with("/*")
}

/// What stands before the end of the action, and what after it. An end inside a quoted text is none.
fn action<'t>(text: &'t str, right: &str, line: usize) -> Result<(&'t str, &'t str), Error> {
    let unclosed = |reason: &str| Error { line, reason: reason.to_string() };
    if text.trim_start().starts_with("/*") {
        let end = text.find("*/").ok_or_else(|| unclosed("unclosed comment"))?;
        let close =
            text[end..].find(right).ok_or_else(|| unclosed("comment ends before closing delimiter"))?;
        if !matches!(text[end + 2..end + close].trim(), "" | "-") {
            return Err(unclosed("comment ends before closing delimiter"));
        }
        return Ok((&text[..end + close], &text[end + close + right.len()..]));
    }
    let mut chars = text.char_indices();
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, _) if text[at..].starts_with(right) => {
                return Ok((&text[..at], &text[at + right.len()..]));
            }
            (None, '"' | '`' | '\'') => quote = Some(c),
            (Some('"' | '\''), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    Err(unclosed(if quote.is_some() { "unterminated quoted string" } else { "unclosed action" }))
}

fn tokens(text: &str, first_line: usize) -> Result<Vec<Token>, Error> {
    let mut tokens = Vec::new();
    let (mut rest, mut spaced) = (text, true);
    loop {
        let trimmed = rest.trim_start();
        spaced |= trimmed.len() < rest.len();
        rest = trimmed;
        if rest.is_empty() {
            return Ok(tokens);
        }
        let line = first_line + lines(&text[..text.len() - rest.len()]);
        let (kind, length) = token(rest).map_err(|reason| Error { line, reason })?;
        tokens.push(Token { kind, line, spaced });
        rest = &rest[length..];
        spaced = false;
    }
}

/// The first token, and how long it is.
fn token(text: &str) -> Result<(Kind, usize), String> {
    let first = text.chars().next().expect("a token is asked for only where text is left");
    let second = text[first.len_utf8()..].chars().next();
    match first {
        '|' => Ok((Kind::Pipe, 1)),
        ',' => Ok((Kind::Comma, 1)),
        '(' => Ok((Kind::Open, 1)),
        ')' => Ok((Kind::Close, 1)),
        ':' if second == Some('=') => Ok((Kind::Declare, 2)),
        '=' => Ok((Kind::Assign, 1)),
        '"' => quoted(text),
        '`' => raw(text),
        '\'' => character(text),
        '$' => {
            let name = word(&text[1..]);
            Ok((Kind::Variable(format!("${name}")), 1 + name.len()))
        }
        '.' if second.is_some_and(is_letter) => {
            let name = word(&text[1..]);
            Ok((Kind::Field(name.to_string()), 1 + name.len()))
        }
        '.' if !second.is_some_and(|c| c.is_ascii_digit()) => Ok((Kind::Dot, 1)),
        '.' | '0'..='9' | '+' | '-' => number(text),
        c if is_letter(c) => {
            let name = word(text);
            Ok((Kind::Word(name.to_string()), name.len()))
        }
        other => Err(format!("unexpected {other:?} in command")),
    }
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !is_letter(c) && !c.is_numeric()).unwrap_or(text.len());
    &text[..end]
}

fn raw(text: &str) -> Result<(Kind, usize), String> {
    let end = text[1..].find('`').ok_or("unterminated raw quoted string")?;
    Ok((Kind::Text(text[1..=end].to_string()), end + 2))
}

fn character(text: &str) -> Result<(Kind, usize), String> {
    let (text, length) = unquoted(text, '\'')?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Ok((Kind::Int(i64::from(u32::from(only))), length)),
        _ => Err("malformed character constant".to_string()),
    }
}

fn quoted(text: &str) -> Result<(Kind, usize), String> {
    let (text, length) = unquoted(text, '"')?;
    Ok((Kind::Text(text), length))
}

/// A text between quotes with Go's escapes undone, and how long it was.
fn unquoted(text: &str, quote: char) -> Result<(String, usize), String> {
    let (mut out, mut chars) = (String::new(), text.char_indices().skip(1));
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => return Ok((out, at + 1)),
            '\n' => break,
            '\\' => {
                let (at, escape) = chars.next().ok_or("unterminated quoted string")?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                if digits == 0 {
                    out.push(escaped(escape)?);
                    continue;
                }
                let code =
                    text.get(at + 1..at + 1 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                out.push(code.and_then(char::from_u32).ok_or("malformed escape in quoted string")?);
                chars.nth(digits - 1);
            }
            c => out.push(c),
        }
    }
    Err("unterminated quoted string".to_string())
}

fn escaped(c: char) -> Result<char, String> {
    Ok(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'v' => '\x0b',
        '\\' | '"' | '\'' => c,
        other => return Err(format!("unknown escape \\{other} in quoted string")),
    })
}

fn number(text: &str) -> Result<(Kind, usize), String> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let hex = text[sign..].to_ascii_lowercase().starts_with("0x");
    let mut end = sign;
    let mut before = ' ';
    for c in text[sign..].chars() {
        let exponent_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !hex;
        if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.') || exponent_sign) {
            break;
        }
        end += c.len_utf8();
        before = c;
    }
    let digits = text[..end].replace('_', "");
    let wrong = || format!("bad number syntax: {:?}", &text[..end.max(1)]);
    let unsigned = digits.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let radix =
        [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| unsigned.starts_with(prefix));
    let whole = match radix {
        Some((_, radix)) => i64::from_str_radix(&unsigned[2..], radix).ok(),
        None => unsigned.parse::<i64>().ok(),
    };
    let negative = digits.starts_with('-');
    match whole {
        Some(whole) => Ok((Kind::Int(if negative { -whole } else { whole }), end)),
        None if radix.is_some() => Err(wrong()),
        None => digits.parse::<f64>().map(|number| (Kind::Float(number), end)).map_err(|_| wrong()),
    }
}
