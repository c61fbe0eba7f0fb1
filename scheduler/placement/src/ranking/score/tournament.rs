use std::collections::BinaryHeap;

/// The best of many scores, kept while single scores change.
///
/// A tournament tree: changing one score replays one path, and stops where no winner changes any more. Equal scores go
/// to the lower number, so the winner never depends on the order of changes.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// [`OUT`] marks an infeasible player.
    scores: Vec<f64>,
    /// Winners by duel: the root is 1, the duels below `d` are `2d` and `2d + 1`.
    winners: Vec<u32>,
    leaves: usize,
}

/// The score of an infeasible player.
pub const OUT: f64 = f64::NEG_INFINITY;

/// The winner of a match without players.
const NOBODY: u32 = u32::MAX;

impl Tournament {
    pub fn new(scores: Vec<f64>) -> Tournament {
        let leaves = scores.len().next_power_of_two();
        let mut winners = vec![NOBODY; leaves];
        // The lowest duels are between neighbours: no winner has to be looked up.
        for (duel, pair) in (leaves / 2..leaves).zip(scores.chunks(2)) {
            let first = 2 * (duel - leaves / 2) as u32;
            winners[duel] = if pair.len() == 2 && pair[1] > pair[0] { first + 1 } else { first };
        }
        let mut tournament = Tournament { scores, winners, leaves };
        for duel in (1..leaves / 2).rev() {
            tournament.winners[duel] = tournament.duel(duel);
        }
        tournament
    }

    pub fn score(&self, player: u32) -> f64 {
        self.scores[player as usize]
    }

    /// The best player, unless all are infeasible.
    pub fn winner(&self) -> Option<u32> {
        let winner = if self.leaves > 1 { self.winners[1] } else { 0 };
        self.is_feasible(winner).then_some(winner)
    }

    pub fn set(&mut self, player: u32, score: f64) {
        self.scores[player as usize] = score;
        let mut duel = (self.leaves + player as usize) / 2;
        while duel >= 1 {
            let before = self.winners[duel];
            let winner = self.duel(duel);
            if winner == before && winner != player {
                return;
            }
            self.winners[duel] = winner;
            duel /= 2;
        }
    }

    /// The `count` best players, best first. Only players that lost against one of them are looked at.
    pub fn best(&self, count: usize) -> Vec<u32> {
        let mut best = Vec::with_capacity(count);
        let mut open = BinaryHeap::new();
        open.extend(self.winner().map(|player| self.open(player, 1.min(self.leaves))));
        while let Some(Open { player, mut duel, .. }) = open.pop().filter(|_| best.len() < count) {
            best.push(player);
            while duel < self.leaves {
                let (left, right) = (self.side(2 * duel), self.side(2 * duel + 1));
                let (next, loser, below) = if left == player {
                    (2 * duel, right, 2 * duel + 1)
                } else {
                    (2 * duel + 1, left, 2 * duel)
                };
                open.extend(self.is_feasible(loser).then(|| self.open(loser, below)));
                duel = next;
            }
        }
        best
    }

    fn open(&self, player: u32, duel: usize) -> Open {
        Open { score: self.score(player), player, duel }
    }

    fn side(&self, child: usize) -> u32 {
        if child >= self.leaves { (child - self.leaves) as u32 } else { self.winners[child] }
    }

    fn duel(&self, duel: usize) -> u32 {
        let (left, right) = (self.side(2 * duel), self.side(2 * duel + 1));
        if self.beats(left, right) { left } else { right }
    }

    fn beats(&self, one: u32, other: u32) -> bool {
        match (self.scores.get(one as usize), self.scores.get(other as usize)) {
            (Some(a), Some(b)) => a > b || (a == b && one < other),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn is_feasible(&self, player: u32) -> bool {
        self.scores.get(player as usize).is_some_and(|score| *score > OUT)
    }
}

/// A player who may be the next best, and the highest duel it won.
#[derive(PartialEq)]
struct Open {
    score: f64,
    player: u32,
    duel: usize,
}

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(other.player.cmp(&self.player))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_best_after_every_change() {
        for size in [1_usize, 2, 3, 7, 8, 100] {
            let mut rng = base::Rng::new(size as u64);
            let mut scores: Vec<f64> = (0..size).map(|_| rng.below(4) as f64).collect();
            let mut tournament = Tournament::new(scores.clone());
            for _ in 0..500 {
                let (player, score) = (rng.below(size as u64) as usize, rng.below(8) as f64 - 4.0);
                let score = if score == -4.0 { OUT } else { score };
                let mut order: Vec<u32> = (0..size as u32).filter(|p| scores[*p as usize] > OUT).collect();
                order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));
                assert_eq!(tournament.winner(), order.first().copied());
                order.truncate(5);
                assert_eq!(tournament.best(5), order);
                scores[player] = score;
                tournament.set(player as u32, score);
            }
            (0..size as u32).for_each(|player| tournament.set(player, OUT));
            assert_eq!((tournament.winner(), tournament.best(5)), (None, Vec::new()));
        }
    }

    #[test]
    fn an_empty_tournament_has_no_winner() {
        let nobody = Tournament::new(Vec::new());
        assert_eq!((nobody.winner(), nobody.best(3)), (None, Vec::new()));
    }
}
