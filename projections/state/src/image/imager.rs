use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use base::pages::Pages;
use model::{Chunk, ChunkId, Image};

use super::contents::Contents;
use super::versions::{self, Used};
use super::{
    Table, allocs, deployments, evals, jobs, nodes, released, requests, services, settings, variables,
    volumes,
};
use crate::State;
use crate::rows::{Release, Rows};

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
    /// Of each table's chunks, by the number of the table and of the page.
    ids: Vec<BTreeMap<usize, ChunkId>>,
    /// For each page of allocations the versions they run.
    used: BTreeMap<usize, Vec<Used>>,
    /// For each page of jobs their old versions.
    old: BTreeMap<usize, Vec<Used>>,
}

impl Imager {
    /// Chunks that the image made before has come without bytes; those of unchanged pages are not even encoded.
    pub fn image(&mut self, state: &State) -> Image {
        let contents = Contents::of(state);
        let mut making = Making::after(&self.last, &contents);
        let first = Chunk::new(contents.encode().into());
        let id = first.id;
        making.chunks.push(making.unless_known(first));
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
        making.services(state);
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
    /// What is made, and which pages have no chunk.
    contents: &'a Contents,
    /// All chunks of the image before.
    known: HashSet<ChunkId>,
    chunks: Vec<Chunk>,
    ids: Vec<BTreeMap<usize, ChunkId>>,
}

impl<'a> Making<'a> {
    fn after(last: &'a Last, contents: &'a Contents) -> Making<'a> {
        let known = last.ids.iter().flat_map(BTreeMap::values).chain(&last.contents).copied().collect();
        Making { last, contents, known, chunks: Vec::new(), ids: vec![BTreeMap::new(); Table::ALL.len()] }
    }

    fn nodes(&mut self, state: &State) {
        let (now, before) = (&state.nodes, &self.last.state.nodes);
        let (hot, cold) = (now.hot.pages(), now.cold.pages());
        let is_same = |number: usize| {
            hot.shares_page(before.hot.pages(), number) && cold.shares_page(before.cold.pages(), number)
        };
        let encode = |number: usize| nodes::encode(rows(hot, number), rows(cold, number));
        self.table(Table::Nodes, 0..hot.pages(), is_same, encode);
        self.pages(Table::Classes, now.classes.pages(), before.classes.pages(), nodes::encode_classes);
    }

    fn jobs(&mut self, state: &State) {
        self.held_pages(Table::Jobs, &state.jobs.rows, &self.last.state.jobs.rows, jobs::encode);
    }

    fn evals(&mut self, state: &State) {
        let (now, before) = (&state.evals, &self.last.state.evals);
        self.held_pages(Table::Evals, &now.rows, &before.rows, evals::encode);
        let is_same = |_| Arc::ptr_eq(&now.blocked, &before.blocked);
        let encode = |_| evals::encode_blocked(&now.blocked);
        self.table(Table::Blocked, 0..now.blocked.len().min(1), is_same, encode);
    }

    fn allocs(&mut self, state: &State) -> BTreeMap<usize, Vec<Used>> {
        let (now, before) = (&state.allocs.rows, &self.last.state.allocs.rows);
        let mut used = self.last.used.clone();
        if let Some(blank) = self.contents.blank(Table::Allocs) {
            used.retain(|page, _| !blank.contains(*page));
        }
        let is_same = |number: usize| now.pages().shares_page(before.pages(), number);
        let encode = |number: usize| {
            released::encode(now, number, |rows| {
                let (bytes, of_page) = allocs::encode(rows);
                used.insert(number, of_page);
                bytes
            })
        };
        self.table(Table::Allocs, self.contents.pages(Table::Allocs), is_same, encode);
        used
    }

    fn old_versions(
        &mut self,
        state: &State,
        used: &BTreeMap<usize, Vec<Used>>,
    ) -> BTreeMap<usize, Vec<Used>> {
        let old = versions::old(&state.jobs, used.values().flatten());
        let before = &self.last.old;
        let is_same = |number: usize| {
            let (before, now) = (of_page(before, number), of_page(&old, number));
            before.len() == now.len() && before.iter().zip(now).all(|(a, b)| Arc::ptr_eq(&a.1, &b.1))
        };
        let pages = self.contents.pages(Table::OldVersions);
        self.table(Table::OldVersions, pages, is_same, |number| jobs::encode_old(of_page(&old, number)));
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
                && state.services.changed() == before.services.changed()
                && state.claims.is_same(&before.claims)
                && state.expansions.is_same(&before.expansions)
                && state.cursors.is_same(&before.cursors)
                && state.sinks.is_same(&before.sinks)
                && state.erasure.is_same(&before.erasure)
                && state.recording == before.recording
                && state.raised == before.raised
                && state.dropped_history == before.dropped_history
        };
        self.table(Table::Settings, 0..1, is_same, |_| settings::encode(state));
    }

    fn deployments(&mut self, state: &State) {
        let (now, before) = (&state.deployments.rows, &self.last.state.deployments.rows);
        self.held_pages(Table::Deployments, now, before, deployments::encode);
    }

    fn volumes(&mut self, state: &State) {
        let (now, before) = (&state.volumes, &self.last.state.volumes);
        let is_same = |_| Arc::ptr_eq(&now.by_key, &before.by_key);
        self.table(Table::Volumes, 0..now.len().min(1), is_same, |_| volumes::encode(now));
    }

    fn variables(&mut self, state: &State) {
        if state.variables.is_same(&self.last.state.variables) {
            let known = self.last.ids.get(Table::Variables as usize).map_or(0, BTreeMap::len);
            self.table(Table::Variables, 0..known, |_| true, |_| Vec::new());
            return;
        }
        let (now, before) =
            (variables::spread(&state.variables), variables::spread(&self.last.state.variables));
        let is_same =
            |number: usize| before.get(number).is_some_and(|before| variables::is_same(&now[number], before));
        self.table(Table::Variables, 0..now.len(), is_same, |number| variables::encode(&now[number]));
    }

    fn services(&mut self, state: &State) {
        let (now, before) = (&state.services, &self.last.state.services);
        let chunks = if now.is_empty() { 0 } else { services::CHUNKS };
        let is_same = |number: usize| now.shares_shard(before, number);
        self.table(Table::Services, 0..chunks, is_same, |number| services::encode(now.shard(number)));
    }

    fn pages<T>(
        &mut self,
        table: Table,
        now: &Pages<T>,
        before: &Pages<T>,
        encode: impl Fn(&[T]) -> Vec<u8>,
    ) {
        let is_same = |number| now.shares_page(before, number);
        self.table(table, 0..now.pages(), is_same, |number| encode(rows(now, number)));
    }

    /// Pages of which every row was released have no chunk.
    fn held_pages<T: Release>(
        &mut self,
        table: Table,
        now: &Rows<T>,
        before: &Rows<T>,
        encode: impl Fn(&[T]) -> Vec<u8>,
    ) {
        let pages = self.contents.pages(table);
        let is_same = |number| now.pages().shares_page(before.pages(), number);
        self.table(table, pages, is_same, |number| released::encode(now, number, &encode));
    }

    fn table(
        &mut self,
        table: Table,
        pages: impl Iterator<Item = usize>,
        is_same: impl Fn(usize) -> bool,
        mut encode: impl FnMut(usize) -> Vec<u8>,
    ) {
        let before = self.last.ids.get(table as usize);
        for number in pages {
            let chunk = match before.and_then(|ids| ids.get(&number)).filter(|_| is_same(number)) {
                Some(id) => Chunk { id: *id, bytes: None },
                None => self.unless_known(Chunk::new(encode(number).into())),
            };
            self.ids[table as usize].insert(number, chunk.id);
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

fn of_page(versions: &BTreeMap<usize, Vec<Used>>, page: usize) -> &[Used] {
    versions.get(&page).map_or(&[], Vec::as_slice)
}
