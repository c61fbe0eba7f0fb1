//! The language of policies: HCL or JSON.

use jobspec::config::Section;
use jobspec::{Diagnostics, Source};

use crate::capability::{self, Member, Set};
use crate::policy::{CoarseRule, NamedRule, NamespaceRule, OperatorRule, PathRule, Policy, Variables};
use crate::{Capability, Level, VariableCapability};

/// Scopes that the other edition of Nomad acts on: refused by name rather than read and ignored.
const ENTERPRISE: &str = "sentinel";

impl Policy {
    /// Reads rules, strictly: what has no meaning is an error.
    ///
    /// # Errors
    /// The first thing that cannot be understood, with its place.
    pub fn parse(rules: &str) -> Result<Policy, Diagnostics> {
        let mut top = Section::parse(&Source::new("rules", rules))?;
        let mut policy = Policy::default();
        for (name, mut rule) in labelled(&mut top, "namespace")? {
            policy.namespaces.push(namespace(&name, &mut rule)?);
            rule.finish()?;
        }
        policy.node_pools = named(&mut top, "node_pool", "_", capability::of_pool)?;
        policy.host_volumes = named(&mut top, "host_volume", "", capability::of_host_volume)?;
        policy.agent = coarse(&mut top, "agent", &[])?;
        policy.node = coarse(&mut top, "node", &[])?;
        policy.quota = coarse(&mut top, "quota", &[])?;
        policy.plugin = coarse(&mut top, "plugin", &[Level::List])?;
        policy.operator = operator(&mut top)?;
        if let Some(sentinel) = top.sections(ENTERPRISE)?.first() {
            return Err(sentinel.wrong("sentinel policies are a feature of the enterprise edition of Nomad"));
        }
        let invalid = top.wrong("invalid policy: it has no rules");
        top.finish()?;
        if policy.is_empty() { Err(invalid) } else { Ok(policy) }
    }
}

fn namespace(name: &str, rule: &mut Section) -> Result<NamespaceRule, Diagnostics> {
    check_name(rule, "namespace", name, "")?;
    let level = level(rule, &[Level::Scale])?;
    let given = words::<Capability>(rule)?;
    let mut paths = Vec::new();
    let variables = rule.sections("variables")?;
    for mut block in variables {
        let of_block = labelled(&mut block, "path")?;
        if of_block.is_empty() {
            return Err(block.wrong("variables needs at least one path"));
        }
        for (path, mut rule) in of_block {
            paths.push(variable_path(&path, &mut rule)?);
            rule.finish()?;
        }
        block.finish()?;
    }
    let coarse = level.and_then(capability::of_namespace).unwrap_or_default();
    let capabilities = capability::implied(coarse | given);
    if capabilities.is_empty() && paths.is_empty() {
        return Err(rule.wrong(format!("namespace {name:?} needs a policy, capabilities or variables")));
    }
    let variables = (!paths.is_empty()).then_some(Variables { paths });
    Ok(NamespaceRule { name: name.to_string(), policy: level, capabilities, variables })
}

fn variable_path(path: &str, rule: &mut Section) -> Result<PathRule, Diagnostics> {
    if path.is_empty() || path.starts_with('/') {
        return Err(
            rule.wrong(format!("invalid variable path {path:?}: expected one without a slash in front"))
        );
    }
    let given = words::<VariableCapability>(rule)?;
    if given.is_empty() {
        return Err(rule.wrong(format!("variable path {path:?} needs capabilities")));
    }
    let capabilities = if given.contains(VariableCapability::Deny) {
        Set::of(&[VariableCapability::Deny])
    } else if given.contains(VariableCapability::Read) {
        given | Set::of(&[VariableCapability::List])
    } else {
        given
    };
    Ok(PathRule { path_spec: path.to_string(), capabilities })
}

fn named<C: Member>(
    top: &mut Section,
    kind: &str,
    further: &str,
    of_level: impl Fn(Level) -> Option<Set<C>>,
) -> Result<Vec<NamedRule<C>>, Diagnostics> {
    let mut rules = Vec::new();
    for (name, mut rule) in labelled(top, kind)? {
        check_name(&rule, kind, &name, further)?;
        let policy = level(&mut rule, &[])?;
        let capabilities = policy.and_then(&of_level).unwrap_or_default() | words(&mut rule)?;
        if capabilities.is_empty() {
            return Err(rule.wrong(format!("{kind} {name:?} needs a policy or capabilities")));
        }
        rule.finish()?;
        rules.push(NamedRule { name, policy, capabilities });
    }
    Ok(rules)
}

fn coarse(top: &mut Section, kind: &str, further: &[Level]) -> Result<Option<CoarseRule>, Diagnostics> {
    let Some(mut rule) = single(top, kind)? else { return Ok(None) };
    let policy = level(&mut rule, further)?;
    let policy = policy.ok_or_else(|| rule.wrong(format!("{kind} needs a policy")))?;
    rule.finish()?;
    Ok(Some(CoarseRule { policy }))
}

fn operator(top: &mut Section) -> Result<Option<OperatorRule>, Diagnostics> {
    let Some(mut rule) = single(top, "operator")? else { return Ok(None) };
    let policy = level(&mut rule, &[])?;
    let capabilities = policy.map(capability::of_operator).unwrap_or_default() | words(&mut rule)?;
    if policy.is_none() && capabilities.is_empty() {
        return Err(rule.wrong("operator needs a policy or capabilities"));
    }
    rule.finish()?;
    Ok(Some(OperatorRule { policy, capabilities }))
}

/// A scope that a policy speaks of once.
fn single(top: &mut Section, kind: &str) -> Result<Option<Section>, Diagnostics> {
    let mut sections = top.sections(kind)?;
    match sections.len() {
        0 | 1 => Ok(sections.pop()),
        _ => Err(sections[1].wrong(format!("{kind} stands here a second time"))),
    }
}

/// Blocks with a label; in JSON the labels are the names in an object.
fn labelled(within: &mut Section, kind: &str) -> Result<Vec<(String, Section)>, Diagnostics> {
    let mut rules = Vec::new();
    for mut section in within.sections(kind)? {
        match section.labels.as_slice() {
            [name] => rules.push((name.clone(), section)),
            [] => {
                for name in section.names() {
                    let inner = section.sections(&name)?;
                    rules.extend(inner.into_iter().map(|rule| (name.clone(), rule)));
                }
            }
            _ => return Err(section.wrong(format!("{kind} has one label: the names it is about"))),
        }
    }
    Ok(rules)
}

fn level(rule: &mut Section, further: &[Level]) -> Result<Option<Level>, Diagnostics> {
    let Some(word) = rule.take::<String>("policy")? else { return Ok(None) };
    let allowed = [Level::Deny, Level::Read, Level::Write];
    let mut allowed = allowed.iter().chain(further);
    match Level::from_word(&word).filter(|level| allowed.any(|allowed| allowed == level)) {
        Some(level) => Ok(Some(level)),
        // As if it was not there, like Nomad.
        None if word.is_empty() => Ok(None),
        None => {
            let all = [Level::Deny, Level::Read, Level::Write];
            let expected: Vec<&str> = all.iter().chain(further).map(|level| level.word()).collect();
            Err(rule.wrong(format!("invalid policy {word:?}: expected {}", expected.join(", "))))
        }
    }
}

fn words<C: Member>(rule: &mut Section) -> Result<Set<C>, Diagnostics> {
    let given = rule.take::<Vec<String>>("capabilities")?.unwrap_or_default();
    let mut members = Vec::new();
    for word in given {
        let member = C::from_word(&word);
        members.push(member.ok_or_else(|| rule.wrong(format!("invalid capability {word:?}")))?);
    }
    Ok(Set::of(&members))
}

fn check_name(rule: &Section, kind: &str, name: &str, further: &str) -> Result<(), Diagnostics> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '*') || further.contains(c);
    if (1..=128).contains(&name.len()) && name.chars().all(is_fit) {
        return Ok(());
    }
    let expected = "expected 1 to 128 letters, digits, dashes and stars";
    Err(rule.wrong(format!("invalid {kind} name {name:?}: {expected}")))
}
