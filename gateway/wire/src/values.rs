use bytes::{Bytes, BytesMut};
use msgpack::Scan;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::RpcError;
use crate::budget::{Budget, Charge};

/// Room made before each read.
const READ_CHUNK: usize = 16 * 1024;

/// Whole msgpack values over a byte stream that does not say where they end.
pub(crate) struct Values<S> {
    io: S,
    buffer: BytesMut,
    scan: Scan,
}

impl<S> Values<S> {
    pub(crate) fn new(io: S) -> Self {
        Values { io, buffer: BytesMut::new(), scan: Scan::default() }
    }

    pub(crate) fn io(&self) -> &S {
        &self.io
    }

    /// Nothing was read ahead.
    pub(crate) fn is_drained(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The same values over what `wrap` makes of the stream.
    pub(crate) fn map_io<T>(self, wrap: impl FnOnce(S) -> T) -> Values<T> {
        Values { io: wrap(self.io), buffer: self.buffer, scan: self.scan }
    }

    /// The stream, and what was read ahead of it.
    pub(crate) fn into_parts(self) -> (Bytes, S) {
        (self.buffer.freeze(), self.io)
    }

    /// Divides the stream; what was read ahead goes with the reading side.
    pub(crate) fn divide<R, W>(self, split: impl FnOnce(S) -> (R, W)) -> (Values<R>, W) {
        let (reader, writer) = split(self.io);
        (Values { io: reader, buffer: self.buffer, scan: self.scan }, writer)
    }
}

impl<S: AsyncRead + Unpin> Values<S> {
    /// The next value's bytes; `None` when the stream ends between values. Safe to cancel.
    ///
    /// # Errors
    /// [`RpcError::TooLarge`] as soon as it is clear that the value exceeds `max`, whether or not it has
    /// arrived.
    pub(crate) async fn read(&mut self, max: usize) -> Result<Option<Bytes>, RpcError> {
        self.read_charged(max, &mut None).await
    }

    /// The next value, where one follows; what has come of it is charged to `budget` until it is whole.
    ///
    /// # Errors
    /// As for [`Values::read`], and [`RpcError::Busy`] when the budget is used up.
    pub(crate) async fn expect_within(&mut self, max: usize, budget: &Budget) -> Result<Bytes, RpcError> {
        let mut charge = Some(budget.charge());
        self.read_charged(max, &mut charge).await?.ok_or_else(ended_early)
    }

    async fn read_charged(
        &mut self,
        max: usize,
        charge: &mut Option<Charge>,
    ) -> Result<Option<Bytes>, RpcError> {
        loop {
            let length = self.scan.advance(&self.buffer)?;
            let least = self.scan.least();
            if least > max as u64 {
                return Err(RpcError::TooLarge { least, max });
            }
            if let Some(length) = length {
                self.scan = Scan::default();
                return Ok(Some(self.buffer.split_to(length).freeze()));
            }
            if let Some(charge) = charge {
                charge.grow_to(self.buffer.len())?;
            }
            self.buffer.reserve(READ_CHUNK);
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(ended_early()) };
            }
        }
    }

    /// The next value, where the protocol says that one follows.
    pub(crate) async fn expect(&mut self, max: usize) -> Result<Bytes, RpcError> {
        self.read(max).await?.ok_or_else(ended_early)
    }

    /// Returns once the peer has ended the stream without sending anything; never otherwise.
    pub(crate) async fn hung_up(&mut self) {
        self.buffer.reserve(READ_CHUNK);
        if let Ok(1..) = self.io.read_buf(&mut self.buffer).await {
            std::future::pending().await
        }
    }
}

impl<S: AsyncWrite + Unpin> Values<S> {
    pub(crate) async fn write(&mut self, values: &[&[u8]]) -> Result<(), RpcError> {
        for value in values {
            self.io.write_all(value).await?;
        }
        Ok(self.io.flush().await?)
    }
}

fn ended_early() -> RpcError {
    RpcError::Io(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "stream closed (EOF)"))
}
