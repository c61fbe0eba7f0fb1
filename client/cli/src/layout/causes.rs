//! What led to what, as trees: each fact once, under the one that explains it.

use std::collections::BTreeSet;

use api::{ChainFact, EventChain};

use crate::layout::history::{short_ids, who};
use crate::output::OutputStyle;

/// A fact, and under each what it followed from.
pub(crate) fn causes(style: &OutputStyle, chain: &EventChain) -> String {
    let under = |fact: &ChainFact| -> Vec<(String, String)> {
        fact.causes.iter().map(|cause| (cause.id.clone(), format!("by its {}", cause.how))).collect()
    };
    tree(style, chain, &under) + &notes(chain)
}

/// Facts, and under each what followed from it: under the first of its causes that is there.
pub(crate) fn effects(style: &OutputStyle, chain: &EventChain) -> String {
    let is_there: BTreeSet<&str> = chain.facts.iter().map(|fact| fact.id.as_str()).collect();
    let parent = |fact: &ChainFact| {
        let known = fact.causes.iter().find(|cause| is_there.contains(cause.id.as_str()));
        known.map(|cause| (cause.id.clone(), cause.how.clone()))
    };
    let parents: Vec<(String, Option<(String, String)>)> =
        chain.facts.iter().map(|fact| (fact.id.clone(), parent(fact))).collect();
    let under = |fact: &ChainFact| -> Vec<(String, String)> {
        let own = parents.iter().filter_map(|(id, parent)| {
            let (of, how) = parent.as_ref()?;
            (*of == fact.id).then(|| (id.clone(), how.clone()))
        });
        own.collect()
    };
    tree(style, chain, &under) + &notes(chain)
}

type Under<'a> = dyn Fn(&ChainFact) -> Vec<(String, String)> + 'a;

fn tree(style: &OutputStyle, chain: &EventChain, under: &Under<'_>) -> String {
    let (mut text, mut shown) = (String::new(), BTreeSet::new());
    // A stack, as chains of reports are as deep as a walk may be.
    let below: BTreeSet<String> = chain.facts.iter().flat_map(under).map(|(id, _)| id).collect();
    let firsts = chain.facts.iter().filter(|fact| fact.depth == 0 && !below.contains(&fact.id));
    let mut open: Vec<(&ChainFact, usize, String)> = firsts.map(|fact| (fact, 0, String::new())).collect();
    open.reverse();
    while let Some((fact, depth, how)) = open.pop() {
        if !shown.insert(fact.id.clone()) {
            continue;
        }
        text += &line(style, fact, depth, &how);
        let below = under(fact).into_iter().rev().filter_map(|(id, how)| {
            let fact = chain.facts.iter().find(|fact| fact.id == id)?;
            Some((fact, depth + 1, how))
        });
        open.extend(below);
    }
    text
}

fn line(style: &OutputStyle, fact: &ChainFact, depth: usize, how: &str) -> String {
    let indent = "  ".repeat(depth);
    let how = if how.is_empty() { String::new() } else { format!("{how}: ") };
    let (id, time) = (&fact.id, style.time(fact.time.time().0));
    let object = short_ids(style, &fact.object);
    let who = short_ids(style, &who(&fact.actor, fact.requester.as_ref()));
    let description = if fact.description.is_empty() {
        String::new()
    } else {
        format!(": {}", short_ids(style, &fact.description))
    };
    let root = match (fact.root.as_str(), fact.request_id.as_str()) {
        ("request", "") => " (request)".to_string(),
        ("request", request) => format!(" (request {request})"),
        ("deadline", _) => " (deadline)".to_string(),
        ("observed", _) => " (observed)".to_string(),
        ("gone", _) => " (what it followed from is no longer kept)".to_string(),
        _ => String::new(),
    };
    format!("{indent}{how}{id} {time} {} {object} by {who}{description}{root}\n", fact.event)
}

fn notes(chain: &EventChain) -> String {
    let mut text = String::new();
    if !chain.trace_id.is_empty() {
        text += &format!("Trace {}\n", chain.trace_id);
    }
    if chain.cut_short {
        text += "There is more than was followed.\n";
    }
    if chain.gone {
        text += "The log no longer has some of it.\n";
    }
    if chain.hidden > 0 {
        text += &format!("{} that you may not see.\n", crate::layout::plural(chain.hidden, "fact"));
    }
    text
}

#[cfg(test)]
mod tests {
    use api::FactCause;

    use super::*;

    fn fact(id: &str, event: &str, depth: u32, causes: &[(&str, &str)]) -> ChainFact {
        let cause = |(id, how): &(&str, &str)| FactCause { id: (*id).into(), how: (*how).into() };
        ChainFact {
            id: id.into(),
            event: event.into(),
            object: "alloc/11111111-2222-3333-4444-555555555555".into(),
            actor: "server:worker".into(),
            time: OutputStyle::for_tests().now.into(),
            depth,
            causes: causes.iter().map(cause).collect::<Vec<_>>().into(),
            root: if causes.is_empty() { "request".into() } else { String::new() },
            ..ChainFact::default()
        }
    }

    #[test]
    fn each_fact_stands_once_under_what_explains_it() {
        let style = OutputStyle::for_tests();
        let up = EventChain {
            facts: vec![
                fact("9:0", "Reported", 0, &[("8:1", "allocation"), ("7:0", "report")]),
                fact("8:1", "Placed", 1, &[("6:0", "plan")]),
                fact("7:0", "Reported", 1, &[("8:1", "allocation")]),
                fact("6:0", "Registered", 2, &[]),
            ]
            .into(),
            cut_short: true,
            ..EventChain::default()
        };
        let end = "2026-01-02T03:04:05Z";
        let tail = "alloc/11111111 by server:worker";
        assert_eq!(
            causes(&style, &up),
            format!(
                "9:0 {end} Reported {tail}\n  by its allocation: 8:1 {end} Placed {tail}\n    \
                 by its plan: 6:0 {end} Registered {tail} (request)\n  by its report: 7:0 {end} Reported {tail}\n\
                 There is more than was followed.\n"
            )
        );
        let down = EventChain {
            facts: vec![
                fact("6:0", "Registered", 0, &[]),
                fact("8:1", "Placed", 1, &[("6:0", "plan")]),
                fact("7:0", "Reported", 2, &[("5:0", "health"), ("8:1", "allocation")]),
            ]
            .into(),
            hidden: 1,
            trace_id: "77".repeat(16),
            ..EventChain::default()
        };
        assert_eq!(
            effects(&style, &down),
            format!(
                "6:0 {end} Registered {tail} (request)\n  plan: 8:1 {end} Placed {tail}\n    \
                 allocation: 7:0 {end} Reported {tail}\nTrace 77777777777777777777777777777777\n1 fact that you may not see.\n"
            )
        );
    }
}
