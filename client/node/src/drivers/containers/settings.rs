//! What operators can decide about every driver of containers.

use std::path::PathBuf;
use std::time::Duration;

use crate::driver::{Field, Schema, ValueType, Values};

pub const AUTH: Schema =
    Schema(&[&[Field::optional("config", ValueType::Text), Field::optional("helper", ValueType::Text)]]);

pub const GC: Schema = Schema(&[&[
    Field::optional("image", ValueType::Boolean),
    Field::optional("image_delay", ValueType::Duration),
    Field::optional("container", ValueType::Boolean),
    Field::optional("dangling_containers", ValueType::Block(DANGLING)),
]]);

const DANGLING: Schema = Schema(&[&[
    Field::optional("enabled", ValueType::Boolean),
    Field::optional("dry_run", ValueType::Boolean),
    Field::optional("period", ValueType::Duration),
    Field::optional("creation_grace", ValueType::Duration),
]]);

pub const VOLUMES: Schema = Schema(&[&[
    Field::optional("enabled", ValueType::Boolean),
    Field::optional("selinuxlabel", ValueType::Text),
]]);

#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// A file as `docker login` writes it.
    pub config: Option<PathBuf>,
    /// `NAME` of the program `docker-credential-NAME`.
    pub helper: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Gc {
    pub image: bool,
    pub image_delay: Duration,
    pub container: bool,
    pub dangling: Dangling,
}

/// About containers of this node that no task of this agent is.
#[derive(Clone, Copy, Debug)]
pub struct Dangling {
    pub enabled: bool,
    /// Only says what would be removed.
    pub dry_run: bool,
    pub period: Duration,
    pub creation_grace: Duration,
}

pub const MINUTE: Duration = Duration::from_secs(60);

/// A span of time that is at least `min`.
///
/// # Errors
/// Names the key whose value is shorter.
pub fn span(config: &Values, key: &str, default: Duration, min: Duration) -> Result<Duration, String> {
    match config.number(key) {
        None => Ok(default),
        Some(nanos) if nanos >= min.as_nanos() as i64 => Ok(config.duration(key)),
        Some(_) => Err(format!("{key} must be at least {} s", min.as_secs())),
    }
}

impl AuthSettings {
    pub fn read(block: &Values) -> AuthSettings {
        AuthSettings {
            config: block.text("config").map(PathBuf::from),
            helper: block.text("helper").map(str::to_string),
        }
    }
}

impl Gc {
    /// `images`: whether images that nobody uses are removed unless the operator decides it.
    ///
    /// # Errors
    /// Names the first key whose value cannot be.
    pub fn read(block: &Values, images: bool) -> Result<Gc, String> {
        let empty = Values::default();
        let dangling = block.block("dangling_containers").unwrap_or(&empty);
        Ok(Gc {
            image: block.flag("image").unwrap_or(images),
            image_delay: span(block, "image_delay", 3 * MINUTE, Duration::ZERO)?,
            container: block.flag("container").unwrap_or(true),
            dangling: Dangling {
                enabled: dangling.flag("enabled").unwrap_or(true),
                dry_run: dangling.boolean("dry_run"),
                period: span(dangling, "period", 5 * MINUTE, Duration::from_secs(1))?,
                creation_grace: span(dangling, "creation_grace", 5 * MINUTE, MINUTE)?,
            },
        })
    }
}
