//! Messages of syslog (RFC 5424), and their frames over TCP (RFC 6587, RFC 5425).

use std::fmt::Write as _;

use base::Time;
use model::document::Timestamp;

/// The names of facilities, by number.
pub const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

/// Severities, as RFC 5424 counts.
pub const ERROR: u8 = 3;
pub const INFORMATION: u8 = 6;

/// Most bytes of a message in one datagram: what UDP over IPv4 has room for.
pub const DATAGRAM_MAX: usize = 65_507;

/// Longest words of the header.
const HOST_MAX: usize = 255;
const APP_MAX: usize = 48;
const PROCESS_MAX: usize = 128;
const KIND_MAX: usize = 32;

/// One message. What a word of the header cannot hold is left out of it, and an empty one becomes `-`.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    pub facility: u8,
    pub severity: u8,
    pub time: Time,
    pub host: &'a str,
    pub app: &'a str,
    pub process: &'a str,
    /// `MSGID`.
    pub kind: &'a str,
    /// The structured data, under `sojourn@32473`: names of RFC 5424, and any values.
    pub data: &'a [(&'static str, &'a str)],
    pub text: &'a str,
}

impl Message<'_> {
    pub fn render(&self) -> String {
        let mut message = format!(
            "<{}>1 {} {} {} {} {} [sojourn@32473",
            self.facility * 8 + self.severity,
            // No more than microseconds.
            Timestamp::from(Time(self.time.0 - self.time.0 % 1000)),
            word(self.host, HOST_MAX),
            word(self.app, APP_MAX),
            word(self.process, PROCESS_MAX),
            word(self.kind, KIND_MAX),
        );
        for (name, value) in self.data {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace(']', "\\]");
            write!(message, " {name}=\"{value}\"").expect("a string takes all");
        }
        message.push_str("] ");
        message.push_str(self.text);
        message
    }
}

/// Behind its length, so that it may hold whatever it likes.
pub fn framed(message: &str) -> String {
    format!("{} {message}", message.len())
}

fn word(text: &str, length: usize) -> String {
    let word: String = text.chars().filter(char::is_ascii_graphic).take(length).collect();
    if word.is_empty() { "-".to_string() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_whatever_its_words_are() {
        let message = Message {
            facility: 16,
            severity: ERROR,
            time: Time(1_000_001_999),
            host: "n 1",
            app: "web",
            process: "",
            kind: "stderr",
            data: &[("job", "a\"]\\b"), ("group", "")],
            text: "it [failed] ż",
        };
        let rendered = message.render();
        assert_eq!(
            rendered,
            "<131>1 1970-01-01T00:00:01.000001Z n1 web - stderr [sojourn@32473 job=\"a\\\"\\]\\\\b\" group=\"\"] \
             it [failed] ż"
        );
        assert_eq!(framed("aż"), "3 aż", "bytes are counted");
    }
}
