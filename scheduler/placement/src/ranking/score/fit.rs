//! How well an allocation fits on each of many nodes, computed in one pass over columns.
//!
//! The pass is compiled for several vector widths; the widest that the machine has is chosen at run time. All of them
//! do the same additions, multiplications and divisions in the same order, so that they give the same bits.

use model::Algorithm;

/// The highest value of the fit formula; scores are divided by it.
const FIT_MAX: f64 = 18.0;

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub cpu_mhz: u32,
    pub memory_mib: u32,
    pub algorithm: Algorithm,
}

/// Capacity and use of one resource, node by node.
#[derive(Clone, Debug, Default)]
pub struct Column {
    pub capacity: Vec<u32>,
    pub used: Vec<u32>,
}

/// The fit of each node, from 0 (bad) to 1.
pub fn fits(cpu: &Column, memory: &Column, need: Need) -> Vec<f64> {
    let mut fits = vec![0.0; cpu.capacity.len()];
    fill(&mut fits, [&cpu.capacity, &cpu.used, &memory.capacity, &memory.used], need);
    fits
}

/// The fit of one node, with what it holds once the allocation is there.
pub fn fit(capacity: (u32, u32), used: (u32, u32), algorithm: Algorithm) -> f64 {
    let sum = exp10(free(capacity.0, used.0)) + exp10(free(capacity.1, used.1));
    normalised(sum, algorithm)
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "run only on machines that have these instructions")]
fn fill(fits: &mut [f64], columns: [&[u32]; 4], need: Need) {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
    fn widest(fits: &mut [f64], columns: [&[u32]; 4], need: Need) {
        each(fits, columns, need);
    }
    #[target_feature(enable = "avx2")]
    fn wide(fits: &mut [f64], columns: [&[u32]; 4], need: Need) {
        each(fits, columns, need);
    }
    if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: the machine has both, as just detected; AVX-512F comes with them.
        unsafe { widest(fits, columns, need) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2, as just detected.
        unsafe { wide(fits, columns, need) }
    } else {
        each(fits, columns, need);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn fill(fits: &mut [f64], columns: [&[u32]; 4], need: Need) {
    each(fits, columns, need);
}

#[inline(always)]
fn each(fits: &mut [f64], [cpu, cpu_used, memory, memory_used]: [&[u32]; 4], need: Need) {
    let nodes = fits.len();
    let (cpu, cpu_used) = (&cpu[..nodes], &cpu_used[..nodes]);
    let (memory, memory_used) = (&memory[..nodes], &memory_used[..nodes]);
    for at in 0..nodes {
        let of_cpu = free(cpu[at], cpu_used[at].saturating_add(need.cpu_mhz));
        let of_memory = free(memory[at], memory_used[at].saturating_add(need.memory_mib));
        fits[at] = normalised(exp10(of_cpu) + exp10(of_memory), need.algorithm);
    }
}

#[inline(always)]
fn normalised(sum: f64, algorithm: Algorithm) -> f64 {
    let fit = match algorithm {
        Algorithm::Binpack => 20.0 - sum,
        Algorithm::Spread => sum - 2.0,
    };
    fit.clamp(0.0, FIT_MAX) / FIT_MAX
}

/// The fraction of a capacity that stays free. Nothing of nothing counts as full.
#[inline(always)]
fn free(capacity: u32, used: u32) -> f64 {
    let free = 1.0 - f64::from(used) / f64::from(capacity.max(1));
    if capacity == 0 { 0.0 } else { free }
}

/// 10 to the `x`, the same bits on every machine and in every width: additions, multiplications and a power of two.
///
/// The standard library's `powf` leaves its last bits to the platform, and placements would follow them. Right to
/// 2e-15 for the -1..=1 that is needed; `x` is clamped to -20..=20.
#[inline(always)]
fn exp10(x: f64) -> f64 {
    // Adding and taking away 1.5 * 2^52 rounds to a whole number: a double has no room for its fraction.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let twos = x.clamp(-20.0, 20.0) * std::f64::consts::LOG2_10;
    let rounded = twos + ROUND;
    // At most ln(2) / 2 = 0.347: the first term left out of the series is 0.347^14 / 14! = 4e-18.
    let t = (twos - (rounded - ROUND)) * std::f64::consts::LN_2;
    // In pairs and pairs of pairs, not one term after the other: a quarter of the latency.
    let (t2, pair) = (t * t, |even: f64, odd: f64| even + t * odd);
    let t4 = t2 * t2;
    let first = pair(1.0, 1.0) + t2 * pair(1.0 / 2.0, 1.0 / 6.0);
    let second = pair(1.0 / 24.0, 1.0 / 120.0) + t2 * pair(1.0 / 720.0, 1.0 / 5_040.0);
    let third = pair(1.0 / 40_320.0, 1.0 / 362_880.0) + t2 * pair(1.0 / 3_628_800.0, 1.0 / 39_916_800.0);
    let fourth = pair(1.0 / 479_001_600.0, 1.0 / 6_227_020_800.0);
    let series = first + t4 * (second + t4 * (third + t4 * fourth));
    // The whole number stands in the low bits of the sum; shifted, it is the exponent of a power of two.
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    series * power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I10-I13.
    #[test]
    fn a_full_node_scores_one_and_an_empty_one_zero() {
        let full = (1024, 1024);
        let fit = |used| fit(full, used, Algorithm::Binpack);
        let spread = |used| super::fit(full, used, Algorithm::Spread);
        assert_eq!((fit(full), spread(full)), (1.0, 0.0));
        assert!(fit((0, 0)) < 1e-14 && spread((0, 0)) > 1.0 - 1e-14);
        let half = (20.0 - 2.0 * 10.0_f64.sqrt()) / 18.0;
        assert!((fit((512, 512)) - half).abs() < 1e-14);
        assert!((spread((512, 512)) - 0.2403).abs() < 1e-4);
        assert_eq!((fit((4096, 4096)), spread((4096, 4096))), (1.0, 0.0));
        assert_eq!(super::fit((0, 0), (0, 0), Algorithm::Binpack), 1.0);
    }

    #[test]
    fn powers_of_ten_are_right_to_the_last_digits() {
        for step in -1000..=1000 {
            let x = f64::from(step) / 1000.0;
            let expected = 10_f64.powf(x);
            assert!((exp10(x) - expected).abs() <= expected * 2e-15, "{x}");
        }
        assert_eq!((exp10(0.0), exp10(1.0)), (1.0, 10.0));
    }

    /// The same bits whatever the width: each node's fit is the one it has alone.
    #[test]
    fn every_width_gives_the_same_bits() {
        let mut rng = base::Rng::new(1);
        let mut column = |most: u64| Column {
            capacity: (0..1003).map(|_| rng.below(most) as u32).collect(),
            used: (0..1003).map(|_| rng.below(most) as u32).collect(),
        };
        let (cpu, memory) = (column(64_000), column(u64::from(u32::MAX)));
        for algorithm in [Algorithm::Binpack, Algorithm::Spread] {
            let need = Need { cpu_mhz: 500, memory_mib: 256, algorithm };
            let mut narrow = vec![0.0; 1003];
            each(&mut narrow, [&cpu.capacity, &cpu.used, &memory.capacity, &memory.used], need);
            let chosen = fits(&cpu, &memory, need);
            for at in 0..1003 {
                let used = (cpu.used[at] + 500, memory.used[at].saturating_add(256));
                let alone = fit((cpu.capacity[at], memory.capacity[at]), used, algorithm);
                assert_eq!(chosen[at].to_bits(), alone.to_bits());
                assert_eq!(chosen[at].to_bits(), narrow[at].to_bits());
            }
        }
    }
}
