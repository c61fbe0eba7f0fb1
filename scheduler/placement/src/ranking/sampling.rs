//! Considering only some of the nodes for each placement, as Nomad does. Off by default: then all are considered.

use base::Rng;
use model::JobType;

/// How many nodes are considered at most for groups with affinities or spreads, unless operators set another limit.
const WIDE: usize = 100;

/// How many nodes with a score of zero or less are set aside; they are used when there are no others.
const ASIDE_MAX: usize = 3;

/// How many nodes are considered for one placement. `limit` is what operators set; 0: not set.
pub fn limit(kind: JobType, count: u32, chooses: bool, nodes: usize, limit: u32) -> usize {
    match kind {
        _ if chooses => (count as usize).max(if limit == 0 { WIDE } else { limit as usize }),
        JobType::Batch => 2,
        // The logarithm to the base of two, rounded up.
        _ => (nodes.max(1).next_power_of_two().trailing_zeros() as usize).max(2),
    }
}

/// The nodes in the order in which an evaluation visits them, again and again from the start.
#[derive(Debug)]
pub struct Sampler {
    order: Vec<u32>,
    next: usize,
}

/// The nodes of one selection.
#[derive(Debug, Default)]
pub struct Sample {
    /// Considered nodes with their scores, in the order of their visits.
    pub considered: Vec<(u32, f64)>,
    pub visited: usize,
}

impl Sampler {
    pub fn new(mut nodes: Vec<u32>, seed: u64) -> Sampler {
        let mut chance = Rng::stream(seed, "nodes");
        for at in (1..nodes.len()).rev() {
            nodes.swap(at, chance.below(at as u64 + 1) as usize);
        }
        Sampler { order: nodes, next: 0 }
    }

    /// Visits nodes until `limit` of them are considered. `score` returns the score of a node, if it is feasible.
    ///
    /// A few with a score of zero or less are set aside, and considered only if there are not enough others.
    pub fn select(&mut self, limit: usize, mut score: impl FnMut(u32) -> Option<f64>) -> Sample {
        let (mut sample, mut aside) = (Sample::default(), Vec::new());
        while sample.visited < self.order.len() && sample.considered.len() < limit {
            let node = self.order[(self.next + sample.visited) % self.order.len()];
            sample.visited += 1;
            match score(node) {
                Some(score) if score <= 0.0 && aside.len() < ASIDE_MAX => aside.push((node, score)),
                Some(score) => sample.considered.push((node, score)),
                None => {}
            }
        }
        self.next = (self.next + sample.visited) % self.order.len().max(1);
        let short = limit.saturating_sub(sample.considered.len());
        sample.considered.extend(aside.into_iter().take(short));
        sample
    }
}

impl Sample {
    /// The highest score; of equal ones the first that was visited.
    pub fn best(&self) -> Option<u32> {
        let better = |one: (u32, f64), other: (u32, f64)| if other.1 > one.1 { other } else { one };
        self.considered.iter().copied().reduce(better).map(|(node, _)| node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I01-I03.
    #[test]
    fn how_many_nodes_are_considered_depends_on_who_asks() {
        let plain = |kind, nodes| limit(kind, 10, false, nodes, 0);
        assert_eq!(plain(JobType::Batch, 100), 2);
        let service = [100, 1000, 3, 1].map(|nodes| plain(JobType::Service, nodes));
        assert_eq!(service, [7, 10, 2, 2]);
        let wide = |count, set| limit(JobType::Service, count, true, 300, set);
        assert_eq!((wide(10, 0), wide(150, 0), wide(10, 20)), (100, 150, 20));
    }

    fn chosen(scores: &[f64], limit: usize) -> (Option<u32>, Vec<u32>, usize) {
        let mut sampler = Sampler { order: (0..scores.len() as u32).collect(), next: 0 };
        let sample = sampler.select(limit, |node| Some(scores[node as usize]));
        (sample.best(), sample.considered.iter().map(|(node, _)| *node).collect(), sample.visited)
    }

    /// I04-I07.
    #[test]
    fn nodes_that_are_worth_nothing_are_set_aside_for_a_while() {
        assert_eq!(chosen(&[-0.5, 0.3, 0.3, 0.9], 2), (Some(1), vec![1, 2], 3));
        assert_eq!(chosen(&[0.0, -0.1, -0.2, -0.3], 2), (Some(0), vec![3, 0], 4));
        assert_eq!(chosen(&[-1.0], 2), (Some(0), vec![0], 1));
        assert_eq!(chosen(&[0.4, 0.4], 2).0, Some(0));
    }

    /// I08, I09.
    #[test]
    fn visits_go_around_in_an_order_of_the_seed() {
        let order = |seed| {
            let mut sampler = Sampler::new((0..10).collect(), seed);
            let first = |sampler: &mut Sampler| sampler.select(1, |_| Some(1.0)).best();
            (0..10).map(|_| first(&mut sampler)).collect::<Vec<_>>()
        };
        let mut visited = order(1);
        assert_eq!(visited, order(1));
        assert_ne!(visited, order(2));
        visited.sort();
        visited.dedup();
        assert_eq!(visited.len(), 10, "each of ten placements begins at another node");
    }
}
