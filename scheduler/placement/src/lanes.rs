//! Nodes in lanes, each with its own tournament.
//!
//! Nodes that share the values of all spread and distinct properties stand in one lane. What a placement changes about
//! those properties changes whole lanes, so that the best node is the best of the winners: a step per lane, not per node.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::node::NodeCold;

use crate::constraint::Target;
use crate::score::{OUT, Tournament};

/// The node does not have the property.
pub const MISSING: u32 = u32::MAX;

/// Scorers beyond the ones that speak of every node: anti-affinity and penalty.
const EXTRAS: usize = 2;

/// What speaks for a node, before its lane is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    pub sum: f64,
    /// How many scorers said something.
    pub said: u8,
}

impl Worth {
    pub fn of(sum: f64, said: u8) -> Worth {
        Worth { sum, said }
    }

    /// The mean of what was said: a scorer that says nothing does not dilute it.
    pub fn mean(self) -> f64 {
        self.sum / f64::from(self.said)
    }

    /// With one scorer more, if it says something.
    pub fn and(self, value: f64) -> Worth {
        if value == 0.0 { self } else { Worth { sum: self.sum + value, said: self.said + 1 } }
    }
}

/// The values of one property among the nodes.
pub type Values = BTreeMap<Arc<str>, u32>;

/// The number of the node's value, which is given one if it has none.
pub fn learn(target: &Target, node: &NodeCold, values: &mut Values) -> u32 {
    let Some(value) = target.resolve(node) else { return MISSING };
    let next = values.len() as u32;
    values.get(&*value).copied().unwrap_or_else(|| *values.entry((&*value).into()).or_insert(next))
}

#[derive(Debug)]
pub struct Lanes {
    list: Vec<Lane>,
    /// By position: lane and place in it. Empty while there is only one lane, with everybody in it.
    homes: Vec<(u32, u32)>,
    /// Spread scores come on top later: then what is compared is the sum, among those of whom as many spoke.
    sums: bool,
    /// Scorers that speak of every node.
    base: u8,
}

#[derive(Debug)]
pub struct Lane {
    /// The number of the value of each property.
    pub values: Vec<u32>,
    /// Positions, ascending.
    members: Vec<u32>,
    /// By the number of extra scorers.
    trees: [Option<Tournament>; EXTRAS + 1],
}

/// The best of a lane among those of whom as many spoke.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub position: u32,
    pub worth: Worth,
}

impl Lanes {
    /// Everybody in one lane, each with the mean of what speaks for it.
    pub fn single(means: Vec<f64>, base: u8) -> Lanes {
        let trees = [Some(Tournament::new(means)), None, None];
        let lane = Lane { values: Vec::new(), members: Vec::new(), trees };
        Lanes { list: vec![lane], homes: Vec::new(), sums: false, base }
    }

    /// `of` names the lane of each position, `values` those of each lane. Scores are sums if `sums`, else means.
    pub fn new(of: &[u32], values: Vec<Vec<u32>>, scores: &[f64], base: u8, sums: bool) -> Lanes {
        let lane = |values| Lane { values, members: Vec::new(), trees: [None, None, None] };
        let mut lanes = Lanes {
            list: values.into_iter().map(lane).collect(),
            homes: Vec::with_capacity(of.len()),
            sums,
            base,
        };
        for (position, number) in (0..).zip(of) {
            let lane = &mut lanes.list[*number as usize];
            lanes.homes.push((*number, lane.members.len() as u32));
            lane.members.push(position);
        }
        for lane in &mut lanes.list {
            let scores = lane.members.iter().map(|at| scores[*at as usize]);
            lane.trees[0] = Some(Tournament::new(scores.collect()));
        }
        lanes
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lane> {
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
        let (lane, place) = self.home(position);
        self.list[lane as usize].trees[0].as_ref().map_or(OUT, |tree| tree.score(place))
    }

    /// Gives back what [`Lanes::base_score`] told.
    pub fn reset(&mut self, position: u32, score: f64) {
        self.put(position, 0, score);
    }

    /// What the position is worth from now on; nothing takes it out of the game.
    pub fn set(&mut self, position: u32, worth: Option<Worth>) {
        match worth {
            Some(worth) if self.sums => self.put(position, usize::from(worth.said - self.base), worth.sum),
            Some(worth) => self.put(position, 0, worth.mean()),
            None => self.put(position, 0, OUT),
        }
    }

    fn put(&mut self, position: u32, tree: usize, score: f64) {
        let (lane, place) = self.home(position);
        let lane = &mut self.list[lane as usize];
        let members = lane.members.len();
        for (number, slot) in lane.trees.iter_mut().enumerate() {
            if number == tree {
                slot.get_or_insert_with(|| Tournament::new(vec![OUT; members])).set(place, score);
            } else if let Some(other) = slot.as_mut().filter(|tree| tree.score(place) > OUT) {
                other.set(place, OUT);
            }
        }
    }

    /// The best of a lane, one for each number of scorers.
    pub fn heads<'l>(&'l self, lane: &'l Lane) -> impl Iterator<Item = Head> + 'l {
        let trees = lane.trees.iter().enumerate();
        trees.filter_map(|(extras, tree)| Some(self.head(lane, extras, tree.as_ref()?.winner()?)))
    }

    /// The best `count` of a lane for each number of scorers.
    pub fn best<'l>(&'l self, lane: &'l Lane, count: usize) -> impl Iterator<Item = Head> + 'l {
        let trees = lane.trees.iter().enumerate().filter_map(|(extras, tree)| Some((extras, tree.as_ref()?)));
        trees.flat_map(move |(extras, tree)| {
            tree.best(count).into_iter().map(move |place| self.head(lane, extras, place))
        })
    }

    fn head(&self, lane: &Lane, extras: usize, place: u32) -> Head {
        let score = lane.trees[extras].as_ref().map_or(OUT, |tree| tree.score(place));
        let position = if self.homes.is_empty() { place } else { lane.members[place as usize] };
        // Without spreads the mean is all that is asked for.
        let said = if self.sums { self.base + extras as u8 } else { 1 };
        Head { position, worth: Worth { sum: score, said } }
    }

    fn home(&self, position: u32) -> (u32, u32) {
        self.homes.get(position as usize).copied().unwrap_or((0, position))
    }
}
