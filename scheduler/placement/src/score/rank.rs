use model::document::{Map, NodeScoreMeta};

use crate::lanes::Worth;

/// What speaks for and against a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    pub fit: f64,
    /// Given out only where the group already has allocations on the node.
    pub anti_affinity: Option<f64>,
    /// The allocation to be replaced failed here.
    pub penalty: bool,
    /// Given out only if the job has affinities.
    pub affinity: Option<f64>,
    /// Counts unless it is zero.
    pub spread: f64,
}

impl Score {
    /// `here` allocations of the group, which wants `count`, are on the node already.
    pub fn new(fit: f64, affinity: Option<f64>, here: u32, count: u32, penalty: bool) -> Score {
        let anti_affinity = (here > 0).then(|| -f64::from(here + 1) / f64::from(count.max(1)));
        Score { fit, anti_affinity, penalty, affinity, spread: 0.0 }
    }

    /// All but the spread, which is its lane's.
    pub fn worth(&self) -> Worth {
        let said = [self.affinity, self.anti_affinity, self.penalty.then_some(-1.0)].into_iter().flatten();
        said.fold(Worth::of(self.fit, 1), |worth, value| Worth::of(worth.sum + value, worth.said + 1))
    }

    pub fn document(&self, node_id: String) -> NodeScoreMeta {
        let scores = [
            ("binpack", self.fit),
            ("job-anti-affinity", self.anti_affinity.unwrap_or(0.0)),
            ("node-reschedule-penalty", if self.penalty { -1.0 } else { 0.0 }),
            ("node-affinity", self.affinity.unwrap_or(0.0)),
        ];
        let spread = (self.spread != 0.0).then_some(("allocation-spread", self.spread));
        let scores: Map<String, f64> =
            scores.into_iter().chain(spread).map(|(name, value)| (name.to_string(), value)).collect();
        NodeScoreMeta { node_id, scores, norm_score: self.worth().and(self.spread).mean() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I16, I17, I19, I20.
    #[test]
    fn the_score_is_the_mean_of_what_was_said() {
        let score = |here, penalty| Score::new(0.5, None, here, 4, penalty);
        let mean = |here, penalty| score(here, penalty).worth().mean();
        assert_eq!(mean(0, false), 0.5);
        assert_eq!(score(2, false).anti_affinity, Some(-0.75));
        assert_eq!(mean(0, true), -0.25);
        assert!((mean(2, true) + 0.416_666_7).abs() < 1e-7);
        let shown = score(0, false).document("n".into());
        assert_eq!((shown.scores["job-anti-affinity"], shown.norm_score), (0.0, 0.5));
        assert!(!shown.scores.contains_key("allocation-spread"));
    }

    #[test]
    fn an_affinity_counts_even_if_nothing_of_it_is_there_and_a_spread_only_if_it_is_not_zero() {
        let score = Score::new(0.5, Some(0.0), 0, 4, false);
        assert_eq!(score.worth().mean(), 0.25);
        let spread = Score { spread: 1.0, ..score };
        assert_eq!(spread.document("n".into()).norm_score, 0.5);
        assert_eq!(spread.document("n".into()).scores["allocation-spread"], 1.0);
    }
}
