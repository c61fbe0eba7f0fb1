//! Clocks that go wrong.

use base::{Duration, Time};
use sim::clock::SimClock;

const NOW: Time = Time::from_secs(1_000);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_fast_clock_is_early_and_a_slow_one_late_by_proportion() {
    let later = NOW.plus(Duration::from_secs(100));
    for (fast, ran, takes) in
        [(0, 100_000, 10_000), (20_000, 102_000, 9_804), (-20_000, 98_000, 10_204), (100_000, 110_000, 9_091)]
    {
        let mut clock = SimClock::new(NOW);
        clock.drift(NOW, fast);
        assert_eq!(clock.shows(later).since(NOW).as_millis(), ran, "{fast}");
        let truly = clock.takes(Duration::from_secs(10));
        assert_eq!((truly.0 + 500_000) / 1_000_000, takes, "{fast}");
        assert_eq!(clock.astray(later).0, (fast * 100_000).abs());
    }
}

#[test]
fn a_deadline_is_over_when_it_is_due_and_not_a_nanosecond_before() {
    for fast in [-99_999, -20_000, -7, 0, 3, 19_999, 100_000] {
        let mut clock = SimClock::new(NOW);
        clock.set(NOW, Duration::from_secs(-7));
        clock.drift(NOW.plus(SECOND), fast);
        for span in [1, 2, 999_999_999, 123_456_789_012] {
            let deadline = clock.shows(NOW.plus(SECOND)).plus(Duration(span));
            let due = clock.due(deadline);
            assert!(clock.shows(due) >= deadline && clock.shows(Time(due.0 - 1)) < deadline, "{fast} {span}");
        }
    }
}

#[test]
fn setting_a_clock_moves_the_time_of_day_and_not_what_runs() {
    let mut clock = SimClock::new(NOW);
    clock.drift(NOW, 50_000);
    let later = NOW.plus(Duration::from_secs(20));
    let ran = clock.running(later);
    assert_eq!(clock.set(later, Duration::from_secs(60)), Duration::from_secs(59));
    assert_eq!((clock.ahead(later), clock.running(later)), (Duration::from_secs(60), ran));
    clock.drift(later, -50_000);
    assert_eq!(clock.running(later), ran, "another speed is no step");
}
