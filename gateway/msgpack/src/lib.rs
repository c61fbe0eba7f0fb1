//! gateway/msgpack
