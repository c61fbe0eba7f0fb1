//! The second of the two processes, which becomes the task.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, chdir, set_parent_process_death_signal, setsid};

use super::{Order, find, privileges, view};

/// Returns only with the reason why it has not become the task.
pub fn run(order: &Order, socket: &mut UnixStream) -> io::Error {
    let mut command = match prepare(order, socket) {
        Ok(command) => command,
        Err(error) => return error,
    };
    let error = command.exec();
    io::Error::new(error.kind(), format!("{}: {error}", order.spec.command.display()))
}

fn prepare(order: &Order, socket: &mut UnixStream) -> io::Result<Command> {
    let spec = &order.spec;
    let isolation = spec.isolation.as_ref().ok_or_else(|| io::Error::other("there is no isolation"))?;
    // Until then the outer process is our parent, and its end would be ours.
    socket.read_exact(&mut [0])?;
    setsid()?;
    view::make(isolation, spec.user)?;
    let program = find::in_root(&spec.command, isolation)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let capabilities = privileges::give_up(isolation, spec.user)?;
    // As the user: a directory that it may not enter is none to work in.
    go_to(&spec.work_dir)?;
    // After the change of the user, which undoes it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if is_orphan(socket)? {
        return Err(io::Error::other("the executor is gone"));
    }
    let mut command = Command::new(program);
    command.args(&spec.args).env_clear().envs(&spec.env);
    // Last: it may forbid what was needed so far.
    privileges::confine(isolation, capabilities)?;
    Ok(command)
}

pub fn go_to(work_dir: &Path) -> io::Result<()> {
    chdir(work_dir)
        .map_err(io::Error::from)
        .map_err(|error| io::Error::new(error.kind(), format!("work_dir {}: {error}", work_dir.display())))
}

/// True when nobody has the other end of the socket any more.
fn is_orphan(socket: &UnixStream) -> io::Result<bool> {
    let mut ends = [PollFd::new(socket, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ends, Some(&now))?;
    Ok(ends[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}
