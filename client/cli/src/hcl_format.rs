//! The canonical format of HCL: two blanks per level, equal signs and comments of neighbours below
//! each other, single blanks elsewhere. Only blanks change.

/// A token, with the blank before it.
#[derive(Debug, PartialEq)]
struct Token<'a> {
    text: &'a str,
    /// There is a blank before it.
    spaced: bool,
}

/// One line, cut into what is put below each other.
#[derive(Debug, Default)]
struct Line {
    depth: usize,
    lead: String,
    /// From the equal sign on, for an attribute that ends on its line.
    assign: String,
    comment: String,
    /// Copied unchanged: part of a block comment or heredoc.
    verbatim: Option<String>,
}

/// The formatted text.
pub(crate) fn format(text: &str) -> String {
    let mut lines = read(text);
    align(
        &mut lines,
        |line| (!line.assign.is_empty()).then(|| width(&line.lead)),
        |line, most| {
            let gap = most - width(&line.lead);
            line.lead.extend(std::iter::repeat_n(' ', gap));
        },
    );
    let body = |line: &Line| {
        width(&line.lead) + line.depth * 2 + if line.assign.is_empty() { 0 } else { 1 + width(&line.assign) }
    };
    let has_comment = |line: &Line| !line.comment.is_empty() && !line.lead.is_empty();
    align(
        &mut lines,
        |line| has_comment(line).then(|| body(line)),
        |line, most| {
            let gap = most - body(line);
            line.comment.insert_str(0, &" ".repeat(gap));
        },
    );
    lines.iter().map(|line| write(line) + "\n").collect::<String>()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn write(line: &Line) -> String {
    if let Some(verbatim) = &line.verbatim {
        return verbatim.clone();
    }
    let parts = [&line.lead, &line.assign, &line.comment];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    let text = format!("{}{}", " ".repeat(line.depth * 2), parts.join(" "));
    text.trim_end().to_string()
}

/// Widens neighbouring lines that have a width to the largest of them.
fn align(lines: &mut [Line], of: impl Fn(&Line) -> Option<usize>, widen: impl Fn(&mut Line, usize)) {
    let mut from = 0;
    while from < lines.len() {
        let run = lines[from..].iter().take_while(|line| of(line).is_some()).count();
        let most = lines[from..from + run].iter().filter_map(&of).max().unwrap_or(0);
        lines[from..from + run].iter_mut().for_each(|line| widen(line, most));
        from += run.max(1);
    }
}

fn read(text: &str) -> Vec<Line> {
    let (mut lines, mut depth) = (Vec::new(), 0_usize);
    let mut within: Option<End> = None;
    for raw in text.lines() {
        if let Some(end) = &within {
            let over = end.ends(raw);
            lines.push(Line { verbatim: Some(raw.trim_end_matches('\r').to_string()), ..Line::default() });
            if over {
                within = None;
            }
            continue;
        }
        let tokens = tokens(raw);
        let (body, comment) = match tokens.split_last() {
            Some((last, body)) if is_comment(last.text) => (body, last.text.trim_end().to_string()),
            _ => (&tokens[..], String::new()),
        };
        within = opened(body, &comment);
        let (closed, opened) = brackets(body);
        depth = depth.saturating_sub(closed);
        let mut line = Line { depth, comment, ..Line::default() };
        match body {
            [name, equal, rest @ ..] if equal.text == "=" && opened == 0 && within.is_none() => {
                line.lead = name.text.to_string();
                line.assign = format!("= {}", spaced(rest)).trim_end().to_string();
            }
            body => line.lead = spaced(body),
        }
        lines.push(line);
        depth += opened;
    }
    lines
}

/// What ends a part that is copied unchanged.
enum End {
    Comment,
    /// The word of a heredoc.
    Word(String),
}

impl End {
    fn ends(&self, line: &str) -> bool {
        match self {
            End::Comment => line.contains("*/"),
            End::Word(word) => line.trim() == word,
        }
    }
}

fn opened(body: &[Token], comment: &str) -> Option<End> {
    if comment.starts_with("/*") && !comment.contains("*/") {
        return Some(End::Comment);
    }
    let word = body.last()?.text.strip_prefix("<<")?;
    Some(End::Word(word.trim_start_matches('-').to_string()))
}

/// Levels that the line leaves at its start, and those it is deeper by at its end.
fn brackets(body: &[Token]) -> (usize, usize) {
    let (mut closed, mut open) = (0, 0);
    for token in body {
        match token.text {
            "{" | "[" | "(" => open += 1,
            "}" | "]" | ")" if open > 0 => open -= 1,
            "}" | "]" | ")" => closed += 1,
            _ => {}
        }
    }
    // Several brackets that open together are one level.
    (closed.min(1), open.min(1))
}

fn is_comment(text: &str) -> bool {
    text.starts_with('#') || text.starts_with("//") || text.starts_with("/*")
}

/// The tokens, with blanks between them where necessary.
fn spaced(tokens: &[Token]) -> String {
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| tokens[at].text);
        if before.is_some_and(|before| blank_between(before, token)) {
            text.push(' ');
        }
        text.push_str(token.text);
    }
    text
}

fn blank_between(before: &str, token: &Token) -> bool {
    match (before, token.text) {
        ("{", "}") | (_, ",") | ("[" | "(", _) | (_, "]" | ")") => false,
        (",", _) | ("{" | "=", _) | (_, "{" | "}" | "=") => true,
        ("==" | "!=" | "<=" | ">=" | "&&" | "||" | "=>" | "?", _) => true,
        (_, "==" | "!=" | "<=" | ">=" | "&&" | "||" | "=>" | "?") => true,
        _ => token.spaced,
    }
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest, mut spaced) = (Vec::new(), line, false);
    loop {
        let trimmed = rest.trim_start();
        spaced |= trimmed.len() < rest.len();
        rest = trimmed;
        if rest.is_empty() {
            return tokens;
        }
        let length = length(rest);
        tokens.push(Token { text: &rest[..length], spaced });
        rest = &rest[length..];
        spaced = false;
    }
}

/// How long the first token is.
fn length(text: &str) -> usize {
    const PAIRS: [&str; 8] = ["==", "!=", "<=", ">=", "&&", "||", "=>", "::"];
    let first = text.chars().next().expect("tokens are read only from non-empty text");
    if text.starts_with("/*") {
        // A line with a comment in the middle is one token: it is copied unchanged.
        return text
            .find("*/")
            .map_or(text.len(), |end| if text[end + 2..].trim().is_empty() { text.len() } else { end + 2 });
    }
    if is_comment(text) || text.starts_with("<<") {
        return text.trim_end().len();
    }
    if first == '"' {
        return string(text);
    }
    if let Some(pair) = PAIRS.iter().find(|pair| text.starts_with(**pair)) {
        return pair.len();
    }
    if "{}[](),=?".contains(first) {
        return 1;
    }
    let stops = |(at, c): &(usize, char)| {
        *at > 0 && (c.is_whitespace() || "{}[](),=?\"#".contains(*c) || text[*at..].starts_with("//"))
    };
    text.char_indices()
        .find(|found| {
            stops(found) || PAIRS.iter().any(|pair| found.0 > 0 && text[found.0..].starts_with(pair))
        })
        .map_or(text.len(), |(at, _)| at)
}

/// How long a text in quotes is, with what it computes inside.
fn string(text: &str) -> usize {
    let (mut depth, mut chars) = (0_usize, text.char_indices().skip(1).peekable());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '$' | '%' if chars.peek().is_some_and(|(_, next)| *next == '{') => {
                depth += 1;
                chars.next();
            }
            '{' if depth > 0 => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '"' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_signs_and_comments_find_their_places() {
        let given = "job \"web\"   {\n type= \"service\"  # kind\n    datacenters=[ \"dc1\",\"dc2\" ] # where\n\n\tgroup \"api\" {\n\
                     count=2\n      env = {\n a=1\n    long_name = \"x = {\"\n}\n   args = [\n \"-c\",\n    ]\n}\n}\n";
        let expected = "job \"web\" {\n  type        = \"service\"      # kind\n  datacenters = [\"dc1\", \"dc2\"] # where\n\n  group \"api\" {\n    \
                        count = 2\n    env = {\n      a         = 1\n      long_name = \"x = {\"\n    }\n    args = [\n      \"-c\",\n    ]\n  }\n}\n";
        assert_eq!(format(given), expected);
        assert_eq!(format(expected), expected, "what has the form keeps it");
    }

    #[test]
    fn long_texts_and_comments_stay_as_they_are() {
        let text = "template {\n  data = <<-EOH\n      {{ key   \"x\" }}\n   a=1\n  EOH\n  x = 1\n}\n\n/* a   long\n    comment */\na = 1\n";
        assert_eq!(format(text), text);
    }

    #[test]
    fn expressions_keep_their_words() {
        for (given, expected) in [
            ("a=b==1?\"x\":\"y\"", "a = b == 1 ? \"x\":\"y\"\n"),
            ("a = max( 1,2 )", "a = max(1, 2)\n"),
            ("a = \"${var.x[\"k\"]}-{\"", "a = \"${var.x[\"k\"]}-{\"\n"),
            ("a = -1", "a = -1\n"),
            ("meta { a = 1 }", "meta { a = 1 }\n"),
            ("a = {}", "a = {}\n"),
            ("# only   a comment", "# only   a comment\n"),
            ("url = \"http://x//y\" // why", "url = \"http://x//y\" // why\n"),
        ] {
            assert_eq!(format(given), expected, "{given}");
        }
    }

    #[test]
    fn nothing_but_blanks_ever_changes() {
        let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for text in [
            "}}}\n{{{",
            "a = \"unclosed",
            "a = [1,\n2",
            "/* open",
            "x = <<E\nnever closed",
            "==?,,((",
            "a\t=\té",
        ] {
            assert_eq!(bare(&format(text)), bare(text), "{text}");
        }
    }
}
