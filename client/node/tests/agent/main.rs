//! Whole agents against servers in memory. One binary: each more would be linked again.

mod allocs;
mod artifacts;
mod consul;
mod csi;
mod docker;
mod docker_images;
mod drivers;
mod exec;
mod full_disk;
mod hooks;
mod identity;
mod isolated;
mod isolated_hostile;
mod log_shipping;
mod networks;
mod own_users;
mod plugins;
mod podman;
mod podman_engines;
mod raw_exec;
mod services;
mod support;
mod templates;
mod vault;
mod wire;
