use std::fmt;
use std::sync::Arc;

use crate::Uuid;

/// 64 branches on two levels: 4,096 shards. At a million entries a write copies about 250 of them.
const FAN: usize = 64;

/// What finds a row by its public name.
pub trait Key: Ord + Clone {
    /// Where among the 4,096 shards the key belongs. Ids keep their order here, so that ranges are adjacent.
    fn shard(&self) -> u16;
}

impl Key for Uuid {
    fn shard(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]]) >> 4
    }
}

type Shard<K> = Arc<Vec<(K, u32)>>;
type Branch<K> = Arc<Vec<Shard<K>>>;

/// A copy-on-write map from public names to row numbers, in the order of the shards and then of the names.
#[derive(Clone)]
pub struct IdMap<K> {
    root: Arc<Vec<Branch<K>>>,
    len: usize,
}

impl<K> Default for IdMap<K> {
    fn default() -> Self {
        let leaf: Shard<K> = Arc::default();
        let branch: Branch<K> = Arc::new(vec![leaf; FAN]);
        IdMap { root: Arc::new(vec![branch; FAN]), len: 0 }
    }
}

impl<K: fmt::Debug> fmt::Debug for IdMap<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdMap({} entries)", self.len)
    }
}

impl<K: PartialEq> PartialEq for IdMap<K> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.entries().eq(other.entries())
    }
}

impl<K> IdMap<K> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Neither was written to since one was cloned from the other.
    pub fn is_shared(&self, other: &IdMap<K>) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    fn entries(&self) -> impl Iterator<Item = &(K, u32)> {
        self.root.iter().flat_map(|branch| branch.iter()).flat_map(|shard| shard.iter())
    }

    /// Every row number; for ids, in the order of the ids.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        self.entries().map(|(_, row)| *row)
    }
}

impl<K: Key> IdMap<K> {
    pub fn get(&self, key: &K) -> Option<u32> {
        let shard = self.shard(key);
        shard.binary_search_by(|(k, _)| k.cmp(key)).ok().map(|at| shard[at].1)
    }

    /// All at once, from names in any order; `None` if a name stands for two rows.
    pub fn from_entries(entries: Vec<(K, u32)>) -> Option<IdMap<K>> {
        let len = entries.len();
        let mut counts = vec![0_usize; FAN * FAN];
        entries.iter().for_each(|(key, _)| counts[usize::from(key.shard())] += 1);
        let mut shards: Vec<Vec<(K, u32)>> = counts.into_iter().map(Vec::with_capacity).collect();
        for entry in entries {
            shards[usize::from(entry.0.shard())].push(entry);
        }
        for shard in &mut shards {
            shard.sort_unstable();
            if shard.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return None;
            }
        }
        let empty: Shard<K> = Arc::default();
        let shared = |shard: Vec<(K, u32)>| if shard.is_empty() { empty.clone() } else { Arc::new(shard) };
        let mut shards = shards.into_iter().map(shared);
        let branches = (0..FAN).map(|_| Arc::new(shards.by_ref().take(FAN).collect()));
        Some(IdMap { root: Arc::new(branches.collect()), len })
    }

    /// Adds a name, or points it to another row.
    pub fn insert(&mut self, key: K, row: u32) {
        let shard = self.shard_mut(&key);
        match shard.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(at) => shard[at].1 = row,
            Err(at) => {
                shard.insert(at, (key, row));
                self.len += 1;
            }
        }
    }

    pub fn remove(&mut self, key: &K) -> Option<u32> {
        let at = self.shard(key).binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        self.len -= 1;
        Some(self.shard_mut(key).remove(at).1)
    }

    fn shard(&self, key: &K) -> &Vec<(K, u32)> {
        let shard = usize::from(key.shard());
        &self.root[shard / FAN][shard % FAN]
    }

    fn shard_mut(&mut self, key: &K) -> &mut Vec<(K, u32)> {
        let shard = usize::from(key.shard());
        let branch = &mut Arc::make_mut(&mut self.root)[shard / FAN];
        Arc::make_mut(&mut Arc::make_mut(branch)[shard % FAN])
    }
}

impl<K: Key + Into<Uuid> + Copy> IdMap<K> {
    /// Rows whose id's text begins with `prefix`: lowercase hex digits and dashes.
    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = u32> {
        let least = least_with(prefix);
        let first = least.map_or(FAN * FAN, |id| usize::from(id.shard()));
        let shards = (first..FAN * FAN).flat_map(|n| self.root[n / FAN][n % FAN].iter());
        let prefix = prefix.to_string();
        shards
            .skip_while(move |(id, _)| least.is_some_and(|least| (*id).into() < least))
            .take_while(move |(id, _)| (*id).into().to_string().starts_with(&prefix))
            .map(|(_, row)| *row)
    }
}

/// The least id whose text may begin with `prefix`; `None` when no id's can.
fn least_with(prefix: &str) -> Option<Uuid> {
    let mut bytes = [0_u8; 16];
    let mut digits = 0;
    for (at, c) in prefix.chars().enumerate() {
        let dash = matches!(at, 8 | 13 | 18 | 23);
        if dash != (c == '-') || c.is_ascii_uppercase() || at >= 36 {
            return None;
        }
        if !dash {
            let digit = c.to_digit(16)? as u8;
            bytes[digits / 2] |= if digits % 2 == 0 { digit << 4 } else { digit };
            digits += 1;
        }
    }
    Some(Uuid(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn filled(count: u32) -> (IdMap<Uuid>, Vec<Uuid>) {
        let mut rng = Rng::new(3);
        let ids: Vec<Uuid> = (0..count).map(|_| rng.uuid()).collect();
        let mut map = IdMap::default();
        for (row, id) in ids.iter().enumerate() {
            map.insert(*id, row as u32);
        }
        (map, ids)
    }

    #[test]
    fn names_find_their_rows_and_clones_stay_as_they_were() {
        let (mut map, ids) = filled(10_000);
        let before = map.clone();
        assert!(ids.iter().enumerate().all(|(row, id)| map.get(id) == Some(row as u32)));
        assert_eq!(map.remove(&ids[7]), Some(7));
        assert_eq!((map.get(&ids[7]), before.get(&ids[7])), (None, Some(7)));
        assert_eq!((map.len(), before.len()), (9_999, 10_000));
    }

    #[test]
    fn all_at_once_is_as_one_by_one() {
        for count in [0, 1, 5_000] {
            let (mut map, ids) = filled(count);
            let entries = (0..).zip(&ids).map(|(row, id)| (*id, row)).collect();
            let mut whole = IdMap::from_entries(entries).unwrap();
            assert!(whole == map, "{count} entries");
            let new = Rng::new(9).uuid();
            whole.insert(new, 7);
            map.insert(new, 7);
            assert!(whole == map && whole.get(&new) == Some(7));
        }
        let (_, ids) = filled(100);
        let twice = ids.iter().chain(&ids[50..51]).map(|id| (*id, 1)).collect();
        assert!(IdMap::from_entries(twice).is_none());
    }

    #[test]
    fn rows_come_in_the_order_of_their_ids() {
        let (map, ids) = filled(5_000);
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        assert!(map.rows().map(|row| ids[row as usize]).eq(sorted));
    }

    #[test]
    fn a_prefix_finds_exactly_the_ids_that_begin_with_it() {
        let (map, ids) = filled(5_000);
        for length in [0, 1, 2, 3, 4, 8, 9, 12, 36] {
            let prefix = &ids[42].to_string()[..length];
            let mut expected: Vec<Uuid> =
                ids.iter().copied().filter(|id| id.to_string().starts_with(prefix)).collect();
            expected.sort_unstable();
            let found: Vec<Uuid> = map.with_prefix(prefix).map(|row| ids[row as usize]).collect();
            assert_eq!(found, expected, "{prefix}");
        }
        assert_eq!(map.with_prefix("xyz").count(), 0);
        assert_eq!(map.with_prefix("ABCD").count(), 0);
    }
}
