//! Flags the way Go programs read them: `-name`, `--name`, `-name=value`, `-name value`. Parsing stops at the
//! first argument that is no flag, or after `--`.

use std::collections::BTreeMap;

/// One flag of a command, and its line on the help page.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub takes: Takes,
    pub help: &'static str,
}

/// What follows the name of a flag.
#[derive(Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing, or `=true` and `=false`.
    Switch,
    /// A value, named like this on the help page.
    Value(&'static str),
}

pub const fn switch(name: &'static str, help: &'static str) -> Flag {
    Flag { name, takes: Takes::Switch, help }
}

pub const fn value(name: &'static str, what: &'static str, help: &'static str) -> Flag {
    Flag { name, takes: Takes::Value(what), help }
}

/// What was given to a command.
#[derive(Debug, Default)]
pub struct Args {
    given: BTreeMap<&'static str, Vec<String>>,
    /// What is left after the flags.
    pub words: Vec<String>,
}

/// Why the arguments make no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// `-h`, `-help` or `--help` where no such flag is declared: not a mistake.
    #[error("help requested")]
    Help,
    #[error("flag provided but not defined: -{0}")]
    Unknown(String),
    #[error("flag needs an argument: -{0}")]
    NoValue(&'static str),
    #[error("invalid boolean value \"{value}\" for -{name}")]
    NotBoolean { name: &'static str, value: String },
    #[error("invalid value \"{value}\" for flag -{name}: expected {expected}")]
    Value { name: &'static str, value: String, expected: &'static str },
    #[error("bad flag syntax: {0}")]
    Syntax(String),
}

/// Reads arguments by the given declarations.
///
/// # Errors
/// The first argument that makes no sense.
pub fn parse<'a>(
    declared: impl Iterator<Item = &'a Flag> + Clone,
    arguments: &[String],
) -> Result<Args, FlagError> {
    let mut args = Args::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        }
        let Some((name, value)) = split(argument)? else {
            args.words.push(argument.clone());
            break;
        };
        let Some(flag) = declared.clone().find(|flag| flag.name == name) else {
            return Err(if matches!(name, "h" | "help") {
                FlagError::Help
            } else {
                FlagError::Unknown(name.to_string())
            });
        };
        let value = match (&flag.takes, value) {
            (Takes::Switch, value) => read_switch(flag.name, value.unwrap_or("true"))?.to_string(),
            (Takes::Value(_), Some(value)) => value.to_string(),
            (Takes::Value(_), None) => rest.next().ok_or(FlagError::NoValue(flag.name))?.clone(),
        };
        args.given.entry(flag.name).or_default().push(value);
    }
    args.words.extend(rest.cloned());
    Ok(args)
}

/// Name and value of a flag, as far as the argument itself says; `None` when it is no flag.
fn split(argument: &str) -> Result<Option<(&str, Option<&str>)>, FlagError> {
    let Some(flag) = argument.strip_prefix('-').filter(|flag| !flag.is_empty()) else { return Ok(None) };
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    let (name, value) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    };
    if name.is_empty() || name.starts_with('-') {
        return Err(FlagError::Syntax(argument.to_string()));
    }
    Ok(Some((name, value)))
}

fn read_switch(name: &'static str, value: &str) -> Result<bool, FlagError> {
    api::go_bool(value).ok_or_else(|| FlagError::NotBoolean { name, value: value.to_string() })
}

impl Args {
    /// What of these a command with fewer or other flags understands.
    pub fn taking(args: &Args, known: impl Fn(&str) -> bool) -> Args {
        let given = args.given.iter().filter(|(name, _)| known(name));
        Args {
            given: given.map(|(name, values)| (*name, values.clone())).collect(),
            words: args.words.clone(),
        }
    }

    /// Everything that was given, by the names of the flags.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().flat_map(|(name, values)| values.iter().map(|value| (*name, value.as_str())))
    }

    /// A switch that is off unless given.
    pub fn switch(&self, name: &'static str) -> bool {
        self.value(name) == Some("true")
    }

    /// Whether a switch was given, either way.
    pub fn given_switch(&self, name: &'static str) -> Option<bool> {
        self.value(name).map(|value| value == "true")
    }

    /// The last value given.
    pub fn value(&self, name: &'static str) -> Option<&str> {
        self.values(name).last().map(String::as_str)
    }

    /// Every value given, in order.
    pub fn values(&self, name: &'static str) -> &[String] {
        self.given.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value given, as a number.
    ///
    /// # Errors
    /// [`FlagError::Value`] when it is none.
    pub fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<Option<T>, FlagError> {
        self.parsed(name, "a number")
    }

    /// The last value given, as whatever `T` reads; `expected` says what that is.
    ///
    /// # Errors
    /// [`FlagError::Value`] when it cannot be read.
    pub fn parsed<T: std::str::FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, FlagError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = |_| FlagError::Value { name, value: value.to_string(), expected };
        value.parse().map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [Flag; 4] =
        [switch("json", ""), switch("detach", ""), value("address", "ADDR", ""), value("var", "K=V", "")];

    fn read(line: &str) -> Result<Args, FlagError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        parse(FLAGS.iter(), &words)
    }

    #[test]
    fn every_go_spelling_is_read() {
        let cases = [
            ("-json", true, None, ""),
            ("--json=true x", true, None, "x"),
            ("-json=F x y", false, None, "x y"),
            ("-address http://a x", false, Some("http://a"), "x"),
            ("--address=http://a=b", false, Some("http://a=b"), ""),
            ("-address= x", false, Some(""), "x"),
            ("-address -json x", false, Some("-json"), "x"),
            ("x -json", false, None, "x -json"),
            ("-json -- -x", true, None, "-x"),
            ("-json - -x", true, None, "- -x"),
            ("-json=1 -json=0", false, None, ""),
        ];
        for (line, json, address, words) in cases {
            let args = read(line).unwrap();
            assert_eq!(args.switch("json"), json, "{line}");
            assert_eq!(args.value("address"), address, "{line}");
            assert_eq!(args.words.join(" "), words, "{line}");
        }
    }

    #[test]
    fn repeated_values_are_kept_in_order() {
        assert_eq!(read("-var a=1 -var=b=2").unwrap().values("var"), ["a=1", "b=2"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_gos_words() {
        let cases = [
            ("-nope x", "flag provided but not defined: -nope"),
            ("--nope=3", "flag provided but not defined: -nope"),
            ("-address", "flag needs an argument: -address"),
            ("-json=maybe", "invalid boolean value \"maybe\" for -json"),
            ("---json", "bad flag syntax: ---json"),
            ("-=x", "bad flag syntax: -=x"),
            ("-h", "help requested"),
            ("--help", "help requested"),
        ];
        for (line, message) in cases {
            assert_eq!(read(line).unwrap_err().to_string(), message, "{line}");
        }
    }

    #[test]
    fn a_number_that_is_none_names_its_flag() {
        let error = read("-var ten").unwrap().number::<u32>("var").unwrap_err();
        assert_eq!(error.to_string(), "invalid value \"ten\" for flag -var: expected a number");
        assert_eq!(read("-var 10").unwrap().number::<u32>("var"), Ok(Some(10)));
    }
}
