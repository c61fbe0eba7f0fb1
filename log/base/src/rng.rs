/// A stream of chance from one seed: SplitMix64. The same seed gives the same numbers on every machine.
///
/// Derive one stream per purpose with [`Rng::stream`], so that a change in one does not move the others.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// An independent stream for `purpose`.
    pub fn stream(seed: u64, purpose: &str) -> Rng {
        // FNV-1a: the name only has to spread.
        let name = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng(Rng(seed ^ name).next())
    }

    #[expect(clippy::should_implement_trait, reason = "an endless stream has no `None`")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a 128-bit product: biased by less than bound / 2^64.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub fn uuid(&mut self) -> crate::Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next().to_le_bytes());
        crate::Uuid::from_random(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_numbers() {
        let mut rng = Rng::new(1);
        assert_eq!([rng.next(), rng.next()], [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67]);
        assert_ne!(Rng::stream(1, "a").next(), Rng::stream(1, "b").next());
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Rng::new(7);
        assert!((0..1000).all(|_| rng.below(3) < 3));
    }
}
