use std::fmt;

/// Why bytes are not the value that was asked for, or a value has no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("msgpack value ends early")]
    Truncated,
    #[error("{0} bytes follow the msgpack value")]
    Trailing(usize),
    #[error("msgpack value nests deeper than {limit} levels", limit = crate::DEPTH_MAX)]
    TooDeep,
    #[error("byte 0xc1 begins no msgpack value")]
    Reserved,
    #[error("length does not fit 32 bits")]
    TooLong,
    #[error("{0} elements follow the last one expected")]
    Surplus(u64),
    #[error("embedded value is not a map")]
    NotMap,
    #[error("{0}")]
    Message(String),
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::Message(message.to_string())
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::Message(message.to_string())
    }
}
