use crate::Uuid;

// Odd numbers with about as many ones as zeros, in no pattern (those of wyhash).
const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;
const C: u64 = 0x8ebc_6af0_9c88_c6e3;

/// A 64-bit hash over explicit words and bytes, the same on every machine and in every release.
///
/// Its values are compared between servers and stand in the log, so the way they are computed is frozen. It shows
/// things apart that differ by chance or by mistake; it is no defence against an attacker who wants a collision.
#[derive(Clone, Copy, Debug)]
pub struct StableHash(u64);

impl StableHash {
    /// `domain` keeps hashes of different sorts of things apart.
    pub const fn new(domain: u64) -> StableHash {
        StableHash(domain ^ B)
    }

    pub fn pair(&mut self, first: u64, second: u64) {
        self.0 = folded(self.0 ^ first, second ^ A);
    }

    pub fn word(&mut self, word: u64) {
        self.pair(word, 0);
    }

    pub fn id(&mut self, id: impl Into<Uuid>) {
        let [first, second] = halves(&id.into().0);
        self.pair(first, second);
    }

    /// With their end: what follows cannot be taken for a part of them.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<16>();
        for chunk in whole {
            let [first, second] = halves(chunk);
            self.pair(first, second);
        }
        // At most 15 are left, so that the last place is free for their number.
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        last[15] = rest.len() as u8;
        let [first, second] = halves(&last);
        self.0 = folded(self.0 ^ first, second ^ C);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn finish(self) -> u64 {
        folded(self.0 ^ A, B)
    }
}

/// Both halves of a 128-bit product in one word: every bit of both factors moves every bit of the result.
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

fn halves(bytes: &[u8; 16]) -> [u64; 2] {
    let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
    [half(0), half(8)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of(write: impl FnOnce(&mut StableHash)) -> u64 {
        let mut hash = StableHash::new(7);
        write(&mut hash);
        hash.finish()
    }

    #[test]
    fn values_are_frozen() {
        assert_eq!(of(|_| {}), 0x1b49_3fe9_b501_b779);
        assert_eq!(of(|hash| hash.word(1)), 0x21d2_8e05_e8e8_afdb);
        assert_eq!(of(|hash| hash.text("sojourn, of more than sixteen bytes")), 0x138a_bab3_af4e_2ea5);
        assert_eq!(of(|hash| hash.id(Uuid::from(0x0123_4567_89ab_cdef_u128))), 0xebd7_9567_e822_75fa);
    }

    #[test]
    fn every_bit_counts() {
        let text = b"a text of some length, so that several rounds are made".to_vec();
        let mut seen = BTreeSet::from([of(|hash| hash.bytes(&text))]);
        for at in 0..text.len() * 8 {
            let mut changed = text.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(seen.insert(of(|hash| hash.bytes(&changed))), "bit {at}");
        }
        for shorter in 0..text.len() {
            assert!(seen.insert(of(|hash| hash.bytes(&text[..shorter]))), "{shorter} bytes");
        }
    }

    #[test]
    fn where_one_text_ends_counts() {
        let texts = |one: &str, other: &str| {
            of(|hash| {
                hash.text(one);
                hash.text(other);
            })
        };
        assert_ne!(texts("ab", "c"), texts("a", "bc"));
        assert_ne!(texts("", "a"), texts("a", ""));
        assert_ne!(texts("", "\0"), texts("\0", ""));
    }

    #[test]
    fn domains_and_order_count() {
        assert_ne!(StableHash::new(1).finish(), StableHash::new(2).finish());
        assert_ne!(of(|hash| hash.pair(1, 2)), of(|hash| hash.pair(2, 1)));
        assert_ne!(of(|hash| hash.word(0)), of(|_| {}));
    }
}
