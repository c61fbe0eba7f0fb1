//! `format` and `formatlist`: the verbs of the language for text, numbers and any value.

use crate::eval::convert::{to_bool, to_f64, to_number, to_text};
use crate::eval::{RESULT_MAX, Value, ValueError};

/// Widest field and longest fraction: a small template must not make large text.
const WIDTH_MAX: usize = 1024;

/// What stands between `%` and the verb.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    zero: bool,
    space: bool,
    alternate: bool,
    argument: Option<usize>,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn format(a: &[Value]) -> Result<Value, ValueError> {
    render(&to_text(&a[0])?, &a[1..]).map(Value::Text)
}

/// `format` once for every element of the lists among the arguments.
pub(super) fn formatlist(a: &[Value]) -> Result<Value, ValueError> {
    let lengths = a[1..].iter().filter_map(|value| match value {
        Value::List(items) => Some(items.len()),
        _ => None,
    });
    let lengths: Vec<usize> = lengths.collect();
    let rows = lengths.first().copied().unwrap_or(1);
    if lengths.iter().any(|length| *length != rows) {
        return Err("the lists differ in length".into());
    }
    let template = to_text(&a[0])?;
    let mut total = 0;
    let mut lines = Vec::new();
    for row in 0..rows {
        let of_row = a[1..].iter().map(|value| match value {
            Value::List(items) => items[row].clone(),
            other => other.clone(),
        });
        let line = render(&template, &of_row.collect::<Vec<_>>())?;
        total += line.len();
        if total > RESULT_MAX {
            return Err(format!("the result grows beyond {RESULT_MAX} bytes").into());
        }
        lines.push(Value::Text(line));
    }
    Ok(Value::List(lines))
}

fn render(template: &str, arguments: &[Value]) -> Result<String, ValueError> {
    let mut out = String::new();
    let mut rest = template;
    let mut next = 0;
    let mut used = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let (spec, verb, after) = spec(&rest[at + 1..])?;
        rest = after;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let position = spec.argument.unwrap_or(next);
        next = position + 1;
        used = used.max(next);
        let argument = arguments.get(position).ok_or_else(|| format!("there is no argument for %{verb}"))?;
        out.push_str(&field(&spec, verb, argument)?);
        if out.len() > RESULT_MAX {
            return Err(format!("the result grows beyond {RESULT_MAX} bytes").into());
        }
    }
    out.push_str(rest);
    if used < arguments.len() {
        return Err(format!("{} arguments, but the text uses {used}", arguments.len()).into());
    }
    Ok(out)
}

fn spec(text: &str) -> Result<(Spec, char, &str), ValueError> {
    let mut spec = Spec::default();
    let mut rest = text;
    loop {
        match rest.chars().next() {
            Some('-') => spec.left = true,
            Some('+') => spec.plus = true,
            Some('0') => spec.zero = true,
            Some(' ') => spec.space = true,
            Some('#') => spec.alternate = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    if let Some(inner) = rest.strip_prefix('[') {
        let (number, after) = inner.split_once(']').ok_or("a `[` in the text is never closed")?;
        let position = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        spec.argument = Some(position.ok_or("an argument position must be a number from 1")?);
        rest = after;
    }
    (spec.width, rest) = digits(rest)?;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = digits(after)?;
        (spec.precision, rest) = (Some(precision), after);
    }
    let verb = rest.chars().next().ok_or("the text ends within a %")?;
    Ok((spec, verb, &rest[verb.len_utf8()..]))
}

fn digits(text: &str) -> Result<(usize, &str), ValueError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = if number.is_empty() { Some(0) } else { number.parse().ok().filter(|n| *n <= WIDTH_MAX) };
    Ok((number.ok_or_else(|| format!("a width beyond {WIDTH_MAX}"))?, rest))
}

fn field(spec: &Spec, verb: char, value: &Value) -> Result<String, ValueError> {
    let text = match verb {
        's' => cut(spec, to_text(value)?),
        'q' => Value::Text(cut(spec, to_text(value)?)).into_json().to_string(),
        'v' if spec.alternate => value.clone().into_json().to_string(),
        'v' => to_text(value).unwrap_or_else(|_| value.clone().into_json().to_string()),
        't' => to_bool(value)?.to_string(),
        'd' => signed(spec, to_f64(value)?, |_| magnitude(value).map(|whole| whole.to_string()))?,
        'b' => signed(spec, to_f64(value)?, |_| {
            magnitude(value).map(|whole| format!("{}{whole:b}", mark(spec, "0b")))
        })?,
        'o' => signed(spec, to_f64(value)?, |_| {
            magnitude(value).map(|whole| format!("{}{whole:o}", mark(spec, "0")))
        })?,
        'x' => hex(spec, value)?,
        'X' => hex(spec, value)?.to_uppercase(),
        'f' | 'F' => {
            signed(spec, to_f64(value)?, |number| Ok(format!("{number:.*}", spec.precision.unwrap_or(6))))?
        }
        'e' => signed(spec, to_f64(value)?, |number| Ok(exponent(number, spec.precision.unwrap_or(6))))?,
        'E' => signed(spec, to_f64(value)?, |number| Ok(exponent(number, spec.precision.unwrap_or(6))))?
            .to_uppercase(),
        'g' => signed(spec, to_f64(value)?, |number| Ok(shorter(number, spec.precision)))?,
        'G' => signed(spec, to_f64(value)?, |number| Ok(shorter(number, spec.precision)))?.to_uppercase(),
        other => return Err(format!("there is no %{other}").into()),
    };
    let numeric = "dboxXfFeEgG".contains(verb);
    Ok(padded(spec, text, numeric))
}

fn cut(spec: &Spec, text: String) -> String {
    match spec.precision {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    }
}

fn hex(spec: &Spec, value: &Value) -> Result<String, ValueError> {
    match value {
        Value::Text(text) => Ok(text.bytes().map(|byte| format!("{byte:02x}")).collect()),
        _ => signed(spec, to_f64(value)?, |_| {
            magnitude(value).map(|whole| format!("{}{whole:x}", mark(spec, "0x")))
        }),
    }
}

fn mark<'m>(spec: &Spec, mark: &'m str) -> &'m str {
    if spec.alternate { mark } else { "" }
}

/// The whole part of a number, without its sign.
fn magnitude(value: &Value) -> Result<u128, ValueError> {
    match to_number(value)? {
        Value::Int(whole) => Ok(whole.unsigned_abs()),
        other => {
            let number = to_f64(&other)?.trunc().abs();
            if number < 3e38 { Ok(number as u128) } else { Err("the number is too large".into()) }
        }
    }
}

/// The shortest digits that identify a number, with an exponent when it is very large or very small.
fn shorter(number: f64, precision: Option<usize>) -> String {
    let digits = match precision {
        None => format!("{number:e}"),
        Some(precision) => format!("{number:.*e}", precision.max(1) - 1),
    };
    let (mantissa, power) = digits.split_once('e').unwrap_or((&digits, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let most = match precision {
        // Without a precision, six digits decide, as in Go.
        None => 6,
        Some(precision) => precision.max(1),
    };
    if power < -4 || power >= most as i32 {
        let (sign, power) = if power < 0 { ('-', -power) } else { ('+', power) };
        return format!("{mantissa}e{sign}{power:02}");
    }
    format!("{mantissa}e{power}").parse::<f64>().map_or(digits, |number| number.to_string())
}

fn signed(
    spec: &Spec,
    number: f64,
    magnitude: impl Fn(f64) -> Result<String, ValueError>,
) -> Result<String, ValueError> {
    let sign = match number < 0.0 {
        true => "-",
        false if spec.plus => "+",
        false if spec.space => " ",
        false => "",
    };
    Ok(format!("{sign}{}", magnitude(number.abs())?))
}

/// At least two digits in the exponent, with its sign.
fn exponent(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{mantissa}e{sign}{power:0>2}")
}

fn padded(spec: &Spec, text: String, numeric: bool) -> String {
    let missing = spec.width.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if spec.left {
        return format!("{text}{}", " ".repeat(missing));
    }
    if spec.zero && numeric {
        let digits = text.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(0);
        return format!("{}{}{}", &text[..digits], "0".repeat(missing), &text[digits..]);
    }
    format!("{}{text}", " ".repeat(missing))
}
