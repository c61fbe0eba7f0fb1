use std::collections::HashSet;
use std::sync::Arc;

use base::pages::Pages;
use model::{Chunk, ChunkId, Image};

use super::contents::Contents;
use super::versions::{self, Used};
use super::{Table, allocs, deployments, evals, jobs, nodes, requests, settings, variables, volumes};
use crate::State;

/// Makes images, each with the bytes of only those chunks that the one before does not have.
///
/// It holds on to the state it imaged last. An image is made from a snapshot, in any thread, beside everything else.
#[derive(Default)]
pub struct Imager {
    last: Last,
}

/// What the image before was made of; nothing at first.
#[derive(Default)]
struct Last {
    state: State,
    contents: Option<ChunkId>,
    /// Of each table's chunks, by the number of the table.
    ids: Vec<Vec<ChunkId>>,
    /// For each page of allocations the versions they run.
    used: Vec<Vec<Used>>,
    /// For each page of jobs their old versions.
    old: Vec<Vec<Used>>,
}

impl Imager {
    /// Chunks that the image made before has come without bytes; those of unchanged pages are not even encoded.
    pub fn image(&mut self, state: &State) -> Image {
        let mut making = Making::after(&self.last);
        let contents = Chunk::new(Contents::of(state).encode().into());
        let id = contents.id;
        making.chunks.push(making.unless_known(contents));
        making.nodes(state);
        making.jobs(state);
        making.evals(state);
        let used = making.allocs(state);
        let old = making.old_versions(state, &used);
        making.requests(state);
        making.settings(state);
        making.deployments(state);
        making.volumes(state);
        making.variables(state);
        let Making { chunks, ids, .. } = making;
        self.last = Last { state: state.clone(), contents: Some(id), ids, used, old };
        Image { index: state.index, chunks }
    }

    /// The next image will be complete: what was made last is not kept, or not known to be.
    pub fn reset(&mut self) {
        self.last = Last::default();
    }
}

struct Making<'a> {
    last: &'a Last,
    /// All chunks of the image before.
    known: HashSet<ChunkId>,
    chunks: Vec<Chunk>,
    ids: Vec<Vec<ChunkId>>,
}

impl<'a> Making<'a> {
    fn after(last: &'a Last) -> Making<'a> {
        let known = last.ids.iter().flatten().chain(&last.contents).copied().collect();
        Making { last, known, chunks: Vec::new(), ids: vec![Vec::new(); Table::ALL.len()] }
    }

    fn nodes(&mut self, state: &State) {
        let (now, before) = (&state.nodes, &self.last.state.nodes);
        let (hot, cold) = (now.hot.pages(), now.cold.pages());
        let is_same = |number: usize| {
            hot.shares_page(before.hot.pages(), number) && cold.shares_page(before.cold.pages(), number)
        };
        let encode = |number: usize| nodes::encode(rows(hot, number), rows(cold, number));
        self.table(Table::Nodes, hot.pages(), is_same, encode);
        self.pages(Table::Classes, now.classes.pages(), before.classes.pages(), nodes::encode_classes);
    }

    fn jobs(&mut self, state: &State) {
        self.pages(Table::Jobs, state.jobs.rows.pages(), self.last.state.jobs.rows.pages(), jobs::encode);
    }

    fn evals(&mut self, state: &State) {
        let (now, before) = (&state.evals, &self.last.state.evals);
        self.pages(Table::Evals, now.rows.pages(), before.rows.pages(), evals::encode);
        let is_same = |_| Arc::ptr_eq(&now.blocked, &before.blocked);
        let encode = |_| evals::encode_blocked(&now.blocked);
        self.table(Table::Blocked, now.blocked.len().min(1), is_same, encode);
    }

    fn allocs(&mut self, state: &State) -> Vec<Vec<Used>> {
        let (now, before) = (state.allocs.rows.pages(), self.last.state.allocs.rows.pages());
        let mut used = self.last.used.clone();
        used.resize_with(now.pages(), Vec::new);
        let is_same = |number: usize| now.shares_page(before, number);
        let encode = |number: usize| {
            let bytes;
            (bytes, used[number]) = allocs::encode(rows(now, number));
            bytes
        };
        self.table(Table::Allocs, now.pages(), is_same, encode);
        used
    }

    fn old_versions(&mut self, state: &State, used: &[Vec<Used>]) -> Vec<Vec<Used>> {
        let old = versions::old(&state.jobs, used.iter().flatten());
        let before = &self.last.old;
        let is_same = |number: usize| {
            before.get(number).is_some_and(|before| {
                let pairs = before.iter().zip(&old[number]);
                before.len() == old[number].len() && pairs.clone().all(|(a, b)| Arc::ptr_eq(&a.1, &b.1))
            })
        };
        self.table(Table::OldVersions, old.len(), is_same, |number| jobs::encode_old(&old[number]));
        old
    }

    fn requests(&mut self, state: &State) {
        let (now, before) = (&state.requests, &self.last.state.requests);
        let (current, previous) = (now.current.rows.pages(), now.previous.rows.pages());
        self.pages(Table::Requests, current, before.current.rows.pages(), requests::encode);
        self.pages(Table::OlderRequests, previous, before.previous.rows.pages(), requests::encode);
    }

    fn settings(&mut self, state: &State) {
        let before = &self.last.state;
        let is_same = |_| {
            state.operator == before.operator
                && state.pools.is_same(&before.pools)
                && state.namespaces.is_same(&before.namespaces)
                && state.keyring.is_same(&before.keyring)
                && state.acl.is_same(&before.acl)
                && state.volumes.changed == before.volumes.changed
                && state.variables.changed() == before.variables.changed()
        };
        self.table(Table::Settings, 1, is_same, |_| settings::encode(state));
    }

    fn deployments(&mut self, state: &State) {
        let (now, before) = (state.deployments.rows.pages(), self.last.state.deployments.rows.pages());
        self.pages(Table::Deployments, now, before, deployments::encode);
    }

    fn volumes(&mut self, state: &State) {
        let (now, before) = (&state.volumes, &self.last.state.volumes);
        let is_same = |_| Arc::ptr_eq(&now.by_key, &before.by_key);
        self.table(Table::Volumes, now.len().min(1), is_same, |_| volumes::encode(now));
    }

    fn variables(&mut self, state: &State) {
        if state.variables.is_same(&self.last.state.variables) {
            let known = self.last.ids.get(Table::Variables as usize).map_or(0, Vec::len);
            self.table(Table::Variables, known, |_| true, |_| Vec::new());
            return;
        }
        let (now, before) =
            (variables::spread(&state.variables), variables::spread(&self.last.state.variables));
        let is_same =
            |number: usize| before.get(number).is_some_and(|before| variables::is_same(&now[number], before));
        self.table(Table::Variables, now.len(), is_same, |number| variables::encode(&now[number]));
    }

    fn pages<T>(
        &mut self,
        table: Table,
        now: &Pages<T>,
        before: &Pages<T>,
        encode: impl Fn(&[T]) -> Vec<u8>,
    ) {
        let is_same = |number| now.shares_page(before, number);
        self.table(table, now.pages(), is_same, |number| encode(rows(now, number)));
    }

    fn table(
        &mut self,
        table: Table,
        chunks: usize,
        is_same: impl Fn(usize) -> bool,
        mut encode: impl FnMut(usize) -> Vec<u8>,
    ) {
        let before = self.last.ids.get(table as usize).map_or(&[][..], |ids| &ids[..]);
        for number in 0..chunks {
            let chunk = match before.get(number).filter(|_| is_same(number)) {
                Some(id) => Chunk { id: *id, bytes: None },
                None => self.unless_known(Chunk::new(encode(number).into())),
            };
            self.ids[table as usize].push(chunk.id);
            self.chunks.push(chunk);
        }
    }

    fn unless_known(&self, chunk: Chunk) -> Chunk {
        if self.known.contains(&chunk.id) { Chunk { bytes: None, ..chunk } } else { chunk }
    }
}

fn rows<T>(pages: &Pages<T>, number: usize) -> &[T] {
    pages.page(number).expect("the page's number lies below theirs")
}
