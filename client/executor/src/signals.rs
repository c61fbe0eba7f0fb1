//! Signals that were ignored where the agent was started: by `nohup`, or by a shell for what it runs beside itself.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{FORBIDDEN, SIGPIPE};
use signal_hook::flag;

/// Signals below this number have names; those above belong to the C library and to programs.
const NAMED: i32 = 32;

/// Has the programs that this process becomes, or starts, begin with no signal ignored: a task that is asked to end by
/// SIGINT or SIGQUIT has to hear of it.
///
/// What is ignored stays so in another program, and what is handled does not. So each of them is handled, by nothing that
/// anybody looks at: for this process that is the same. SIGPIPE is seen to by the standard library.
///
/// # Errors
/// The kernel does not say what is ignored, or takes no handler.
pub fn forget_ignored() -> io::Result<()> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status")?)?;
    let named = (1..NAMED).filter(|signal| ignored & (1 << (signal - 1)) != 0);
    for signal in named.filter(|signal| *signal != SIGPIPE && !FORBIDDEN.contains(signal)) {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// The first signal in the lowest bit.
fn ignored(status: &str) -> io::Result<u64> {
    let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = field.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "there is no SigIgn in /proc/self/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_kernels_words() {
        let status = "Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001006\nSigCgt:\t0\n";
        assert_eq!(ignored(status).unwrap(), 0x1006);
        assert!(ignored("Name:\tsh\n").is_err());
    }
}
