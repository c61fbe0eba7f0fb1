//! Digests of downloads: `sha256:<hex>`, or `file:<address>` of a list of digests.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha256, Sha512};

use crate::FetchError;

/// Largest list of digests.
pub const LIST_BYTES_MAX: u64 = 1 << 20;

/// What a job says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Digest(Digest),
    /// The address of a list that names the file.
    Listed(String),
}

/// What a file has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    const ALL: [Algorithm; 4] = [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];

    const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    const fn digits(self) -> usize {
        match self {
            Algorithm::Md5 => 32,
            Algorithm::Sha1 => 40,
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }

    fn hasher(self) -> Box<dyn DynDigest> {
        match self {
            Algorithm::Md5 => Box::new(Md5::default()),
            Algorithm::Sha1 => Box::new(Sha1::default()),
            Algorithm::Sha256 => Box::new(Sha256::default()),
            Algorithm::Sha512 => Box::new(Sha512::default()),
        }
    }
}

impl Wanted {
    /// # Errors
    /// When it is neither a digest with its kind nor the address of a list. The kind may be left out: the length says it.
    pub fn parse(text: &str) -> Result<Wanted, FetchError> {
        let text = text.trim();
        if let Some(address) = text.strip_prefix("file:").filter(|address| !address.is_empty()) {
            return Ok(Wanted::Listed(address.to_string()));
        }
        let digest = match text.split_once(':') {
            Some((kind, hex)) => Digest::new(kind, hex),
            None => Digest::of_length(text),
        };
        digest.map(Wanted::Digest).ok_or_else(|| {
            FetchError::invalid(format!(
                "checksum: \"{text}\" is not <type>:<hex>, of type md5, sha1, sha256 or sha512, nor file:<address>"
            ))
        })
    }
}

impl Digest {
    fn new(kind: &str, hex: &str) -> Option<Digest> {
        let named = |algorithm: &Algorithm| algorithm.name() == kind.trim().to_ascii_lowercase();
        let algorithm = Algorithm::ALL.into_iter().find(named)?;
        Digest::of_length(hex).filter(|digest| digest.algorithm == algorithm)
    }

    fn of_length(hex: &str) -> Option<Digest> {
        let hex = hex.trim().to_ascii_lowercase();
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.digits() == hex.len())?;
        hex.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(Digest { algorithm, hex })
    }

    /// The digest of `file` in a list: lines of `<hex>  <file>`, of `SHA256 (<file>) = <hex>`, or nothing but one digest.
    ///
    /// # Errors
    /// When the list does not have it.
    pub fn listed(list: &str, file: &str) -> Result<Digest, FetchError> {
        let lines = || list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines() {
            let found = match line
                .split_once(" (")
                .and_then(|(kind, rest)| Some((kind, rest.rsplit_once(") = ")?)))
            {
                Some((kind, (name, hex))) if is_file(name, file) => Digest::new(kind, hex),
                Some(_) => None,
                None => line
                    .split_once(char::is_whitespace)
                    .filter(|(_, name)| is_file(name.trim_start().trim_start_matches('*'), file))
                    .and_then(|(hex, _)| Digest::of_length(hex)),
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        let mut all = lines();
        match (all.next().and_then(Digest::of_length), all.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(FetchError::failed(format!("checksum: the list has no digest of \"{file}\""))),
        }
    }

    pub fn checker(&self) -> Checker {
        Checker { digest: self.clone(), hasher: self.algorithm.hasher() }
    }
}

/// Lists may name a file with the directory it was made in.
fn is_file(listed: &str, file: &str) -> bool {
    listed == file || listed.rsplit('/').next() == Some(file)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sees all bytes of a file.
pub struct Checker {
    digest: Digest,
    hasher: Box<dyn DynDigest>,
}

impl Checker {
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// # Errors
    /// When the file is another one.
    pub fn finish(self) -> Result<(), FetchError> {
        let found = hex(&self.hasher.finalize());
        if found == self.digest.hex {
            return Ok(());
        }
        let (name, wanted) = (self.digest.algorithm.name(), &self.digest.hex);
        Err(FetchError::failed(format!(
            "checksums did not match: expected {name}:{wanted}, got {name}:{found}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: [(&str, &str); 4] = [
        ("md5", "d41d8cd98f00b204e9800998ecf8427e"),
        ("sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (
            "sha512",
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        ),
    ];

    fn digest(text: &str) -> Digest {
        match Wanted::parse(text).unwrap() {
            Wanted::Digest(digest) => digest,
            Wanted::Listed(list) => panic!("{list}"),
        }
    }

    #[test]
    fn every_kind_of_digest_is_checked() {
        for (kind, hex) in EMPTY {
            for text in [format!("{kind}:{hex}"), format!(" {kind}:{} ", hex.to_uppercase()), hex.to_string()]
            {
                digest(&text).checker().finish().unwrap();
                let mut other = digest(&text).checker();
                other.update(b"x");
                let error = other.finish().unwrap_err().to_string();
                assert!(
                    error.starts_with(&format!("checksums did not match: expected {kind}:{hex}, got")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn other_texts_are_no_checksums() {
        for text in [
            "",
            "md5",
            "md5:",
            "md5:zz",
            "crc32:00000000",
            "sha256:d41d8cd98f00b204e9800998ecf8427e",
            "file:",
        ] {
            assert!(Wanted::parse(text).is_err(), "{text}");
        }
        assert_eq!(Wanted::parse("file:https://h/SUMS").unwrap(), Wanted::Listed("https://h/SUMS".into()));
    }

    #[test]
    fn lists_name_files() {
        let [(_, md5), _, (_, sha256), _] = EMPTY;
        let list = format!("# made today\n{md5}  other.tgz\n\nMD5 (b.tgz) = {md5}\n{sha256} *./dir/a.tgz\n");
        assert_eq!(Digest::listed(&list, "a.tgz").unwrap(), digest(sha256));
        assert_eq!(Digest::listed(&list, "b.tgz").unwrap(), digest(md5));
        assert!(Digest::listed(&list, "c.tgz").is_err());
        assert_eq!(Digest::listed(&format!("{sha256}\n"), "any").unwrap(), digest(sha256));
    }
}
