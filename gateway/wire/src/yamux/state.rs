//! What both ends know of a multiplexed connection: a plain machine, fed with frames, filling a buffer.
//! It names no socket and no clock; wakers are all it shares with the runtime.

use std::collections::HashMap;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;

use super::frame::{ACK, FIN, FrameKind, Header, RST, SYN};
use super::{MuxError, Role};

/// What a stream may have in flight: the protocol's fixed initial window.
pub(super) const WINDOW: u32 = 256 * 1024;

/// Streams opened but not yet accepted, in each direction. More are reset by the acceptor; the opener rejects
/// to ask. The protocol's customary number.
pub const BACKLOG_MAX: usize = 256;

/// Live streams of one connection. A peer that opens more gets them reset: with full windows this already is
/// 128 MiB of unread data.
pub const STREAMS_MAX: usize = 512;

/// Longest data frame sent, so that streams take turns.
const FRAME_MAX: usize = 64 * 1024;

/// Streams stop adding data while this much waits for the socket.
pub(super) const OUT_MAX: usize = 256 * 1024;

/// Reading stops while this much waits for the socket: a peer that makes us answer must also listen.
pub(super) const OUT_HARD_MAX: usize = 4 * OUT_MAX;

const GO_AWAY_NORMAL: u32 = 0;
const GO_AWAY_PROTOCOL: u32 = 1;

pub(super) struct State {
    next_id: u32,
    slots: HashMap<u32, Slot>,
    out: BytesMut,
    /// Streams whose writers wait until the socket has taken some of `out`, each once.
    held_up: Vec<u32>,
    /// The peer wants no new streams.
    refused: bool,
    /// Set once the connection is to end after `out` was sent.
    closing: Option<MuxError>,
    ended: Option<MuxError>,
    pings: Pings,
}

#[derive(Default)]
struct Pings {
    /// Counted from 1, one every half minute: 4,000 years fit.
    sent: u32,
    answered: u32,
}

/// One stream as this end sees it.
struct Slot {
    unread: BytesMut,
    /// What the peer may still send.
    receive_window: u32,
    /// Read, but not yet given back to the peer.
    credit: u32,
    send_window: u32,
    /// Taken up by the end that did not open it.
    acked: bool,
    fin_sent: bool,
    fin_received: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    watcher: Option<Waker>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            unread: BytesMut::new(),
            receive_window: WINDOW,
            credit: 0,
            send_window: WINDOW,
            acked: false,
            fin_sent: false,
            fin_received: false,
            reset: false,
            reader: None,
            writer: None,
            watcher: None,
        }
    }

    fn take_in(&mut self, body: &[u8]) -> Result<(), MuxError> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let left = self.receive_window.checked_sub(length);
        self.receive_window = left.ok_or(MuxError::Protocol("more data than the window allows"))?;
        self.unread.extend_from_slice(body);
        Ok(())
    }

    fn wake_all(&mut self) {
        [&mut self.reader, &mut self.writer, &mut self.watcher].into_iter().for_each(wake);
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

impl State {
    pub(super) fn new(role: Role) -> State {
        let next_id = match role {
            Role::Client => 1,
            Role::Server => 2,
        };
        State {
            next_id,
            slots: HashMap::new(),
            out: BytesMut::new(),
            held_up: Vec::new(),
            refused: false,
            closing: None,
            ended: None,
            pings: Pings::default(),
        }
    }

    pub(super) fn open(&mut self) -> Result<u32, MuxError> {
        if let Some(why) = self.ended.or(self.closing) {
            return Err(why);
        }
        if self.refused {
            return Err(MuxError::Refused);
        }
        let waiting = self.slots.iter().filter(|(id, slot)| self.is_ours(**id) && !slot.acked).count();
        if waiting >= BACKLOG_MAX || self.slots.len() >= STREAMS_MAX {
            return Err(MuxError::Busy);
        }
        let id = self.next_id;
        self.next_id = id.checked_add(2).ok_or(MuxError::Exhausted)?;
        self.slots.insert(id, Slot::new());
        self.window_update(id, SYN, 0);
        Ok(id)
    }

    /// The stream the peer opened was taken up.
    pub(super) fn acknowledge(&mut self, id: u32) {
        let slot = self.slots.get_mut(&id).expect("a stream's slot lives as long as the stream");
        slot.acked = true;
        self.window_update(id, ACK, 0);
    }

    fn is_ours(&self, id: u32) -> bool {
        id % 2 == self.next_id % 2
    }

    /// Takes in a frame. Returns the stream it opened, if any.
    pub(super) fn receive(&mut self, header: Header, body: &[u8]) -> Result<Option<u32>, MuxError> {
        match header.kind {
            FrameKind::Data | FrameKind::WindowUpdate => self.stream_frame(header, body),
            FrameKind::Ping if header.has(SYN) => {
                self.push(Header { flags: ACK, ..header });
                Ok(None)
            }
            FrameKind::Ping => {
                self.pings.answered = self.pings.answered.max(header.length);
                Ok(None)
            }
            FrameKind::GoAway if header.length == GO_AWAY_NORMAL => {
                self.refused = true;
                Ok(None)
            }
            FrameKind::GoAway => Err(MuxError::GoAway(header.length)),
        }
    }

    fn stream_frame(&mut self, header: Header, body: &[u8]) -> Result<Option<u32>, MuxError> {
        let opened = if header.has(SYN) { self.opened_by_peer(header.stream)? } else { None };
        let Some(slot) = self.slots.get_mut(&header.stream) else {
            // The stream was dropped here, but the peer still writes: reset it.
            if !body.is_empty() && !header.has(RST) {
                self.reset(header.stream);
            }
            return Ok(None);
        };
        slot.acked |= header.has(ACK);
        slot.fin_received |= header.has(FIN);
        slot.reset |= header.has(RST);
        match header.kind {
            FrameKind::WindowUpdate => {
                let window = slot.send_window.checked_add(header.length);
                slot.send_window = window.ok_or(MuxError::Protocol("window overflow"))?;
                wake(&mut slot.writer);
            }
            _ => {
                slot.take_in(body)?;
                wake(&mut slot.reader);
            }
        }
        if header.has(FIN) || header.has(RST) {
            slot.wake_all();
        }
        Ok(opened)
    }

    fn opened_by_peer(&mut self, id: u32) -> Result<Option<u32>, MuxError> {
        if id == 0 || self.is_ours(id) || self.slots.contains_key(&id) {
            return Err(MuxError::Protocol("stream opened with a wrong id"));
        }
        if self.slots.len() >= STREAMS_MAX || self.closing.is_some() {
            self.reset(id);
            return Ok(None);
        }
        self.slots.insert(id, Slot::new());
        Ok(Some(id))
    }

    pub(super) fn poll_read(
        &mut self,
        id: u32,
        cx: &Context<'_>,
        room: usize,
    ) -> Poll<Result<BytesMut, MuxError>> {
        let ended = self.ended;
        let slot = self.slots.get_mut(&id).expect("a stream's slot lives as long as the stream");
        if slot.unread.is_empty() {
            return match (slot.fin_received, slot.reset, ended) {
                (true, ..) => Poll::Ready(Ok(BytesMut::new())),
                (_, true, _) => Poll::Ready(Err(MuxError::Reset)),
                (.., Some(why)) => Poll::Ready(Err(why)),
                (.., None) => {
                    slot.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
        }
        let data = slot.unread.split_to(room.min(slot.unread.len()));
        slot.credit += data.len() as u32;
        if slot.credit >= WINDOW / 2 && !slot.fin_received {
            let credit = std::mem::take(&mut slot.credit);
            slot.receive_window += credit;
            self.window_update(id, 0, credit);
        }
        Poll::Ready(Ok(data))
    }

    pub(super) fn poll_write(
        &mut self,
        id: u32,
        cx: &Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, MuxError>> {
        let ended = self.ended.or(self.closing);
        let full = self.out.len() >= OUT_MAX;
        let slot = self.slots.get_mut(&id).expect("a stream's slot lives as long as the stream");
        match (ended, slot.reset, slot.fin_sent) {
            (Some(why), ..) => return Poll::Ready(Err(why)),
            (_, true, _) => return Poll::Ready(Err(MuxError::Reset)),
            (.., true) => return Poll::Ready(Err(MuxError::Closed)),
            _ => {}
        }
        if full || slot.send_window == 0 {
            slot.writer = Some(cx.waker().clone());
            if full && !self.held_up.contains(&id) {
                self.held_up.push(id);
            }
            return Poll::Pending;
        }
        let length = data.len().min(FRAME_MAX).min(slot.send_window as usize);
        slot.send_window -= length as u32;
        self.push(Header { kind: FrameKind::Data, flags: 0, stream: id, length: length as u32 });
        self.out.extend_from_slice(&data[..length]);
        Poll::Ready(Ok(length))
    }

    /// Ready once the peer sends no more, whether or not everything it sent was read. For one watcher.
    pub(super) fn poll_gone(&mut self, id: u32, cx: &Context<'_>) -> Poll<()> {
        let ended = self.ended.is_some();
        match self.slots.get_mut(&id) {
            Some(slot) if !ended && !slot.fin_received && !slot.reset => {
                slot.watcher = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// No more data from this end; the other direction stays open.
    pub(super) fn finish(&mut self, id: u32) {
        let slot = self.slots.get_mut(&id).expect("a stream's slot lives as long as the stream");
        if !slot.fin_sent && !slot.reset {
            slot.fin_sent = true;
            self.window_update(id, FIN, 0);
        }
    }

    /// True while a stream waits in both directions: nothing unread, nothing ended.
    pub(super) fn is_quiet(&self, id: u32) -> bool {
        let open = |slot: &Slot| !slot.fin_received && !slot.reset && slot.unread.is_empty();
        self.ended.is_none() && !self.refused && self.slots.get(&id).is_some_and(open)
    }

    /// The stream was dropped. Its peer sees it as an end, but as a reset when it was never taken up, or
    /// when the peer may be waiting for a window that will never open again.
    pub(super) fn release(&mut self, id: u32) {
        let Some(mut slot) = self.slots.remove(&id) else { return };
        slot.wake_all();
        let stuck = !slot.unread.is_empty() && !slot.fin_received;
        let ignored = !slot.acked && !self.is_ours(id);
        if slot.reset {
            return;
        }
        if stuck || ignored {
            self.reset(id);
        } else if !slot.fin_sent {
            self.window_update(id, FIN, 0);
        }
    }

    /// Returns the number its answer will carry.
    pub(super) fn ping(&mut self) -> u32 {
        self.pings.sent += 1;
        self.push(Header { kind: FrameKind::Ping, flags: SYN, stream: 0, length: self.pings.sent });
        self.pings.sent
    }

    pub(super) fn was_answered(&self, ping: u32) -> bool {
        self.pings.answered >= ping
    }

    /// Sends a go-away; the connection ends when that was sent.
    pub(super) fn close(&mut self, why: MuxError) {
        if self.closing.is_some() || self.ended.is_some() {
            return;
        }
        self.closing = Some(why);
        let code = if matches!(why, MuxError::Protocol(_)) { GO_AWAY_PROTOCOL } else { GO_AWAY_NORMAL };
        self.push(Header { kind: FrameKind::GoAway, flags: 0, stream: 0, length: code });
    }

    pub(super) fn end(&mut self, why: MuxError) {
        self.ended.get_or_insert(why);
        self.slots.values_mut().for_each(Slot::wake_all);
    }

    /// The socket has taken what [`State::take_out`] returned. Most streams wait for their peer: only writers that waited
    /// for this are woken.
    pub(super) fn drained(&mut self) {
        for id in self.held_up.drain(..) {
            if let Some(slot) = self.slots.get_mut(&id) {
                wake(&mut slot.writer);
            }
        }
    }

    pub(super) fn out_len(&self) -> usize {
        self.out.len()
    }

    /// What is to be sent, and whether that is the end.
    pub(super) fn take_out(&mut self) -> (BytesMut, Option<MuxError>) {
        (self.out.split(), self.closing)
    }

    pub(super) fn ended(&self) -> Option<MuxError> {
        self.ended
    }

    fn reset(&mut self, id: u32) {
        self.window_update(id, RST, 0);
    }

    fn window_update(&mut self, stream: u32, flags: u16, length: u32) {
        self.push(Header { kind: FrameKind::WindowUpdate, flags, stream, length });
    }

    fn push(&mut self, header: Header) {
        if self.ended.is_none() {
            self.out.extend_from_slice(&header.encode());
        }
    }

    #[cfg(test)]
    pub(super) fn unread(&self, id: u32) -> usize {
        self.slots[&id].unread.len()
    }

    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        self.slots.len()
    }
}
