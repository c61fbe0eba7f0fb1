//! Flags the way Go programs read them: `-name`, `--name`, `-name=value`, `-name value`. Parsing stops at the
//! first argument that is no flag, or after `--`.
//!
//! A flag is a constant: commands list it and read it by that constant, so a misspelt name does not compile.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::str::FromStr;

/// One flag of a command. `T` is what it is read as: `bool` for a switch, `String` for a value, `Vec<String>` for a
/// value that may be repeated, any other type for a value that is parsed.
#[derive(Debug)]
pub(crate) struct Flag<T> {
    spec: FlagSpec,
    /// What a value has to be, for error messages.
    expected: &'static str,
    read_as: PhantomData<fn() -> T>,
}

/// What parsing, help pages and completion know of a flag.
#[derive(Debug)]
pub(crate) struct FlagSpec {
    pub name: &'static str,
    pub takes: Takes,
    pub help: &'static str,
    pub completion: Completion,
}

/// What follows the name of a flag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing, or `=true` and `=false`.
    Switch,
    /// A value, named like this on the help page.
    Value(&'static str),
}

/// What a shell offers where a value or an argument is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    Nothing,
    Files,
    /// Ids of this search context.
    Ids(&'static str),
    /// Blocks and keys of job files and agent configuration.
    Reference,
}

/// A flag of any type, as a command lists it.
pub(crate) trait AnyFlag: Sync {
    fn spec(&self) -> &FlagSpec;
}

/// Flags that commands share, or one command's own.
pub(crate) type FlagList = &'static [&'static dyn AnyFlag];

/// The flags of several lists, in their order.
pub(crate) fn specs(lists: &'static [FlagList]) -> impl Iterator<Item = &'static FlagSpec> + Clone {
    lists.iter().copied().flatten().map(|flag| flag.spec())
}

impl<T> AnyFlag for Flag<T> {
    fn spec(&self) -> &FlagSpec {
        &self.spec
    }
}

impl Flag<bool> {
    pub(crate) const fn switch(name: &'static str, help: &'static str) -> Flag<bool> {
        Flag::new(name, Takes::Switch, "true or false", help)
    }
}

impl Flag<String> {
    pub(crate) const fn value(name: &'static str, what: &'static str, help: &'static str) -> Flag<String> {
        Flag::new(name, Takes::Value(what), "a text", help)
    }
}

impl Flag<Vec<String>> {
    pub(crate) const fn values(
        name: &'static str,
        what: &'static str,
        help: &'static str,
    ) -> Flag<Vec<String>> {
        Flag::new(name, Takes::Value(what), "a text", help)
    }
}

impl<T: FromStr> Flag<T> {
    pub(crate) const fn number(name: &'static str, what: &'static str, help: &'static str) -> Flag<T> {
        Flag::new(name, Takes::Value(what), "a number", help)
    }

    pub(crate) const fn parsed(
        name: &'static str,
        what: &'static str,
        expected: &'static str,
        help: &'static str,
    ) -> Flag<T> {
        Flag::new(name, Takes::Value(what), expected, help)
    }
}

impl<T> Flag<T> {
    const fn new(name: &'static str, takes: Takes, expected: &'static str, help: &'static str) -> Flag<T> {
        let spec = FlagSpec { name, takes, help, completion: Completion::Nothing };
        Flag { spec, expected, read_as: PhantomData }
    }

    /// The same flag, with what a shell offers for its value.
    pub(crate) const fn completed_by(self, completion: Completion) -> Flag<T> {
        Flag { spec: FlagSpec { completion, ..self.spec }, ..self }
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.spec.name
    }
}

/// What was given to a command.
#[derive(Debug, Default)]
pub(crate) struct Args {
    given: BTreeMap<&'static str, Vec<String>>,
    /// What is left after the flags.
    pub words: Vec<String>,
}

/// Why the arguments are invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FlagError {
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
/// The first invalid argument.
pub(crate) fn parse(
    declared: impl Iterator<Item = &'static FlagSpec> + Clone,
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

/// Name and value of a flag, as far as they are in this argument; `None` when it is no flag.
fn split(argument: &str) -> Result<Option<(&str, Option<&str>)>, FlagError> {
    // A number or a span that is negative is no flag: none begins with a digit.
    let is_flag = |flag: &&str| !flag.is_empty() && !flag.starts_with(|c: char| c.is_ascii_digit());
    let Some(flag) = argument.strip_prefix('-').filter(is_flag) else { return Ok(None) };
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
    /// These arguments without the flags that another command does not take.
    pub(crate) fn taking(args: &Args, known: impl Fn(&str) -> bool) -> Args {
        let given = args.given.iter().filter(|(name, _)| known(name));
        Args {
            given: given.map(|(name, values)| (*name, values.clone())).collect(),
            words: args.words.clone(),
        }
    }

    /// Everything that was given, by the names of the flags.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().flat_map(|(name, values)| values.iter().map(|value| (*name, value.as_str())))
    }

    /// A switch that is off unless given.
    pub(crate) fn switch(&self, flag: &Flag<bool>) -> bool {
        self.given_switch(flag) == Some(true)
    }

    /// Whether a switch was given, either way.
    pub(crate) fn given_switch(&self, flag: &Flag<bool>) -> Option<bool> {
        self.last(flag).map(|value| value == "true")
    }

    /// The last value given.
    pub(crate) fn value(&self, flag: &Flag<String>) -> Option<&str> {
        self.last(flag)
    }

    /// Every value given, in order.
    pub(crate) fn values(&self, flag: &Flag<Vec<String>>) -> &[String] {
        self.given.get(flag.name()).map_or(&[], Vec::as_slice)
    }

    /// The last value given, as what the flag is read as.
    ///
    /// # Errors
    /// [`FlagError::Value`] when it cannot be parsed.
    pub(crate) fn parsed<T: FromStr>(&self, flag: &Flag<T>) -> Result<Option<T>, FlagError> {
        let Some(value) = self.last(flag) else { return Ok(None) };
        let (name, expected) = (flag.name(), flag.expected);
        let wrong = |_| FlagError::Value { name, value: value.to_string(), expected };
        value.parse().map(Some).map_err(wrong)
    }

    /// The last value given, which has to be `true` or `false`: for flags that are no switches.
    ///
    /// # Errors
    /// When it is something else.
    pub(crate) fn boolean(&self, flag: &Flag<String>) -> anyhow::Result<Option<bool>> {
        let Some(value) = self.last(flag) else { return Ok(None) };
        match api::go_bool(value) {
            Some(on) => Ok(Some(on)),
            None => {
                anyhow::bail!("invalid value \"{value}\" for flag -{}: expected true or false", flag.name())
            }
        }
    }

    /// The last value given to a flag of any type, as text; `true` or `false` for a switch.
    pub(crate) fn last(&self, flag: &dyn AnyFlag) -> Option<&str> {
        self.given.get(flag.spec().name)?.last().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Flag<bool> = Flag::switch("json", "");
    const DETACH: Flag<bool> = Flag::switch("detach", "");
    const ADDRESS: Flag<String> = Flag::value("address", "ADDR", "");
    const VAR: Flag<Vec<String>> = Flag::values("var", "K=V", "");
    const COUNT: Flag<u32> = Flag::number("count", "N", "");
    const FLAGS: FlagList = &[&JSON, &DETACH, &ADDRESS, &VAR, &COUNT];

    fn read(line: &str) -> Result<Args, FlagError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        parse(specs(&[FLAGS]), &words)
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
            assert_eq!(args.switch(&JSON), json, "{line}");
            assert_eq!(args.value(&ADDRESS), address, "{line}");
            assert_eq!(args.words.join(" "), words, "{line}");
        }
    }

    #[test]
    fn repeated_values_are_kept_in_order() {
        assert_eq!(read("-var a=1 -var=b=2").unwrap().values(&VAR), ["a=1", "b=2"]);
    }

    #[test]
    fn invalid_flags_are_rejected_with_gos_messages() {
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
    fn an_invalid_number_is_reported_with_its_flag() {
        let error = read("-count ten").unwrap().parsed(&COUNT).unwrap_err();
        assert_eq!(error.to_string(), "invalid value \"ten\" for flag -count: expected a number");
        assert_eq!(read("-count 10").unwrap().parsed(&COUNT), Ok(Some(10)));
    }
}
