//! `rsadecrypt`: what was encrypted with an RSA key and padded by PKCS #1 version 1.5.
//!
//! The arithmetic takes a time that depends on the key. It runs where the key lies in the same file in clear, once,
//! for nobody who could measure it; nothing on the network may use it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;

use crate::eval::convert::to_text;
use crate::eval::{Value, ValueError};

/// Longest modulus, in bytes: the work grows with its cube.
const MODULUS_MAX: usize = 512;

/// Fewest bytes of padding that the standard knows.
const PADDING_MIN: usize = 8;

pub(super) fn rsadecrypt(a: &[Value]) -> Result<Value, ValueError> {
    let secret = STANDARD.decode(to_text(&a[0])?).map_err(|why| format!("not base64: {why}"))?;
    let key = to_text(&a[1])?;
    let (modulus, exponent) =
        private_key(&key).ok_or("not an RSA private key in PEM form, without a passphrase")?;
    let size = (modulus.bits() as usize).div_ceil(8);
    let number = BigUint::from_bytes_be(&secret);
    if size > MODULUS_MAX || secret.len() > size || number >= modulus {
        return Err(format!("the text does not fit a key of at most {} bits", MODULUS_MAX * 8).into());
    }
    let plain = number.modpow(&exponent, &modulus).to_bytes_be();
    let text = unpadded(&plain, size).ok_or("the text was not encrypted for this key")?;
    String::from_utf8(text.to_vec())
        .map(Value::Text)
        .map_err(|_| "what was encrypted is not UTF-8 text".into())
}

/// `00 02`, padding without zeroes, `00`, the message. The number has lost its leading zero.
fn unpadded(plain: &[u8], size: usize) -> Option<&[u8]> {
    let rest = plain.strip_prefix(&[2]).filter(|_| plain.len() + 1 == size)?;
    let end = rest.iter().position(|byte| *byte == 0).filter(|padding| *padding >= PADDING_MIN)?;
    Some(&rest[end + 1..])
}

/// Modulus and private exponent of a PKCS #1 or PKCS #8 key.
fn private_key(pem: &str) -> Option<(BigUint, BigUint)> {
    let (_, rest) = pem.split_once("PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    let mut whole = Der(&der).enter(SEQUENCE)?;
    whole.next(INTEGER)?;
    let modulus = whole.clone().next(INTEGER);
    let mut numbers = match modulus {
        Some(_) => whole,
        None => {
            whole.next(SEQUENCE)?;
            let mut inner = whole.enter(OCTETS)?.enter(SEQUENCE)?;
            inner.next(INTEGER)?;
            inner
        }
    };
    let modulus = numbers.next(INTEGER)?;
    numbers.next(INTEGER)?;
    let exponent = numbers.next(INTEGER)?;
    let modulus = BigUint::from_bytes_be(modulus);
    (modulus.bits() > 0).then(|| (modulus, BigUint::from_bytes_be(exponent)))
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// The rest of an encoded structure.
#[derive(Clone)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element, if it is of this kind.
    fn next(&mut self, kind: u8) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_first().filter(|(found, _)| **found == kind)?;
        debug_assert_eq!(*found, kind);
        let (length, rest) = length(rest)?;
        let content = rest.get(..length)?;
        self.0 = &rest[length..];
        Some(content)
    }

    fn enter(&mut self, kind: u8) -> Option<Der<'a>> {
        self.next(kind).map(Der)
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let count = usize::from(first & 0x7f);
    let digits = rest.get(..count).filter(|_| (1..=4).contains(&count))?;
    let length = digits.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    Some((length, &rest[count..]))
}
