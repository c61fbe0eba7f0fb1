use std::collections::BTreeMap;
use std::time::Duration;

use model::event::ObservationGap;
use model::{Command, OBSERVED_MAX, Observation, Observe, ObservedKey};
use sdk::{Client, Error, EventQuery, Events};
use tokio::time::{Instant, sleep, timeout};

use crate::document::{Hint, Needs, TABLES, hint, is_recorded, needs, rank};
use crate::list::{fetch, now};
use crate::{Log, RecordError, Report};

/// The first wait after a cluster could not be read; each further one is twice as long.
const AGAIN_MIN: Duration = Duration::from_secs(1);

/// The longest such wait. A recorder goes on trying for as long as it runs.
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// How long a stream may take to send what its server still has: it sends that at once.
const BACKLOG_WAIT: Duration = Duration::from_secs(2);

/// How long to wait for more events before those that came are recorded: one entry of the log holds what comes together.
const GATHER: Duration = Duration::from_millis(10);

/// How many indexes before the last one that was seen the stream is asked for: if it has one of them, nothing in between is
/// missing. Not every index has events, and a server of ours has all that there ever were.
const LOOK_BACK: u64 = 2000;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the other cluster, as the log names it.
    pub source: String,
    /// How often everything is listed again, beside the stream.
    pub list_every: Duration,
}

/// One object as it was read.
pub(crate) struct Read {
    pub key: ObservedKey,
    /// The other cluster's index of its last change; zero for what is gone.
    pub index: u64,
    pub document: Observation,
}

/// Follows another cluster.
pub struct Recorder<L> {
    pub(crate) client: Client,
    pub(crate) log: L,
    settings: Settings,
    /// Indexes at which objects were last read: as many as the other cluster has. Empty after a start, then all of it is read
    /// again, which changes nothing where nothing changed.
    pub(crate) known: BTreeMap<ObservedKey, u64>,
    /// Indexes at which tables were last listed.
    pub(crate) listed: [u64; TABLES],
    /// The newest index that was seen anywhere.
    pub(crate) newest: u64,
    /// What was left out because it names something that is not known. As many as the lists name at most.
    pub(crate) waiting: BTreeMap<ObservedKey, Needs>,
    pub(crate) report: Box<dyn FnMut(Report) + Send>,
}

impl<L: Log> Recorder<L> {
    pub fn new(
        client: Client,
        log: L,
        settings: Settings,
        report: impl FnMut(Report) + Send + 'static,
    ) -> Recorder<L> {
        Recorder {
            client,
            log,
            settings,
            known: BTreeMap::new(),
            listed: [0; TABLES],
            newest: 0,
            waiting: BTreeMap::new(),
            report: Box::new(report),
        }
    }

    /// Goes on until it cannot: a cluster that does not answer is tried again.
    ///
    /// # Errors
    /// [`RecordError`]; it never ends otherwise.
    pub async fn run(mut self) -> Result<std::convert::Infallible, RecordError> {
        self.begin().await?;
        let mut again = AGAIN_MIN;
        loop {
            let began = Instant::now();
            let why = match self.follow().await {
                Err(RecordError::Read { source, .. }) if may_pass(&source) => source.to_string(),
                Err(error) => return Err(error),
                Ok(()) => "the stream of events ended".to_string(),
            };
            if began.elapsed() > AGAIN_MAX {
                again = AGAIN_MIN;
            }
            (self.report)(Report::Broken { why, again_in_secs: again.as_secs() });
            sleep(again).await;
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Marks the log as a recording, before anything is read.
    ///
    /// # Errors
    /// It is none, and cannot become one.
    pub async fn begin(&mut self) -> Result<(), RecordError> {
        self.newest = self.log.state().recording.as_ref().map_or(0, |recording| recording.index);
        self.submit(Vec::new()).await
    }

    /// Reads the other cluster once, and records what differs.
    ///
    /// # Errors
    /// It cannot be read, or nothing can be written.
    pub async fn catch_up(&mut self) -> Result<(), RecordError> {
        let newest = self.newest_index().await?;
        self.note_return(newest).await?;
        self.list(newest).await
    }

    /// Subscribes, lists, and follows until the connection ends.
    async fn follow(&mut self) -> Result<(), RecordError> {
        let since = self.newest;
        let index = if since == 0 { 0 } else { since.saturating_sub(LOOK_BACK).max(1) };
        let query = EventQuery { index, namespace: "*".to_string(), ..EventQuery::default() };
        let read = |source| RecordError::Read { what: "the stream of events", source };
        let mut stream = match self.client.events(&query).await {
            Ok(stream) => stream,
            // Without a stream, or without the place in it, the lists still say what is.
            Err(source) if may_pass(&source) => {
                self.catch_up().await?;
                let query = EventQuery { index: 0, ..query };
                self.client.events(&query).await.map_err(read)?
            }
            Err(source) => return Err(read(source)),
        };
        let newest = self.newest_index().await?;
        let returned = self.note_return(newest).await?;
        if !returned && since > 0 && newest.into_iter().max() > Some(since) {
            self.catch_up_by(&mut stream, since, &newest).await?;
        }
        // Catching up may have taken a while.
        let newest = self.newest_index().await?;
        self.list(newest).await?;
        let mut listed = Instant::now();
        loop {
            let left = self.settings.list_every.saturating_sub(listed.elapsed());
            match timeout(left, stream.next()).await {
                Ok(Ok(Some(events))) => {
                    let hints = gather(&mut stream, events).await.map_err(read)?;
                    self.take_hints(hints).await?;
                }
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(source)) => return Err(read(source)),
                Err(_) => {
                    self.catch_up().await?;
                    listed = Instant::now();
                }
            }
        }
    }

    /// Takes from the stream what happened while nobody read. If it does not begin with what was seen already, something may
    /// be missing: the server keeps few events.
    async fn catch_up_by(
        &mut self,
        stream: &mut Events,
        since: u64,
        newest: &[u64; TABLES],
    ) -> Result<(), RecordError> {
        let newest = newest.iter().copied().max().unwrap_or_default();
        let first = match timeout(BACKLOG_WAIT, stream.next()).await {
            Ok(Ok(first)) => first,
            Ok(Err(source)) if source.is_transient() => {
                return Err(RecordError::Read { what: "the stream of events", source });
            }
            Ok(Err(_)) | Err(_) => None,
        };
        let begins = first.as_ref().map(|first| first.index);
        if begins.is_none_or(|begins| begins > since) {
            let to = begins.unwrap_or(newest);
            let reason = "nobody read in between, and the stream of events does not go back that far";
            self.note_gap(since, to, reason).await?;
        }
        let mut next = first;
        while let Some(events) = next {
            let index = events.index;
            // What was seen before would bring back what was then.
            if index > since {
                self.take_hints(events.events.iter().filter_map(hint).collect()).await?;
            }
            if index >= newest {
                break;
            }
            next = match timeout(BACKLOG_WAIT, stream.next()).await {
                Ok(events) => {
                    events.map_err(|source| RecordError::Read { what: "the stream of events", source })?
                }
                Err(_) => None,
            };
        }
        Ok(())
    }

    /// The index of the cluster, or of one of its tables, went back: it was restored, or is another one. Everything is read
    /// anew then. Whether that was so.
    async fn note_return(&mut self, newest: [u64; TABLES]) -> Result<bool, RecordError> {
        let went_back = newest.iter().zip(&self.listed).any(|(newest, listed)| newest < listed);
        let highest = newest.into_iter().max().unwrap_or_default();
        if !went_back && highest >= self.newest {
            return Ok(false);
        }
        let from = self.newest;
        self.known.clear();
        self.waiting.clear();
        (self.listed, self.newest) = ([0; TABLES], highest);
        let reason = "the index went back: the cluster was restored, or is another one";
        self.note_gap(from, highest, reason).await?;
        Ok(true)
    }

    async fn note_gap(&mut self, from: u64, to: u64, reason: &str) -> Result<(), RecordError> {
        let (source, reason) = (self.settings.source.clone(), reason.to_string());
        (self.report)(Report::Gap { from, to, reason: reason.clone() });
        let gap = ObservationGap { source, from, to, reason };
        Ok(self.log.submit(Command::NoteObservationGap(Box::new(gap))).await?)
    }

    /// Records what events say, in the order of their indexes; what was read or listed later already is passed over.
    async fn take_hints(&mut self, mut hints: Vec<Hint>) -> Result<(), RecordError> {
        hints.sort_by_key(|hint| (hint.index, rank(&hint.key)));
        let events = hints.len();
        let mut reads = Vec::new();
        for Hint { key, index, document } in hints {
            let known = self.known.get(&key).copied();
            let listed = self.listed[rank(&key)];
            if known.map_or(listed, |known| known.max(listed)) >= index {
                continue;
            }
            self.newest = self.newest.max(index);
            // An event shows an allocation without its job: that is enough for one that is known.
            let document = document.filter(|document| {
                !matches!(document, Observation::Alloc(_)) || is_recorded(&self.log.state(), &key)
            });
            if let Some(document) = document {
                self.known.insert(key.clone(), index);
                reads.push(Read { key, index, document });
                continue;
            }
            // What comes before it must be in the state when it is read.
            self.record(std::mem::take(&mut reads)).await?;
            self.read(key, index).await?;
        }
        self.record(reads).await?;
        self.retry().await?;
        if events > 0 {
            (self.report)(Report::Followed { index: self.newest, events });
        }
        Ok(())
    }

    async fn read(&mut self, key: ObservedKey, index: u64) -> Result<(), RecordError> {
        let read = |source: Error| RecordError::Read { what: "an object that changed", source };
        let document = fetch(&self.client, &key).await.map_err(read)?;
        let index = match document {
            // A job that is gone may have to wait for its allocations: the next list sees it again.
            Observation::Gone(_) => 0,
            _ => index,
        };
        self.record(vec![Read { key, index, document }]).await
    }

    /// Reads what was left out again, once there is what it names.
    pub(crate) async fn retry(&mut self) -> Result<(), RecordError> {
        let state = self.log.state();
        let ready = self.waiting.iter().filter(|(_, needs)| needs.are_met(&state));
        let ready: Vec<ObservedKey> = ready.map(|(key, _)| key.clone()).collect();
        for key in ready {
            self.waiting.remove(&key);
            let read = |source: Error| RecordError::Read { what: "an object that was left out", source };
            let document = fetch(&self.client, &key).await.map_err(read)?;
            self.record(vec![Read { key, index: 0, document }]).await?;
        }
        Ok(())
    }

    pub(crate) async fn record(&mut self, mut reads: Vec<Read>) -> Result<(), RecordError> {
        while !reads.is_empty() {
            let rest = reads.split_off(reads.len().min(OBSERVED_MAX));
            let of = |read: &Read| Some((read.key.clone(), needs(&read.document)?));
            let needed: Vec<(ObservedKey, Needs)> = reads.iter().filter_map(of).collect();
            let mut documents = Vec::with_capacity(reads.len());
            for Read { key, index, document } in reads {
                match index {
                    0 => drop(self.known.remove(&key)),
                    index => drop(self.known.insert(key, index)),
                }
                documents.push(document);
            }
            self.submit(documents).await?;
            let state = self.log.state();
            for (key, needs) in needed {
                if !is_recorded(&state, &key) && !needs.are_met(&state) {
                    self.known.remove(&key);
                    self.waiting.insert(key, needs);
                }
            }
            reads = rest;
        }
        Ok(())
    }

    async fn submit(&mut self, documents: Vec<Observation>) -> Result<(), RecordError> {
        let (source, index) = (self.settings.source.clone(), self.newest);
        let observe = Observe { source, index, seen: now(), documents };
        Ok(self.log.submit(Command::Observe(Box::new(observe))).await?)
    }
}

/// The same call may succeed later: everything but that the token may not, and that the answer is not one of Nomad's API.
fn may_pass(error: &Error) -> bool {
    error.is_transient()
        || matches!(error, Error::Status { code, .. } if !matches!(code, 401 | 403))
        || matches!(error, Error::Stream(_) | Error::Ended { .. })
}

/// The events that came with these, or right after them.
async fn gather(stream: &mut Events, first: api::Events) -> Result<Vec<Hint>, Error> {
    let mut hints: Vec<Hint> = first.events.iter().filter_map(hint).collect();
    while hints.len() < OBSERVED_MAX {
        match timeout(GATHER, stream.next()).await {
            Ok(Ok(Some(events))) => hints.extend(events.events.iter().filter_map(hint)),
            // The next read of the stream finds its end again.
            Ok(Ok(None)) | Err(_) => break,
            Ok(Err(_)) => break,
        }
    }
    Ok(hints)
}
