//! When a periodic job is launched next.

use crate::document::PeriodicConfig;
use base::Time;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// Days that are looked at before a rule counts as one that never comes: it may be about a leap day.
const DAYS_MAX: usize = 366 * 8;

/// The next launch after `after`; `None` for a block that is off, a rule that never comes, and what is not understood:
/// an unknown time zone, and days like `L`, `15W` and `5#3`.
pub fn next_launch(periodic: &PeriodicConfig, after: Time) -> Option<Time> {
    if !periodic.enabled.unwrap_or(true) {
        return None;
    }
    let zone = periodic.time_zone.as_deref().filter(|zone| !zone.is_empty()).unwrap_or("UTC");
    let zone = if zone == "UTC" { TimeZone::UTC } else { TimeZone::get(zone).ok()? };
    let from = Timestamp::from_nanosecond(i128::from(after.0)).ok()?.to_zoned(zone);
    let single = periodic.spec.iter().filter(|spec| !spec.is_empty());
    let rules = single.chain(periodic.specs.iter()).filter_map(|spec| Rule::parse(spec));
    let next = rules.filter_map(|rule| rule.after(&from)).min()?;
    i64::try_from(next.timestamp().as_nanosecond()).ok().map(Time)
}

/// The values that fit, by field.
struct Rule {
    seconds: Vec<i16>,
    minutes: Vec<i16>,
    hours: Vec<i16>,
    days: Vec<i16>,
    months: Vec<i16>,
    weekdays: Vec<i16>,
    years: Vec<i16>,
    /// Both kinds of days are named: one of them is enough.
    either_day: bool,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Rule {
    fn parse(spec: &str) -> Option<Rule> {
        let spec = match spec.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            "@every_minute" => "* * * * *",
            other => other,
        };
        let mut fields: Vec<&str> = spec.split_whitespace().collect();
        // Five fields have neither seconds nor a year, six have a year.
        if fields.len() < 7 {
            fields.insert(0, "0");
        }
        if fields.len() == 6 {
            fields.push("*");
        }
        let [second, minute, hour, day, month, weekday, year] = <[&str; 7]>::try_from(fields).ok()?;
        let mut weekdays = values(weekday, 0, 7, &WEEKDAYS, 0)?;
        weekdays.iter_mut().for_each(|day| *day %= 7);
        Some(Rule {
            seconds: values(second, 0, 59, &[], 0)?,
            minutes: values(minute, 0, 59, &[], 0)?,
            hours: values(hour, 0, 23, &[], 0)?,
            days: values(day, 1, 31, &[], 0)?,
            months: values(month, 1, 12, &MONTHS, 1)?,
            weekdays,
            years: values(year, 1970, 2099, &[], 0)?,
            either_day: !is_any(day) && !is_any(weekday),
        })
    }

    /// The first moment after `from`. One that the clocks skip does not count; of one that they repeat, the first.
    fn after(&self, from: &Zoned) -> Option<Zoned> {
        let mut date = from.date();
        for _ in 0..DAYS_MAX {
            if self.holds_on(date) {
                for (hour, minute, second) in self.times() {
                    let civil = date.at(hour, minute, second, 0);
                    let zoned = civil.to_zoned(from.time_zone().clone()).ok()?;
                    if zoned.datetime() == civil && zoned > *from {
                        return Some(zoned);
                    }
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn times(&self) -> impl Iterator<Item = (i8, i8, i8)> {
        let minutes =
            self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
        let all =
            minutes.flat_map(|(hour, minute)| self.seconds.iter().map(move |second| (hour, minute, *second)));
        all.map(|(hour, minute, second)| (hour as i8, minute as i8, second as i8))
    }

    fn holds_on(&self, date: Date) -> bool {
        let day = self.days.contains(&i16::from(date.day()));
        let weekday = self.weekdays.contains(&i16::from(date.weekday().to_sunday_zero_offset()));
        let days = if self.either_day { day || weekday } else { day && weekday };
        days && self.months.contains(&i16::from(date.month())) && self.years.contains(&date.year())
    }
}

fn is_any(field: &str) -> bool {
    matches!(field, "*" | "?")
}

/// Lists of `A`, `A-B`, `*` and each of these with `/STEP`; sorted.
fn values(field: &str, first: i16, last: i16, names: &[&str], names_from: i16) -> Option<Vec<i16>> {
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = named.map_or_else(|| text.parse().ok(), |at| Some(at as i16 + names_from))?;
        (first..=last).contains(&value).then_some(value)
    };
    let mut all = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<i16>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if is_any(range) => (first, last),
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(range)?, if step.is_some() { last } else { number(range)? }),
        };
        all.extend((from..=to).step_by(step.unwrap_or(1) as usize));
    }
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(spec: &str, after: &str) -> Option<String> {
        let after: Timestamp = after.parse().unwrap();
        let after = Time(i64::try_from(after.as_nanosecond()).unwrap());
        let periodic = PeriodicConfig { spec: Some(spec.to_string()), ..PeriodicConfig::default() };
        let next = next_launch(&periodic, after)?;
        Some(Timestamp::from_nanosecond(i128::from(next.0)).unwrap().to_string())
    }

    #[test]
    fn the_next_launch_is_the_first_moment_that_fits() {
        let from = "2026-01-02T03:04:05Z";
        for (spec, expected) in [
            ("*/15 * * * *", "2026-01-02T03:15:00Z"),
            ("4 3 * * *", "2026-01-03T03:04:00Z"),
            ("@hourly", "2026-01-02T04:00:00Z"),
            ("@daily", "2026-01-03T00:00:00Z"),
            ("0 9 * * MON-FRI", "2026-01-02T09:00:00Z"),
            ("0 0 1,15 * *", "2026-01-15T00:00:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
            ("30 6 13 * fri", "2026-01-02T06:30:00Z"),
            ("0 12 * * 7", "2026-01-04T12:00:00Z"),
            ("0 0 1 1 * 2030", "2030-01-01T00:00:00Z"),
            ("10,20 4 3 * * * *", "2026-01-02T03:04:10Z"),
        ] {
            assert_eq!(next(spec, from).as_deref(), Some(expected), "{spec}");
        }
        for never in ["0 0 30 2 *", "0 0 L * *", "61 * * * *", "* * * *", "0 0 1 1 * 1999"] {
            assert_eq!(next(never, from), None, "{never}");
        }
    }

    #[test]
    fn of_several_rules_the_earliest_counts_and_a_block_that_is_off_has_none() {
        let specs = vec!["0 5 * * *".to_string(), "0 4 * * *".to_string()].into();
        let periodic = PeriodicConfig { specs, ..PeriodicConfig::default() };
        assert_eq!(next_launch(&periodic, Time::ZERO), Some(Time::from_secs(4 * 3600)));
        let off = PeriodicConfig { enabled: Some(false), ..periodic };
        assert_eq!(next_launch(&off, Time::ZERO), None);
    }
}
