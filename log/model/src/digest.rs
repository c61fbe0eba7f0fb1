/// One number for the contents of each table: equal states have equal digests, on every server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    pub nodes: u64,
    pub jobs: u64,
    pub evals: u64,
    pub allocs: u64,
    pub deployments: u64,
    pub requests: u64,
    /// What belongs to no table: the cluster's id, the time, and when each table last changed.
    pub cluster: u64,
}

impl Digest {
    /// Bytes on disk.
    pub const LEN: usize = 56;

    /// Each table's name and number, in the order in which they are written.
    pub const fn tables(&self) -> [(&'static str, u64); 7] {
        [
            ("nodes", self.nodes),
            ("jobs", self.jobs),
            ("evals", self.evals),
            ("allocs", self.allocs),
            ("deployments", self.deployments),
            ("requests", self.requests),
            ("cluster", self.cluster),
        ]
    }

    /// The first table in which two states differ, with both its numbers.
    pub fn difference(&self, other: &Digest) -> Option<(&'static str, u64, u64)> {
        let pairs = self.tables().into_iter().zip(other.tables());
        pairs.filter(|(own, other)| own != other).map(|((name, own), (_, other))| (name, own, other)).next()
    }

    pub fn to_bytes(&self) -> [u8; Digest::LEN] {
        let mut bytes = [0; Digest::LEN];
        for (at, (_, number)) in self.tables().into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Digest::LEN]) -> Digest {
        let number =
            |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("8 bytes were sliced"));
        Digest {
            nodes: number(0),
            jobs: number(1),
            evals: number(2),
            allocs: number(3),
            deployments: number(4),
            requests: number(5),
            cluster: number(6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_bytes() {
        let digest =
            Digest { nodes: 1, jobs: 2, evals: 3, allocs: 4, deployments: 5, requests: 6, cluster: u64::MAX };
        assert_eq!(Digest::from_bytes(&digest.to_bytes()), digest);
    }

    #[test]
    fn the_table_that_differs_is_named() {
        let digest = Digest { evals: 4, ..Digest::default() };
        assert_eq!(digest.difference(&digest), None);
        assert_eq!(digest.difference(&Digest::default()), Some(("evals", 4, 0)));
    }
}
