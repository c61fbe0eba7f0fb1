//! Which of the readers that a stream is split among gets an event.

use base::StableHash;

use super::entries::{ALLOCATION, DEPLOYMENT, EVALUATION, Entry, JOB, SERVICE};

/// Keeps these hashes apart from others.
const DOMAIN: u64 = 0x0073_6861_7265;

/// One of `of` readers. All events of a job go to the same one, so that each sees the order of what happened to its jobs; what
/// belongs to no job goes by its own key. How it is chosen never changes: a position that one of them has acknowledged
/// stands for its events alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From zero.
    pub member: u32,
    pub of: u32,
}

impl Share {
    pub(crate) fn has(self, entry: &Entry) -> bool {
        let mut hash = StableHash::new(DOMAIN);
        let (kind, key) = subject_in_order(entry.topic, &entry.key, &entry.filter_keys);
        hash.text(kind);
        hash.text(&entry.namespace);
        hash.text(key);
        hash.finish() % u64::from(self.of.max(1)) == u64::from(self.member)
    }
}

/// The topic and the key of what an event is to stay in order with: those of its job, if it belongs to one, and its own
/// otherwise.
pub fn subject_in_order<'a>(topic: &'a str, key: &'a str, filter_keys: &'a [String]) -> (&'a str, &'a str) {
    match topic {
        // The job is the first of what they can be found by.
        EVALUATION | ALLOCATION | DEPLOYMENT | SERVICE => {
            filter_keys.first().map_or((topic, key), |job| (JOB, job.as_str()))
        }
        _ => (topic, key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::{NODE, Object};

    fn entry(topic: &'static str, namespace: &str, key: &str, filter_keys: &[&str]) -> Entry {
        Entry {
            topic,
            kind: "",
            key: key.to_string(),
            namespace: namespace.to_string(),
            filter_keys: filter_keys.iter().map(ToString::to_string).collect(),
            object: Object::Pool(Box::default()),
            command: 0,
            fact: 0,
        }
    }

    fn member(of: u32, entry: &Entry) -> u32 {
        let having: Vec<u32> = (0..of).filter(|member| Share { member: *member, of }.has(entry)).collect();
        assert_eq!(having.len(), 1, "each event is for one reader: {entry:?}");
        having[0]
    }

    /// Readers acknowledge by it: another number here means that some lose events and others get them twice.
    #[test]
    fn who_gets_an_event_never_changes() {
        let jobs = ["web", "api", "db", "cache", "batch-1", "batch-2", "a", "ż"];
        let chosen = jobs.map(|job| member(4, &entry(JOB, "default", job, &[])));
        assert_eq!(chosen, [1, 2, 0, 2, 1, 0, 3, 2]);
    }

    #[test]
    fn what_belongs_to_a_job_goes_where_its_job_goes() {
        for number in 0..200 {
            let job = format!("job-{number}");
            let own = member(7, &entry(JOB, "prod", &job, &[]));
            for topic in [EVALUATION, ALLOCATION, DEPLOYMENT, SERVICE] {
                let id = format!("{topic}-{number}");
                assert_eq!(member(7, &entry(topic, "prod", &id, &[&job, "else"])), own, "{topic} of {job}");
            }
        }
        // A job of that name elsewhere, and what has the name of a job, are something else.
        let same = |other: &dyn Fn(&str) -> Entry| {
            (0..64)
                .map(|number| format!("job-{number}"))
                .all(|job| member(64, &other(&job)) == member(64, &entry(JOB, "prod", &job, &[])))
        };
        assert!(!same(&|job| entry(JOB, "default", job, &[])));
        assert!(!same(&|job| entry(NODE, "prod", job, &[])));
    }

    #[test]
    fn every_reader_gets_a_part_of_about_the_same_size() {
        let mut counts = [0; 5];
        for number in 0..5_000 {
            counts[member(5, &entry(JOB, "default", &format!("job-{number}"), &[])) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }
}
