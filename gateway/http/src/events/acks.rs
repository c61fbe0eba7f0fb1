//! Acknowledgements of cursors, put together: readers may say after each event how far they have come, and the log need not
//! hold every step of that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Uuid;
use control::Receipt;
use model::{Command, EventPosition, RequestId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Write, random};

/// The time from one fact about a cursor, or a member of one that is split, to the next, at least. The first of an idle one
/// does not wait.
const ACK_EVERY: Duration = Duration::from_millis(100);
/// Callers that wait for one of them; one more is answered 429.
const WAITING_MAX: usize = 256;

/// A cursor, and which of the readers it is that the cursor is split among.
type Whose = (String, Option<u32>);

/// The acknowledgements that wait. There are no more of them than there are cursors and members: only what is known comes here.
#[derive(Clone, Default)]
pub(crate) struct Acks(Arc<Mutex<BTreeMap<Whose, Option<Group>>>>);

/// What one fact will say, and who waits for it.
struct Group {
    furthest: EventPosition,
    /// Of who has come furthest.
    write: Write,
    waiting: Vec<oneshot::Sender<Result<Receipt, Failure>>>,
}

impl Acks {
    /// Returns once it is committed that everything up to there was acknowledged. The caller may acknowledge.
    ///
    /// # Errors
    /// 429 when too many wait; the rejection, or why the outcome is not known.
    pub(super) async fn acknowledge(
        &self,
        server: &AppState,
        whose: Whose,
        after: EventPosition,
        write: Write,
    ) -> Result<Receipt, Failure> {
        let (sender, answer) = oneshot::channel();
        let is_first = self.join(&whose, after, write, sender)?;
        if is_first {
            // Not a part of the request: others wait for it, and this caller may hang up.
            tokio::spawn(self.clone().commit(server.clone(), whose));
        }
        let lost = |_| Failure::internal("the acknowledgement was given up: repeat it");
        answer.await.map_err(lost)?
    }

    /// Whether nobody is at work for the cursor yet.
    fn join(
        &self,
        whose: &Whose,
        after: EventPosition,
        write: Write,
        sender: oneshot::Sender<Result<Receipt, Failure>>,
    ) -> Result<bool, Failure> {
        let mut all = self.0.lock();
        let is_first = !all.contains_key(whose);
        let group = all.entry(whose.clone()).or_default();
        match group {
            Some(group) if group.waiting.len() >= WAITING_MAX => {
                let name = &whose.0;
                let text = format!("{WAITING_MAX} acknowledgements of cursor {name:?} wait: try again later");
                return Err(Failure::too_many(text));
            }
            Some(group) => {
                if after > group.furthest {
                    (group.furthest, group.write) = (after, write);
                }
                group.waiting.push(sender);
            }
            None => *group = Some(Group { furthest: after, write, waiting: vec![sender] }),
        }
        Ok(is_first)
    }

    /// Commits what was put together, a fact at a time, until nobody has come meanwhile.
    async fn commit(self, server: AppState, whose: Whose) {
        while let Some(Group { furthest, write, waiting }) = self.next(&whose) {
            let next = tokio::time::Instant::now() + ACK_EVERY;
            // It stands for several requests. To say it twice does no harm, so it needs the name of none.
            let write = Write {
                request: RequestId(Uuid::from_random(random())),
                said: RequestId::default(),
                ..write
            };
            let done = server.submit(&write, command(&whose.0, whose.1, furthest)).await;
            for sender in waiting {
                // Who hung up does not want to know.
                drop(sender.send(done.clone()));
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// What waits now; without any, nobody is at work for the cursor any more.
    fn next(&self, whose: &Whose) -> Option<Group> {
        let mut all = self.0.lock();
        let group = all.get_mut(whose).and_then(Option::take);
        if group.is_none() {
            all.remove(whose);
        }
        group
    }
}

/// What says that a reader has done with everything up to there.
pub(super) fn command(name: &str, member: Option<u32>, after: EventPosition) -> Command {
    let name = name.to_string();
    match member {
        Some(member) => Command::AckEventCursorMember { name, member, after },
        None => Command::AckEventCursor { name, after },
    }
}
