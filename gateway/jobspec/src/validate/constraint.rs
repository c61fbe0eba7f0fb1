use model::document::{Affinity, Constraint, Spread};

use super::pattern;
use super::report::Report;

const AFFINITY_OPERATORS: [&str; 16] = [
    "=",
    "==",
    "is",
    "!=",
    "not",
    "<",
    "<=",
    ">",
    ">=",
    "regexp",
    "version",
    "semver",
    "set_contains",
    "set_contains_all",
    "set_contains_any",
    "is_set",
];

pub(super) fn check(report: &mut Report, constraint: &Constraint) {
    let Constraint { l_target, r_target, operand } = constraint;
    match operand.as_str() {
        "distinct_hosts" => {
            if !["", "true", "false"].contains(&r_target.as_str()) {
                report.warn(format!("distinct_hosts is true or false; \"{r_target}\" is taken to be true"));
            }
            return;
        }
        "distinct_property" => {
            let count = r_target.parse::<u64>().is_ok_and(|count| count > 0);
            if !r_target.is_empty() && !count {
                report.error("RTarget", format!("distinct_property counts from 1, not \"{r_target}\""));
            }
        }
        "is_not_set" => {}
        _ => operator(report, operand, r_target),
    }
    if l_target.is_empty() {
        report.error("LTarget", format!("a constraint with operator \"{operand}\" needs an attribute"));
    }
}

/// Task constraints are about the node alone.
pub(super) fn check_in_task(report: &mut Report, constraint: &Constraint) {
    if constraint.operand.starts_with("distinct_") {
        report.error("Operand", format!("{} belongs into the group or the job", constraint.operand));
    }
    check(report, constraint);
}

pub(super) fn check_affinity(report: &mut Report, affinity: &Affinity) {
    operator(report, &affinity.operand, &affinity.r_target);
    if affinity.l_target.is_empty() {
        report.error("LTarget", "an affinity needs an attribute");
    }
    if let Some(weight) = affinity.weight.filter(|weight| *weight == 0 || !(-100..=100).contains(weight)) {
        report.error("Weight", format!("weight {weight} is not between -100 and 100, without 0"));
    }
}

pub(super) fn check_spread(report: &mut Report, spread: &Spread) {
    if spread.attribute.is_empty() {
        report.error("Attribute", "a spread needs an attribute");
    }
    if let Some(weight) = spread.weight.filter(|weight| !(0..=100).contains(weight)) {
        report.error("Weight", format!("weight {weight} is not between 0 and 100"));
    }
    let percent: u64 = spread.spread_target.iter().map(|target| u64::from(target.percent)).sum();
    if percent > 100 {
        report.error("SpreadTarget", format!("the targets add up to {percent} percent"));
    }
}

fn operator(report: &mut Report, operand: &str, value: &str) {
    if !AFFINITY_OPERATORS.contains(&operand) {
        return report.error("Operand", format!("there is no operator \"{operand}\""));
    }
    let compares_lists = operand.starts_with("set_contains");
    if compares_lists && value.is_empty() {
        report.error("RTarget", format!("{operand} needs a value"));
    }
    // What a node fills in cannot be judged here.
    if value.contains("${") {
        return;
    }
    match operand {
        "regexp" => {
            if let Err(why) = pattern::check(value) {
                report.error("RTarget", format!("\"{value}\" is not a regular expression: {why}"));
            }
        }
        "version" | "semver" if !is_version_constraint(value) => {
            report
                .error("RTarget", format!("\"{value}\" is not a version constraint such as \">= 1.2, < 2\""));
        }
        _ => {}
    }
}

/// Comparisons joined by commas, each an operator and a version.
fn is_version_constraint(text: &str) -> bool {
    const OPERATORS: [&str; 8] = [">=", "<=", "!=", "~>", "=", ">", "<", ""];
    text.split(',').all(|part| {
        let part = part.trim();
        let operator = OPERATORS.iter().find(|operator| part.starts_with(**operator)).unwrap_or(&"");
        is_version(part[operator.len()..].trim())
    })
}

fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (version, build) = text.split_once('+').unwrap_or((text, "0"));
    let (numbers, pre) = version.split_once('-').unwrap_or((version, "0"));
    let word =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-~".contains(c));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').all(number) && word(pre) && word(build)
}
