use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base::Uuid;
use model::SealedKey;
use model::command::ActivateRootKey;
use state::keyring::Keyring;

use crate::KeyError;
use crate::secret::seal;

/// An RSA key of 2,048 bits: what every verifier of tokens understands.
#[derive(Debug)]
pub struct SigningKey {
    id: Uuid,
    pair: KeyPair,
}

impl SigningKey {
    /// Takes about a tenth of a second.
    ///
    /// # Errors
    /// [`KeyError::Entropy`], [`KeyError::Generate`].
    pub fn generate() -> Result<SigningKey, KeyError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| KeyError::Entropy)?;
        let pair = KeyPair::generate(KeySize::Rsa2048).map_err(|_| KeyError::Generate)?;
        Ok(SigningKey { id: Uuid::from_random(id), pair })
    }

    pub(crate) fn from_pkcs8(id: Uuid, private: &[u8]) -> Result<SigningKey, KeyError> {
        let pair = KeyPair::from_pkcs8(private).map_err(|_| KeyError::Content(id))?;
        Ok(SigningKey { id, pair })
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Modulus and exponent, most significant byte first.
    pub fn public(&self) -> (Vec<u8>, Vec<u8>) {
        let public = self.pair.public_key();
        let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
        (modulus, public.exponent().big_endian_without_leading_zero().to_vec())
    }

    /// RS256 of the message: the same bytes each time.
    ///
    /// # Errors
    /// [`KeyError::Content`].
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
            .map_err(|_| KeyError::Content(self.id))?;
        Ok(signature)
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

    pub(crate) fn pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let der: Pkcs8V1Der<'_> = self.pair.as_der().map_err(|_| KeyError::Content(self.id))?;
        Ok(der.as_ref().to_vec())
    }
}
