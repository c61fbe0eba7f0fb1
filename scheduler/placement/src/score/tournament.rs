/// The best of many scores, kept while single scores change.
///
/// A binary tree of duels: changing one score replays one path. Equal scores go to the lower number, so the
/// winner never depends on the order of changes.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Negative infinity is "not in the game".
    scores: Vec<f64>,
    /// Winners by duel: the root is 1, the duels below `d` are `2d` and `2d + 1`.
    winners: Vec<u32>,
    leaves: usize,
}

/// No one is there to play.
const NOBODY: u32 = u32::MAX;

impl Tournament {
    pub fn new(scores: Vec<f64>) -> Tournament {
        let leaves = scores.len().next_power_of_two();
        let mut winners = vec![NOBODY; leaves];
        let mut tournament = Tournament { scores, winners: Vec::new(), leaves };
        for duel in (1..leaves).rev() {
            winners[duel] = tournament.duel(&winners, duel);
        }
        tournament.winners = winners;
        tournament
    }

    pub fn score(&self, player: u32) -> f64 {
        self.scores[player as usize]
    }

    /// The best player, unless none is in the game.
    pub fn winner(&self) -> Option<u32> {
        let winner = if self.leaves > 1 { self.winners[1] } else { 0 };
        self.plays(winner).then_some(winner)
    }

    pub fn set(&mut self, player: u32, score: f64) {
        self.scores[player as usize] = score;
        let mut duel = (self.leaves + player as usize) / 2;
        while duel >= 1 {
            self.winners[duel] = self.duel(&self.winners, duel);
            duel /= 2;
        }
    }

    /// The `count` best players, best first.
    pub fn best(&self, count: usize) -> Vec<u32> {
        let mut best: Vec<u32> = Vec::with_capacity(count + 1);
        for player in (0..self.scores.len() as u32).filter(|player| self.plays(*player)) {
            if best.len() == count && !self.beats(player, best[count - 1]) {
                continue;
            }
            let at = best.partition_point(|better| self.beats(*better, player));
            best.insert(at, player);
            best.truncate(count);
        }
        best
    }

    fn duel(&self, winners: &[u32], duel: usize) -> u32 {
        let side = |child: usize| {
            if child >= self.leaves { (child - self.leaves) as u32 } else { winners[child] }
        };
        let (left, right) = (side(2 * duel), side(2 * duel + 1));
        if self.beats(left, right) { left } else { right }
    }

    fn beats(&self, one: u32, other: u32) -> bool {
        match (self.scores.get(one as usize), self.scores.get(other as usize)) {
            (Some(a), Some(b)) => a > b || (a == b && one < other),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn plays(&self, player: u32) -> bool {
        self.scores.get(player as usize).is_some_and(|score| *score > f64::NEG_INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_best_after_every_change() {
        for size in [1_usize, 2, 3, 7, 8, 100] {
            let mut rng = base::Rng::new(size as u64);
            let mut tournament = Tournament::new(vec![f64::NEG_INFINITY; size]);
            assert_eq!(tournament.winner(), None);
            let mut scores = vec![f64::NEG_INFINITY; size];
            for _ in 0..500 {
                let (player, score) = (rng.below(size as u64) as usize, rng.below(8) as f64 - 4.0);
                let score = if score == -4.0 { f64::NEG_INFINITY } else { score };
                scores[player] = score;
                tournament.set(player as u32, score);
                let mut order: Vec<u32> =
                    (0..size as u32).filter(|p| scores[*p as usize] > f64::NEG_INFINITY).collect();
                order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));
                assert_eq!(tournament.winner(), order.first().copied());
                order.truncate(5);
                assert_eq!(tournament.best(5), order);
            }
        }
    }

    #[test]
    fn an_empty_field_has_no_winner() {
        assert_eq!(Tournament::new(Vec::new()).winner(), None);
    }
}
