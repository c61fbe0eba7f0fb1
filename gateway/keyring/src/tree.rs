//! The key tree: keys of variables that follow from one secret, each of which can be erased for ever without another one
//! being touched.
//!
//! A binary tree of 128 levels: the bits of a key's id lead from the root to its leaf, and each node follows from the one
//! above it by a hash that cannot be reversed (a puncturable pseudorandom function: Goldreich, Goldwasser and Micali's). To erase a
//! key is to keep, in place of the nodes on the way to it, those that branch off from that way: up to 128, which
//! lead to all other keys, and never back.
//!
//! In bytes, from the root on, the left half of a node before the right one:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version: 1 |
//! | 1 | 0: everything below is erased; 1: a node, its 32 bytes follow; 2: both halves follow |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use base::Uuid;
use model::SealedKey;

use crate::KeyError;
use crate::secret::seal;

const VERSION: u8 = 1;
/// The bits of an id.
const DEPTH: usize = 128;

/// Secret: whoever has it opens every variable that was not forgotten.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyTree {
    id: Uuid,
    root: Node,
}

#[derive(Clone, PartialEq, Eq)]
enum Node {
    Erased,
    Whole([u8; 32]),
    Split(Box<[Node; 2]>),
}

impl fmt::Debug for KeyTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyTree({})", self.id)
    }
}

impl KeyTree {
    /// # Errors
    /// [`KeyError::Entropy`].
    pub fn generate() -> Result<KeyTree, KeyError> {
        let (mut id, mut root) = ([0; 16], [0; 32]);
        getrandom::fill(&mut id).map_err(|_| KeyError::Entropy)?;
        getrandom::fill(&mut root).map_err(|_| KeyError::Entropy)?;
        Ok(KeyTree { id: Uuid::from_random(id), root: Node::Whole(root) })
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// # Errors
    /// [`KeyError::Erased`].
    fn key(&self, key: Uuid) -> Result<[u8; 32], KeyError> {
        let (mut node, mut depth) = (&self.root, 0);
        loop {
            match node {
                Node::Erased => return Err(KeyError::Erased),
                Node::Whole(secret) => {
                    return Ok((depth..DEPTH).fold(*secret, |above, depth| below(&above, side(key, depth))));
                }
                Node::Split(halves) => node = &halves[side(key, depth)],
            }
            depth += 1;
        }
    }

    /// The tree as it is without these keys.
    #[must_use]
    pub fn without(mut self, keys: &[Uuid]) -> KeyTree {
        keys.iter().for_each(|key| self.erase(*key));
        self
    }

    fn erase(&mut self, key: Uuid) {
        let mut node = &mut self.root;
        for depth in 0..DEPTH {
            if let Node::Whole(secret) = node {
                *node = Node::Split(Box::new([0, 1].map(|side| Node::Whole(below(secret, side)))));
            }
            let Node::Split(halves) = node else { return };
            node = &mut halves[side(key, depth)];
        }
        *node = Node::Erased;
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        write(&self.root, &mut bytes);
        bytes
    }

    /// `None` for bytes that no tree has.
    pub fn from_bytes(id: Uuid, bytes: &[u8]) -> Option<KeyTree> {
        let (&version, mut rest) = bytes.split_first()?;
        let root = read(&mut rest, 0)?;
        (version == VERSION && rest.is_empty()).then_some(KeyTree { id, root })
    }

    /// # Errors
    /// [`KeyError::Public`] for a public key that is none.
    pub fn seal_for(&self, server: Uuid, public: &[u8; 32]) -> Result<SealedKey, KeyError> {
        seal(self.id, &self.to_bytes(), server, public)
    }
}

/// The trees that a server has: the one that variables are encrypted with, and those before it.
#[derive(Debug, Default)]
pub struct KeyTrees(RwLock<BTreeMap<Uuid, KeyTree>>);

impl KeyTrees {
    /// In place of the one with the same id.
    pub fn put(&self, tree: KeyTree) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(tree.id, tree);
    }

    pub fn get(&self, tree: Uuid) -> Option<KeyTree> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&tree).cloned()
    }

    pub fn has(&self, tree: Uuid) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains_key(&tree)
    }

    /// Those that still have one of these keys, as they are without it. They are to be kept on disk before they are
    /// [`KeyTrees::put`].
    pub fn without(&self, keys: &[Uuid]) -> Vec<KeyTree> {
        let trees = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let has = |tree: &&KeyTree| keys.iter().any(|key| tree.key(*key).is_ok());
        trees.values().filter(has).map(|tree| tree.clone().without(keys)).collect()
    }

    /// # Errors
    /// [`KeyError::Tree`], [`KeyError::Erased`].
    pub(crate) fn key(&self, tree: Uuid, key: Uuid) -> Result<[u8; 32], KeyError> {
        let trees = self.0.read().unwrap_or_else(PoisonError::into_inner);
        trees.get(&tree).ok_or(KeyError::Tree(tree))?.key(key)
    }
}

/// On which side of a node at this depth a key is.
fn side(key: Uuid, depth: usize) -> usize {
    usize::from((key.0[depth / 8] >> (7 - depth % 8)) & 1)
}

fn below(node: &[u8; 32], side: usize) -> [u8; 32] {
    *blake3::keyed_hash(node, &[side as u8]).as_bytes()
}

fn write(node: &Node, to: &mut Vec<u8>) {
    match node {
        Node::Erased => to.push(0),
        Node::Whole(secret) => {
            to.push(1);
            to.extend(secret);
        }
        Node::Split(halves) => {
            to.push(2);
            halves.iter().for_each(|half| write(half, to));
        }
    }
}

fn read(bytes: &mut &[u8], depth: usize) -> Option<Node> {
    let (&kind, rest) = bytes.split_first()?;
    *bytes = rest;
    match kind {
        0 => Some(Node::Erased),
        1 => {
            let (secret, rest) = bytes.split_first_chunk::<32>()?;
            *bytes = rest;
            Some(Node::Whole(*secret))
        }
        2 if depth < DEPTH => {
            let left = read(bytes, depth + 1)?;
            Some(Node::Split(Box::new([left, read(bytes, depth + 1)?])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;
    use crate::ServerSecret;

    #[test]
    fn an_erased_key_is_gone_and_all_others_stay_what_they_were() {
        let (whole, mut rng) = (KeyTree::generate().unwrap(), Rng::new(7));
        let keys: Vec<Uuid> = (0..50).map(|_| rng.uuid()).collect();
        let neighbour = {
            let mut id = keys[0];
            id.0[15] ^= 1;
            id
        };
        let mut tree = whole.clone();
        for key in keys.iter().step_by(2) {
            tree.erase(*key);
            tree.erase(*key);
        }
        for (nth, key) in keys.iter().enumerate() {
            let expected = if nth % 2 == 0 { Err(KeyError::Erased) } else { whole.key(*key) };
            assert_eq!(tree.key(*key), expected, "{nth}");
        }
        assert_eq!(tree.key(neighbour), whole.key(neighbour));
        let distinct: std::collections::BTreeSet<_> =
            keys.iter().map(|key| whole.key(*key).unwrap()).collect();
        assert_eq!(distinct.len(), keys.len(), "each key is another one");

        let bytes = tree.to_bytes();
        assert_eq!(KeyTree::from_bytes(tree.id(), &bytes), Some(tree.clone()));
        // Nothing of the way to an erased key is left: not the root, and no node on it.
        let Node::Whole(mut node) = whole.root else { unreachable!() };
        for depth in 0..DEPTH {
            assert!(!bytes.windows(32).any(|window| window == node), "depth {depth}");
            node = below(&node, side(keys[0], depth));
        }
        assert!(!bytes.windows(32).any(|window| window == node), "the key itself");
        for len in (0..100).chain([bytes.len() / 2, bytes.len() - 33, bytes.len() - 1]) {
            assert_eq!(KeyTree::from_bytes(tree.id(), &bytes[..len]), None, "{len} bytes");
        }
        let deep = [&[VERSION], &[2; 200][..]].concat();
        assert_eq!(KeyTree::from_bytes(tree.id(), &deep), None);
    }

    #[test]
    fn a_thousand_erased_keys_fit_into_an_entry_of_the_log() {
        let (mut tree, mut rng) = (KeyTree::generate().unwrap(), Rng::new(1));
        (0..1_024).for_each(|_| tree.erase(rng.uuid()));
        let len = tree.to_bytes().len();
        assert!((3 << 20..5 << 20).contains(&len), "{len} bytes");
    }

    #[test]
    fn a_tree_opens_for_its_server_alone() {
        let [own, other] = [1, 2].map(|byte| ServerSecret::new(1.into(), &[byte; 32]).unwrap());
        let tree = KeyTree::generate().unwrap();
        let sealed = tree.seal_for(own.server(), &own.public()).unwrap();
        assert_eq!(own.open_tree(tree.id(), &sealed.bytes), Ok(tree.clone()));
        assert_eq!(other.open_tree(tree.id(), &sealed.bytes), Err(KeyError::Open(tree.id())));
        assert_eq!(own.open_tree(9.into(), &sealed.bytes), Err(KeyError::Open(9.into())));
    }
}
