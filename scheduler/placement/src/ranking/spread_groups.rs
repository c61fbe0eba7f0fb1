//! Nodes in lanes, each with its own tournament.
//!
//! Nodes that share the values of all spread and distinct properties stand in one lane. What a placement changes about
//! those properties changes whole lanes, so that the best node is the best of the winners: a step per lane, not per node.

use crate::ranking::score::{OUT, Tournament};

/// Scorers beyond the ones that speak of every node: anti-affinity and penalty.
const EXTRAS: usize = 2;

/// What speaks for a node, before its lane is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreSum {
    pub sum: f64,
    /// How many scorers said something.
    pub scorers: u8,
}

impl ScoreSum {
    pub fn of(sum: f64, scorers: u8) -> ScoreSum {
        ScoreSum { sum, scorers }
    }

    /// The mean of what was said: a scorer that says nothing does not dilute it.
    pub fn mean(self) -> f64 {
        self.sum / f64::from(self.scorers)
    }

    /// With one scorer more, if it says something.
    pub fn and(self, value: f64) -> ScoreSum {
        if value == 0.0 { self } else { ScoreSum { sum: self.sum + value, scorers: self.scorers + 1 } }
    }
}

#[derive(Debug)]
pub struct SpreadGroups {
    list: Vec<SpreadGroup>,
    /// By position: lane and place in it. Empty while there is only one lane, with everybody in it.
    homes: Vec<(u32, u32)>,
    /// Spread scores come on top later: then what is compared is the sum, among those of whom as many spoke.
    sums: bool,
    /// Scorers that speak of every node.
    base: u8,
}

#[derive(Debug)]
pub struct SpreadGroup {
    /// The number of the value of each property.
    pub values: Vec<u32>,
    /// Positions, ascending.
    members: Vec<u32>,
    /// By the number of extra scorers.
    trees: [Option<Tournament>; EXTRAS + 1],
}

/// The best of a lane among those of whom as many spoke.
#[derive(Clone, Copy, Debug)]
pub struct GroupBest {
    pub position: u32,
    pub score_sum: ScoreSum,
}

impl SpreadGroups {
    /// Everybody in one lane, each with the mean of what speaks for it.
    pub fn single(means: Vec<f64>, base: u8) -> SpreadGroups {
        let trees = [Some(Tournament::new(means)), None, None];
        let spread_group = SpreadGroup { values: Vec::new(), members: Vec::new(), trees };
        SpreadGroups { list: vec![spread_group], homes: Vec::new(), sums: false, base }
    }

    /// `of` names the lane of each position, `values` those of each lane. Scores are sums if `sums`, else means.
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

    /// The number of the lane where the position stands.
    pub fn number(&self, position: u32) -> u32 {
        self.home(position).0
    }

    /// The numbers of the values that the position shares with its lane.
    pub fn values(&self, position: u32) -> &[u32] {
        &self.list[self.number(position) as usize].values
    }

    /// The score of who stands there with nothing but what speaks of every node.
    pub fn base_score(&self, position: u32) -> f64 {
        let (spread_group, place) = self.home(position);
        self.list[spread_group as usize].trees[0].as_ref().map_or(OUT, |tree| tree.score(place))
    }

    /// Gives back what [`SpreadGroups::base_score`] told.
    pub fn reset(&mut self, position: u32, score: f64) {
        self.put(position, 0, score);
    }

    /// What the position is worth from now on; nothing takes it out of the game.
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

    /// The best of a lane, one for each number of scorers.
    pub fn bests<'l>(&'l self, spread_group: &'l SpreadGroup) -> impl Iterator<Item = GroupBest> + 'l {
        let trees = spread_group.trees.iter().enumerate();
        trees.filter_map(|(extras, tree)| Some(self.best_of(spread_group, extras, tree.as_ref()?.winner()?)))
    }

    /// The best `count` of a lane for each number of scorers.
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
        // Without spreads the mean is all that is asked for.
        let scorers = if self.sums { self.base + extras as u8 } else { 1 };
        GroupBest { position, score_sum: ScoreSum { sum: score, scorers } }
    }

    fn home(&self, position: u32) -> (u32, u32) {
        self.homes.get(position as usize).copied().unwrap_or((0, position))
    }
}
