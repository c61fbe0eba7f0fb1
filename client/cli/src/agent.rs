//! Starts what the settings ask for. Nothing is decided here.

use crate::settings::Settings;

/// Runs the agent until it is told to end.
///
/// # Errors
/// What kept it from starting, or ended it.
pub fn run(settings: Settings) -> anyhow::Result<()> {
    let _ = settings;
    anyhow::bail!("the server is not part of this build yet")
}
