use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{
    ED25519, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey,
};
use base::Uuid;
use model::command::ActivateRootKey;
use model::{SealedKey, SigningAlgorithm};
use state::keyring::{Keyring, RootKey};

use crate::KeyError;
use crate::secret::seal;

/// A root key, opened.
#[derive(Debug)]
pub struct SigningKey {
    id: Uuid,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(KeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Takes about a tenth of a second for RSA.
    ///
    /// # Errors
    /// [`KeyError::Entropy`], [`KeyError::Generate`].
    pub fn generate(algorithm: SigningAlgorithm) -> Result<SigningKey, KeyError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| KeyError::Entropy)?;
        let pair = match algorithm {
            SigningAlgorithm::Rs256 => KeyPair::generate(KeySize::Rsa2048).map(Pair::Rsa),
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate().map(Pair::Ed25519),
        };
        let pair = pair.map_err(|_| KeyError::Generate)?;
        Ok(SigningKey { id: Uuid::from_random(id), pair })
    }

    /// The encoding says which kind of key it is.
    pub(crate) fn from_pkcs8(id: Uuid, private: &[u8]) -> Result<SigningKey, KeyError> {
        let rsa = || KeyPair::from_pkcs8(private).map(Pair::Rsa);
        let pair = rsa().or_else(|_| Ed25519KeyPair::from_pkcs8(private).map(Pair::Ed25519));
        Ok(SigningKey { id, pair: pair.map_err(|_| KeyError::Content(id))? })
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        match self.pair {
            Pair::Rsa(_) => SigningAlgorithm::Rs256,
            Pair::Ed25519(_) => SigningAlgorithm::EdDsa,
        }
    }

    /// Modulus and exponent, most significant byte first; an Ed25519 key and no exponent.
    pub fn public(&self) -> (Vec<u8>, Vec<u8>) {
        match &self.pair {
            Pair::Rsa(pair) => {
                let public = pair.public_key();
                let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
                (modulus, public.exponent().big_endian_without_leading_zero().to_vec())
            }
            Pair::Ed25519(pair) => (pair.public_key().as_ref().to_vec(), Vec::new()),
        }
    }

    /// The signature of the message: the same bytes each time, whichever algorithm it is.
    ///
    /// # Errors
    /// [`KeyError::Content`].
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let refuse = |_| KeyError::Content(self.id);
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
                    .map_err(refuse)?;
                Ok(signature)
            }
            Pair::Ed25519(pair) => Ok(pair.try_sign(message).map_err(refuse)?.as_ref().to_vec()),
        }
    }

    /// A copy that only this server can open.
    ///
    /// # Errors
    /// [`KeyError::Public`].
    pub fn seal_for(&self, server: Uuid, public: &[u8; 32]) -> Result<SealedKey, KeyError> {
        seal(self.id, &self.pkcs8()?, server, public)
    }

    /// What makes it the key of the cluster, with a copy for every server.
    ///
    /// # Errors
    /// As [`SigningKey::seal_for`].
    pub fn activation(
        &self,
        keyring: &Keyring,
        only_after: Option<Uuid>,
    ) -> Result<ActivateRootKey, KeyError> {
        let (modulus, exponent) = self.public();
        let sealed = keyring.servers().iter().map(|(server, key)| self.seal_for(*server, &key.public));
        let sealed = sealed.collect::<Result<_, _>>()?;
        Ok(ActivateRootKey { key: self.id, modulus, exponent, sealed, only_after, full: false })
    }

    /// The same bytes each time: what it seals is sealed with a key that follows from them.
    pub(crate) fn pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let refuse = |_| KeyError::Content(self.id);
        match &self.pair {
            Pair::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(refuse)?;
                Ok(der.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Ok(pair.to_pkcs8v1().map_err(refuse)?.as_ref().to_vec()),
        }
    }
}

/// Whether the key with this public half has signed the message. The key says how, never who presents the signature.
pub(crate) fn has_signed(key: &RootKey, message: &[u8], signature: &[u8]) -> bool {
    let checked = match key.algorithm() {
        SigningAlgorithm::Rs256 => {
            let public = PublicKeyComponents { n: &key.modulus, e: &key.exponent };
            public.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        }
        SigningAlgorithm::EdDsa => UnparsedPublicKey::new(&ED25519, &key.modulus).verify(message, signature),
    };
    checked.is_ok()
}
