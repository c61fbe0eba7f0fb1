//! Programs for a Java virtual machine of the host, isolated as tasks of [`super::exec`] are.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::Value;

use super::exec::{ISOLATED, Isolated, OPERATOR, unusable};
use crate::driver::process;
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, Field, Fingerprint, FsIsolation, GroupNetworks, Known, RunningTask,
    Schema, StartError, Started, TaskConfig, ValueType, Values,
};

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: Schema(&[OPERATOR]),
    dev_config: &[],
    legacy_options: &[],
    make,
};

const NAME: &str = "java";

const TASK: Schema = Schema(&[
    &[
        Field::optional("class", ValueType::Text),
        Field::optional("class_path", ValueType::Text),
        Field::optional("jar_path", ValueType::Text),
        Field::optional("jvm_options", ValueType::TextList),
        Field::optional("args", ValueType::TextList),
    ],
    ISOLATED,
]);

#[derive(Debug)]
struct Java(Isolated);

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(Java(Isolated { config: config.clone(), host: host.clone() })))
}

impl Driver for Java {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: false,
            exec: false,
            fs_isolation: FsIsolation::Chroot,
            mounts: true,
            device_permissions: false,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Joins
    }

    fn has_dynamic_users(&self) -> bool {
        true
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        match self.0.usable() {
            Ok(()) => stream::once(detect()).boxed(),
            Err(why) => unusable(why).once(),
        }
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let args = arguments(&config.config).map_err(StartError::Invalid)?;
            let program = find().ok_or_else(|| StartError::fatal("this node has no java"))?;
            let program =
                program.to_str().ok_or_else(|| StartError::fatal("the path of java is not text"))?;
            self.0.start(config, program.to_string(), args).await
        })
    }

    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move { process::recover(state) })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(process::destroy(state, force))
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(self.0.host.executors.end_unknown(&known.handles))
    }
}

/// The program itself: the path in PATH is a link, which may lead to where a task does not see it.
fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(NAME)).find(|path| path.is_file());
    found.and_then(|path: PathBuf| Path::canonicalize(&path).ok())
}

/// # Errors
/// When nothing says what is to be run.
fn arguments(keys: &Values) -> Result<Vec<String>, String> {
    let mut args = keys.texts("jvm_options").to_vec();
    let pair = |flag: &str, key: &str| keys.text(key).map(|value| [flag.to_string(), value.to_string()]);
    args.extend(pair("-cp", "class_path").into_iter().flatten());
    let jar = pair("-jar", "jar_path");
    let class = keys.text("class").map(str::to_string);
    if jar.is_none() && class.is_none() {
        return Err("jar_path or class must be specified".to_string());
    }
    args.extend(jar.into_iter().flatten());
    args.extend(class);
    args.extend(keys.texts("args").iter().cloned());
    Ok(args)
}

async fn detect() -> Fingerprint {
    let missing = || Fingerprint::undetected("");
    let Some(program) = find() else { return missing() };
    let run = tokio::process::Command::new(program).arg("-version").stdin(Stdio::null()).output().await;
    match run.ok().filter(|run| run.status.success()).and_then(|run| {
        // It says so on its standard error.
        versions(&String::from_utf8_lossy(&run.stderr))
    }) {
        Some([version, runtime, vm]) => {
            let attributes = [("", "1"), (".version", &version), (".runtime", &runtime), (".vm", &vm)];
            Fingerprint::healthy(
                attributes.map(|(name, value)| (format!("driver.java{name}"), value.to_string())),
            )
        }
        None => missing(),
    }
}

/// Version, runtime and machine.
fn versions(text: &str) -> Option<[String; 3]> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with("Picked up _JAVA_OPTIONS"));
    let first = lines.next()?;
    let version = first.split('"').nth(1)?.to_string();
    Some([version, lines.next()?.to_string(), lines.next()?.to_string()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_arguments_of_the_machine_come_before_those_of_the_program() {
        let args = |block: Value| {
            let block = serde_json::from_value(block).unwrap();
            arguments(&Values::read(NAME, TASK, block).unwrap())
        };
        let jar = json!({"jar_path": "local/a.jar", "jvm_options": ["-Xmx64m"], "args": ["x"]});
        assert_eq!(args(jar).unwrap(), ["-Xmx64m", "-jar", "local/a.jar", "x"]);
        let class = json!({"class": "Main", "class_path": "/local"});
        assert_eq!(args(class).unwrap(), ["-cp", "/local", "Main"]);
        assert_eq!(args(json!({"class_path": "x"})).unwrap_err(), "jar_path or class must be specified");
    }

    #[test]
    fn a_machine_says_what_it_is() {
        let text = "Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version \"17.0.15\" 2025-04-15\nRuntime (build 1)\nVM (mixed)\n";
        assert_eq!(
            versions(text).unwrap(),
            ["17.0.15", "Runtime (build 1)", "VM (mixed)"].map(str::to_string)
        );
        assert_eq!(versions("no such thing"), None);
    }
}
