//! A small driver: its tasks are shell commands. To be read by those who want to write a plugin, and launched by our tests.
//!
//! ```hcl
//! plugin "hello-plugin" {
//!   config { greeting = "hello" }
//! }
//! ```
//!
//! ```hcl
//! task "t" {
//!   driver = "hello"
//!   config { command = "sleep 60" }
//! }
//! ```
//!
//! With the argument `device` it is a device plugin instead: see `device.rs`.

mod device;
mod driver;
mod tasks;

use plugin::serve::serve;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::process::ExitCode {
    let served = match std::env::args().nth(1).as_deref() {
        Some("device") => serve(device::Devices::new(std::env::args().nth(2).unwrap_or_default())).await,
        _ => serve(driver::Hello::default()).await,
    };
    match served {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
