//! Where the end of a file or log begins, by lines or bytes.

use crate::call::{Call, Failure};
use crate::flags::Flag;

pub(crate) const TAIL: Flag<bool> =
    Flag::switch("tail", "Print only the last 10 lines, or as many as -n or -c give.");
pub(crate) const LINES: Flag<u64> = Flag::number("n", "N", "Number of last lines to print.");
pub(crate) const BYTES: Flag<u64> = Flag::number("c", "N", "Number of last bytes to print.");

/// Lines that `-tail` prints by default.
const TAIL_LINES: u64 = 10;

/// The first guess at the length of a line; longer lines extend the search.
const BYTES_PER_LINE: u64 = 128;

/// Most bytes that are searched for the last lines.
const TAIL_BYTES_MAX: u64 = 16 << 20;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartAt {
    Start,
    /// This many bytes before the end.
    End(u64),
}

/// Where to begin, by `-tail`, `-n` and `-c`. `last` reads this many bytes of the end.
///
/// # Errors
/// When they contradict each other, or the end cannot be read.
pub(crate) async fn start(
    call: &Call,
    last: impl AsyncFn(u64) -> Result<Vec<u8>, Failure>,
) -> Result<StartAt, Failure> {
    let (lines, bytes) = (call.args.parsed(&LINES)?, call.args.parsed(&BYTES)?);
    match (lines, bytes) {
        (Some(_), Some(_)) => Err(call.usage("Both -n and -c are not allowed")),
        (None, Some(bytes)) => Ok(StartAt::End(bytes)),
        (None, None) if !call.args.switch(&TAIL) => Ok(StartAt::Start),
        (lines, None) => last_lines(lines.unwrap_or(TAIL_LINES), last).await,
    }
}

/// How far before the end the last lines begin: doubles the window until it holds enough of them.
async fn last_lines(
    lines: u64,
    last: impl AsyncFn(u64) -> Result<Vec<u8>, Failure>,
) -> Result<StartAt, Failure> {
    let mut window = (lines.max(1) * BYTES_PER_LINE).min(TAIL_BYTES_MAX);
    loop {
        let end = last(window).await?;
        let whole = (end.len() as u64) < window;
        match tail_length(&end, lines) {
            Some(length) => return Ok(StartAt::End(length)),
            None if whole => return Ok(StartAt::Start),
            None if window == TAIL_BYTES_MAX => return Ok(StartAt::End(window)),
            None => window = (window * 2).min(TAIL_BYTES_MAX),
        }
    }
}

/// Bytes that the last lines take; `None` when the text may begin within them.
fn tail_length(text: &[u8], lines: u64) -> Option<u64> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    if lines == 0 {
        return Some(0);
    }
    let begin = ends.nth(usize::try_from(lines - 1).ok()?)?;
    Some((text.len() - begin) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        assert_eq!(tail_length(b"a\nbb\nccc\n", 1), Some(4));
        assert_eq!(tail_length(b"a\nbb\nccc", 2), Some(6));
        assert_eq!(tail_length(b"a\nbb\n", 2), None);
        assert_eq!(tail_length(b"", 1), None);
        assert_eq!(tail_length(b"a\n", 0), Some(0));
    }
}
