//! The system calls for projects of a file system and their limits.

#![expect(unsafe_code, reason = "no crate has these calls for projects: only for users and groups")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

/// Quotas of projects, among those of users and groups.
const OF_PROJECTS: u32 = 2;

/// Usage is counted, and limits hold: `FS_QUOTA_PDQ_ACCT` and `FS_QUOTA_PDQ_ENFD`.
const IN_FORCE: u16 = (1 << 4) | (1 << 5);

const GET_STATE: u32 = 0x5805;
const GET_QUOTA: u32 = 0x80_0007;
const SET_QUOTA: u32 = 0x80_0008;

/// Limits are in units of this many to a MiB.
const BLOCKS_PER_MIB: u64 = 1024;

/// What is made in a directory belongs to its project.
const INHERIT: u32 = 0x200;

const GET_ATTRIBUTES: Opcode = opcode::read::<Attributes>(b'X', 31);
const SET_ATTRIBUTES: Opcode = opcode::write::<Attributes>(b'X', 32);

/// `struct fsxattr`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    pub project: u32,
    copy_extent_size: u32,
    rest: [u8; 8],
}

impl Attributes {
    pub fn inherits(&self) -> bool {
        self.flags & INHERIT != 0
    }

    /// The others stay as they are.
    pub fn with(self, project: u32, inherits: bool) -> Attributes {
        let flags = if inherits { self.flags | INHERIT } else { self.flags & !INHERIT };
        Attributes { flags, project, ..self }
    }
}

/// The beginning of `struct fs_quota_stat`, and room for what follows it.
#[repr(C)]
struct QuotaState {
    version: i8,
    padding: i8,
    flags: u16,
    rest: [u64; 31],
}

/// # Errors
/// When the file system has no projects.
pub fn attributes(of: impl AsFd) -> io::Result<Attributes> {
    // SAFETY: the kernel fills in this structure for this request.
    Ok(unsafe { ioctl(of, Getter::<GET_ATTRIBUTES, Attributes>::new()) }?)
}

/// # Errors
/// When the file system has no projects, or the file is of somebody else.
pub fn set_attributes(of: impl AsFd, attributes: Attributes) -> io::Result<()> {
    // SAFETY: the kernel reads this structure for this request.
    Ok(unsafe { ioctl(of, Setter::<SET_ATTRIBUTES, Attributes>::new(attributes)) }?)
}

/// Whether limits of projects hold on the file system that the file is on.
///
/// # Errors
/// When it has no quotas at all, or the kernel cannot be asked.
pub fn are_in_force(file_system: impl AsFd) -> io::Result<bool> {
    let mut state = QuotaState { version: 1, padding: 0, flags: 0, rest: [0; 31] };
    quotactl(file_system, GET_STATE, 0, &mut state)?;
    Ok(state.flags & IN_FORCE == IN_FORCE)
}

/// How many files and directories belong to a project.
///
/// # Errors
/// When the process may not know.
pub fn files(file_system: impl AsFd, project: u32) -> io::Result<u64> {
    let mut quota = no_quota();
    match quotactl(file_system, GET_QUOTA, project, &mut quota) {
        Ok(()) => Ok(quota.dqb_curinodes),
        // XFS has written down nothing of it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Bounds what a project may store; `None` for not at all.
///
/// # Errors
/// When the process may not do that.
pub fn set_limit(file_system: impl AsFd, project: u32, mib: Option<u64>) -> io::Result<()> {
    let mut quota = no_quota();
    quota.dqb_bhardlimit = mib.unwrap_or(0).saturating_mul(BLOCKS_PER_MIB);
    quota.dqb_valid = libc::QIF_BLIMITS;
    quotactl(file_system, SET_QUOTA, project, &mut quota)
}

fn no_quota() -> libc::dqblk {
    libc::dqblk {
        dqb_bhardlimit: 0,
        dqb_bsoftlimit: 0,
        dqb_curspace: 0,
        dqb_ihardlimit: 0,
        dqb_isoftlimit: 0,
        dqb_curinodes: 0,
        dqb_btime: 0,
        dqb_itime: 0,
        dqb_valid: 0,
    }
}

fn quotactl<T>(file_system: impl AsFd, command: u32, project: u32, data: &mut T) -> io::Result<()> {
    let (file, command) = (file_system.as_fd().as_raw_fd(), (command << 8) | OF_PROJECTS);
    // SAFETY: each command comes with the structure that the kernel reads or fills in for it.
    let done =
        unsafe { libc::syscall(libc::SYS_quotactl_fd, file, command, project, std::ptr::from_mut(data)) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
