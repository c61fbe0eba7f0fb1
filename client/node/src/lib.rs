pub mod clock;
pub mod driver;
pub mod executor;
pub mod layout;
pub mod task { pub mod environment; pub mod events; pub mod lifecycle; pub mod restart; }
pub mod alloc { pub mod status; }
