//! Sets up completion in the configuration files of the user's shells.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::environment::Environment;

/// A shell's configuration file, and the line that completion adds to it.
struct ShellConfig {
    path: PathBuf,
    text: String,
    /// The whole file belongs to us.
    own: bool,
}

/// Adds completion to every shell that has a configuration file.
///
/// # Errors
/// When there is none, a file cannot be changed, or completion is installed already.
pub(crate) fn install(program: &str, environment: &Environment) -> anyhow::Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    let shell_configs = shell_configs(program, environment)?;
    for config in &shell_configs {
        let before = read(&config.path)?;
        if before.contains(config.text.trim_end()) {
            continue;
        }
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        write(&config.path, &format!("{before}{gap}{}", config.text))?;
        changed.push(config.path.clone());
    }
    if changed.is_empty() {
        bail!("autocompletion is installed already: -autocomplete-uninstall takes it back");
    }
    Ok(changed)
}

/// Removes completion.
///
/// # Errors
/// When it is not installed, or a file cannot be changed.
pub(crate) fn uninstall(program: &str, environment: &Environment) -> anyhow::Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    for config in shell_configs(program, environment)? {
        let before = read(&config.path)?;
        if !before.contains(&config.text) {
            continue;
        }
        if config.own {
            fs::remove_file(&config.path)
                .with_context(|| format!("cannot remove {}", config.path.display()))?;
        } else {
            write(&config.path, &before.replace(&config.text, ""))?;
        }
        changed.push(config.path);
    }
    if changed.is_empty() {
        bail!("autocompletion is not installed");
    }
    Ok(changed)
}

fn shell_configs(program: &str, environment: &Environment) -> anyhow::Result<Vec<ShellConfig>> {
    if environment.home.is_empty() {
        bail!("HOME is not set: the shells' settings cannot be found");
    }
    let home = Path::new(&environment.home);
    let own = std::env::current_exe().context("the program does not know where it is")?;
    let own = own.display().to_string();
    let mut shell_configs = Vec::new();
    for name in [".bashrc", ".bash_profile"] {
        shell_configs.push(ShellConfig { path: home.join(name), text: bash(program, &own), own: false });
    }
    shell_configs.push(ShellConfig { path: home.join(".zshrc"), text: zsh(program, &own), own: false });
    shell_configs.retain(|config| config.path.is_file());
    let config = match environment.config_home.as_str() {
        "" => home.join(".config"),
        given => PathBuf::from(given),
    };
    if config.join("fish").is_dir() {
        let path = config.join("fish/completions").join(format!("{program}.fish"));
        shell_configs.push(ShellConfig { path, text: fish(program, &own), own: true });
    }
    if shell_configs.is_empty() {
        bail!("no settings of a shell were found: .bashrc, .bash_profile, .zshrc or fish's");
    }
    Ok(shell_configs)
}

/// What makes a shell complete the lines of `program` by calling `own`; `None` for another shell.
pub(crate) fn script(shell: &str, program: &str, own: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash(program, own)),
        "zsh" => Some(zsh(program, own)),
        "fish" => Some(fish(program, own)),
        _ => None,
    }
}

fn bash(program: &str, own: &str) -> String {
    format!("complete -C {own} {program}\n")
}

fn zsh(program: &str, own: &str) -> String {
    format!("autoload -U +X bashcompinit && bashcompinit\ncomplete -o nospace -C {own} {program}\n")
}

fn fish(program: &str, own: &str) -> String {
    format!(
        "function __complete_{program}\n    set -lx COMP_LINE (commandline -cp)\n    test -z (commandline -ct)\n    \
         and set COMP_LINE \"$COMP_LINE \"\n    {own}\nend\ncomplete -f -c {program} -a \"(__complete_{program})\"\n"
    )
}

fn read(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("cannot read {}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_configuration_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let bashrc = home.path().join(".bashrc");
        fs::write(&bashrc, "alias l=ls").unwrap();
        fs::create_dir_all(home.path().join(".config/fish")).unwrap();
        let environment = Environment { home: home.path().display().to_string(), ..Environment::default() };
        let changed = install("nomad", &environment).unwrap();
        assert_eq!(changed.len(), 2);
        let text = fs::read_to_string(&bashrc).unwrap();
        assert!(text.starts_with("alias l=ls\ncomplete -C /") && text.ends_with(" nomad\n"), "{text}");
        assert!(install("nomad", &environment).unwrap_err().to_string().contains("installed already"));
        assert_eq!(uninstall("nomad", &environment).unwrap().len(), 2);
        assert_eq!(fs::read_to_string(&bashrc).unwrap(), "alias l=ls\n");
        assert!(!home.path().join(".config/fish/completions/nomad.fish").exists());
        assert!(uninstall("nomad", &environment).is_err());
    }

    #[test]
    fn a_home_without_shells_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment { home: home.path().display().to_string(), ..Environment::default() };
        let error = install("nomad", &environment).unwrap_err().to_string();
        assert!(error.starts_with("no settings of a shell were found"), "{error}");
    }
}
