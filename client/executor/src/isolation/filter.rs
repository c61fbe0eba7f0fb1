//! The system calls that an isolated task cannot make.
//!
//! Those that only a way out of the isolation needs, and those of old or wide parts of the kernel that hardly any program
//! uses. What is not listed is allowed: a program that runs without the filter should run with it. A capability that the
//! operator allows and the job asks for takes the calls along that it is for.

use std::collections::BTreeMap;
use std::io;

use rustix::thread::CapabilitySet;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Newer than the C library's list. All processors have the same numbers.
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Calls by the capability that allows them.
const CALLS: [(CapabilitySet, &[i64]); 9] = [
    (
        CapabilitySet::SYS_ADMIN,
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_quotactl,
            libc::SYS_quotactl_fd,
            OPEN_TREE_ATTR,
            FILE_SETATTR,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
            libc::SYS_fanotify_init,
            libc::SYS_lookup_dcookie,
        ],
    ),
    (CapabilitySet::SYS_MODULE, &[libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module]),
    (CapabilitySet::SYS_BOOT, &[libc::SYS_reboot, libc::SYS_kexec_load]),
    (
        CapabilitySet::SYS_TIME,
        &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_adjtimex, libc::SYS_clock_adjtime],
    ),
    (CapabilitySet::SYS_PACCT, &[libc::SYS_acct]),
    (CapabilitySet::DAC_READ_SEARCH, &[libc::SYS_open_by_handle_at]),
    (CapabilitySet::BPF, &[libc::SYS_bpf]),
    (CapabilitySet::PERFMON, &[libc::SYS_perf_event_open]),
    (
        // For nobody: no capability is for them alone.
        CapabilitySet::empty(),
        &[
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_keyctl,
            libc::SYS_userfaultfd,
            libc::SYS_vhangup,
            libc::SYS_nfsservctl,
            libc::SYS_io_uring_setup,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
        ],
    ),
];

#[cfg(target_arch = "x86_64")]
const OF_THIS_PROCESSOR: [(CapabilitySet, &[i64]); 3] = [
    (CapabilitySet::SYS_RAWIO, &[libc::SYS_iopl, libc::SYS_ioperm]),
    (CapabilitySet::SYS_BOOT, &[libc::SYS_kexec_file_load]),
    (CapabilitySet::empty(), &[libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat, libc::SYS_sysfs]),
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_PROCESSOR: [(CapabilitySet, &[i64]); 0] = [];

/// The bit in the numbers of calls with short pointers (x32), and the one that has another number there.
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: Option<(i64, [(i64, i64); 1])> = Some((0x4000_0000, [(libc::SYS_kexec_load, 528)]));
#[cfg(not(target_arch = "x86_64"))]
const SHORT_POINTERS: Option<(i64, [(i64, i64); 1])> = None;

/// `TIOCSTI`, whose type differs between C libraries.
const INPUT: u64 = 0x5412;

/// `FS_IOC_FSSETXATTR`: who owns a file could give it to another project, whose quota it would count to.
const SET_ATTRIBUTES: u64 = 0x401c_5820;

/// A process that is made with one of these is in a namespace of its own.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME
];

/// # Errors
/// When the kernel takes no filter.
pub fn install(capabilities: CapabilitySet) -> io::Result<()> {
    for program in programs(capabilities)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn programs(capabilities: CapabilitySet) -> io::Result<Vec<BpfProgram>> {
    let mut programs = vec![compile(refused(capabilities)?, libc::EPERM)?];
    if !capabilities.contains(CapabilitySet::SYS_ADMIN) {
        // Its flags are in memory, where a filter cannot look. Libraries take the older call when this one is not there.
        let newer = Rules::from([(libc::SYS_clone3, Vec::new())]);
        programs.push(compile(in_all_numbers(newer), libc::ENOSYS)?);
    }
    Ok(programs)
}

fn compile(rules: Rules, errno: i32) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

fn refused(capabilities: CapabilitySet) -> io::Result<Rules> {
    let mut rules = Rules::new();
    for (capability, calls) in CALLS.iter().chain(&OF_THIS_PROCESSOR) {
        if capability.is_empty() || !capabilities.contains(*capability) {
            rules.extend(calls.iter().map(|call| (*call, Vec::new())));
        }
    }
    if !capabilities.contains(CapabilitySet::SYS_ADMIN) {
        let has = |flag: &i32| masked(0, *flag as u64, *flag as u64);
        rules.insert(libc::SYS_clone, NAMESPACES.iter().map(has).collect::<io::Result<_>>()?);
        // What a terminal is made to read would be read by whoever has given it to the task.
        let requests = [INPUT, SET_ATTRIBUTES].map(|request| masked(1, 0xffff_ffff, request));
        rules.insert(libc::SYS_ioctl, requests.into_iter().collect::<io::Result<_>>()?);
    }
    Ok(in_all_numbers(rules))
}

/// The argument, as far as the mask lets it through, is this.
fn masked(argument: u8, mask: u64, value: u64) -> io::Result<SeccompRule> {
    let condition =
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
}

/// A call must not be possible under a second number.
fn in_all_numbers(mut rules: Rules) -> Rules {
    if let Some((bit, others)) = SHORT_POINTERS {
        let number =
            |call: &i64| others.iter().find(|(usual, _)| usual == call).map_or(*call, |(_, other)| *other);
        let second: Rules = rules.iter().map(|(call, rule)| (number(call) | bit, rule.clone())).collect();
        rules.extend(second);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_takes_its_calls_along() {
        let none = refused(CapabilitySet::empty()).unwrap();
        for call in
            [libc::SYS_mount, libc::SYS_init_module, libc::SYS_keyctl, libc::SYS_clone, libc::SYS_ioctl]
        {
            assert!(none.contains_key(&call), "{call}");
        }
        assert!(!none.contains_key(&libc::SYS_execve), "a task is a program that runs");
        let admin = refused(CapabilitySet::SYS_ADMIN).unwrap();
        assert!(!admin.contains_key(&libc::SYS_mount) && !admin.contains_key(&libc::SYS_clone));
        assert!(admin.contains_key(&libc::SYS_init_module) && admin.contains_key(&libc::SYS_keyctl));
    }

    #[test]
    fn quotas_of_projects_cannot_be_passed_by() {
        let none = refused(CapabilitySet::empty()).unwrap();
        assert_eq!(none[&libc::SYS_ioctl].len(), 2);
        assert!(
            [libc::SYS_quotactl, libc::SYS_quotactl_fd, FILE_SETATTR]
                .iter()
                .all(|call| none.contains_key(call))
        );
    }

    #[test]
    fn filters_fit_into_the_kernel() {
        assert_eq!(programs(CapabilitySet::empty()).unwrap().len(), 2);
        assert_eq!(programs(CapabilitySet::SYS_ADMIN).unwrap().len(), 1);
    }
}
