//! Spreads: allocations are distributed over the values of an attribute, evenly or by target percentages.

use model::document::{Job, Spread, TaskGroup};

use crate::feasibility::property_values::{NO_VALUE, PropertyValues};
use crate::feasibility::requirements::spreads_of;

/// The default weight of a spread.
const WEIGHT: i8 = 50;

/// The target for all values that have none of their own.
const OTHERS: &str = "*";

/// The spreads of a group, with the counts as the plan in progress leaves them.
#[derive(Debug)]
pub struct Spreads {
    list: Vec<SpreadCounts>,
    /// The lowest score that a nonzero target gave.
    lowest: f64,
}

#[derive(Debug)]
struct SpreadCounts {
    /// Its share of the weights.
    weight: f64,
    shares: Option<Shares>,
    /// Allocations by number of the value; `None` if there never was one.
    used: Vec<Option<u32>>,
    /// The score of a node of each value.
    scores: Vec<f64>,
}

/// The target numbers of allocations.
#[derive(Debug)]
struct Shares {
    /// By number of the value; `None` if it has no target of its own.
    wanted: Vec<Option<f64>>,
    others: Option<f64>,
}

impl Spreads {
    /// `values` are those of the nodes, by spread.
    pub fn new(job: &Job, group: &TaskGroup, values: &[PropertyValues]) -> Spreads {
        let spreads = spreads_of(job, group);
        let weight = |spread: &Spread| f64::from(spread.weight.unwrap_or(WEIGHT));
        let total: f64 = spreads.iter().map(|spread| weight(spread)).sum();
        let count = group.count.unwrap_or(1).max(0) as f64;
        let counted = |(spread, values): (&&Spread, &PropertyValues)| SpreadCounts {
            weight: if total == 0.0 { 0.0 } else { weight(spread) / total },
            shares: Shares::of(spread, values, count),
            used: vec![None; values.len()],
            scores: vec![0.0; values.len()],
        };
        Spreads { list: spreads.iter().zip(values).map(counted).collect(), lowest: -1.0 }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// One more or one less allocation on a node whose spread group has these values.
    pub fn count(&mut self, values: &[u32], change: i32) {
        for (counted, value) in self.list.iter_mut().zip(values).filter(|(_, value)| **value != NO_VALUE) {
            let used = counted.used[*value as usize].get_or_insert(0);
            *used = used.saturating_add_signed(change);
        }
    }

    /// Computes the scores again after the counts have changed.
    pub fn settle(&mut self) {
        for counted in &mut self.list {
            match &counted.shares {
                Some(shares) => {
                    let used = |number: usize| counted.used[number].unwrap_or(0);
                    let unnamed = (0..counted.used.len()).filter(|number| shares.wanted[*number].is_none());
                    let others: u32 = unnamed.map(used).sum();
                    for (number, score) in counted.scores.iter_mut().enumerate() {
                        let (wanted, used) = match shares.wanted[number] {
                            Some(wanted) => (Some(wanted), used(number)),
                            None => (shares.others, others),
                        };
                        *score = share_score(wanted, used, counted.weight, &mut self.lowest);
                    }
                }
                None => counted.settle_evenly(),
            }
        }
    }

    /// The spread score of a spread group. The first of its values are those of the spreads.
    pub fn score(&self, values: &[u32]) -> f64 {
        let scores = self.list.iter().zip(values);
        scores
            .map(|(counted, value)| if *value == NO_VALUE { -1.0 } else { counted.scores[*value as usize] })
            .sum()
    }
}

/// The score of a value with `used` allocations. `wanted` is `None` if no allocation should have this value.
fn share_score(wanted: Option<f64>, used: u32, weight: f64, lowest: &mut f64) -> f64 {
    match wanted {
        None => -1.0,
        Some(0.0) => *lowest,
        Some(wanted) => {
            let score = (wanted - f64::from(used + 1)) / wanted * weight;
            *lowest = lowest.min(score);
            score
        }
    }
}

impl Shares {
    fn of(spread: &Spread, values: &PropertyValues, count: f64) -> Option<Shares> {
        if spread.spread_target.is_empty() {
            return None;
        }
        let share = |percent: u8| f64::from(percent) / 100.0 * count;
        let mut shares = Shares { wanted: vec![None; values.len()], others: None };
        let mut sum = 0.0;
        for target in &spread.spread_target {
            sum += share(target.percent);
            if target.value == OTHERS {
                shares.others = Some(share(target.percent));
            } else if let Some(number) = values.get(target.value.as_str()) {
                shares.wanted[*number as usize] = Some(share(target.percent));
            }
        }
        if sum > 0.0 && sum < count {
            shares.others.get_or_insert(count - sum);
        }
        Some(shares)
    }
}

impl SpreadCounts {
    fn settle_evenly(&mut self) {
        let (mut least, mut most) = (u32::MAX, 0);
        self.used.iter().flatten().for_each(|used| (least, most) = (least.min(*used), most.max(*used)));
        for (score, used) in self.scores.iter_mut().zip(&self.used) {
            *score = if least == u32::MAX { 0.0 } else { even_score(used.unwrap_or(0), least, most) };
        }
    }
}

/// The score of a value without targets: how far it is from the least used value, relative to that.
fn even_score(used: u32, least: u32, most: u32) -> f64 {
    let (used, least, most) = (f64::from(used), f64::from(least), f64::from(most));
    if used != least {
        if least == 0.0 { -1.0 } else { (least - used) / least }
    } else if least == most {
        -1.0
    } else if least == 0.0 {
        1.0
    } else {
        (most - least) / least
    }
}

#[cfg(test)]
mod tests {
    use model::document::SpreadTarget;

    use super::*;

    fn spread(attribute: &str, weight: i8, shares: &[(&str, u8)]) -> Spread {
        let target =
            |(value, percent): &(&str, u8)| SpreadTarget { value: value.to_string(), percent: *percent };
        Spread {
            attribute: attribute.to_string(),
            weight: Some(weight),
            spread_target: shares.iter().map(target).collect(),
        }
    }

    /// The scores of nodes in each of the datacenters, with so many allocations in each.
    fn scores(count: i64, spreads: &[Spread], values: &[&str], used: &[(&str, u32)]) -> Vec<f64> {
        let group =
            TaskGroup { count: Some(count), spreads: spreads.to_vec().into(), ..TaskGroup::default() };
        let numbers: PropertyValues =
            (0..).zip(values).map(|(number, value)| ((*value).into(), number)).collect();
        let mut spreads = Spreads::new(&Job::default(), &group, &vec![numbers.clone(); spreads.len()]);
        for (value, used) in used {
            spreads.count(&vec![numbers[*value]; spreads.len()], *used as i32);
        }
        spreads.settle();
        let spread_groups = (0..values.len() as u32).map(|number| vec![number; spreads.len()]);
        spread_groups.map(|values| (spreads.score(&values) * 1000.0).round() / 1000.0).collect()
    }

    /// I25-I30.
    #[test]
    fn shares_are_filled_in_proportion() {
        let shares = |list: &[(&str, u8)]| [spread("${node.datacenter}", 50, list)];
        let both = shares(&[("dc1", 70), ("dc2", 30)]);
        assert_eq!(scores(10, &both, &["dc1", "dc2"], &[]), [0.857, 0.667]);
        let one = shares(&[("dc1", 80)]);
        assert_eq!(scores(10, &one, &["dc1", "dc2"], &[("dc1", 2)]), [0.625, 0.5]);
        assert_eq!(scores(10, &one, &["dc1", "dc2"], &[("dc1", 7)]), [0.0, 0.5]);
        assert_eq!(scores(10, &one, &["dc1", "dc2"], &[("dc1", 9)]), [-0.25, 0.5]);
        assert_eq!(scores(10, &both, &["dc1", "dc3"], &[]), [0.857, -1.0]);
        let some = shares(&[("dc1", 70)]);
        let pooled = scores(10, &some, &["dc1", "dc2", "dc3"], &[("dc2", 1)]);
        assert_eq!(pooled, [0.857, 0.333, 0.333]);
        let elsewhere = scores(10, &some, &["dc1", "dc2", "dc9"], &[("dc9", 2)]);
        assert_eq!(elsewhere, [0.857, 0.0, 0.0]);
        let two = [
            spread("${node.datacenter}", 50, &[("dc1", 70), ("dc2", 30)]),
            spread("${node.class}", 30, &[("dc1", 70), ("dc2", 30)]),
        ];
        let [first, second] = [0.857_142_857 * 50.0 / 80.0, 0.857_142_857 * 30.0 / 80.0];
        let sum = scores(10, &two, &["dc1", "dc2"], &[]);
        assert!((sum[0] - (first + second)).abs() < 1e-3);
    }

    /// I32-I36, I38.
    #[test]
    fn without_shares_the_least_used_value_is_wanted() {
        let even = [spread("${node.datacenter}", 50, &[])];
        let dcs = ["dc1", "dc2", "dc3"];
        assert_eq!(scores(10, &even, &dcs, &[]), [0.0, 0.0, 0.0]);
        assert_eq!(scores(10, &even, &dcs[..2], &[("dc1", 2), ("dc2", 0)]), [-1.0, 1.0]);
        assert_eq!(scores(10, &even, &dcs[..2], &[("dc1", 2)]), [-1.0 + 0.0, 1.0]);
        assert_eq!(scores(10, &even, &dcs[..2], &[("dc1", 2), ("dc2", 1)]), [-1.0, 1.0]);
        assert_eq!(scores(10, &even, &dcs[..2], &[("dc1", 2), ("dc2", 3)]), [0.5, -0.5]);
        assert_eq!(scores(10, &even, &dcs, &[("dc1", 3), ("dc2", 3)]), [-1.0, -1.0, 1.0]);
        assert_eq!(scores(10, &even, &dcs, &[("dc1", 3), ("dc2", 3), ("dc3", 3)]), [-1.0, -1.0, -1.0]);
        let none = [spread("${node.datacenter}", 50, &[("dc1", 0), ("dc2", 100)])];
        let scores = scores(10, &none, &dcs[..2], &[]);
        assert!(scores[0] <= -1.0 && scores[0].is_finite(), "{scores:?}");
    }

    /// I31, I37.
    #[test]
    fn a_node_without_the_property_is_the_last_choice() {
        let group =
            TaskGroup { spreads: vec![spread("${meta.rack}", 50, &[])].into(), ..TaskGroup::default() };
        let values: PropertyValues = [("r1".into(), 0)].into_iter().collect();
        let mut spreads = Spreads::new(&Job::default(), &group, &[values]);
        spreads.settle();
        assert_eq!((spreads.score(&[NO_VALUE]), spreads.score(&[0])), (-1.0, 0.0));
    }
}
