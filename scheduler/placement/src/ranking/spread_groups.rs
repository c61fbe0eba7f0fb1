//! Nodes grouped by the values that spreads and `distinct_property` look at, each group with its own tournament tree.
//!
//! A placement changes the score of all nodes that share such a value. With groups the best node is the best of the
//! groups' winners, so that a placement costs a step for each group and not for each node.

use crate::ranking::score::{OUT, Tournament};

/// Scorers that only some nodes have: anti-affinity and reschedule penalty.
const EXTRAS: usize = 2;

/// The sum of a node's scores, before that of its spread group is added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreSum {
    pub sum: f64,
    /// How many scorers it comes from.
    pub scorers: u8,
}

impl ScoreSum {
    pub fn of(sum: f64, scorers: u8) -> ScoreSum {
        ScoreSum { sum, scorers }
    }

    /// The mean over the scorers that gave a score; the others do not lower it.
    pub fn mean(self) -> f64 {
        self.sum / f64::from(self.scorers)
    }

    /// With one more score, unless it is zero.
    pub fn and(self, value: f64) -> ScoreSum {
        if value == 0.0 { self } else { ScoreSum { sum: self.sum + value, scorers: self.scorers + 1 } }
    }
}

#[derive(Debug)]
pub struct SpreadGroups {
    list: Vec<SpreadGroup>,
    /// By position: the group and the index in it. Empty while all nodes are in one group.
    homes: Vec<(u32, u32)>,
    /// Spread scores are added later: then sums are compared, among nodes with the same number of scorers.
    sums: bool,
    /// Scorers that give every node a score.
    base: u8,
}

#[derive(Debug)]
pub struct SpreadGroup {
    /// The number of the value of each property.
    pub values: Vec<u32>,
    /// Positions, ascending.
    members: Vec<u32>,
    /// By the number of extra scorers: a mean over a different number is not comparable before the spread is known.
    trees: [Option<Tournament>; EXTRAS + 1],
}

/// The best node of a group among those with the same number of scorers.
#[derive(Clone, Copy, Debug)]
pub struct GroupBest {
    pub position: u32,
    pub score_sum: ScoreSum,
}

impl SpreadGroups {
    /// All nodes in one group, each with its mean score.
    pub fn single(means: Vec<f64>, base: u8) -> SpreadGroups {
        let trees = [Some(Tournament::new(means)), None, None];
        let spread_group = SpreadGroup { values: Vec::new(), members: Vec::new(), trees };
        SpreadGroups { list: vec![spread_group], homes: Vec::new(), sums: false, base }
    }

    /// `group_of` is the group of each position, `values` are the values of each group. Scores are sums if `sums`, else
    /// means.
    pub fn new(of: &[u32], values: Vec<Vec<u32>>, scores: &[f64], base: u8, sums: bool) -> SpreadGroups {
        let spread_group = |values| SpreadGroup { values, members: Vec::new(), trees: [None, None, None] };
        let mut spread_groups = SpreadGroups {
            list: values.into_iter().map(spread_group).collect(),
            homes: Vec::with_capacity(of.len()),
            sums,
            base,
        };
        for (position, number) in (0..).zip(of) {
            let spread_group = &mut spread_groups.list[*number as usize];
            spread_groups.homes.push((*number, spread_group.members.len() as u32));
            spread_group.members.push(position);
        }
        for spread_group in &mut spread_groups.list {
            let scores = spread_group.members.iter().map(|at| scores[*at as usize]);
            spread_group.trees[0] = Some(Tournament::new(scores.collect()));
        }
        spread_groups
    }

    pub fn iter(&self) -> impl Iterator<Item = &SpreadGroup> {
        self.list.iter()
    }

    /// The number of the group of a position.
    pub fn number(&self, position: u32) -> u32 {
        self.home(position).0
    }

    /// The numbers of the values of a position, which its whole group shares.
    pub fn values(&self, position: u32) -> &[u32] {
        &self.list[self.number(position) as usize].values
    }

    /// The score of a position that has no extra scorers.
    pub fn base_score(&self, position: u32) -> f64 {
        let (spread_group, place) = self.home(position);
        self.list[spread_group as usize].trees[0].as_ref().map_or(OUT, |tree| tree.score(place))
    }

    /// Restores what [`SpreadGroups::base_score`] returned.
    pub fn reset(&mut self, position: u32, score: f64) {
        self.put(position, 0, score);
    }

    /// Sets the score of a position; `None` if it is infeasible.
    pub fn set(&mut self, position: u32, score_sum: Option<ScoreSum>) {
        match score_sum {
            Some(score_sum) if self.sums => {
                self.put(position, usize::from(score_sum.scorers - self.base), score_sum.sum)
            }
            Some(score_sum) => self.put(position, 0, score_sum.mean()),
            None => self.put(position, 0, OUT),
        }
    }

    fn put(&mut self, position: u32, tree: usize, score: f64) {
        let (spread_group, place) = self.home(position);
        let spread_group = &mut self.list[spread_group as usize];
        let members = spread_group.members.len();
        for (number, slot) in spread_group.trees.iter_mut().enumerate() {
            if number == tree {
                slot.get_or_insert_with(|| Tournament::new(vec![OUT; members])).set(place, score);
            } else if let Some(other) = slot.as_mut().filter(|tree| tree.score(place) > OUT) {
                other.set(place, OUT);
            }
        }
    }

    /// The best nodes of a group, one for each number of scorers.
    pub fn bests<'l>(&'l self, spread_group: &'l SpreadGroup) -> impl Iterator<Item = GroupBest> + 'l {
        let trees = spread_group.trees.iter().enumerate();
        trees.filter_map(|(extras, tree)| Some(self.best_of(spread_group, extras, tree.as_ref()?.winner()?)))
    }

    /// The best `count` nodes of a group for each number of scorers.
    pub fn best<'l>(
        &'l self,
        spread_group: &'l SpreadGroup,
        count: usize,
    ) -> impl Iterator<Item = GroupBest> + 'l {
        let trees =
            spread_group.trees.iter().enumerate().filter_map(|(extras, tree)| Some((extras, tree.as_ref()?)));
        trees.flat_map(move |(extras, tree)| {
            tree.best(count).into_iter().map(move |place| self.best_of(spread_group, extras, place))
        })
    }

    fn best_of(&self, spread_group: &SpreadGroup, extras: usize, place: u32) -> GroupBest {
        let score = spread_group.trees[extras].as_ref().map_or(OUT, |tree| tree.score(place));
        let position = if self.homes.is_empty() { place } else { spread_group.members[place as usize] };
        // Without spreads only the mean is stored.
        let scorers = if self.sums { self.base + extras as u8 } else { 1 };
        GroupBest { position, score_sum: ScoreSum { sum: score, scorers } }
    }

    fn home(&self, position: u32) -> (u32, u32) {
        self.homes.get(position as usize).copied().unwrap_or((0, position))
    }
}
