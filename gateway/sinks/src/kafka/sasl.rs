//! How a broker knows who writes: SCRAM (RFC 5802 and 7677), or the password itself where nobody listens (PLAIN, RFC 4616).

use std::num::NonZeroU32;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyring::Items;

/// Items of the sink's variable.
const USER: &str = "user";
const PASSWORD: &str = "password";
/// How often a password is hashed at least, so that who overheard it cannot guess it, and at most, so that no broker keeps a
/// server busy: Kafka itself takes 4,096 to 16,384.
const ROUNDS: std::ops::RangeInclusive<u32> = 4096..=100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Sha512,
    Sha256,
    Plain,
}

impl Mechanism {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mechanism::Sha512 => "SCRAM-SHA-512",
            Mechanism::Sha256 => "SCRAM-SHA-256",
            Mechanism::Plain => "PLAIN",
        }
    }

    fn is_sha512(self) -> bool {
        self == Mechanism::Sha512
    }
}

/// The best one that a broker has.
///
/// # Errors
/// It has none, or only one that would show the password to everybody.
pub(super) fn choose(offered: &[String], tls: bool) -> Result<Mechanism, String> {
    let has = |mechanism: &Mechanism| offered.iter().any(|name| name == mechanism.name());
    let chosen = [Mechanism::Sha512, Mechanism::Sha256, Mechanism::Plain].into_iter().find(has);
    match chosen {
        Some(Mechanism::Plain) if !tls => {
            Err("it takes passwords as they are (PLAIN), which are sent over TLS alone: set tls".to_string())
        }
        Some(chosen) => Ok(chosen),
        None => Err(format!(
            "it takes {}, and SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN are known here",
            offered.join(", ")
        )),
    }
}

pub(super) struct Login {
    user: String,
    password: String,
}

impl Login {
    /// `None`: the variable has no user.
    ///
    /// # Errors
    /// It has half of one.
    pub(super) fn of(secret: &Items) -> Result<Option<Login>, String> {
        match (secret.get(USER), secret.get(PASSWORD)) {
            (Some(user), Some(password)) => {
                Ok(Some(Login { user: user.clone(), password: password.clone() }))
            }
            (None, None) => Ok(None),
            (Some(_), None) => Err(format!("the variable has {USER} without {PASSWORD}")),
            (None, Some(_)) => Err(format!("the variable has {PASSWORD} without {USER}")),
        }
    }

    pub(super) fn plain(&self) -> Vec<u8> {
        format!("\0{}\0{}", self.user, self.password).into_bytes()
    }
}

/// A conversation that has begun.
pub(super) struct Scram<'a> {
    login: &'a Login,
    mechanism: Mechanism,
    nonce: String,
}

/// What only a broker that knows the password can say.
pub(super) struct Expected(Vec<u8>);

impl<'a> Scram<'a> {
    /// # Errors
    /// What would have to be prepared first (RFC 4013), or no entropy.
    pub(super) fn begin(login: &'a Login, mechanism: Mechanism) -> Result<Scram<'a>, String> {
        let is_plain = |text: &str| text.chars().all(|c| matches!(c, ' '..='~'));
        if !is_plain(&login.user) || !is_plain(&login.password) {
            return Err(format!("{USER} and {PASSWORD}: expected ASCII for {}", mechanism.name()));
        }
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        Ok(Scram { login, mechanism, nonce: STANDARD.encode(random) })
    }

    fn bare(&self) -> String {
        let user = self.login.user.replace('=', "=3D").replace(',', "=2C");
        format!("n={user},r={}", self.nonce)
    }

    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    /// The proof that we know the password, and what proves that the broker does.
    ///
    /// # Errors
    /// Its challenge is none.
    pub(super) fn answer(&self, challenge: &[u8]) -> Result<(String, Expected), String> {
        let challenge = String::from_utf8_lossy(challenge);
        let of = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name));
        let wrong = |what: &str| format!("its challenge has no {what} that can be used");
        let nonce = of("r=").filter(|nonce| nonce.starts_with(&self.nonce) && nonce.len() > self.nonce.len());
        let nonce = nonce.ok_or_else(|| wrong("nonce"))?;
        let salt = of("s=").and_then(|salt| STANDARD.decode(salt).ok()).ok_or_else(|| wrong("salt"))?;
        let rounds = of("i=").and_then(|rounds| rounds.parse().ok()).filter(|rounds| ROUNDS.contains(rounds));
        let rounds = rounds.and_then(NonZeroU32::new).ok_or_else(|| wrong("number of rounds"))?;
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without_proof}", self.bare());
        let salted = self.salted(&salt, rounds);
        let client = self.hmac(&salted, b"Client Key");
        let signature = self.hmac(&self.hash(&client), signed.as_bytes());
        let proof: Vec<u8> = client.iter().zip(&signature).map(|(key, mask)| key ^ mask).collect();
        let server = self.hmac(&self.hmac(&salted, b"Server Key"), signed.as_bytes());
        Ok((format!("{without_proof},p={}", STANDARD.encode(proof)), Expected(server)))
    }

    fn salted(&self, salt: &[u8], rounds: NonZeroU32) -> Vec<u8> {
        let (algorithm, length) = match self.mechanism.is_sha512() {
            true => (pbkdf2::PBKDF2_HMAC_SHA512, 64),
            false => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
        };
        let mut salted = vec![0; length];
        pbkdf2::derive(algorithm, rounds, salt, self.login.password.as_bytes(), &mut salted);
        salted
    }

    fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = if self.mechanism.is_sha512() { &digest::SHA512 } else { &digest::SHA256 };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    fn hmac(&self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = if self.mechanism.is_sha512() { hmac::HMAC_SHA512 } else { hmac::HMAC_SHA256 };
        hmac::sign(&hmac::Key::new(algorithm, key), bytes).as_ref().to_vec()
    }
}

impl Expected {
    /// # Errors
    /// Whoever said that does not know the password.
    pub(super) fn check(&self, said: &[u8]) -> Result<(), String> {
        let said = String::from_utf8_lossy(said);
        let verifier = said.split(',').find_map(|part| part.strip_prefix("v="));
        let verifier = verifier.and_then(|verifier| STANDARD.decode(verifier).ok()).unwrap_or_default();
        constant_time::verify_slices_are_equal(&verifier, &self.0)
            .map_err(|_| "it does not know the password that it asks for".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversation of RFC 7677.
    #[test]
    fn a_conversation_goes_as_the_standard_has_it() {
        let login = Login { user: "user".into(), password: "pencil".into() };
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_string();
        let scram = Scram { login: &login, mechanism: Mechanism::Sha256, nonce };
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge =
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (proof, expected) = scram.answer(challenge.as_bytes()).unwrap();
        assert_eq!(
            proof,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(expected.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
        assert!(expected.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8=").is_err());
        assert!(expected.check(b"e=other").is_err());
    }

    #[test]
    fn a_challenge_that_proves_nothing_or_costs_too_much_is_not_answered() {
        let login = Login { user: "a=b,c".into(), password: "p".into() };
        let scram = Scram { login: &login, mechanism: Mechanism::Sha512, nonce: "abc".into() };
        assert_eq!(scram.first(), "n,,n=a=3Db=2Cc,r=abc");
        let why = |challenge: &str| scram.answer(challenge.as_bytes()).err().unwrap();
        assert!(why("r=abx1,s=AA==,i=4096").contains("nonce"));
        assert!(why("r=abc,s=AA==,i=4096").contains("nonce"), "the broker adds none of its own");
        assert!(why("r=abc1,i=4096").contains("salt"));
        assert!(why("r=abc1,s=AA==,i=1").contains("rounds"));
        assert!(why("r=abc1,s=AA==,i=4000000000").contains("rounds"));
        let other = Login { user: "ż".into(), password: "p".into() };
        assert!(Scram::begin(&other, Mechanism::Sha512).is_err());
    }

    #[test]
    fn a_password_is_never_sent_as_it_is_without_tls() {
        let offered = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let both = offered(&["PLAIN", "SCRAM-SHA-256"]);
        assert_eq!(choose(&both, false), Ok(Mechanism::Sha256));
        assert_eq!(choose(&offered(&["GSSAPI", "PLAIN"]), true), Ok(Mechanism::Plain));
        assert!(choose(&offered(&["PLAIN"]), false).unwrap_err().contains("over TLS alone"));
        assert!(choose(&offered(&["GSSAPI"]), true).unwrap_err().starts_with("it takes GSSAPI"));
    }

    #[test]
    fn half_a_login_is_named() {
        let of = |items: &[(&str, &str)]| {
            let items = items.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            Login::of(&items).map(|login| login.map(|login| login.plain()))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("user", "u"), ("password", "p")]), Ok(Some(b"\0u\0p".to_vec())));
        assert!(of(&[("user", "u")]).unwrap_err().contains("without password"));
        assert!(of(&[("password", "p")]).unwrap_err().contains("without user"));
    }
}
