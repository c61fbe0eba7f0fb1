//! Jobs: registering and ending them, the children they bring forth, their counts and the names of their versions.

pub(crate) mod children;
pub(crate) mod decide;
pub(crate) mod scale;
pub(crate) mod tags;
