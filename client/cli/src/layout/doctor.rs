//! The output of `job doctor`: each block of a job file, and what becomes of it.

use api::{DoctorFinding, JobDoctor};
use jobspec::Part;

use super::{metrics, plural};
use crate::output::{OutputStyle, Paint};

/// What becomes of a block: the worse, the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Works,
    Ignored,
    NoRoom,
    MayFail,
    NeverPlaced,
    Fails,
}

/// Whether all of the job runs, be it without what is ignored.
pub(crate) fn runs(found: &JobDoctor) -> bool {
    let finding = |finding: &DoctorFinding| verdict(&finding.effect) < Verdict::NeverPlaced;
    found.errors.is_empty() && found.groups.is_empty() && found.findings.iter().all(finding)
}

pub(crate) fn whole(style: &OutputStyle, parts: &[Part], found: &JobDoctor) -> String {
    let mut lines: Vec<Line> = parts.iter().map(|part| Line { part, said: Vec::new() }).collect();
    let mut elsewhere = Vec::new();
    for finding in &found.findings {
        let places = of(&lines, finding);
        if places.is_empty() {
            elsewhere.push(finding);
        }
        places.into_iter().for_each(|at| lines[at].said.push((verdict(&finding.effect), &finding.text)));
    }
    let mut text = String::new();
    let shown: Vec<(usize, String, Verdict, String)> =
        (0..lines.len()).filter_map(|at| shown(&lines, at, found)).collect();
    let width = shown.iter().map(|(_, name, ..)| name.chars().count()).max().unwrap_or(0);
    for (line, name, verdict, said) in shown {
        let name = format!("{name:width$}");
        text.push_str(&format!("{line:>4}  {name}  {}\n", painted(style, verdict, &said)));
    }
    for finding in elsewhere {
        let said = format!("{}: {}", finding.what, finding.text);
        let place = [("group", &finding.group), ("task", &finding.task)];
        let place = place.into_iter().filter(|(_, name)| !name.is_empty());
        let place: String = place.map(|(kind, name)| format!("{kind} \"{name}\", ")).collect();
        text.push_str(&format!("      {place}{}\n", painted(style, verdict(&finding.effect), &said)));
    }
    for (name, group) in &found.groups {
        let head = if group.never_placed {
            "can never be placed on the nodes the cluster has"
        } else {
            "finds no room now"
        };
        text.push_str(
            &style
                .section(&format!("Group \"{name}\" {head}"), &metrics::reasons(style, &group.failed, "  ")),
        );
    }
    let list = |items: &[String]| items.iter().map(|item| format!("  * {item}\n")).collect::<String>();
    if !found.errors.is_empty() {
        text.push_str(&style.section("It cannot be registered", &list(&found.errors)));
    }
    // Findings are among the warnings of the server, for clients that know only those.
    let said = |warning: &&String| found.findings.iter().any(|finding| warning.ends_with(&finding.text));
    let warnings: Vec<String> = found.warnings.iter().filter(|warning| !said(warning)).cloned().collect();
    if !warnings.is_empty() {
        text.push_str(&style.section("Warnings", &list(&warnings)));
    }
    text + "\n" + &summary(style, found) + "\n"
}

/// One part of the file, and what is said of it.
struct Line<'a> {
    part: &'a Part,
    said: Vec<(Verdict, &'a str)>,
}

/// The parts that a finding is about: all of that name in its group and task, or for one with a name of its own the first
/// that nothing was said of.
fn of(lines: &[Line], finding: &DoctorFinding) -> Vec<usize> {
    let has_name = finding.what.contains('"');
    let steps: Vec<&str> = finding.what.split(' ').filter(|word| !word.starts_with('"')).collect();
    for known in (1..=steps.len()).rev() {
        let is_it = |line: &Line| {
            let of_owner = line.part.owner() == (finding.group.as_str(), finding.task.as_str());
            of_owner && ends_with(line.part, &steps[..known]) && (!has_name || line.said.is_empty())
        };
        let found = (0..lines.len()).filter(|at| is_it(&lines[*at]));
        let found: Vec<usize> = found.take(if has_name { 1 } else { usize::MAX }).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The last steps of the part's path are these, directly in its job, group or task.
fn ends_with(part: &Part, steps: &[&str]) -> bool {
    let Some(above) = part.path.len().checked_sub(steps.len() + 1) else { return false };
    let in_owner = ["job \"", "group \"", "task \""].iter().any(|kind| part.path[above].starts_with(kind));
    in_owner && part.path[above + 1..].iter().zip(steps).all(|(own, step)| own == step)
}

/// The line, name, verdict and text of a part that is shown: blocks, and attributes of which something is said.
fn shown(lines: &[Line], at: usize, found: &JobDoctor) -> Option<(usize, String, Verdict, String)> {
    let line = &lines[at];
    if !line.part.is_block && line.said.is_empty() {
        return None;
    }
    let name = "  ".repeat(line.part.depth) + line.part.path.last()?;
    let own = line.said.iter().max_by_key(|(verdict, _)| *verdict);
    let own = own.map(|(verdict, said)| (*verdict, said.to_string())).or_else(|| unplaced(line.part, found));
    let inner = lines.iter().filter(|other| {
        other.part.path.len() > line.part.path.len() && other.part.path.starts_with(&line.part.path)
    });
    let worst =
        inner.filter_map(|other| other.said.iter().map(|(verdict, _)| (*verdict, other.part.line)).max());
    let worst = worst
        .filter(|(verdict, _)| *verdict > Verdict::Ignored)
        .max_by_key(|(verdict, line)| (*verdict, usize::MAX - line));
    let (verdict, said) = match (own, worst) {
        (Some((own, said)), worst) if worst.is_none_or(|(worst, _)| own >= worst) => (own, said),
        (_, Some((verdict, line))) => (verdict, format!("{} because of line {line}", word(verdict))),
        (Some((own, said)), None) => (own, said),
        (None, None) => (Verdict::Works, "works".to_string()),
    };
    Some((line.part.line, name, verdict, said))
}

/// What the scheduler says of a group.
fn unplaced(part: &Part, found: &JobDoctor) -> Option<(Verdict, String)> {
    let name = part.path.last()?.strip_prefix("group \"")?.strip_suffix('"')?;
    let group = found.groups.get(name)?;
    Some(if group.never_placed {
        (Verdict::NeverPlaced, "never placed on the nodes you have: see below".to_string())
    } else {
        (Verdict::NoRoom, "finds no room now: see below".to_string())
    })
}

fn verdict(effect: &str) -> Verdict {
    match effect {
        "ignored" => Verdict::Ignored,
        "may fail" => Verdict::MayFail,
        "never placed" => Verdict::NeverPlaced,
        "fails" => Verdict::Fails,
        _ => Verdict::Works,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Works => "works",
        Verdict::Ignored => "is ignored",
        Verdict::NoRoom => "finds no room now",
        Verdict::MayFail => "may fail",
        Verdict::NeverPlaced => "is never placed",
        Verdict::Fails => "will fail",
    }
}

fn painted(style: &OutputStyle, verdict: Verdict, said: &str) -> String {
    match verdict {
        Verdict::Works => said.to_string(),
        Verdict::Ignored | Verdict::NoRoom | Verdict::MayFail => style.paint(Paint::Yellow, said),
        Verdict::NeverPlaced | Verdict::Fails => style.paint(Paint::Red, said),
    }
}

fn summary(style: &OutputStyle, found: &JobDoctor) -> String {
    let nodes = plural(found.nodes, "node");
    if runs(found) {
        let ignored = found.findings.iter().filter(|finding| finding.effect == "ignored").count();
        let without =
            if ignored == 0 { String::new() } else { format!(", without the {ignored} it ignores") };
        return style.paint(Paint::Green, &format!("The job runs on this cluster of {nodes}{without}."));
    }
    style.paint(Paint::Red, &format!("The job does not run as it is on this cluster of {nodes}."))
}

#[cfg(test)]
mod tests {
    use api::DoctorGroup;
    use jobspec::{Source, outline};

    use super::*;

    const FILE: &str = r#"job "shop" {
  group "web" {
    network {
      mode = "bridge"
    }
    service {
      name = "a"
    }
    task "main" {
      driver = "raw_exec"
      template {
        data = "x"
      }
      resources {
        cores = 2
      }
    }
  }
  group "db" {
    task "main" {
      driver = "raw_exec"
    }
  }
}
"#;

    fn finding(group: &str, task: &str, what: &str, effect: &str) -> DoctorFinding {
        let text = format!("{effect}!");
        let [group, task, what, effect] = [group, task, what, effect].map(str::to_string);
        DoctorFinding { group, task, what, effect, text }
    }

    #[test]
    fn each_block_has_its_line_and_verdict() {
        let parts = outline(&Source::new("a.hcl", FILE)).unwrap();
        let mut found = JobDoctor {
            nodes: 1,
            findings: vec![
                finding("web", "", "network mode \"bridge\"", "never placed"),
                finding("web", "", "service \"a\"", "ignored"),
                finding("web", "main", "template", "fails"),
                finding("web", "main", "resources cores", "ignored"),
                finding("", "", "multiregion", "ignored"),
            ]
            .into(),
            ..JobDoctor::default()
        };
        found.groups.insert("db".to_string(), DoctorGroup { never_placed: true, ..DoctorGroup::default() });
        let text = whole(&OutputStyle::for_tests(), &parts, &found);
        let expected = [
            "   1  job \"shop\"       will fail because of line 11",
            "   2    group \"web\"    will fail because of line 11",
            "   3      network      is never placed because of line 4",
            "   4        mode       never placed!",
            "   6      service      ignored!",
            "   9      task \"main\"  will fail because of line 11",
            "  11        template   fails!",
            "  14        resources  works",
            "  15          cores    ignored!",
            "  19    group \"db\"     never placed on the nodes you have: see below",
            "  20      task \"main\"  works",
            "      multiregion: ignored!",
        ];
        let shown: Vec<&str> = text.lines().take(expected.len()).collect();
        assert_eq!(shown, expected, "{text}");
        assert!(text.contains("\nGroup \"db\" can never be placed on the nodes the cluster has\n"), "{text}");
        assert!(
            text.ends_with("The job does not run as it is on this cluster of 1 node.\n") && !runs(&found)
        );
    }
}
