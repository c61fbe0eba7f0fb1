//! Texts of templates: made of what is known, and written.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use template::{Dependency, Fetched, Rendered, Source, Template};

use super::sandbox::Sandbox;
use super::spec::Spec;
use super::watches::{Reader, Subscription, Watches};
use crate::clock;
use crate::context::Context;
use crate::task::environment::Environment;
use crate::vault::reads::Access;

/// Most things that the templates of one task read.
pub const DEPENDENCIES_MAX: usize = 1024;

/// The templates of a task, with what they read.
#[derive(Debug)]
pub struct Renderer {
    pub context: Arc<Context>,
    pub specs: Vec<Spec>,
    environment: Environment,
    sandbox: Sandbox,
    reader: Reader,
    alloc_id: String,
    vault: Option<Access>,
    token: Option<String>,
    subscriptions: BTreeMap<Dependency, Subscription>,
    /// What each template has read, by its number.
    used: Vec<BTreeSet<Dependency>>,
    /// What each template was when it was written last.
    pub written: Vec<Option<Vec<u8>>>,
}

/// What [`Renderer`] is made of.
#[derive(Debug)]
pub struct Parts {
    pub context: Arc<Context>,
    pub specs: Vec<Spec>,
    pub environment: Environment,
    pub sandbox: Sandbox,
    pub reader: Reader,
    pub alloc_id: String,
    /// None for a task without a Vault.
    pub vault: Option<Access>,
}

/// The result of an attempt to render.
#[derive(Debug, PartialEq, Eq)]
pub enum Attempt {
    Done(Vec<u8>),
    Missing(BTreeSet<Dependency>),
}

impl Renderer {
    pub fn new(parts: Parts) -> Renderer {
        let count = parts.specs.len();
        Renderer {
            context: parts.context,
            specs: parts.specs,
            environment: parts.environment,
            sandbox: parts.sandbox,
            reader: parts.reader,
            alloc_id: parts.alloc_id,
            vault: parts.vault,
            token: None,
            subscriptions: BTreeMap::new(),
            used: vec![BTreeSet::new(); count],
            written: vec![None; count],
        }
    }

    /// Renders a template of what is known, and begins to read what it needs besides.
    ///
    /// # Errors
    /// When it makes no sense, or something that it reads cannot be read.
    pub fn attempt(&mut self, at: usize) -> Result<Attempt, String> {
        let spec = &self.specs[at];
        let named = |why: String| format!("template \"{}\": {why}", spec.name);
        let (rendered, used) = {
            let source = NodeSource { renderer: &*self, used: RefCell::default() };
            let parsed =
                Template::parse_as(&spec.text, &spec.syntax).map_err(|error| named(error.to_string()))?;
            let rendered = parsed.render_task(&source, &self.context.settings.templates.function_denylist);
            (rendered, source.used.into_inner())
        };
        for dependency in &used {
            self.subscribe(dependency).map_err(named_by(&self.specs[at].name))?;
        }
        self.used[at] = used;
        match rendered.map_err(|error| error.to_string()).map_err(named_by(&self.specs[at].name))? {
            Rendered::Done(bytes) => Ok(Attempt::Done(bytes)),
            Rendered::Missing(missing) => Ok(Attempt::Missing(missing)),
        }
    }

    /// With what the servers are asked. Without one nothing is read.
    pub fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Takes what an earlier agent has written for what there is.
    pub fn restore(&mut self) {
        self.written = self.specs.iter().map(|spec| spec.destination.read().ok()).collect();
    }

    /// Whether anything can change.
    pub fn follows(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    fn subscribe(&mut self, dependency: &Dependency) -> Result<(), String> {
        let Some(token) = self.token.as_deref() else { return Ok(()) };
        if self.subscriptions.contains_key(dependency) {
            return Ok(());
        }
        if matches!(dependency, Dependency::Consul(_)) && self.context.settings.consul.is_none() {
            return Err(format!("{dependency}: needs Consul, which this node has not"));
        }
        if self.subscriptions.len() >= DEPENDENCIES_MAX {
            return Err(format!("templates of a task read at most {DEPENDENCIES_MAX} things"));
        }
        if let Dependency::Vault(read) = dependency {
            let access =
                self.vault.clone().ok_or_else(|| format!("{dependency}: the task has no vault block"))?;
            let subscription =
                Watches::subscribe_vault(&self.context, &self.reader, access, read, &self.alloc_id)?;
            self.subscriptions.insert(dependency.clone(), subscription);
            return Ok(());
        }
        let of_consul = match (dependency, &self.context.settings.consul) {
            (Dependency::Consul(_), Some(consul)) => {
                Some(consul.token_of(&self.alloc_id, &self.reader.task).unwrap_or_default())
            }
            _ => None,
        };
        let token = of_consul.as_deref().unwrap_or(token);
        let subscription =
            Watches::subscribe(&self.context, &self.reader, dependency, &self.alloc_id, token)?;
        self.subscriptions.insert(dependency.clone(), subscription);
        Ok(())
    }

    /// Gives up what no template that is rendered again reads any more.
    pub fn tidy(&mut self) {
        let living = self.specs.iter().zip(&self.used).filter(|(spec, _)| !spec.once);
        let needed: BTreeSet<&Dependency> = living.flat_map(|(_, used)| used).collect();
        self.subscriptions.retain(|dependency, _| needed.contains(dependency));
    }

    /// Waits until something that was read has changed, and says what.
    pub async fn changed(&mut self) -> Dependency {
        if self.subscriptions.is_empty() {
            return std::future::pending().await;
        }
        let changes = self.subscriptions.iter_mut().map(|(dependency, subscription)| {
            let dependency = dependency.clone();
            Box::pin(async move {
                match subscription.answer.changed().await {
                    Ok(()) => dependency,
                    // The agent stops.
                    Err(_) => std::future::pending().await,
                }
            })
        });
        futures_util::future::select_all(changes).await.0
    }

    /// The templates that are rendered again when this changes.
    pub fn readers_of(&self, dependency: &Dependency) -> Vec<usize> {
        let reads = |at: &usize| !self.specs[*at].once && self.used[*at].contains(dependency);
        (0..self.specs.len()).filter(reads).collect()
    }

    /// Puts the text in its place, unless it is what was there; true when it differs.
    ///
    /// # Errors
    /// When the file cannot be written, or is to be an environment and is none.
    pub fn write(&mut self, at: usize, bytes: Vec<u8>) -> Result<bool, String> {
        let spec = &self.specs[at];
        if spec.env {
            variables(&bytes).map_err(named_by(&spec.name))?;
        }
        // Also when the agent was restarted meanwhile.
        let differs = spec.destination.read().ok().as_ref() != Some(&bytes);
        if differs || self.written[at].is_none() {
            let written = spec.destination.write(&bytes, spec.ownership);
            written.map_err(|error| error.to_string()).map_err(named_by(&spec.name))?;
        }
        self.written[at] = Some(bytes);
        Ok(differs)
    }

    /// The variables of all templates that are environments; later ones win.
    ///
    /// # Errors
    /// A line that is none.
    pub fn env(&self) -> Result<BTreeMap<String, String>, String> {
        let mut all = BTreeMap::new();
        for (spec, written) in self.specs.iter().zip(&self.written).filter(|(spec, _)| spec.env) {
            all.extend(variables(written.as_deref().unwrap_or_default()).map_err(named_by(&spec.name))?);
        }
        Ok(all)
    }
}

fn named_by(name: &str) -> impl FnOnce(String) -> String {
    let name = name.to_string();
    move |why| format!("template \"{name}\": {why}")
}

/// What is known while a template is rendered.
struct NodeSource<'a> {
    renderer: &'a Renderer,
    used: RefCell<BTreeSet<Dependency>>,
}

impl Source for NodeSource<'_> {
    fn fetch(&self, dependency: &Dependency) -> Fetched {
        self.used.borrow_mut().insert(dependency.clone());
        let subscription = self.renderer.subscriptions.get(dependency);
        subscription.map_or(Fetched::Pending, |subscription| subscription.answer.borrow().clone())
    }

    fn env(&self, name: &str) -> Option<String> {
        self.renderer.environment.value(name).map(str::to_string)
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let location = self.renderer.sandbox.locate(path)?;
        location.read().map_err(|error| format!("\"{path}\": {error}"))
    }

    fn now(&self) -> i64 {
        clock::now().0
    }
}

/// Lines `NAME=VALUE`, with comments, `export`, and quotes.
///
/// # Errors
/// A line that is none, by its number.
pub fn variables(bytes: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the environment is not UTF-8".to_string())?;
    let (mut all, mut rest, mut line) = (BTreeMap::new(), text, 1);
    while !rest.is_empty() {
        let (entry, left) = entry(rest).map_err(|why| format!("line {line}: {why}"))?;
        line += rest[..rest.len() - left.len()].matches('\n').count();
        all.extend(entry);
        rest = left;
    }
    Ok(all)
}

type Entry = Option<(String, String)>;

/// The variable of the first line, and what follows it; a quoted value may have several lines.
fn entry(text: &str) -> Result<(Entry, &str), String> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok((None, after));
    }
    let (name, _) = line.split_once(['=', ':']).ok_or_else(|| format!("{trimmed:?} is not NAME=VALUE"))?;
    let given = &text[name.len() + 1..];
    let name = name.trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("{name:?} is not a name of a variable"));
    }
    let value = given.trim_start_matches([' ', '\t']);
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (value, left) = quoted(&value[1..], quote).ok_or("a quote is not closed")?;
        return Ok((Some((name.to_string(), value)), left.split_once('\n').map_or("", |(_, left)| left)));
    }
    let (value, after) = value.split_once('\n').unwrap_or((value, ""));
    // A comment begins after a blank.
    let cut = value.find(" #").or_else(|| value.starts_with('#').then_some(0)).unwrap_or(value.len());
    Ok((Some((name.to_string(), value[..cut].trim().to_string())), after))
}

/// What stands before the quote, and what after it. Double quotes know escapes.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut out, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((out, &text[at + 1..])),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                other @ ('"' | '\\' | '$' | '`') => out.push(other),
                other => out.extend(['\\', other]),
            },
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_read_line_by_line() {
        let text = "# all\n\nA=1\nexport B = two words # note\nC=\"x\\ny #\" # c\nD='$A\\n'\nE=\nF=a=b\nG=\"two\nlines\"\nH=a#b\n";
        let found = variables(text.as_bytes()).unwrap();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x\ny #"),
            ("D", "$A\\n"),
            ("E", ""),
            ("F", "a=b"),
            ("G", "two\nlines"),
            ("H", "a#b"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())).into());
        assert_eq!(variables(b"A=1\nnonsense\n").unwrap_err(), "line 2: \"nonsense\" is not NAME=VALUE");
        assert_eq!(variables(b"A=\"x").unwrap_err(), "line 1: a quote is not closed");
    }
}
