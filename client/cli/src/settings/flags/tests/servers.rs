//! What flags say of a server, and the page that it shows.

use super::*;

#[test]
fn flags_name_the_region_that_decides_and_win_over_files() {
    let file = "server { authoritative_region = \"eu\" }\nacl {\n  enabled = true\n  replication_token = \"file\"\n}";
    let read = |flags: &[&str]| read_all(&[("a.hcl", file)], &[&["-dev"], flags].concat()).unwrap();
    let settings = read(&[]);
    assert_eq!(
        (settings.server.authoritative_region.as_str(), settings.server.replication_token.as_str()),
        ("eu", "file")
    );
    let settings = read(&["-authoritative-region=us", "-acl-replication-token", "flag"]);
    assert_eq!(
        (settings.server.authoritative_region.as_str(), settings.server.replication_token.as_str()),
        ("us", "flag")
    );
    assert!(settings.acl.enabled && !read(&["-acl-enabled=false"]).acl.enabled);
    let alone = read_all(&[("b.hcl", "")], &["-dev", "-acl-enabled", "-authoritative-region=eu"]).unwrap();
    assert!(alone.acl.enabled);
    let note = "acl.replication_token is not set: what the region \"eu\" decides does not come to this one";
    assert!(alone.notes.iter().any(|said| said == note), "{:?}", alone.notes);
}

#[test]
fn a_page_of_the_operator_has_to_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let read = |path: &std::path::Path| {
        let text = format!("ui {{\n  dir = \"{}\"\n}}", path.display());
        read_all(&[("a.hcl", &text)], &["-dev"])
    };
    let missing = read(&directory.path().join("none")).unwrap_err();
    assert!(missing.contains("a.hcl:1:") && missing.contains("\"dir\" "), "{missing}");
    assert!(missing.contains("expected a directory with an index.html: No such file"), "{missing}");
    let empty = read(directory.path()).unwrap_err();
    assert!(empty.contains("expected a directory with an index.html: it has no file index.html"), "{empty}");
    std::fs::write(directory.path().join("index.html"), "page").unwrap();
    let folder = read(directory.path()).unwrap().ui.folder;
    assert_eq!(folder, server::PageFolder::open(directory.path()).ok());
    assert!(folder.is_some());
}
