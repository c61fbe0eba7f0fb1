//! What events are about, in the words with which an operator chooses among them.

use std::fmt;

/// A kind of object. The number of each stands in files, and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ObjectKind {
    Job = 0,
    /// With what was forgotten of secrets.
    Variable = 1,
    /// Policies, roles, tokens, methods of login.
    Acl = 2,
    Node = 3,
    Deployment = 4,
    Eval = 5,
    Alloc = 6,
    Service = 7,
    /// With the claims of those of storage plugins.
    Volume = 8,
    /// Namespaces, node pools, the scheduler's configuration.
    Cluster = 9,
    Keyring = 10,
    /// Cursors and sinks of the event stream.
    Stream = 11,
}

/// Each with its word.
const WORDS: [(ObjectKind, &str); 12] = [
    (ObjectKind::Job, "job"),
    (ObjectKind::Variable, "variable"),
    (ObjectKind::Acl, "acl"),
    (ObjectKind::Node, "node"),
    (ObjectKind::Deployment, "deployment"),
    (ObjectKind::Eval, "eval"),
    (ObjectKind::Alloc, "alloc"),
    (ObjectKind::Service, "service"),
    (ObjectKind::Volume, "volume"),
    (ObjectKind::Cluster, "cluster"),
    (ObjectKind::Keyring, "keyring"),
    (ObjectKind::Stream, "stream"),
];

impl ObjectKind {
    pub fn word(self) -> &'static str {
        WORDS[self as usize].1
    }

    pub fn from_word(word: &str) -> Option<ObjectKind> {
        WORDS.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }

    /// All words there are.
    pub fn words() -> [&'static str; 12] {
        WORDS.map(|(_, word)| word)
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectKinds(u16);

impl ObjectKinds {
    pub const NONE: ObjectKinds = ObjectKinds(0);

    /// One bit for each kind, by its number.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Bits that stand for no kind are left as they are: a newer release may know them.
    pub const fn from_bits(bits: u16) -> ObjectKinds {
        ObjectKinds(bits)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn has(self, kind: ObjectKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// Whether events of this number are about one of them.
    pub const fn has_event(self, event: u16) -> bool {
        match ObjectKind::of(event) {
            Some(kind) => self.has(kind),
            None => false,
        }
    }

    pub fn words(self) -> Vec<&'static str> {
        WORDS.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, word)| *word).collect()
    }
}

impl FromIterator<ObjectKind> for ObjectKinds {
    fn from_iter<I: IntoIterator<Item = ObjectKind>>(kinds: I) -> ObjectKinds {
        ObjectKinds(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u16))
    }
}

/// `job, variable and acl`.
impl fmt::Display for ObjectKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words().as_slice() {
            [] => f.write_str("no"),
            [one] => f.write_str(one),
            [first @ .., last] => write!(f, "{} and {last}", first.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB_REGISTERED: u16 = 20;

    #[test]
    fn each_kind_stands_where_its_number_says() {
        for (at, (kind, word)) in WORDS.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.word()), (at, word));
            assert_eq!(ObjectKind::from_word(word), Some(kind));
        }
        assert_eq!(ObjectKind::from_word("jobs"), None);
    }

    #[test]
    fn events_are_about_what_the_table_says() {
        let of = ObjectKind::of;
        assert_eq!(of(JOB_REGISTERED), Some(ObjectKind::Job));
        let [job_end_observed, variable_forgotten, policy, binding_rule, csi_claim] =
            [183, 173, 100, 122, 150];
        assert_eq!(of(job_end_observed), Some(ObjectKind::Job));
        assert_eq!(of(variable_forgotten), Some(ObjectKind::Variable));
        assert_eq!([of(policy), of(binding_rule)], [Some(ObjectKind::Acl); 2]);
        let (volume_registered, namespace_upserted) = (70, 28);
        assert_eq!([of(csi_claim), of(volume_registered)], [Some(ObjectKind::Volume); 2]);
        assert_eq!(of(namespace_upserted), Some(ObjectKind::Cluster));
        let [observed, state_chunk_given] = [180, 51];
        assert_eq!([observed, state_chunk_given, u16::MAX].map(of), [None; 3]);
    }

    #[test]
    fn a_set_survives_its_bits_and_reads_as_words() {
        let kinds: ObjectKinds =
            [ObjectKind::Acl, ObjectKind::Job, ObjectKind::Variable].into_iter().collect();
        assert_eq!(ObjectKinds::from_bits(kinds.bits()), kinds);
        assert_eq!(kinds.to_string(), "job, variable and acl");
        assert!(kinds.has_event(JOB_REGISTERED) && !kinds.has(ObjectKind::Node));
        assert_eq!(ObjectKinds::NONE.to_string(), "no");
    }
}
