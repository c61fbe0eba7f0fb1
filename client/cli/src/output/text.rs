use std::cell::RefCell;
use std::io::{self, Write};

use base::Duration;
use serde::Serialize;

/// Printed for a time that is not set.
pub(crate) const UNSET: &str = "N/A";

/// Replaces an empty text by `<none>`.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_string() } else { text }
}

/// A size in binary units: `300 MiB`, `1.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut size, mut unit) = (count as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    // Two digits are enough; bytes are whole numbers.
    let size = (size * 10.0 + 0.5).floor() / 10.0;
    if size >= 10.0 || unit == 0 {
        format!("{size:.0} {}", UNITS[unit])
    } else {
        format!("{size:.1} {}", UNITS[unit])
    }
}

/// A span as its two largest units: `3m12s`, `2d3h`, `1mo4d`. Months have 30 days and years 365.
pub(super) fn nice_duration(span: Duration) -> String {
    const UNITS: [(&str, i64); 6] =
        [("y", 365 * 86_400), ("mo", 30 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let secs = span.0.abs() / 1_000_000_000;
    let Some(first) = UNITS.iter().position(|(_, size)| secs >= *size) else { return "0s".to_string() };
    let (unit, size) = UNITS[first];
    let mut text = format!("{}{unit}", secs / size);
    if let Some((next, next_size)) = UNITS.get(first + 1) {
        let rest = secs % size / next_size;
        if rest > 0 {
            text.push_str(&format!("{rest}{next}"));
        }
    }
    text
}

/// Pretty JSON with 4 blanks, and an end of line.
pub(crate) fn json(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let pretty = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, pretty);
    value.serialize(&mut serializer).expect("API objects serialize to JSON");
    text.push(b'\n');
    String::from_utf8(text).expect("serde_json writes UTF-8")
}

thread_local! {
    /// What is written, while somebody holds it back.
    static HELD: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Holds back what is written to standard output, as long as this is there.
pub(crate) struct Held(());

/// Begins to hold back.
pub(crate) fn hold() -> Held {
    HELD.with_borrow_mut(|held| *held = Some(Vec::new()));
    Held(())
}

impl Held {
    /// What was written meanwhile.
    pub(crate) fn take(self) -> Vec<u8> {
        HELD.take().unwrap_or_default()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(None);
    }
}

/// Writes to standard output. A closed pipe (`| head`) ends the program without an error message.
pub(crate) fn write_out(text: impl AsRef<[u8]>) {
    let is_held = HELD
        .with_borrow_mut(|held| held.as_mut().map(|held| held.extend_from_slice(text.as_ref())).is_some());
    if is_held {
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        let gone = error.kind() == io::ErrorKind::BrokenPipe;
        std::process::exit(i32::from(!gone));
    }
}

/// Writes a line to standard error. A failure is ignored: it could not be reported anywhere.
pub(crate) fn write_err(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_had_by_its_holder_alone() {
        let held = hold();
        write_out("a");
        write_out("b\n");
        assert_eq!(held.take(), b"ab\n");
        assert!(HELD.with_borrow(Option::is_none), "what comes now is printed");
        drop(hold());
        assert!(HELD.with_borrow(Option::is_none), "also when nobody wanted it");
    }

    #[test]
    fn sizes_have_binary_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (300 << 20, "300 MiB"),
            (31 << 30, "31 GiB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn durations_have_two_units() {
        let cases = [
            (0, "0s"),
            (5, "5s"),
            (192, "3m12s"),
            (3_900, "1h5m"),
            (3_605, "1h"),
            (183_600, "2d3h"),
            (34 * 86_400, "1mo4d"),
            (430 * 86_400, "1y2mo"),
        ];
        for (secs, text) in cases {
            assert_eq!(nice_duration(Duration::from_secs(secs)), text);
        }
    }
}
