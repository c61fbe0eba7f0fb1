//! When a periodic job is launched next.

use crate::document::PeriodicConfig;
use base::Time;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// The local zone. Servers must agree on every launch wherever they are, so it is UTC for all of them.
pub const LOCAL_ZONE: &str = "Local";

/// Days that are looked at before a rule counts as one that never comes: it may be about a leap day.
const DAYS_MAX: usize = 366 * 8;

/// The next launch after `after`; `None` for a block that is off, a rule that never comes, and what is not understood.
pub fn next_launch(periodic: &PeriodicConfig, after: Time) -> Option<Time> {
    if !periodic.enabled.unwrap_or(true) {
        return None;
    }
    let zone = periodic.time_zone.as_deref().filter(|zone| !zone.is_empty()).unwrap_or("UTC");
    let zone = self::zone(zone)?;
    let from = Timestamp::from_nanosecond(i128::from(after.0)).ok()?.to_zoned(zone);
    let single = periodic.spec.iter().filter(|spec| !spec.is_empty());
    let rules = single.chain(periodic.specs.iter()).filter_map(|spec| Rule::parse(spec));
    let next = rules.filter_map(|rule| rule.after(&from)).min()?;
    i64::try_from(next.timestamp().as_nanosecond()).ok().map(Time)
}

/// Whether it is understood as a rule: five to seven fields, or a word like `@daily`.
pub fn is_rule(spec: &str) -> bool {
    Rule::parse(spec).is_some()
}

/// Whether there is a time zone of that name.
pub fn is_zone(name: &str) -> bool {
    zone(name).is_some()
}

fn zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "" | "UTC" | LOCAL_ZONE) { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

/// The values that fit, by field.
struct Rule {
    seconds: Vec<i16>,
    minutes: Vec<i16>,
    hours: Vec<i16>,
    days: Vec<Day>,
    months: Vec<i16>,
    weekdays: Vec<Weekday>,
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
        Some(Rule {
            seconds: values(second, 0, 59, &[], 0)?,
            minutes: values(minute, 0, 59, &[], 0)?,
            hours: values(hour, 0, 23, &[], 0)?,
            days: days(day)?,
            months: values(month, 1, 12, &MONTHS, 1)?,
            weekdays: weekdays(weekday)?,
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
        let day = self.days.iter().any(|day| day.is(date));
        let weekday = self.weekdays.iter().any(|weekday| weekday.is(date));
        let days = if self.either_day { day || weekday } else { day && weekday };
        days && self.months.contains(&i16::from(date.month())) && self.years.contains(&date.year())
    }
}

/// A day of the month.
enum Day {
    At(i16),
    /// `L`: the last one.
    Last,
    /// `15W`: the working day nearest to it in the same month.
    Near(i16),
    /// `LW`: the last working day.
    LastWorking,
}

impl Day {
    fn is(&self, date: Date) -> bool {
        let last = date.last_of_month().day();
        match self {
            Day::At(day) => *day == i16::from(date.day()),
            Day::Last => date.day() == last,
            Day::Near(day) => i16::from(last) >= *day && working(date, *day as i8) == Some(date.day()),
            Day::LastWorking => working(date, last) == Some(date.day()),
        }
    }
}

/// The working day nearest to this one, without leaving the month.
fn working(month: Date, day: i8) -> Option<i8> {
    let last = month.last_of_month().day();
    let date = Date::new(month.year(), month.month(), day).ok()?;
    Some(match date.weekday().to_sunday_zero_offset() {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == last => day - 2,
        0 => day + 1,
        _ => day,
    })
}

/// A day of the week, from 0 for Sunday.
enum Weekday {
    Each(i16),
    /// `5#3`: the third Friday of the month.
    Nth(i16, i8),
    /// `5L`: the last Friday of the month.
    Last(i16),
}

impl Weekday {
    fn is(&self, date: Date) -> bool {
        let (found, day) = (i16::from(date.weekday().to_sunday_zero_offset()), date.day());
        match self {
            Weekday::Each(weekday) => found == *weekday,
            Weekday::Nth(weekday, nth) => found == *weekday && (day - 1) / 7 + 1 == *nth,
            Weekday::Last(weekday) => found == *weekday && day + 7 > date.last_of_month().day(),
        }
    }
}

fn days(field: &str) -> Option<Vec<Day>> {
    let mut all = Vec::new();
    for part in field.split(',') {
        match part.to_ascii_uppercase().as_str() {
            "L" => all.push(Day::Last),
            "LW" | "WL" => all.push(Day::LastWorking),
            upper => match upper.strip_suffix('W') {
                Some(day) => all.push(Day::Near(day.parse().ok().filter(|day| (1..=31).contains(day))?)),
                None => all.extend(values(part, 1, 31, &[], 0)?.into_iter().map(Day::At)),
            },
        }
    }
    Some(all)
}

fn weekdays(field: &str) -> Option<Vec<Weekday>> {
    let one = |text: &str| match values(text, 0, 7, &WEEKDAYS, 0)?.as_slice() {
        [day] => Some(day % 7),
        _ => None,
    };
    let mut all = Vec::new();
    for part in field.split(',') {
        if let Some((day, nth)) = part.split_once('#') {
            all.push(Weekday::Nth(one(day)?, nth.parse().ok().filter(|nth| (1..=5).contains(nth))?));
        } else if let Some(day) = part.strip_suffix(['L', 'l']).filter(|day| !day.is_empty()) {
            all.push(Weekday::Last(one(day)?));
        } else {
            all.extend(values(part, 0, 7, &WEEKDAYS, 0)?.into_iter().map(|day| Weekday::Each(day % 7)));
        }
    }
    Some(all)
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
            ("0 0 L * *", "2026-01-31T00:00:00Z"),
            ("0 0 LW * *", "2026-01-30T00:00:00Z"),
            ("0 0 15W * *", "2026-01-15T00:00:00Z"),
            ("0 0 1W 8 *", "2026-08-03T00:00:00Z"),
            ("0 0 31W * *", "2026-01-30T00:00:00Z"),
            ("0 0 * * 5#3", "2026-01-16T00:00:00Z"),
            ("0 0 * * FRIL", "2026-01-30T00:00:00Z"),
            ("0 0 L,10 2 *", "2026-02-10T00:00:00Z"),
        ] {
            assert_eq!(next(spec, from).as_deref(), Some(expected), "{spec}");
        }
        for never in ["0 0 30 2 *", "0 0 32W * *", "0 0 * * 1#6", "61 * * * *", "* * * *", "0 0 1 1 * 1999"] {
            assert_eq!(next(never, from), None, "{never}");
        }
    }

    #[test]
    fn rules_are_read_in_the_time_zone_of_the_block() {
        let within = |zone: &str, spec: &str, after: &str| {
            let after: Timestamp = after.parse().unwrap();
            let after = Time(i64::try_from(after.as_nanosecond()).unwrap());
            let zone = Some(zone.to_string());
            let periodic =
                PeriodicConfig { spec: Some(spec.to_string()), time_zone: zone, ..PeriodicConfig::default() };
            let next = next_launch(&periodic, after).unwrap();
            Timestamp::from_nanosecond(i128::from(next.0)).unwrap().to_string()
        };
        let berlin = |spec: &str, after: &str| within("Europe/Berlin", spec, after);
        assert_eq!(within(LOCAL_ZONE, "0 3 * * *", "2026-07-02T00:00:00Z"), "2026-07-02T03:00:00Z");
        assert_eq!(berlin("0 3 * * *", "2026-01-02T00:00:00Z"), "2026-01-02T02:00:00Z");
        assert_eq!(berlin("0 3 * * *", "2026-07-02T00:00:00Z"), "2026-07-02T01:00:00Z");
        // The clocks go forward over 02:30 on this day.
        assert_eq!(berlin("30 2 * * *", "2026-03-28T12:00:00Z"), "2026-03-30T00:30:00Z");
        assert!(!is_zone("Mars/Olympus"));
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
