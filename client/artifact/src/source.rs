//! What a source is, in the syntax of go-getter: `git::https://host/repo.git//sub/dir?ref=v1`.

use std::collections::BTreeMap;
use std::path::{Component, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;

use crate::FetchError;

/// By what it is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Http,
    Git,
    Hg,
    S3,
    Gcs,
}

/// Where something is, and what else was said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub kind: Kind,
    /// Without the options that are meant for us.
    pub url: Url,
    /// Only this part of an archive or a repository.
    pub subdir: Option<PathBuf>,
    pub options: BTreeMap<String, String>,
}

/// Parameters of the address that are ours, and not those of the server.
fn is_own(kind: Kind, name: &str) -> bool {
    let of_kind: &[&str] = match kind {
        Kind::Http => &["filename"],
        Kind::Git => &["ref", "depth", "sshkey"],
        Kind::Hg => &["rev"],
        Kind::S3 => &[
            "aws_access_key_id",
            "aws_access_key_secret",
            "aws_access_token",
            "aws_profile",
            "region",
            "version",
            "filename",
        ],
        Kind::Gcs => &["version", "filename"],
    };
    ["archive", "checksum"].contains(&name) || of_kind.contains(&name)
}

impl Source {
    /// # Errors
    /// When it is not the address of anything that a node fetches.
    pub fn parse(text: &str, options: &BTreeMap<String, String>) -> Result<Source, FetchError> {
        let text = text.trim();
        let (forced, rest) = forced(text);
        let (kind, address) = match rest.contains("://") {
            true => (None, rest.to_string()),
            false => detect(rest).ok_or_else(|| no_address(rest))?,
        };
        let mut url = Url::parse(&address)
            .map_err(|error| FetchError::invalid(format!("source: not an address: {error}")))?;
        let kind = match forced {
            Some(word) => named(word)?,
            None => match kind {
                Some(kind) => kind,
                None => named(url.scheme())?,
            },
        };
        check_scheme(kind, &url)?;
        let subdir = take_subdir(&mut url)?;
        let options = take_options(kind, &mut url, options);
        Ok(Source { kind, url, subdir, options })
    }

    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The name that a file gets in a directory: its option, or the last part of the path.
    ///
    /// # Errors
    /// When that is no name.
    pub fn file_name(&self) -> Result<String, FetchError> {
        let name = match self.option("filename") {
            Some(name) => name.to_string(),
            None => {
                let path = percent_decode_str(self.url.path()).decode_utf8_lossy();
                path.rsplit('/').next().unwrap_or_default().to_string()
            }
        };
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(FetchError::invalid(
                "the address ends with no name of a file: set mode = \"file\" and the file as destination",
            ));
        }
        Ok(name)
    }
}

/// An address as messages show it: without passwords and parameters, which may be secret.
pub fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// `git::…`: the word, and what follows it.
fn forced(text: &str) -> (Option<&str>, &str) {
    match text.split_once("::") {
        Some((word, rest)) if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            (Some(word), rest)
        }
        _ => (None, text),
    }
}

fn named(word: &str) -> Result<Kind, FetchError> {
    match word {
        "http" | "https" => Ok(Kind::Http),
        "git" => Ok(Kind::Git),
        "hg" => Ok(Kind::Hg),
        "s3" => Ok(Kind::S3),
        "gcs" => Ok(Kind::Gcs),
        "file" => Err(FetchError::invalid("source: files of the node itself are not allowed as artifacts")),
        other => Err(FetchError::invalid(format!(
            "source: nothing here fetches \"{other}\": expected http, https, git, hg, s3 or gcs"
        ))),
    }
}

fn check_scheme(kind: Kind, url: &Url) -> Result<(), FetchError> {
    let allowed: &[&str] = match kind {
        Kind::Http | Kind::S3 | Kind::Gcs => &["http", "https"],
        Kind::Git => &["http", "https", "ssh", "git"],
        Kind::Hg => &["http", "https", "ssh"],
    };
    let host = url.host_str().unwrap_or_default();
    if url.scheme() == "file" {
        return named("file").map(drop);
    }
    if !allowed.contains(&url.scheme()) {
        let text =
            format!("source: \"{}://\" is not allowed here: expected {}", url.scheme(), allowed.join(", "));
        return Err(FetchError::invalid(text));
    }
    // What begins with a dash would be an option of git, hg or ssh.
    if host.is_empty() || host.starts_with('-') || url.username().starts_with('-') {
        return Err(FetchError::invalid("source: the address has no host"));
    }
    Ok(())
}

fn no_address(text: &str) -> FetchError {
    let shown = text.split('?').next().unwrap_or_default();
    FetchError::invalid(format!("source: \"{shown}\" is not an address, such as https://host/path"))
}

/// Addresses without a scheme, as people write them.
fn detect(text: &str) -> Option<(Option<Kind>, String)> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (text, String::new()),
    };
    if let Some((user, rest)) = path.split_once('@')
        && let Some((host, path)) = rest.split_once(':')
        && !user.contains(['/', ':'])
        && !host.contains('/')
    {
        let path = path.trim_start_matches('/');
        return Some((Some(Kind::Git), format!("ssh://{user}@{host}/{path}{query}")));
    }
    let (host, rest) = path.split_once('/')?;
    if ["github.com", "gitlab.com", "bitbucket.org"].contains(&host) {
        return Some((Some(Kind::Git), repository(host, rest, &query)?));
    }
    if let Some(name) = host.strip_suffix(".amazonaws.com") {
        let kind = if name.is_empty() { None } else { Some(Kind::S3) };
        return Some((kind, format!("https://{path}{query}")));
    }
    if host == "www.googleapis.com" && rest.starts_with("storage/") {
        return Some((Some(Kind::Gcs), format!("https://{path}{query}")));
    }
    let is_host = host.contains('.') || host.contains(':') || host == "localhost";
    (is_host && !host.starts_with('.')).then(|| (Some(Kind::Http), format!("https://{path}{query}")))
}

/// `user/repo/sub/dir` of a service that hosts repositories.
fn repository(host: &str, path: &str, query: &str) -> Option<String> {
    let (path, marked) = match path.split_once("//") {
        Some((path, subdir)) => (path, Some(subdir)),
        None => (path, None),
    };
    let mut parts = path.splitn(3, '/');
    let (user, repo) = (parts.next()?, parts.next().filter(|repo| !repo.is_empty())?);
    let subdir = match (parts.next().filter(|rest| !rest.is_empty()), marked) {
        (Some(rest), Some(marked)) => Some(format!("{rest}/{marked}")),
        (rest, marked) => rest.or(marked).map(str::to_string),
    };
    let repo = repo.strip_suffix(".git").unwrap_or(repo);
    let subdir = subdir.map(|subdir| format!("//{subdir}")).unwrap_or_default();
    Some(format!("https://{host}/{user}/{repo}.git{subdir}{query}"))
}

fn take_subdir(url: &mut Url) -> Result<Option<PathBuf>, FetchError> {
    let path = url.path().to_string();
    let Some((before, after)) = path.split_once("//") else { return Ok(None) };
    url.set_path(before);
    let subdir = percent_decode_str(after.trim_matches('/')).decode_utf8_lossy().into_owned();
    if subdir.is_empty() {
        return Ok(None);
    }
    if subdir.contains(['*', '?', '[', '\0']) {
        let text = format!("source: \"//{subdir}\": patterns are not supported, name one directory or file");
        return Err(FetchError::invalid(text));
    }
    let subdir = PathBuf::from(subdir);
    if !subdir.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(FetchError::invalid(format!("source: \"//{}\" leads out", subdir.display())));
    }
    Ok(Some(subdir))
}

/// Takes what is ours out of the address, which otherwise stays as it is written, and adds the options that are not.
fn take_options(kind: Kind, url: &mut Url, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut own = BTreeMap::new();
    let mut kept = Vec::new();
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    for piece in url.query().unwrap_or_default().split('&').filter(|piece| !piece.is_empty()) {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        let name = decode(name);
        if is_own(kind, &name) {
            own.entry(name).or_insert_with(|| decode(value));
        } else {
            kept.push(piece.to_string());
        }
    }
    for (name, value) in given {
        if is_own(kind, name) {
            own.entry(name.clone()).or_insert_with(|| value.clone());
        } else {
            let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            kept.push(format!("{}={}", encode(name), encode(value)));
        }
    }
    let query = kept.join("&");
    url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Source, FetchError> {
        Source::parse(text, &BTreeMap::new())
    }

    fn seen(text: &str) -> String {
        let source = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let subdir = source.subdir.map(|subdir| format!(" {}", subdir.display())).unwrap_or_default();
        let options: String = source.options.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        format!("{:?} {}{subdir}{options}", source.kind, source.url)
    }

    #[test]
    fn addresses_are_read_as_go_getter_reads_them() {
        for (text, expected) in [
            ("https://h/a/b.tgz", "Http https://h/a/b.tgz"),
            ("http://h:8080/a?x=1&archive=false&y=2", "Http http://h:8080/a?x=1&y=2 archive=false"),
            ("https://h/a.tgz//sub/dir?checksum=md5:x", "Http https://h/a.tgz sub/dir checksum=md5:x"),
            ("example.org/a.zip", "Http https://example.org/a.zip"),
            ("git::https://h/r.git?ref=v1&depth=1", "Git https://h/r.git depth=1 ref=v1"),
            ("git::ssh://git@h/u/r.git//sub?ref=x", "Git ssh://git@h/u/r.git sub ref=x"),
            ("git@github.com:u/r.git//sub", "Git ssh://git@github.com/u/r.git sub"),
            ("git::git@h:u/r.git", "Git ssh://git@h/u/r.git"),
            ("git://h/r.git", "Git git://h/r.git"),
            ("github.com/u/r", "Git https://github.com/u/r.git"),
            ("github.com/u/r/deep/er?ref=m", "Git https://github.com/u/r.git deep/er ref=m"),
            ("github.com/u/r.git//sub", "Git https://github.com/u/r.git sub"),
            ("gitlab.com/u/r", "Git https://gitlab.com/u/r.git"),
            ("bitbucket.org/u/r", "Git https://bitbucket.org/u/r.git"),
            ("hg::http://h/r?rev=tip", "Hg http://h/r rev=tip"),
            (
                "s3::https://s3.amazonaws.com/b/k?region=eu-west-1",
                "S3 https://s3.amazonaws.com/b/k region=eu-west-1",
            ),
            ("b.s3-eu-west-1.amazonaws.com/k", "S3 https://b.s3-eu-west-1.amazonaws.com/k"),
            (
                "gcs::https://www.googleapis.com/storage/v1/b/k",
                "Gcs https://www.googleapis.com/storage/v1/b/k",
            ),
            ("www.googleapis.com/storage/v1/b/k", "Gcs https://www.googleapis.com/storage/v1/b/k"),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_artifact_is_rejected_by_name() {
        for (text, why) in [
            ("file:///etc/passwd", "not allowed as artifacts"),
            ("file::/etc/passwd", "is not an address"),
            ("file::file:///etc/passwd", "not allowed as artifacts"),
            ("git::file:///srv/r.git", "not allowed as artifacts"),
            ("git::ext::sh -c id", "is not an address"),
            ("git::ftp://h/x", "\"ftp://\" is not allowed here"),
            ("ftp://h/x", "nothing here fetches \"ftp\""),
            ("svn::https://h/x", "nothing here fetches \"svn\""),
            ("git::ssh://-oProxyCommand=id/x", "source: "),
            ("git::-u@h:x", "source: "),
            ("/etc/passwd", "is not an address"),
            ("./x", "is not an address"),
            ("", "is not an address"),
            ("https://h/a.tgz//../../x", "leads out"),
            ("https://h/a.tgz//*.conf", "patterns are not supported"),
        ] {
            let error = match parse(text) {
                // A URL resolves the dots of its path by itself.
                Ok(source) if why == "leads out" => {
                    assert!(source.subdir.is_none(), "{text}: {source:?}");
                    continue;
                }
                Ok(source) => panic!("{text}: {source:?}"),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(parse("https://h/a.tgz//%2e%2e%2fx").is_err());
    }

    #[test]
    fn options_join_the_parameters_of_the_address() {
        let given = [("checksum", "sha256:ab"), ("token", "a b&c"), ("archive", "zip")];
        let given = given.map(|(key, value)| (key.to_string(), value.to_string())).into();
        let source = Source::parse("https://h/x?archive=false&sig=a%2Fb+c", &given).unwrap();
        assert_eq!(source.url.as_str(), "https://h/x?sig=a%2Fb+c&token=a%20b%26c");
        assert_eq!(source.option("archive"), Some("false"), "the address comes first");
        assert_eq!(source.option("checksum"), Some("sha256:ab"));
    }

    #[test]
    fn names_of_files_come_from_the_address() {
        let name = |text: &str| parse(text).unwrap().file_name().ok();
        assert_eq!(name("https://h/a/b%20c.txt?x=1").as_deref(), Some("b c.txt"));
        assert_eq!(name("https://h/a/?filename=own").as_deref(), Some("own"));
        for none in ["https://h/a/", "https://h", "https://h/x?filename=../y", "https://h/a%2F.."] {
            assert_eq!(name(none), None, "{none}");
        }
    }

    #[test]
    fn messages_show_no_secrets() {
        let url = Url::parse("https://me:secret@h:8443/p?sig=secret#x").unwrap();
        assert_eq!(shown(&url), "https://h:8443/p");
    }
}
