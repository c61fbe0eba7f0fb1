//! Hosts on which another program lets no packets pass, Docker's engine for one: ours are added to what passes, with
//! the program that they are managed by. A host without that program has no such rules.

use std::process::{Command, Stdio};

/// Stands beside our rules.
const COMMENT: &str = "sojourn";

/// Lets packets from and to the bridge pass, where others do not.
pub fn allow(bridge: &str, ipv6: bool) {
    for program in programs(ipv6) {
        if passes_everything(program) {
            continue;
        }
        for direction in ["-i", "-o"] {
            if !run(program, "-C", direction, bridge) && !run(program, "-I", direction, bridge) {
                tracing::warn!(program, bridge, "packets of the bridge may be dropped: no rule was added");
            }
        }
    }
}

/// Removes what [`allow`] has added.
pub fn forget(bridge: &str) {
    for program in programs(true) {
        for direction in ["-i", "-o"] {
            while run(program, "-C", direction, bridge) && run(program, "-D", direction, bridge) {}
        }
    }
}

fn programs(ipv6: bool) -> impl Iterator<Item = &'static str> {
    ["iptables"].into_iter().chain(ipv6.then_some("ip6tables"))
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // Others may be changing rules: it waits for them.
    command.args(["-w", "5"]).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// True also without the program.
fn passes_everything(program: &str) -> bool {
    let Ok(output) = command(program).args(["-S", "FORWARD"]).output() else { return true };
    String::from_utf8_lossy(&output.stdout).trim() == "-P FORWARD ACCEPT" || !output.status.success()
}

fn run(program: &str, action: &str, direction: &str, bridge: &str) -> bool {
    let mut command = command(program);
    command.args([
        action,
        "FORWARD",
        direction,
        bridge,
        "-m",
        "comment",
        "--comment",
        COMMENT,
        "-j",
        "ACCEPT",
    ]);
    command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}
