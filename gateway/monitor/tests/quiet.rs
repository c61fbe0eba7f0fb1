//! Alone in its process: the level is the whole program's.

use monitor::{Follow, Monitor};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn without_followers_no_line_is_made() {
    let monitor = Monitor::default();
    let _heard = tracing::subscriber::set_default(tracing_subscriber::registry().with(monitor.layer()));
    let follow =
        |level| monitor.follow(&Follow { level, json: false, location: false, plain: true }).unwrap();
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
    let (info, debug) = (follow(LevelFilter::INFO), follow(LevelFilter::DEBUG));
    assert_eq!(LevelFilter::current(), LevelFilter::DEBUG);
    drop(debug);
    assert_eq!(LevelFilter::current(), LevelFilter::INFO);
    drop(info);
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
}
