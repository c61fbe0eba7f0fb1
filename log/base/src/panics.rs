use std::any::Any;

/// What a panic that was caught has said; nothing if it said it in no words.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_panic_is_heard_whether_its_text_was_made_for_it_or_not() {
        let said = |panics: fn()| panic_text(&*catch_unwind(panics).unwrap_err());
        assert_eq!(said(|| panic!("as it stands")), "as it stands");
        assert_eq!(said(|| panic!("number {}", std::hint::black_box(0))), "number 0");
        assert_eq!(said(|| std::panic::panic_any(7)), "");
    }
}
