//! What an archive sees of a bucket.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use futures_util::future::join_all;
use journal::store::{File, Files};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::{Builder, Runtime};

use crate::Settings;
use crate::client::{Client, Failure, Listed};

/// Objects whose ends are read at the same time when an archive is opened: it looks at each. No more ends are held than of so
/// many objects, and those of the few that it keeps open.
pub const AHEAD: usize = 32;
/// What is kept of an open object: its beginning and its end are read more than once, and say what is in between.
const HEAD: u64 = 128;
const TAIL: u64 = 4 << 10;

/// Objects whose keys begin with one prefix, as the files of an archive. Names have no slash.
pub struct Bucket {
    /// What keys begin with, with a slash.
    prefix: String,
    calls: Arc<Calls>,
    /// Files that are not named yet: they are in memory alone.
    unfinished: Mutex<BTreeMap<String, Arc<Unfinished>>>,
    ahead: Mutex<Ahead>,
}

/// Calls from threads that wait for them.
struct Calls {
    client: Client,
    /// None once it is dropped.
    runtime: Option<Runtime>,
}

/// What is about to be opened.
#[derive(Default)]
struct Ahead {
    /// In the order of the list; each is looked at once.
    listed: Vec<Listed>,
    objects: BTreeMap<String, Object>,
}

/// An object, with both of its ends.
struct Object {
    calls: Arc<Calls>,
    key: String,
    bytes: u64,
    head: Bytes,
    tail: Bytes,
}

struct Unfinished(RwLock<Vec<u8>>);

impl Bucket {
    /// Calls nobody yet. `own` is this server's part of the bucket: others of the cluster have archives of their own.
    ///
    /// # Errors
    /// There are no credentials, or the settings make no address.
    pub fn new(settings: &Settings, own: &str) -> Result<Bucket, String> {
        let client = Client::new(settings)?;
        let prefix = match settings.address.prefix.as_str() {
            "" => format!("{own}/"),
            prefix => format!("{prefix}/{own}/"),
        };
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("archive-calls").enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let calls = Arc::new(Calls { client, runtime: Some(runtime) });
        Ok(Bucket { prefix, calls, unfinished: Mutex::default(), ahead: Mutex::default() })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Reads the ends of the next objects of the list, this one first. None for one that the list does not have, or that was
    /// opened before.
    fn look_ahead(&self, key: &str) -> io::Result<Option<Object>> {
        if let Some(object) = self.ahead.lock().objects.remove(key) {
            return Ok(Some(object));
        }
        let next: Vec<Listed> = {
            let listed = &mut self.ahead.lock().listed;
            let Some(at) = listed.iter().position(|object| object.key == key) else { return Ok(None) };
            listed.drain(at..listed.len().min(at + AHEAD)).collect()
        };
        let calls = self.calls.clone();
        let read = self.calls.wait(async move {
            join_all(next.into_iter().map(|one| Object::read(calls.clone(), one))).await
        })?;
        let mut ahead = self.ahead.lock();
        // What failed is tried again when it is opened.
        ahead.objects = read.into_iter().flatten().map(|object| (object.key.clone(), object)).collect();
        Ok(ahead.objects.remove(key))
    }

    fn begin(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let file = Arc::new(Unfinished(RwLock::new(vec![0; bytes])));
        self.unfinished.lock().insert(name.to_string(), file.clone());
        Ok(file)
    }
}

impl Files for Bucket {
    /// A store that does not answer does not stop a server: it begins without what is archived, and says so. One that refuses is
    /// set up wrongly.
    fn list(&self) -> io::Result<Vec<String>> {
        let (calls, prefix) = (self.calls.clone(), self.prefix.clone());
        let mut listed = match self.calls.wait(async move { calls.client.list(&prefix).await })? {
            Ok(listed) => listed,
            Err(Failure::Unavailable(why)) => {
                tracing::error!(
                    why,
                    "the store of the archive does not answer: what it holds cannot be read before the next start"
                );
                Vec::new()
            }
            Err(refused) => return Err(refused.into()),
        };
        let name = |object: &Listed| object.key.strip_prefix(&self.prefix).map(str::to_string);
        listed.retain(|object| name(object).is_some_and(|name| !name.is_empty() && !name.contains('/')));
        let names = listed.iter().filter_map(name).collect();
        *self.ahead.lock() = Ahead { listed, objects: BTreeMap::new() };
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.unfinished.lock().get(name) {
            return Ok(file.clone());
        }
        let key = self.key(name);
        if let Some(object) = self.look_ahead(&key)? {
            return Ok(Arc::new(object));
        }
        let calls = self.calls.clone();
        let object = self.calls.wait(async move {
            let found = calls.client.list(&key).await?.into_iter().find(|object| object.key == key);
            match found {
                Some(found) => Object::read(calls.clone(), found).await.map_err(io::Error::from),
                None => Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no object {key}"))),
            }
        })?;
        Ok(Arc::new(object?))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.begin(name, bytes)
    }

    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.begin(name, bytes)
    }

    /// Makes the object, and reads it back: what is removed from the log after this has to be there.
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.unfinished.lock().get(from).cloned();
        let file =
            file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{from} was not made")))?;
        let (calls, key) = (self.calls.clone(), self.key(to));
        let body = Bytes::from(file.0.read().clone());
        self.calls.wait(async move {
            calls.client.put(&key, body.clone()).await?;
            match calls.client.read(&key, 0, body.len()).await? == body {
                true => Ok(()),
                false => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{key} is not what was put there"),
                )),
            }
        })??;
        self.unfinished.lock().remove(from);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.unfinished.lock().remove(name).is_some() {
            return Ok(());
        }
        let (calls, key) = (self.calls.clone(), self.key(name));
        self.calls.wait(async move { calls.client.remove(&key).await })?.map_err(io::Error::from)
    }

    /// What the store has answered stays.
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Calls {
    /// Waits for it on this thread, whatever thread that is. Each call has an end: `client.rs` bounds the time it takes.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
        let (sender, answer) = sync_channel(1);
        let runtime = self.runtime.as_ref().expect("it is there until it is dropped");
        runtime.spawn(async move {
            // Nobody may wait any more.
            let _ = sender.send(work.await);
        });
        answer.recv().map_err(|_| io::Error::other("a call of the archive's store was given up"))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // Not here: this may be a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Object {
    async fn read(calls: Arc<Calls>, listed: Listed) -> Result<Object, Failure> {
        let Listed { key, bytes } = listed;
        let (head, tail) = (HEAD.min(bytes), TAIL.min(bytes));
        let head = calls.client.read(&key, 0, head as usize);
        let tail = calls.client.read(&key, bytes - tail, tail as usize);
        let (head, tail) = futures_util::future::try_join(head, tail).await?;
        Ok(Object { calls, key, bytes, head, tail })
    }

    /// What is at hand of it.
    fn held(&self, at: u64, len: usize) -> Option<Bytes> {
        let within = |held: &Bytes, begins: u64| {
            let from = usize::try_from(at.checked_sub(begins)?).ok()?;
            let to = from.checked_add(len)?;
            (to <= held.len()).then(|| held.slice(from..to))
        };
        within(&self.head, 0).or_else(|| within(&self.tail, self.bytes - self.tail.len() as u64))
    }
}

impl File for Object {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let read = match self.held(at, buffer.len()) {
            Some(held) => held,
            None => {
                let (calls, key, len) = (self.calls.clone(), self.key.clone(), buffer.len());
                self.calls.wait(async move { calls.client.read(&key, at, len).await })??
            }
        };
        buffer.copy_from_slice(&read);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "an object is never changed"))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl File for Unfinished {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let held = self.0.read();
        let from = usize::try_from(at).ok();
        let part = from.and_then(|from| held.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut held = self.0.write();
        let from = usize::try_from(at).ok();
        let part = from.and_then(|from| held.get_mut(from..)?.get_mut(..bytes.len()));
        part.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
