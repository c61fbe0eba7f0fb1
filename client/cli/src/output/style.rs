use base::Time;
use jiff::tz::TimeZone;

use super::text::{UNSET, nice_duration};

/// Characters of an id that are shown without `-verbose`.
const SHORT_ID: usize = 8;

/// How output is formatted: colours, full ids, the user's clock and time zone.
#[derive(Clone, Debug)]
pub(crate) struct OutputStyle {
    /// As the user calls the program, for commands that are proposed: `sojourn` or `nomad`.
    pub program: String,
    pub colour: bool,
    pub verbose: bool,
    /// Tables have all their columns.
    pub wide: bool,
    pub now: Time,
    pub zone: TimeZone,
}

/// A highlight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Bold,
    Green,
    Yellow,
    Red,
    /// Warnings of the servers: bold yellow.
    Warning,
}

impl OutputStyle {
    /// The program is called as Nomad's own command line: tools may read what that prints.
    pub(crate) fn is_stock(&self) -> bool {
        self.program == "nomad"
    }

    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Red => "31",
            Paint::Warning => "1;33",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A blank line, a bold title, the content.
    pub(crate) fn section(&self, title: &str, content: &str) -> String {
        format!("\n{}\n{content}", self.paint(Paint::Bold, title))
    }

    /// An id: 8 characters of it, or all with `-verbose`.
    pub(crate) fn id(&self, id: &str) -> String {
        if self.verbose { id.to_string() } else { id.chars().take(SHORT_ID).collect() }
    }

    /// A time in nanoseconds, as text in the user's time zone.
    pub(crate) fn time(&self, nanos: i64) -> String {
        let Some(stamp) = jiff::Timestamp::from_nanosecond(i128::from(nanos)).ok().filter(|_| nanos != 0)
        else {
            return UNSET.to_string();
        };
        let zoned = stamp.to_zoned(self.zone.clone());
        let zone = if zoned.offset().is_zero() { "Z" } else { "%:z" };
        zoned.strftime(&format!("%Y-%m-%dT%H:%M:%S{zone}")).to_string()
    }

    /// The time since, or until, a point in time.
    pub(crate) fn ago(&self, nanos: i64) -> String {
        if nanos == 0 {
            return UNSET.to_string();
        }
        let span = self.now.since(Time(nanos));
        format!("{} {}", nice_duration(span), if span.0 < 0 { "from now" } else { "ago" })
    }

    /// A time as it is shown in tables: how long ago, or exactly with `-verbose`.
    pub(crate) fn when(&self, nanos: i64) -> String {
        if self.verbose { self.time(nanos) } else { self.ago(nanos) }
    }
}

#[cfg(test)]
impl OutputStyle {
    /// Plain, in UTC, at 2026-01-02T03:04:05Z.
    pub(crate) fn for_tests() -> OutputStyle {
        OutputStyle {
            program: "sojourn".to_string(),
            colour: false,
            verbose: false,
            wide: false,
            now: Time::from_secs(1_767_323_045),
            zone: TimeZone::UTC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_the_users_zone() {
        let mut style = OutputStyle::for_tests();
        let moment = style.now.0 + 999;
        assert_eq!(style.time(moment), "2026-01-02T03:04:05Z");
        style.zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(style.time(moment), "2026-01-02T05:04:05+02:00");
        assert_eq!(style.time(0), "N/A");
    }

    #[test]
    fn past_and_future_differ() {
        let style = OutputStyle::for_tests();
        let at = |secs: i64| style.now.0 + secs * 1_000_000_000;
        assert_eq!(style.ago(at(-65)), "1m5s ago");
        assert_eq!(style.ago(at(90)), "1m30s from now");
        assert_eq!(style.ago(0), "N/A");
    }

    #[test]
    fn colours_are_printed_only_when_enabled() {
        let mut style = OutputStyle::for_tests();
        assert_eq!(style.section("Summary", "x\n"), "\nSummary\nx\n");
        style.colour = true;
        assert_eq!(style.paint(Paint::Bold, "a"), "\x1b[1ma\x1b[0m");
    }
}
