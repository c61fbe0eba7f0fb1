//! Whole agents against servers in memory. One binary: each more would be linked again.

mod allocs;
mod artifacts;
mod docker;
mod docker_images;
mod drivers;
mod exec;
mod full_disk;
mod hooks;
mod identity;
mod isolated;
mod isolated_hostile;
mod networks;
mod raw_exec;
mod services;
mod support;
mod templates;
mod wire;
