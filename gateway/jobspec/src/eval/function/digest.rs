//! Digests, password hashes and names made of digests.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha512};

use crate::eval::convert::to_text;
use crate::eval::{Value, ValueError};

fn hex<D: Digest>(a: &[Value]) -> Result<Value, ValueError> {
    let bytes = D::digest(to_text(&a[0])?.as_bytes());
    Ok(Value::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

pub(super) fn md5(a: &[Value]) -> Result<Value, ValueError> {
    hex::<Md5>(a)
}

pub(super) fn sha1(a: &[Value]) -> Result<Value, ValueError> {
    hex::<Sha1>(a)
}

pub(super) fn sha256(a: &[Value]) -> Result<Value, ValueError> {
    hex::<Sha256>(a)
}

pub(super) fn sha512(a: &[Value]) -> Result<Value, ValueError> {
    hex::<Sha512>(a)
}

/// The cost that is taken when none is given.
const COST: i64 = 10;

/// Costs double the work with each step: the highest takes about a quarter of a second.
const COSTS: std::ops::RangeInclusive<i64> = 4..=12;

/// Bytes of the budget that hashing at cost 0 would take.
const COST_ZERO: usize = 2048;

/// The cost of hashing a password, and what it takes of the budget.
///
/// # Errors
/// For costs that are too low to protect anything, or high enough to stop a server.
pub(super) fn bcrypt_cost(given: Option<&Value>) -> Result<(u32, usize), ValueError> {
    let cost = given.map_or(Ok(COST), crate::eval::convert::to_int)?;
    if !COSTS.contains(&cost) {
        return Err(format!("the cost is a number from {} to {}", COSTS.start(), COSTS.end()).into());
    }
    Ok((cost as u32, COST_ZERO << cost))
}

pub(super) fn bcrypt(password: &str, cost: u32, salt: [u8; 16]) -> Result<Value, ValueError> {
    let parts = bcrypt::non_truncating_hash_with_salt(password, cost, salt);
    let parts = parts.map_err(|why| format!("the password cannot be hashed: {why}"))?;
    // The mark that Go's library writes; the newer ones mean the same.
    Ok(Value::Text(parts.format_for_version(bcrypt::Version::TwoA)))
}

/// Names spaces that have a name of their own.
const NAMESPACES: [(&str, &str); 4] = [
    ("dns", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    ("url", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"),
    ("oid", "6ba7b812-9dad-11d1-80b4-00c04fd430c8"),
    ("x500", "6ba7b814-9dad-11d1-80b4-00c04fd430c8"),
];

pub(super) fn uuidv5(a: &[Value]) -> Result<Value, ValueError> {
    let (space, name) = (to_text(&a[0])?, to_text(&a[1])?);
    let known = NAMESPACES.iter().find(|(known, _)| *known == space).map_or(space.as_str(), |(_, id)| id);
    let space: base::Uuid =
        known.parse().map_err(|_| format!("\"{space}\" is neither a UUID nor one of dns, url, oid, x500"))?;
    let digest = Sha1::new_with_prefix(space.0).chain_update(name.as_bytes()).finalize();
    let mut id: [u8; 16] = std::array::from_fn(|at| digest[at]);
    id[6] = (id[6] & 0x0f) | 0x50;
    id[8] = (id[8] & 0x3f) | 0x80;
    Ok(Value::Text(base::Uuid(id).to_string()))
}
