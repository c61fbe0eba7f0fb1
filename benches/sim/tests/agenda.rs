//! What is to happen, in order.

use base::{Duration, Time};
use sim::agenda::Agenda;

#[test]
fn events_come_by_time_and_then_in_the_order_they_were_entered() {
    let mut agenda = Agenda::new(Time::from_secs(10));
    agenda.after(Duration::from_secs(2), "late");
    agenda.after(Duration::from_secs(1), "first");
    agenda.after(Duration::from_secs(1), "second");
    let order: Vec<_> = std::iter::from_fn(|| agenda.take_next()).collect();
    assert_eq!(order, ["first", "second", "late"]);
    assert_eq!(agenda.now(), Time::from_secs(12));
}
