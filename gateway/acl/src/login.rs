//! From what an identity provider says of somebody to the rights they get.
//!
//! [`Selectable`] is what is looked at of their claims, [`bind`] says which policies and roles follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use filter::{Filter, Schema};
use serde::Serialize;
use serde_json::{Value, json};

/// Longest text that a name becomes with claims in it.
const TEXT_MAX: usize = 1_024;

/// The name under which the schema of selectors has the claims.
const CLAIMS: &str = "Claims";

/// Claims under the names that an auth method gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Selectable {
    pub value: BTreeMap<String, String>,
    pub list: BTreeMap<String, Vec<String>>,
}

/// A claim cannot be what its mapping says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitClaim {
    pub claim: String,
    pub expected: &'static str,
}

impl std::fmt::Display for UnfitClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "claim {:?}: expected {}", self.claim, self.expected)
    }
}

impl Selectable {
    /// What the mappings, from claims to names, find in the claims. A claim that is not there is left out.
    ///
    /// # Errors
    /// [`UnfitClaim`].
    pub fn of<'a>(
        claims: &Value,
        values: impl IntoIterator<Item = (&'a String, &'a String)>,
        lists: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Selectable, UnfitClaim> {
        let mut found = Selectable::default();
        for (claim, name) in values {
            if let Some(value) = named(claims, claim) {
                found.value.insert(name.clone(), as_text(claim, value)?);
            }
        }
        for (claim, name) in lists {
            if let Some(value) = named(claims, claim) {
                found.list.insert(name.clone(), as_texts(claim, value)?);
            }
        }
        Ok(found)
    }
}

/// A claim by its name, or by the pointer to it (RFC 6901) if it begins with a slash.
fn named<'a>(claims: &'a Value, claim: &str) -> Option<&'a Value> {
    let found = if claim.starts_with('/') { claims.pointer(claim) } else { claims.get(claim) };
    found.filter(|value| !value.is_null())
}

fn as_text(claim: &str, value: &Value) -> Result<String, UnfitClaim> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Ok(value.to_string()),
        Value::Object(_) | Value::Null => {
            Err(UnfitClaim { claim: claim.to_string(), expected: "text, a number, a boolean or a list" })
        }
    }
}

/// One value is a list of one. Empty texts say nothing.
fn as_texts(claim: &str, value: &Value) -> Result<Vec<String>, UnfitClaim> {
    let unfit = || UnfitClaim { claim: claim.to_string(), expected: "a list of texts, numbers or booleans" };
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) | Value::Object(_) | Value::Null => Err(unfit()),
    };
    let all = match value {
        Value::Array(items) => items.iter().map(one).collect::<Result<Vec<String>, UnfitClaim>>()?,
        single => vec![one(single)?],
    };
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}

/// What a rule gives to those it holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindKind {
    Role,
    Policy,
    Management,
}

impl BindKind {
    pub fn from_word(word: &str) -> Option<BindKind> {
        match word {
            "role" => Some(BindKind::Role),
            "policy" => Some(BindKind::Policy),
            "management" => Some(BindKind::Management),
            _ => None,
        }
    }
}

/// A binding rule, as far as it is looked at.
#[derive(Clone, Debug)]
pub struct Rule<'a, Id> {
    pub id: Id,
    pub selector: &'a str,
    pub kind: BindKind,
    pub name: &'a str,
}

/// What follows from the rules for one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bindings<Id> {
    pub management: bool,
    /// By name.
    pub policies: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    /// The rules that gave something.
    pub rules: Vec<Id>,
}

/// Goes through the rules in their order. A rule whose name cannot be made, or names nothing that `exists`, gives nothing; the
/// first one that gives everything is the last one that is looked at, and takes the place of the others.
pub fn bind<'a, Id>(
    claims: &Selectable,
    rules: impl IntoIterator<Item = Rule<'a, Id>>,
    exists: impl Fn(BindKind, &str) -> bool,
) -> Bindings<Id> {
    let mut bindings =
        Bindings { management: false, policies: BTreeSet::new(), roles: BTreeSet::new(), rules: Vec::new() };
    for rule in rules.into_iter().filter(|rule| selects(rule.selector, claims)) {
        let names = match rule.kind {
            BindKind::Management => {
                return Bindings {
                    management: true,
                    policies: BTreeSet::new(),
                    roles: BTreeSet::new(),
                    rules: vec![rule.id],
                };
            }
            BindKind::Role => &mut bindings.roles,
            BindKind::Policy => &mut bindings.policies,
        };
        let name = fill(rule.name, |variable| lower_value(claims, variable));
        if let Some(name) = name.filter(|name| is_name(name) && exists(rule.kind, name)) {
            names.insert(name);
            bindings.rules.push(rule.id);
        }
    }
    bindings
}

/// Whether a selector holds. An empty one does; one that cannot be evaluated does not.
pub fn selects(selector: &str, claims: &Selectable) -> bool {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let types = json!({CLAIMS: {"kind": "object", "fields": [
            {"name": "value", "type": "map<string,string>"},
            {"name": "list", "type": "map<string,list<string>>"},
        ]}});
        Schema::read(&types).expect("it names only types there are")
    });
    if selector.trim().is_empty() {
        return true;
    }
    let Ok(filter) = Filter::parse(selector) else { return false };
    let document = serde_json::to_value(claims).expect("texts have a JSON form");
    filter.matches(&SCHEMA, CLAIMS, &document).unwrap_or_default()
}

/// Whether a selector can be understood at all.
///
/// # Errors
/// What is wrong with it.
pub fn check_selector(selector: &str) -> Result<(), String> {
    if selector.trim().is_empty() {
        return Ok(());
    }
    Filter::parse(selector).map(drop).map_err(|error| error.to_string())
}

/// The name of a token that somebody gets who logs in; `None` if it is made of a claim that they do not have.
pub fn token_name(format: &str, kind: &str, method: &str, claims: &Selectable) -> Option<String> {
    fill(format, |variable| match variable {
        "auth_method_type" => Some(kind.to_string()),
        "auth_method_name" => Some(method.to_string()),
        other => value(claims, other),
    })
}

/// # Errors
/// What is wrong with a name that has `${…}` in it. `extra` may stand there besides claims.
pub fn check_template(template: &str, extra: &[&str]) -> Result<(), String> {
    let pieces = pieces(template).ok_or_else(|| format!("{template:?}: a `${{` is not closed"))?;
    let is_known = |name: &str| {
        extra.contains(&name) || name.strip_prefix("value.").is_some_and(|rest| !rest.is_empty())
    };
    let unknown = pieces.iter().find_map(|piece| match piece {
        Piece::Variable(name) if !is_known(name) => Some(*name),
        _ => None,
    });
    match unknown {
        Some(name) => {
            let known: Vec<&str> = extra.iter().copied().chain(["value.NAME"]).collect();
            Err(format!("${{{name}}} in {template:?}: expected {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn pieces(template: &str) -> Option<Vec<Piece<'_>>> {
    let (mut found, mut rest) = (Vec::new(), template);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        found.extend([Piece::Text(before), Piece::Variable(name.trim())]);
        rest = after;
    }
    found.push(Piece::Text(rest));
    Some(found)
}

fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    for piece in pieces(template)? {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Variable(name) => text.push_str(&value(name)?),
        }
    }
    (text.len() <= TEXT_MAX).then_some(text)
}

fn value(claims: &Selectable, variable: &str) -> Option<String> {
    claims.value.get(variable.strip_prefix("value.")?).cloned()
}

/// Names of policies and roles are compared as they are written, and providers write people's names as they like.
fn lower_value(claims: &Selectable, variable: &str) -> Option<String> {
    value(claims, variable).map(|value| value.to_lowercase())
}

/// Names that policies and roles can have.
fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=128).contains(&name.len()) && name.chars().all(is_fit)
}
