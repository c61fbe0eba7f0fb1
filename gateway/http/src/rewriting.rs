//! Indentation and compression of JSON, of a whole answer or part by part.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};

/// What becomes of the bytes of an answer.
pub(crate) struct Rewriter {
    indenter: Option<Indenter>,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Rewriter {
    pub(crate) fn new(pretty: bool, gzip: bool) -> Rewriter {
        Rewriter {
            indenter: pretty.then(Indenter::default),
            encoder: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())),
        }
    }

    pub(crate) fn whole(mut self, bytes: &[u8]) -> Bytes {
        let begun = self.write(bytes);
        let end = self.end();
        if begun.is_empty() { end } else { [begun, end].concat().into() }
    }

    /// A body that is rewritten as it is read. One that fails fails here too.
    pub(crate) fn stream(self, body: Body) -> Body {
        let state = Some((self, body.into_data_stream()));
        Body::from_stream(stream::unfold(state, |state| async {
            let (mut rewriter, mut body) = state?;
            Some(match body.next().await {
                Some(Ok(part)) => (Ok(rewriter.write(&part)), Some((rewriter, body))),
                Some(Err(error)) => (Err(error), None),
                None => (Ok(rewriter.end()), None),
            })
        }))
    }

    /// What can be sent now.
    fn write(&mut self, bytes: &[u8]) -> Bytes {
        let indented;
        let bytes = match &mut self.indenter {
            Some(indenter) => {
                indented = indenter.write(bytes);
                &indented[..]
            }
            None => bytes,
        };
        let Some(encoder) = &mut self.encoder else { return Bytes::copy_from_slice(bytes) };
        encoder.write_all(bytes).expect("a vector takes all that is written");
        std::mem::take(encoder.get_mut()).into()
    }

    fn end(self) -> Bytes {
        let end: &[u8] = if self.indenter.is_some() { b"\n" } else { b"" };
        let Some(mut encoder) = self.encoder else { return Bytes::from_static(end) };
        encoder.write_all(end).expect("a vector takes all that is written");
        encoder.finish().expect("a vector takes all that is written").into()
    }
}

/// Well-formed JSON with four blanks a level. Text is copied as it is, so that numbers and the order of keys stay.
#[derive(Default)]
struct Indenter {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// The last byte opened something. Whether a line ends there depends on the next one.
    opened: bool,
}

impl Indenter {
    fn write(&mut self, compact: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(compact.len() * 2);
        for byte in compact.iter().copied() {
            if self.in_text {
                out.push(byte);
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            let is_first = std::mem::take(&mut self.opened);
            match byte {
                b'}' | b']' => {
                    self.depth -= 1;
                    if !is_first {
                        self.line(&mut out);
                    }
                    out.push(byte);
                    continue;
                }
                _ if is_first => self.line(&mut out),
                _ => {}
            }
            out.push(byte);
            match byte {
                b'{' | b'[' => (self.depth, self.opened) = (self.depth + 1, true),
                b',' => self.line(&mut out),
                b':' => out.push(b' '),
                _ => self.in_text = byte == b'"',
            }
        }
        out
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 4 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use axum::body::to_bytes;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;

    fn value() -> Value {
        json!({"a": [], "b": {}, "c": [1, {"d": "x,{\"}[\\"}], "e": null, "f": [[2.5]]})
    }

    fn expected() -> Vec<u8> {
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut expected = Vec::new();
        value().serialize(&mut serde_json::Serializer::with_formatter(&mut expected, formatter)).unwrap();
        expected.push(b'\n');
        expected
    }

    #[test]
    fn indentation_changes_only_blanks() {
        let compact = serde_json::to_vec(&value()).unwrap();
        assert_eq!(Rewriter::new(true, false).whole(&compact), expected());
        assert_eq!(Rewriter::new(true, false).whole(b"\"x\""), &b"\"x\"\n"[..]);
        assert_eq!(Rewriter::new(false, false).whole(&compact), compact);
    }

    #[tokio::test]
    async fn it_does_not_matter_where_parts_end() {
        let compact = serde_json::to_vec(&value()).unwrap();
        for (len, gzip) in (1..=compact.len()).flat_map(|len| [(len, false), (len, true)]) {
            let parts: Vec<_> = compact
                .chunks(len)
                .map(|part| Ok::<_, std::io::Error>(Bytes::copy_from_slice(part)))
                .collect();
            let body = Rewriter::new(true, gzip).stream(Body::from_stream(stream::iter(parts)));
            let body = to_bytes(body, usize::MAX).await.unwrap();
            let mut read = Vec::new();
            if gzip {
                flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut read).unwrap();
            } else {
                read = body.to_vec();
            }
            assert_eq!(read, expected(), "parts of {len} bytes");
        }
    }

    #[tokio::test]
    async fn a_body_that_fails_is_not_taken_for_whole() {
        let parts = [Ok(Bytes::from_static(b"[1,")), Err(std::io::Error::other("lost"))];
        let body = Rewriter::new(true, true).stream(Body::from_stream(stream::iter(parts)));
        assert!(to_bytes(body, usize::MAX).await.is_err());
    }
}
