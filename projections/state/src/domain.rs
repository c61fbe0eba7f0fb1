use base::StableHash;

/// Keeps hashes of different sorts of things apart. Numbers are frozen, like everything that goes into a hash: the
/// results stand in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Domain {
    Document = 1,
    NodeHot = 2,
    NodeCold = 3,
    Class = 4,
    Job = 5,
    Eval = 6,
    Alloc = 7,
    Request = 8,
    Cluster = 9,
    Pools = 10,
    Deployment = 11,
    Volume = 12,
    Namespaces = 13,
    Keyring = 14,
    AclPolicies = 15,
    AclRoles = 16,
    AclTokens = 17,
    Variables = 18,
    AuthMethods = 24,
    BindingRules = 25,
    Services = 26,
    CsiClaims = 28,
    EventCursors = 29,
    EventSinks = 30,
    Erasure = 31,
    Recording = 32,
    Epoch = 33,
    CsiExpansions = 34,
    DroppedHistory = 35,
}

impl Domain {
    pub fn row(self, row: u32) -> StableHash {
        let mut hash = StableHash::new(self as u64);
        hash.word(u64::from(row));
        hash
    }
}
