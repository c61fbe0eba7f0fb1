//! `printf` as Go has it, and numbers as Go prints them.

use crate::value::Value;

/// `%v` of a float: the fewest digits that mean it, with an exponent outside 1e-4 to 1e6.
pub fn shortest(number: f64) -> String {
    if let Some(special) = special(number) {
        return special;
    }
    let text = format!("{number:e}");
    let (_, exponent) = text.split_once('e').expect("Rust writes an exponent");
    let exponent: i32 = exponent.parse().expect("Rust writes a whole exponent");
    if number != 0.0 && !(-4..6).contains(&exponent) {
        return with_exponent(&text);
    }
    format!("{number}")
}

fn special(number: f64) -> Option<String> {
    match number {
        _ if number.is_nan() => Some("NaN".to_string()),
        _ if number.is_infinite() => Some(if number > 0.0 { "+Inf" } else { "-Inf" }.to_string()),
        _ => None,
    }
}

/// Rust's `1e6` in Go's spelling: `1e+06`.
fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').expect("it was written with an exponent");
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// One `%…` of a format.
#[derive(Default)]
struct Verb {
    minus: bool,
    plus: bool,
    sharp: bool,
    zero: bool,
    space: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Widest field: a format must not eat the machine.
const WIDTH_MAX: usize = 1 << 16;

pub fn printf(format: &str, values: &[Value]) -> String {
    let (mut out, mut chars, mut next) = (String::new(), format.chars().peekable(), 0);
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut verb = Verb::default();
        while let Some(flag) = chars.next_if(|c| "-+# 0".contains(*c)) {
            match flag {
                '-' => verb.minus = true,
                '+' => verb.plus = true,
                '#' => verb.sharp = true,
                ' ' => verb.space = true,
                _ => verb.zero = true,
            }
        }
        let mut number = |chars: &mut std::iter::Peekable<std::str::Chars>| {
            if chars.next_if_eq(&'*').is_some() {
                next += 1;
                let given = values.get(next - 1).and_then(Value::as_int);
                return given.map(|given| usize::try_from(given).unwrap_or(0).min(WIDTH_MAX));
            }
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits.parse().ok().map(|number: usize| number.min(WIDTH_MAX))
        };
        verb.width = number(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            verb.precision = Some(number(&mut chars).unwrap_or(0));
        }
        match chars.next() {
            None => out.push_str("%!(NOVERB)"),
            Some('%') => out.push('%'),
            Some(letter) => match values.get(next) {
                None => out.push_str(&format!("%!{letter}(MISSING)")),
                Some(value) => {
                    next += 1;
                    out.push_str(&verb.padded(verb.print(letter, value)));
                }
            },
        }
    }
    if let Some(extra) = values.get(next..).filter(|extra| !extra.is_empty()) {
        let extra: Vec<_> = extra.iter().map(|value| format!("{}={}", value.kind(), value.shown())).collect();
        out.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    out
}

impl Verb {
    fn print(&self, letter: char, value: &Value) -> String {
        if letter == 'T' {
            return value.kind().to_string();
        }
        match (letter, value) {
            ('v', Value::Missing) => "<nil>".to_string(),
            ('v', Value::Float(number)) if self.precision.is_some() => self.float('g', *number),
            ('v', Value::Int(number)) => self.signed(number.to_string()),
            ('v', value) if self.sharp => sharp(value),
            ('v', value) => value.shown(),
            ('s' | 'q' | 'd' | 'x' | 'X', Value::List(items)) => {
                let items: Vec<_> = items.iter().map(|item| self.print(letter, item)).collect();
                format!("[{}]", items.join(" "))
            }
            ('t', Value::Bool(yes)) => yes.to_string(),
            ('s', Value::Text(text)) => self.cut(text),
            ('q', Value::Text(text)) => quoted(text),
            ('x', Value::Text(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ('X', Value::Text(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
            ('e' | 'E' | 'f' | 'F' | 'g' | 'G', Value::Float(number)) => self.float(letter, *number),
            (_, Value::Int(_) | Value::Uint(_)) => self.integer(letter, value),
            _ => wrong(letter, value),
        }
    }

    fn integer(&self, letter: char, value: &Value) -> String {
        let number: i128 = match value {
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            _ => return wrong(letter, value),
        };
        let size = number.unsigned_abs();
        let digits = match letter {
            'd' => size.to_string(),
            'b' => format!("{size:b}"),
            'o' => format!("{size:o}"),
            'O' => format!("0o{size:o}"),
            'x' => format!("{}{size:x}", if self.sharp { "0x" } else { "" }),
            'X' => format!("{}{size:X}", if self.sharp { "0X" } else { "" }),
            'U' => format!("U+{size:04X}"),
            'c' | 'q' => {
                let c = u32::try_from(size).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
                return if letter == 'c' { c.to_string() } else { format!("{c:?}") };
            }
            _ => return wrong(letter, value),
        };
        let digits = format!("{digits:0>width$}", width = self.precision.unwrap_or(0));
        self.signed(if number < 0 { format!("-{digits}") } else { digits })
    }

    fn float(&self, letter: char, number: f64) -> String {
        if let Some(special) = special(number) {
            return special;
        }
        let text = match (letter.to_ascii_lowercase(), self.precision) {
            ('e', precision) => with_exponent(&format!("{number:.*e}", precision.unwrap_or(6))),
            ('f', precision) => format!("{number:.*}", precision.unwrap_or(6)),
            (_, None) => shortest(number),
            (_, Some(precision)) => significant(number, precision.max(1)),
        };
        self.signed(if letter.is_ascii_uppercase() { text.to_uppercase() } else { text })
    }

    fn signed(&self, text: String) -> String {
        match text.starts_with(['-', '+']) {
            false if self.plus => format!("+{text}"),
            false if self.space => format!(" {text}"),
            _ => text,
        }
    }

    fn cut(&self, text: &str) -> String {
        self.precision.map_or(text.to_string(), |most| text.chars().take(most).collect())
    }

    fn padded(&self, text: String) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        if self.minus {
            return text + &" ".repeat(missing);
        }
        if self.zero {
            let digits = text.trim_start_matches(['+', '-']);
            let sign = &text[..text.len() - digits.len()];
            return format!("{sign}{}{digits}", "0".repeat(missing));
        }
        " ".repeat(missing) + &text
    }
}

/// At most so many significant digits, without zeros at the end: `%.3g`.
fn significant(number: f64, digits: usize) -> String {
    let text = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent");
    let exponent: i32 = exponent.parse().expect("Rust writes a whole exponent");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= most {
        return with_exponent(&format!("{}e{exponent}", trimmed(mantissa)));
    }
    trimmed(&format!("{number:.*}", usize::try_from(most - 1 - exponent).unwrap_or(0)))
}

fn wrong(letter: char, value: &Value) -> String {
    match value {
        Value::Missing | Value::Nil => format!("%!{letter}(<nil>)"),
        value => format!("%!{letter}({}={})", value.kind(), value.shown()),
    }
}

pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As Go source has it.
fn sharp(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(sharp).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Map(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{}:{}", quoted(key), sharp(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Nil | Value::Missing => "interface {}(nil)".to_string(),
        value => value.shown(),
    }
}
