//! Who asks. Nothing of it is printed.

use std::path::{Path, PathBuf};

/// The part of a file of credentials that is read.
const PROFILE: &str = "[default]";

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub id: String,
    pub secret: String,
    /// What comes with those that end by themselves.
    pub token: Option<String>,
}

/// Where they come from.
pub(crate) enum Origin {
    /// Read for each call: what replaces them in time is used at once.
    File(PathBuf),
    Environment(Credentials),
}

impl Origin {
    /// # Errors
    /// There are none.
    pub(crate) fn of(file: Option<&Path>) -> Result<Origin, String> {
        if let Some(path) = file {
            return from_file(path).map(|_| Origin::File(path.to_path_buf()));
        }
        let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (given("AWS_ACCESS_KEY_ID"), given("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => {
                Ok(Origin::Environment(Credentials { id, secret, token: given("AWS_SESSION_TOKEN") }))
            }
            _ => {
                Err("expected a file of credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the \
                      environment"
                    .to_string())
            }
        }
    }

    /// # Errors
    /// The file is not there any more, or has become another.
    pub(crate) fn read(&self) -> Result<Credentials, String> {
        match self {
            Origin::File(path) => from_file(path),
            Origin::Environment(credentials) => Ok(credentials.clone()),
        }
    }
}

fn from_file(path: &Path) -> Result<Credentials, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).ok_or_else(|| {
        format!("{}: expected aws_access_key_id and aws_secret_access_key below {PROFILE}", path.display())
    })
}

fn parse(text: &str) -> Option<Credentials> {
    let lines = text.lines().map(str::trim);
    let own = lines.skip_while(|line| *line != PROFILE).skip(1).take_while(|line| !line.starts_with('['));
    let (mut id, mut secret, mut token) = (None, None, None);
    for (key, value) in own.filter_map(|line| line.split_once('=')) {
        let value = Some(value.trim().to_string()).filter(|value| !value.is_empty());
        match key.trim() {
            "aws_access_key_id" => id = value,
            "aws_secret_access_key" => secret = value,
            "aws_session_token" => token = value,
            _ => {}
        }
    }
    Some(Credentials { id: id?, secret: secret?, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_credentials_is_that_of_other_programs() {
        let text = "# a comment\n[other]\naws_access_key_id = no\n[default]\naws_access_key_id = ID\n\
                    aws_secret_access_key=a=b/c\nregion = x\n[last]\naws_session_token = no\n";
        let read = parse(text).unwrap();
        assert_eq!((read.id.as_str(), read.secret.as_str(), read.token), ("ID", "a=b/c", None));
        let token = "[default]\naws_session_token = t\naws_access_key_id = i\naws_secret_access_key = s";
        assert_eq!(parse(token).unwrap().token.as_deref(), Some("t"));
        for wrong in
            ["", "aws_access_key_id = a\naws_secret_access_key = b", "[default]\naws_access_key_id = a"]
        {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
