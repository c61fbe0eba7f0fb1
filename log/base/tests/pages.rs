//! The pages of `docs`: each stands in the table of contents, and no link of any page leads nowhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

const CONTENTS: &str = "docs/SUMMARY.md";

#[test]
fn every_page_is_in_the_table_of_contents() {
    let listed: BTreeSet<PathBuf> = links(Path::new(CONTENTS)).into_iter().map(|(_, page)| page).collect();
    let mut pages = pages(Path::new("docs"));
    pages.remove(Path::new(CONTENTS));
    let missing: Vec<_> = pages.difference(&listed).collect();
    assert!(missing.is_empty(), "{CONTENTS} does not list {missing:?}");
    assert!(listed.len() > 40, "{CONTENTS} lists only {}", listed.len());
}

#[test]
fn no_link_leads_nowhere() {
    let mut pages = pages(Path::new("docs"));
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(PathBuf::from));
    let (mut dead, mut seen) = (Vec::new(), 0);
    for page in &pages {
        for (link, target) in links(page) {
            seen += 1;
            if !root().join(&target).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "these links lead nowhere: {dead:#?}");
    assert!(seen > 100, "only {seen} links were found");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pages below a folder, by their paths from the root.
fn pages(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if root().join(&path).is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.insert(path);
        }
    }
    found
}

/// Links of a page to files here: as they are written, and the paths from the root that they stand for.
fn links(page: &Path) -> Vec<(String, PathBuf)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    // What stands between fences is no text.
    let prose: String = text.split("```").step_by(2).collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let here = targets.filter(|link| !link.contains("://") && !link.starts_with('#') && !link.contains(' '));
    let folder = page.parent().unwrap();
    here.map(|link| {
        let file = link.split('#').next().unwrap_or_default();
        (link.to_string(), straightened(&folder.join(file)))
    })
    .collect()
}

/// Without `..`.
fn straightened(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            straight.pop();
        } else {
            straight.push(part);
        }
    }
    straight
}
