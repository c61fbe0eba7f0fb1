//! What must hold at every step, one file each, whatever happens and in whatever order.
//!
//! Those with a code stand in `docs/behaviour/invariants.md`.

mod beats;
mod books;
mod cursors;
mod forgotten;
mod i1;
mod i2;
mod i3;
mod i4;
mod i5;
mod i7;
mod i8;
mod launches;
mod p1;
mod p2;
mod p3;
mod p4;
mod p5;
mod p6;
mod p7;
mod p8;
mod plans;
mod r1;
mod silence;
mod terms;
mod volumes;

use crate::fact::Check;

/// All of them, with nothing seen yet.
pub fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::<i1::DecidedOnTheFold>::default(),
        Box::<i2::Dense>::default(),
        Box::<i3::EqualStates>::default(),
        Box::<i4::OnlyCommitted>::default(),
        Box::<i5::CommittedForEver>::default(),
        Box::<i7::AsOf>::default(),
        Box::<i8::ImagesAreTrue>::default(),
        Box::<p1::NoReplacementAfterReturn>::default(),
        Box::<p2::NoWorkBeforeReport>::default(),
        Box::<p3::SilentNodesAreRefused>::default(),
        Box::<p4::ReturnsAreRecordedOnce>::default(),
        Box::<p5::StoppedNeverReconnect>::default(),
        Box::<p6::NoOldState>::default(),
        Box::<p7::AckCancels>::default(),
        Box::<p8::OldVersionServes>::default(),
        Box::<r1::ReadsAreFresh>::default(),
        Box::<terms::OneLeaderATerm>::default(),
        Box::<beats::GrantsAreKept>::default(),
        Box::<silence::SilenceIsNoticed>::default(),
        Box::<launches::LaunchedOnce>::default(),
        Box::<plans::PlansHold>::default(),
        Box::<books::BooksAreRight>::default(),
        Box::<cursors::CursorsGoOn>::default(),
        Box::<forgotten::ForgottenStaysSo>::default(),
        Box::<volumes::WritersAreAlone>::default(),
        Box::<volumes::UsedVolumesAreThere>::default(),
        Box::<volumes::StickyComesBack>::default(),
    ]
}
