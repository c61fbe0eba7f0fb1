//! What servers tell each other of their release.

use model::{EPOCH, FIRST_EPOCH};

/// A release, as the text that servers exchange has it: `0.2.0+epoch.4`, the number and what it knows as build metadata of
/// semantic versions. The first releases say their number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release<'a> {
    pub number: &'a str,
    /// The newest epoch that it knows.
    pub epoch: u16,
}

const EPOCH_MARK: &str = "+epoch.";

impl Release<'_> {
    pub(crate) fn parse(text: &str) -> Release<'_> {
        let (number, epoch) = text.split_once(EPOCH_MARK).unwrap_or((text, ""));
        Release { number, epoch: epoch.parse().unwrap_or(FIRST_EPOCH) }
    }

    /// How the server of this program describes itself.
    pub(crate) fn own(number: &str) -> String {
        format!("{number}{EPOCH_MARK}{EPOCH}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_before_epochs_were_raised_know_the_first_one() {
        assert_eq!(Release::parse("0.1.0"), Release { number: "0.1.0", epoch: FIRST_EPOCH });
        assert_eq!(Release::parse("1.2.3-rc1+epoch.7"), Release { number: "1.2.3-rc1", epoch: 7 });
        assert_eq!(Release::parse("1.2.3+epoch.x").epoch, FIRST_EPOCH);
        assert_eq!(Release::parse(&Release::own("0.2.0")), Release { number: "0.2.0", epoch: EPOCH });
    }
}
