use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Fault;
use crate::eval::Evaluator;
use crate::hcl::{Body, Expr, ExprKind, For, Key, Name, Part, Step};

/// Evaluates every local of the `locals` blocks, each after those it refers to.
pub(crate) fn resolve(evaluator: &mut Evaluator, body: &Body) -> Result<(), Fault> {
    let locals = declared(body)?;
    let mut waits_for: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut wakes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut ready = Vec::new();
    for (name, (_, expr)) in &locals {
        let mut named = BTreeSet::new();
        references(expr, &mut named);
        named.retain(|other| locals.contains_key(other));
        for other in &named {
            wakes.entry(other).or_default().push(name);
        }
        if named.is_empty() {
            ready.push(*name);
        }
        waits_for.insert(name, named);
    }
    while let Some(name) = ready.pop() {
        let value = evaluator.value(locals[name].1)?;
        evaluator.locals.insert(name.to_string(), value);
        waits_for.remove(name);
        for other in wakes.remove(name).unwrap_or_default() {
            let waiting = waits_for.get_mut(other).expect("a local that waits has not been evaluated");
            waiting.remove(name);
            if waiting.is_empty() {
                ready.push(other);
            }
        }
    }
    match waits_for.keys().next() {
        None => Ok(()),
        Some(name) => {
            let message = format!("the local \"{name}\" refers to itself, directly or through others");
            Err(Fault::new(locals[name].0.span, message))
        }
    }
}

type Locals<'a> = BTreeMap<&'a str, (&'a Name, &'a Expr)>;

fn declared(body: &Body) -> Result<Locals<'_>, Fault> {
    let mut locals = BTreeMap::new();
    for block in body.blocks.iter().filter(|block| block.kind.text == "locals") {
        if let Some(label) = block.labels.first() {
            return Err(Fault::new(label.span, "locals takes no label"));
        }
        if let Some(inner) = block.body.blocks.first() {
            let fault = Fault::new(inner.header, "locals holds only name = value");
            return Err(fault.hint(format!("an object is written {} = {{ … }}", inner.kind.text)));
        }
        for attribute in &block.body.attributes {
            let name = &attribute.name;
            if locals.insert(name.text.as_str(), (name, &attribute.value)).is_some() {
                return Err(Fault::new(name.span, format!("the local \"{}\" is declared twice", name.text)));
            }
        }
    }
    Ok(locals)
}

/// The locals an expression names. A for variable called `local` hides them, which only delays evaluation.
fn references<'a>(expr: &'a Expr, found: &mut BTreeSet<&'a str>) {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Root(_) => {}
        ExprKind::Template(parts) => in_parts(parts, found),
        ExprKind::List(items) | ExprKind::Call { arguments: items, .. } => {
            items.iter().for_each(|item| references(item, found));
        }
        ExprKind::Object(entries) => {
            for (key, value) in entries {
                if let Key::Computed(key) = key {
                    references(key, found);
                }
                references(value, found);
            }
        }
        ExprKind::Access { base, steps } => {
            if let (ExprKind::Root(root), Some(Step::Attribute(name))) = (&base.kind, steps.first())
                && root == "local"
            {
                found.insert(&name.text);
            }
            references(base, found);
            in_steps(steps, found);
        }
        ExprKind::Splat(splat) => {
            references(&splat.base, found);
            in_steps(&splat.each, found);
        }
        ExprKind::Not(inner) | ExprKind::Negate(inner) | ExprKind::Paren(inner) => references(inner, found),
        ExprKind::Binary { left, right, .. } => {
            references(left, found);
            references(right, found);
        }
        ExprKind::Conditional { condition, yes, no } => {
            [condition, yes, no].into_iter().for_each(|part| references(part, found));
        }
        ExprKind::For(each) => in_for(each, found),
    }
}

fn in_for<'a>(each: &'a For, found: &mut BTreeSet<&'a str>) {
    references(&each.collection, found);
    references(&each.value, found);
    each.key.iter().chain(&each.condition).for_each(|part| references(part, found));
}

fn in_steps<'a>(steps: &'a [Step], found: &mut BTreeSet<&'a str>) {
    for step in steps {
        if let Step::Index(index) = step {
            references(index, found);
        }
    }
}

fn in_parts<'a>(parts: &'a [Part], found: &mut BTreeSet<&'a str>) {
    for part in parts {
        match part {
            Part::Text(_) => {}
            Part::Value(value) => references(value, found),
            Part::If { condition, yes, no } => {
                references(condition, found);
                in_parts(yes, found);
                in_parts(no, found);
            }
            Part::For { collection, body, .. } => {
                references(collection, found);
                in_parts(body, found);
            }
        }
    }
}
