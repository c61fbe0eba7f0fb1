//! Panics that are caught.

use std::panic;

use sim::panics::listen;

#[test]
fn a_panic_that_is_caught_is_heard_too() {
    let listening = listen();
    assert_eq!(listening.first(), None);
    panic::catch_unwind(|| panic!("so {}", "it is")).unwrap_err();
    let heard = listening.first().unwrap();
    assert!(heard.contains("panics.rs") && heard.ends_with("so it is"), "{heard}");
}
