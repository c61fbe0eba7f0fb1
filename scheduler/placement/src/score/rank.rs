use model::document::{Map, NodeScoreMeta};
use state::node::Amount;

/// The highest value of the fit formula, by which it is normalised.
const FIT_MAX: f64 = 18.0;

/// What speaks for and against a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    pub binpack: f64,
    /// Given out only where the group already has allocations on the node.
    pub anti_affinity: Option<f64>,
    /// The allocation to be replaced failed here.
    pub penalty: bool,
}

impl Score {
    /// `here` allocations of the group, which wants `count`, are on the node already.
    pub fn new(binpack: f64, here: u32, count: u32, penalty: bool) -> Score {
        let anti_affinity = (here > 0).then(|| -f64::from(here + 1) / f64::from(count.max(1)));
        Score { binpack, anti_affinity, penalty }
    }

    /// The mean of what was said: a scorer that says nothing does not dilute it.
    pub fn mean(&self) -> f64 {
        let mut sum = self.binpack;
        let mut said = 1.0;
        for value in [self.anti_affinity, self.penalty.then_some(-1.0)].into_iter().flatten() {
            sum += value;
            said += 1.0;
        }
        sum / said
    }

    pub fn document(&self, node_id: String) -> NodeScoreMeta {
        let scores = [
            ("binpack", self.binpack),
            ("job-anti-affinity", self.anti_affinity.unwrap_or(0.0)),
            ("node-reschedule-penalty", if self.penalty { -1.0 } else { 0.0 }),
            ("node-affinity", 0.0),
        ];
        let scores: Map<String, f64> =
            scores.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
        NodeScoreMeta { node_id, scores, norm_score: self.mean() }
    }
}

/// How full the node would be: 1 when nothing is left, 0 when nothing is taken.
pub fn binpack(capacity: Amount, used: Amount) -> f64 {
    let sum = exp10(free(capacity.cpu_mhz, used.cpu_mhz)) + exp10(free(capacity.memory_mib, used.memory_mib));
    (20.0 - sum).clamp(0.0, FIT_MAX) / FIT_MAX
}

/// The fraction of a capacity that stays free. Nothing of nothing counts as full.
fn free(capacity: u32, used: u32) -> f64 {
    if capacity == 0 { 0.0 } else { 1.0 - f64::from(used) / f64::from(capacity) }
}

/// 2 to the n/8.
const EIGHTHS: [f64; 8] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// 10 to the `x`, the same bits on every machine: additions, multiplications and a power of two.
///
/// The standard library's `powf` leaves its last bits to the platform, and placements would follow them.
/// Right to 2e-15 for the -1..=1 that is asked; `x` is held within -20..=20.
fn exp10(x: f64) -> f64 {
    // Adding and taking away 1.5 * 2^52 rounds to a whole number: a double has no room for its fraction.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let eighths = x.clamp(-20.0, 20.0) * (8.0 * std::f64::consts::LOG2_10);
    let whole = (eighths + ROUND) - ROUND;
    // At most ln(2) / 16 = 0.044: the first term left out of the series is 0.044^8 / 8! = 3e-16.
    let t = (eighths - whole) * (std::f64::consts::LN_2 / 8.0);
    // In pairs, not one term after the other: half the waiting, and the same bits everywhere all the same.
    let (t2, low) = (t * t, 1.0 + t);
    let (second, fourth) = (1.0 / 2.0 + t * (1.0 / 6.0), 1.0 / 24.0 + t * (1.0 / 120.0));
    let sixth = 1.0 / 720.0 + t * (1.0 / 5_040.0);
    let series = (low + t2 * second) + (t2 * t2) * (fourth + t2 * sixth);
    let whole = whole as i64;
    let power = f64::from_bits(((whole.div_euclid(8) + 1023) as u64) << 52);
    series * EIGHTHS[whole.rem_euclid(8) as usize] * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(cpu_mhz: u32, memory_mib: u32) -> Amount {
        Amount { cpu_mhz, memory_mib, disk_mib: 0 }
    }

    /// I10-I12, and section 12.2's check values.
    #[test]
    fn a_full_node_scores_one_and_an_empty_one_zero() {
        let capacity = amount(1024, 1024);
        assert_eq!(binpack(capacity, capacity), 1.0);
        assert!(binpack(capacity, amount(0, 0)) < 1e-14);
        let half = (20.0 - 2.0 * 10.0_f64.sqrt()) / 18.0;
        assert!((binpack(capacity, amount(512, 512)) - half).abs() < 1e-14);
        assert_eq!(binpack(capacity, amount(4096, 4096)), 1.0);
        assert_eq!(binpack(amount(0, 0), amount(0, 0)), 1.0);
    }

    #[test]
    fn powers_of_ten_are_right_to_the_last_digits() {
        for step in -1000..=1000 {
            let x = f64::from(step) / 1000.0;
            let expected = 10_f64.powf(x);
            assert!((exp10(x) - expected).abs() <= expected * 2e-15, "{x}");
        }
        assert_eq!(exp10(0.0), 1.0);
    }

    /// I16, I17, I19, I20.
    #[test]
    fn the_score_is_the_mean_of_what_was_said() {
        let score = |here, penalty| Score::new(0.5, here, 4, penalty);
        assert_eq!(score(0, false).mean(), 0.5);
        assert_eq!(score(2, false).anti_affinity, Some(-0.75));
        assert_eq!(score(0, true).mean(), -0.25);
        assert!((score(2, true).mean() + 0.416_666_7).abs() < 1e-7);
        let shown = score(0, false).document("n".into());
        assert_eq!((shown.scores["job-anti-affinity"], shown.norm_score), (0.0, 0.5));
    }
}
