//! Every command, one file each, in a folder for each kind of object. A new one is declared in its file and listed
//! in the table of its folder.

mod acl;
mod agent;
mod alloc;
mod at;
mod audit;
mod bench;
mod bisect;
mod blame;
mod completion;
mod cursor;
mod deployment;
mod diff;
mod enterprise;
mod eval;
mod events;
mod explain;
mod export;
mod fmt;
mod fork;
mod history;
mod import;
mod job;
mod log;
mod login;
mod man;
mod namespace;
mod node;
mod node_pool;
mod operator;
mod plugin;
mod record;
mod replay;
mod scaling;
mod server;
mod service;
mod setup;
mod sink;
mod status;
mod system;
mod tls;
mod top;
mod ui;
mod undo;
mod var;
pub(crate) mod version;
mod volume;
mod whatif;
mod why;

use crate::call::Command;

/// Commands without a folder.
const GENERAL: &[&Command] = &[
    &at::COMMAND,
    &bisect::COMMAND,
    &blame::COMMAND,
    &completion::COMMAND,
    &diff::COMMAND,
    &events::COMMAND,
    &explain::COMMAND,
    &export::NOMAD,
    &fmt::COMMAND,
    &import::NOMAD_API,
    &import::NOMAD_SNAPSHOT,
    &log::COMMAND,
    &login::COMMAND,
    &man::COMMAND,
    &record::COMMAND,
    &replay::COMMAND,
    &status::COMMAND,
    &top::COMMAND,
    &ui::COMMAND,
    &undo::COMMAND,
    &version::COMMAND,
    &whatif::COMMAND,
];

/// All commands, by name.
pub(crate) fn all() -> Vec<&'static Command> {
    let tables = [
        GENERAL,
        acl::COMMANDS,
        agent::COMMANDS,
        alloc::COMMANDS,
        audit::COMMANDS,
        bench::COMMANDS,
        cursor::COMMANDS,
        deployment::COMMANDS,
        eval::COMMANDS,
        fork::COMMANDS,
        history::COMMANDS,
        job::COMMANDS,
        namespace::COMMANDS,
        node::COMMANDS,
        node_pool::COMMANDS,
        operator::COMMANDS,
        plugin::COMMANDS,
        sink::COMMANDS,
        scaling::COMMANDS,
        server::COMMANDS,
        service::COMMANDS,
        setup::COMMANDS,
        system::COMMANDS,
        tls::COMMANDS,
        var::COMMANDS,
        volume::COMMANDS,
        why::COMMANDS,
    ];
    let mut all = tables.concat();
    all.extend(enterprise::commands());
    all.sort_by_key(|command| command.name);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// What reads flags on behalf of a command, and what the command has to list for it.
    const HELPERS: [(&str, &str); 11] = [
        ("other_cluster::client(", "FROM_FLAGS"),
        ("call.client", "CLIENT_FLAGS"),
        ("call.page(", "PAGE_FLAGS"),
        ("call.object_format()", "TEMPLATE"),
        ("hint::show(", "UI"),
        ("hint::job(", "UI"),
        ("job_file::load(", "JOB_FILE_FLAGS"),
        ("tail::start(", "TAIL"),
        ("newest_running(", "GROUP"),
        ("follow(&call, ", "DETACH"),
        ("watch::run(", "WATCH"),
    ];

    /// Groups of flags of which commands read single ones.
    const GROUPS: [(&str, &[&str]); 3] = [
        ("OBJECT_FLAGS", &["JSON", "TEMPLATE"]),
        ("JOB_FILE_FLAGS", &["VAR", "VAR_FILE", "HCL2_STRICT"]),
        ("SETUP_FLAGS", &["DESTROY", "YES", "JWKS_URL", "JWKS_CA_FILE"]),
    ];

    /// A source file up to its tests.
    fn production(path: &Path) -> String {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]").next().unwrap().to_string()
    }

    /// Every source file of a command.
    fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if !path.ends_with("mod.rs") {
                found.push((path.clone(), production(&path)));
            }
        }
        found
    }

    /// The constants in the flag lists of a file's commands.
    fn listed(text: &str) -> BTreeSet<&str> {
        let lists = text.split("    flags: &[").skip(1).map(|rest| rest.split("    run: ").next().unwrap());
        let lists =
            lists.chain(text.split("FlagList = &[").skip(1).map(|rest| rest.split("];").next().unwrap()));
        let groups = text.split(": &[FlagList] = &[").skip(1);
        let lists = lists.chain(groups.map(|rest| rest.split("];").next().unwrap()));
        let mut names: BTreeSet<&str> = lists.flat_map(|list| list.split(|c: char| !is_name(c))).collect();
        for (group, members) in GROUPS {
            if names.contains(group) {
                names.extend(members);
            }
        }
        names
    }

    /// The constants that are passed by reference as the first argument, as flags are where they are read.
    fn read(text: &str) -> BTreeSet<&str> {
        let arguments =
            text.split("(&").skip(1).map(|rest| rest.split(|c: char| !is_name(c)).next().unwrap());
        arguments.filter(|name| name.len() > 1 && name.chars().all(|c| !c.is_ascii_lowercase())).collect()
    }

    fn is_name(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }

    #[test]
    fn every_flag_that_a_command_reads_is_listed_by_it() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut sources = sources(&source.join("command"));
        assert!(sources.len() > 60, "{}", sources.len());
        for path in ["job_file.rs", "settings/flags.rs"].map(|file| source.join(file)) {
            sources.push((path.clone(), production(&path)));
        }
        for (path, text) in sources {
            let listed = listed(&text);
            let helpers = HELPERS.iter().filter(|(call, _)| text.contains(call)).map(|(_, flag)| *flag);
            let missing: Vec<_> =
                read(&text).into_iter().chain(helpers).filter(|flag| !listed.contains(flag)).collect();
            assert!(missing.is_empty(), "{}: {missing:?} are read and not listed", path.display());
        }
    }
}
