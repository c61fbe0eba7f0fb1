use std::borrow::Cow;
use std::cmp::Ordering;

use model::document::Attribute;

/// The value of one side of a device constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'a> {
    /// As written in the job; attributes that are numbers or booleans have none.
    text: Option<Cow<'a, str>>,
    typed: Typed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Typed {
    Text,
    Bool(bool),
    /// In the smallest unit of its base.
    Whole(i128, Option<Base>),
    Fraction(f64, Option<Base>),
}

/// What a unit measures. Only values with the same base can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Byte,
    ByteRate,
    Hertz,
    Watt,
}

/// Each unit with its size: in bytes, bytes a second, megahertz and milliwatts.
const UNITS: [(&str, Base, i128); 19] = [
    ("KiB", Base::Byte, 1 << 10),
    ("MiB", Base::Byte, 1 << 20),
    ("GiB", Base::Byte, 1 << 30),
    ("TiB", Base::Byte, 1 << 40),
    ("PiB", Base::Byte, 1 << 50),
    ("EiB", Base::Byte, 1 << 60),
    ("kB", Base::Byte, 1_000),
    ("KB", Base::Byte, 1_000),
    ("MB", Base::Byte, 1_000_000),
    ("GB", Base::Byte, 1_000_000_000),
    ("TB", Base::Byte, 1_000_000_000_000),
    ("PB", Base::Byte, 1_000_000_000_000_000),
    ("EB", Base::Byte, 1_000_000_000_000_000_000),
    ("MHz", Base::Hertz, 1),
    ("GHz", Base::Hertz, 1_000),
    ("mW", Base::Watt, 1),
    ("kW", Base::Watt, 1_000_000),
    ("MW", Base::Watt, 1_000_000_000),
    ("GW", Base::Watt, 1_000_000_000_000),
];

/// Tried last, because its one letter is also the end of longer units.
const WATT: (&str, Base, i128) = ("W", Base::Watt, 1_000);

impl<'a> Value<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value { text: Some(text.into()), typed: Typed::Text }
    }

    /// A literal in the job: a number with or without a unit, a boolean, or else a text.
    pub fn literal(text: &str) -> Value<'static> {
        let (number, unit) = split(text);
        let typed = match (number.parse::<i64>(), number.parse::<f64>()) {
            (Ok(whole), _) => Typed::whole(whole, unit),
            (Err(_), Ok(fraction)) => Typed::fraction(fraction, unit),
            (Err(_), Err(_)) => {
                crate::feasibility::constraint::boolean(text).map_or(Typed::Text, Typed::Bool)
            }
        };
        Value { text: Some(text.to_string().into()), typed }
    }

    /// An attribute of a node's device. An unknown unit counts as none; an attribute without a value is missing.
    pub fn attribute(attribute: &'a Attribute) -> Option<Value<'a>> {
        let unit = known(&attribute.unit);
        let typed = |typed| Some(Value { text: None, typed });
        if let Some(text) = &attribute.string {
            return Some(Value::text(text.as_str()));
        }
        if let Some(whole) = attribute.int {
            return typed(Typed::whole(whole, unit));
        }
        if let Some(fraction) = attribute.float {
            return typed(Typed::fraction(fraction, unit));
        }
        attribute.bool.and_then(|value| typed(Typed::Bool(value)))
    }

    pub fn as_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// A version may be a whole number.
    pub fn as_version(&self) -> Option<Cow<'_, str>> {
        match (&self.text, self.typed) {
            (Some(text), _) => Some(Cow::from(&**text)),
            (None, Typed::Whole(number, None)) => Some(number.to_string().into()),
            (None, _) => None,
        }
    }

    /// `None` if the two cannot be compared. Booleans are equal, or the one is greater, whichever it is.
    pub fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self.typed, other.typed) {
            (Typed::Text, Typed::Text) => Some(self.text.cmp(&other.text)),
            (Typed::Bool(one), Typed::Bool(other)) => {
                Some(if one == other { Ordering::Equal } else { Ordering::Greater })
            }
            (one, other) => {
                let ((own_base, one), (base, other)) = (one.number()?, other.number()?);
                if own_base != base { None } else { one.compare(other) }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Fraction(f64),
}

impl Number {
    fn compare(self, other: Number) -> Option<Ordering> {
        let float = |number| match number {
            Number::Whole(whole) => whole as f64,
            Number::Fraction(fraction) => fraction,
        };
        match (self, other) {
            (Number::Whole(one), Number::Whole(other)) => Some(one.cmp(&other)),
            (one, other) => float(one).partial_cmp(&float(other)),
        }
    }
}

impl Typed {
    fn whole(number: i64, unit: Option<(Base, i128)>) -> Typed {
        let number = i128::from(number);
        unit.map_or(Typed::Whole(number, None), |(base, size)| Typed::Whole(number * size, Some(base)))
    }

    fn fraction(number: f64, unit: Option<(Base, i128)>) -> Typed {
        let scaled = |(base, size): (Base, i128)| Typed::Fraction(number * size as f64, Some(base));
        unit.map_or(Typed::Fraction(number, None), scaled)
    }

    fn number(self) -> Option<(Option<Base>, Number)> {
        match self {
            Typed::Whole(number, base) => Some((base, Number::Whole(number))),
            Typed::Fraction(number, base) => Some((base, Number::Fraction(number))),
            Typed::Text | Typed::Bool(_) => None,
        }
    }
}

/// A number and its unit.
fn split(text: &str) -> (&str, Option<(Base, i128)>) {
    let (amount, per_second) = text.strip_suffix("/s").map_or((text, false), |amount| (amount, true));
    let unit = UNITS.iter().chain([&WATT]).find(|(name, ..)| amount.ends_with(name));
    match unit {
        Some((name, base, size)) if !per_second || *base == Base::Byte => {
            let base = if per_second { Base::ByteRate } else { *base };
            (amount[..amount.len() - name.len()].trim(), Some((base, *size)))
        }
        Some(_) | None => (text, None),
    }
}

fn known(unit: &str) -> Option<(Base, i128)> {
    match split(unit) {
        ("", unit) => unit,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(one: &str, other: &str) -> Option<Ordering> {
        Value::literal(one).compare(&Value::literal(other))
    }

    /// H45, H46.
    #[test]
    fn what_has_one_base_is_compared_in_its_smallest_unit() {
        for (one, other, expected) in [
            ("1000 MHz", "1 GHz", Some(Ordering::Equal)),
            ("4096 MiB", "2 GiB", Some(Ordering::Greater)),
            ("1.5 GiB", "1536 MiB", Some(Ordering::Equal)),
            ("1 kB", "1 KiB", Some(Ordering::Less)),
            ("16 EiB", "17 EB", Some(Ordering::Greater)),
            ("1 MB/s", "1000 kB/s", Some(Ordering::Equal)),
            ("250 W", "250000 mW", Some(Ordering::Equal)),
            ("1 MB/s", "1 MB", None),
            ("1 GiB", "1 GHz", None),
            ("1 GiB", "1", None),
            ("1", "1.0", Some(Ordering::Equal)),
            ("true", "t", Some(Ordering::Equal)),
            ("false", "true", Some(Ordering::Greater)),
            ("abc", "abd", Some(Ordering::Less)),
            ("abc", "1", None),
            ("true", "abc", None),
        ] {
            assert_eq!(compare(one, other), expected, "{one} and {other}");
        }
    }

    #[test]
    fn an_unknown_unit_counts_as_none() {
        let attribute = Attribute { int: Some(3), unit: "furlong".into(), ..Attribute::default() };
        let value = Value::attribute(&attribute).unwrap();
        assert_eq!(value.compare(&Value::literal("3")), Some(Ordering::Equal));
        assert_eq!(value.as_version().as_deref(), Some("3"));
        assert_eq!(Value::attribute(&Attribute::default()), None);
    }
}
