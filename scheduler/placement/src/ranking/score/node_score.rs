use model::document::{Map, NodeScoreMeta};

use crate::ranking::node_ranking::BaseScore;
use crate::ranking::spread_groups::ScoreSum;

/// All scores of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeScore {
    pub node: BaseScore,
    /// Only where the group already has allocations on the node.
    pub anti_affinity: Option<f64>,
    /// The allocation that is replaced failed here.
    pub penalty: bool,
    /// Only where allocations are preempted.
    pub preemption: Option<f64>,
    /// Counts as a scorer unless it is zero.
    pub spread: f64,
}

impl NodeScore {
    /// `here` allocations of the group, whose count is `count`, are on the node already.
    pub fn new(node: BaseScore, here: u32, count: u32, penalty: bool) -> NodeScore {
        let anti_affinity = (here > 0).then(|| -f64::from(here + 1) / f64::from(count.max(1)));
        NodeScore { node, anti_affinity, penalty, preemption: None, spread: 0.0 }
    }

    /// All but the spread score, which belongs to the spread group.
    pub fn score_sum(&self) -> ScoreSum {
        let of_node = 1 + u8::from(self.node.affinity.is_some()) + u8::from(self.node.devices.is_some());
        let given = [self.anti_affinity, self.penalty.then_some(-1.0), self.preemption].into_iter().flatten();
        let node = ScoreSum::of(self.node.sum(), of_node);
        given.fold(node, |score_sum, value| ScoreSum::of(score_sum.sum + value, score_sum.scorers + 1))
    }

    pub fn document(&self, node_id: String) -> NodeScoreMeta {
        let scores = [
            ("binpack", self.node.fit),
            ("job-anti-affinity", self.anti_affinity.unwrap_or(0.0)),
            ("node-reschedule-penalty", if self.penalty { -1.0 } else { 0.0 }),
            ("node-affinity", self.node.affinity.unwrap_or(0.0)),
        ];
        let spread = (self.spread != 0.0).then_some(("allocation-spread", self.spread));
        let devices = self.node.devices.map(|score| ("devices", score));
        let preemption = self.preemption.map(|score| ("preemption", score));
        let scores: Map<String, f64> = scores
            .into_iter()
            .chain(spread)
            .chain(devices)
            .chain(preemption)
            .map(|(name, value)| (name.to_string(), value))
            .collect();
        NodeScoreMeta { node_id, scores, norm_score: self.score_sum().and(self.spread).mean() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I16, I17, I19, I20.
    #[test]
    fn the_score_is_the_mean_over_the_scorers() {
        let score =
            |here, penalty| NodeScore::new(BaseScore { fit: 0.5, ..BaseScore::default() }, here, 4, penalty);
        let mean = |here, penalty| score(here, penalty).score_sum().mean();
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
        let node = BaseScore { fit: 0.5, affinity: Some(0.0), ..BaseScore::default() };
        let score = NodeScore::new(node, 0, 4, false);
        assert_eq!(score.score_sum().mean(), 0.25);
        let spread = NodeScore { spread: 1.0, ..score };
        assert_eq!(spread.document("n".into()).norm_score, 0.5);
        assert_eq!(spread.document("n".into()).scores["allocation-spread"], 1.0);
    }
}
