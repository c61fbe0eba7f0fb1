//! What every command consists of: its declaration, and the call that runs it.

use std::future::Future;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::time::SystemTime;

use base::Time;
use jiff::tz::TimeZone;
use model::document::Job;
use sdk::{Builder, Client, Query, TlsOptions};

use crate::environment::{ADDRESS_DEFAULT, Environment};
use crate::flags::{Args, Completion, Flag, FlagError, FlagList, FlagSpec, specs};
use crate::output::OutputStyle;

/// One command of the program.
pub(crate) struct Command {
    /// Its words, like `job status`.
    pub name: &'static str,
    /// Shorter names that mean the same.
    pub aliases: &'static [&'static str],
    /// What follows the flags, like `<job>`.
    pub arguments: &'static str,
    /// One line for lists of commands.
    pub summary: &'static str,
    /// More text for the help page; may be empty.
    pub details: &'static str,
    /// In the order of the help page.
    pub flags: &'static [FlagList],
    pub run: Run,
}

impl Command {
    /// All flags it takes.
    pub(crate) fn flag_specs(&self) -> impl Iterator<Item = &'static FlagSpec> + Clone {
        specs(self.flags)
    }
}

/// How a command runs.
pub(crate) enum Run {
    /// On the main thread's runtime.
    Task(fn(Call) -> Pin<Box<dyn Future<Output = Outcome>>>),
    /// Without a runtime: it creates its own if it needs one.
    Process(fn(Call) -> Outcome),
}

/// The exit code, or the error.
pub(crate) type Outcome = Result<u8, Failure>;

/// Why a command failed. The exit code is 1 unless stated otherwise.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong arguments: printed with a hint at the help page.
    Usage(String),
    /// A wrong flag: printed with the usage line.
    Flag(FlagError),
    /// Everything else: printed as it is.
    Failed(anyhow::Error),
    /// Printed as it is, with this exit code.
    Code(u8, String),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Failed(error)
    }
}

impl From<FlagError> for Failure {
    fn from(error: FlagError) -> Failure {
        Failure::Flag(error)
    }
}

/// Adds what was being done to the error of a request: `Error querying job: Unexpected response code: …`.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Failure>;
}

impl<T> Doing<T> for Result<T, sdk::Error> {
    fn doing(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::Failed(anyhow::Error::new(error).context(format!("Error {what}"))))
    }
}

pub(crate) const ADDRESS: Flag<String> =
    Flag::value("address", "ADDR", "The agent's address. Also NOMAD_ADDR. Default: http://127.0.0.1:4646.");
const REGION: Flag<String> = Flag::value("region", "NAME", "The region to query. Also NOMAD_REGION.");
pub(crate) const NAMESPACE: Flag<String> = Flag::value(
    "namespace",
    "NAME",
    "The namespace to query; * means all namespaces, for lists. Also NOMAD_NAMESPACE.",
)
.completed_by(Completion::Ids("namespaces"));
pub(crate) const TOKEN: Flag<String> = Flag::value("token", "SECRET", "The ACL token. Also NOMAD_TOKEN.");
const AS_OF: Flag<String> = Flag::value(
    "as-of",
    "MOMENT",
    "Show what was then: an index, a time like 2026-01-02T15:04:05Z, or a span like -15m.",
);
pub(crate) const FORK: Flag<String> =
    Flag::value("fork", "ID", "Show what would be, on a fork that whatif -keep has made.");
const NO_COLOR: Flag<bool> = Flag::switch("no-color", "No colours. Also NOMAD_CLI_NO_COLOR and NO_COLOR.");
const FORCE_COLOR: Flag<bool> =
    Flag::switch("force-color", "Colours even when the output is no terminal. Also NOMAD_CLI_FORCE_COLOR.");

const CA_CERT: Flag<String> = Flag::value(
    "ca-cert",
    "FILE",
    "The authority of the agent's certificate. Also NOMAD_CACERT. Default: those that this host trusts.",
)
.completed_by(Completion::Files);
const CA_PATH: Flag<String> = Flag::value("ca-path", "DIR", "The same, in a directory. Also NOMAD_CAPATH.")
    .completed_by(Completion::Files);
const CLIENT_CERT: Flag<String> =
    Flag::value("client-cert", "FILE", "The certificate to show. Also NOMAD_CLIENT_CERT.")
        .completed_by(Completion::Files);
const CLIENT_KEY: Flag<String> =
    Flag::value("client-key", "FILE", "Its key. Also NOMAD_CLIENT_KEY.").completed_by(Completion::Files);
const TLS_SERVER_NAME: Flag<String> = Flag::value(
    "tls-server-name",
    "NAME",
    "The name in the agent's certificate, if it is not the host of the address. Also NOMAD_TLS_SERVER_NAME.",
);
const TLS_SKIP_VERIFY: Flag<bool> =
    Flag::switch("tls-skip-verify", "Trust any certificate. Also NOMAD_SKIP_VERIFY.");
const INSECURE: Flag<bool> = Flag::switch("insecure", "The same as -tls-skip-verify.");

/// Flags of every command that talks to an agent.
pub(crate) const CLIENT_FLAGS: FlagList = &[
    &ADDRESS,
    &REGION,
    &NAMESPACE,
    &TOKEN,
    &AS_OF,
    &FORK,
    &NO_COLOR,
    &FORCE_COLOR,
    &CA_CERT,
    &CA_PATH,
    &CLIENT_CERT,
    &CLIENT_KEY,
    &TLS_SERVER_NAME,
    &TLS_SKIP_VERIFY,
    &INSECURE,
];

pub(crate) const JSON: Flag<bool> = Flag::switch("json", "Print the objects as JSON.");
/// Prints objects by a template of the user's.
pub(crate) const TEMPLATE: Flag<String> =
    Flag::value("t", "TEMPLATE", "A Go template to print the objects with.");

/// Flags of every command that can show its objects as they are.
pub(crate) const OBJECT_FLAGS: FlagList = &[&JSON, &TEMPLATE];

const FILTER: Flag<String> = Flag::value("filter", "EXPR", "List only what matches this expression.");
const PER_PAGE: Flag<u32> = Flag::number("per-page", "N", "Entries per page.");
const PAGE_TOKEN: Flag<String> = Flag::value("page-token", "TOKEN", "The page to start at.");

/// Flags of every list that comes in pages.
pub(crate) const PAGE_FLAGS: FlagList = &[&FILTER, &PER_PAGE, &PAGE_TOKEN];

/// For commands whose objects have a page in the web UI.
pub(crate) const UI: Flag<bool> = Flag::switch("ui", "Open the web UI there, if the agent has one.");

/// For commands that make an evaluation and follow it.
pub(crate) const DETACH: Flag<bool> =
    Flag::switch("detach", "Return at once, with the id of the evaluation.");

/// For commands that show ids.
pub(crate) const VERBOSE: Flag<bool> =
    Flag::switch("verbose", "Print full ids, exact times and more detail.");

/// For commands whose tables have more columns than usually fit.
pub(crate) const OUTPUT: Flag<Wide> =
    Flag::parsed("o", "FORMAT", "wide", "wide: tables with more columns. There is no other format.");

/// The only format that `-o` knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide;

impl FromStr for Wide {
    type Err = ();

    fn from_str(text: &str) -> Result<Wide, ()> {
        if text == "wide" { Ok(Wide) } else { Err(()) }
    }
}

/// One invocation of a command.
pub(crate) struct Call {
    /// The name the program was called by.
    pub program: String,
    pub command: &'static Command,
    pub args: Args,
    pub environment: Environment,
    /// The time that ages are counted to, where it is not the present.
    pub frozen: Option<Time>,
}

impl Call {
    /// A client of the agent that flags and environment give.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_in(self.namespace())
    }

    /// As [`Call::client`], in another namespace.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn client_in(&self, namespace: &str) -> Result<Client, Failure> {
        self.client_of(namespace, self.as_of(), self.fork())
    }

    /// As [`Call::client_in`], of another moment.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn client_at(&self, namespace: &str, as_of: &str) -> Result<Client, Failure> {
        self.client_of(namespace, as_of, self.fork())
    }

    /// The region that the caller names; empty for none.
    pub(crate) fn region(&self) -> &str {
        self.setting(&REGION, &self.environment.region, "")
    }

    /// The moment that is read; empty for the present.
    pub(crate) fn as_of(&self) -> &str {
        self.args.value(&AS_OF).unwrap_or_default()
    }

    /// The kept fork that is read; empty for none.
    pub(crate) fn fork(&self) -> &str {
        self.args.value(&FORK).unwrap_or_default()
    }

    /// As [`Call::client_in`], for commands to which a fork is something to work on rather than what they read.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn client_beside_fork(&self, namespace: &str) -> Result<Client, Failure> {
        self.client_of(namespace, self.as_of(), "")
    }

    fn client_of(&self, namespace: &str, as_of: &str, fork: &str) -> Result<Client, Failure> {
        let builder = Builder {
            address: self.address().to_string(),
            basic_auth: self.environment.http_auth.clone(),
            token: self.token().to_string(),
            region: self.region().to_string(),
            namespace: namespace.to_string(),
            as_of: as_of.to_string(),
            fork: fork.to_string(),
            tls: self.tls()?,
        };
        builder.build().doing("initializing client")
    }

    /// Whom to trust, and what to show.
    ///
    /// # Errors
    /// When NOMAD_SKIP_VERIFY is neither true nor false.
    pub(crate) fn tls(&self) -> Result<TlsOptions, Failure> {
        let path = |flag, environment| PathBuf::from(self.setting(flag, environment, ""));
        let environment = &self.environment;
        let skip_verify = match environment.skip_verify.as_str() {
            "" => false,
            text => api::go_bool(text).ok_or_else(|| {
                anyhow::anyhow!("NOMAD_SKIP_VERIFY: expected true or false, not \"{text}\"")
            })?,
        };
        let given = self.args.given_switch(&TLS_SKIP_VERIFY).or(self.args.given_switch(&INSECURE));
        Ok(TlsOptions {
            ca_cert: path(&CA_CERT, &environment.ca_cert),
            ca_path: path(&CA_PATH, &environment.ca_path),
            client_cert: path(&CLIENT_CERT, &environment.client_cert),
            client_key: path(&CLIENT_KEY, &environment.client_key),
            server_name: self.setting(&TLS_SERVER_NAME, &environment.tls_server_name, "").to_string(),
            skip_verify: given.unwrap_or(skip_verify),
        })
    }

    pub(crate) fn address(&self) -> &str {
        self.setting(&ADDRESS, &self.environment.address, ADDRESS_DEFAULT)
    }

    /// The ACL token of requests; empty for none.
    pub(crate) fn token(&self) -> &str {
        self.setting(&TOKEN, &self.environment.token, "")
    }

    /// The agent's address for a browser. A Unix socket has none, so then it is the default address.
    pub(crate) fn web_address(&self) -> &str {
        let address = self.address();
        if address.starts_with("unix:") { ADDRESS_DEFAULT } else { address.trim_end_matches('/') }
    }

    /// The namespace of requests; empty means the server's default.
    pub(crate) fn namespace(&self) -> &str {
        self.setting(&NAMESPACE, &self.environment.namespace, "")
    }

    /// The namespace of a job: from flags or environment, else from the job itself.
    pub(crate) fn namespace_of(&self, job: &Job) -> String {
        match self.namespace() {
            "" => job.namespace.clone().unwrap_or_default(),
            given => given.to_string(),
        }
    }

    fn setting<'a>(&'a self, flag: &Flag<String>, environment: &'a str, default: &'a str) -> &'a str {
        let given = self.args.value(flag).unwrap_or(environment);
        if given.is_empty() { default } else { given }
    }

    pub(crate) fn style(&self) -> OutputStyle {
        let wanted = self.args.switch(&FORCE_COLOR) || self.environment.force_color;
        let unwanted = self.args.switch(&NO_COLOR) || self.environment.no_color;
        OutputStyle {
            program: self.program.clone(),
            colour: wanted || (!unwanted && io::stdout().is_terminal()),
            verbose: self.args.switch(&VERBOSE),
            wide: matches!(self.args.parsed(&OUTPUT), Ok(Some(Wide))),
            now: self.frozen.unwrap_or_else(now),
            zone: TimeZone::system(),
        }
    }

    /// The query for one page of a list.
    ///
    /// # Errors
    /// When `-per-page` is not a number.
    pub(crate) fn page(&self) -> Result<Query, Failure> {
        let text = |flag| self.args.value(flag).unwrap_or_default();
        let size = self.args.parsed(&PER_PAGE)?.filter(|size| *size > 0);
        Ok(Query::new()
            .with("filter", text(&FILTER))
            .with("per_page", size.map(|size| size.to_string()).unwrap_or_default())
            .with("next_token", text(&PAGE_TOKEN)))
    }

    /// The command for the next page of a list; empty on the last page.
    pub(crate) fn next_page(&self, token: Option<&str>) -> String {
        let Some(token) = token else { return String::new() };
        let mut line = format!("{} {}", self.program, self.command.name);
        // The ACL token is a secret and is not printed.
        let shown = |(name, _): &(&str, &str)| ![PAGE_TOKEN.name(), TOKEN.name()].contains(name);
        for (name, value) in self.args.given().filter(shown) {
            match value {
                "true" => line.push_str(&format!(" -{name}")),
                value => line.push_str(&format!(" -{name} {}", quoted(value))),
            }
        }
        line.push_str(&format!(" -page-token {token}"));
        line.extend(self.args.words.iter().map(|word| format!(" {}", quoted(word))));
        format!("\nResults have been paginated. To get the next page run:\n\n{line}\n")
    }

    /// The only argument.
    ///
    /// # Errors
    /// When there are none or several: `This command takes one argument: <job>`.
    pub(crate) fn one_argument(&self) -> Result<&str, Failure> {
        match self.args.words.as_slice() {
            [word] => Ok(word),
            _ => Err(self.usage(&format!("This command takes one argument: {}", self.command.arguments))),
        }
    }

    /// The argument, if there is one.
    ///
    /// # Errors
    /// When there are several.
    pub(crate) fn optional_argument(&self) -> Result<Option<&str>, Failure> {
        match self.args.words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            _ => Err(self.usage("This command takes either no arguments or one")),
        }
    }

    /// Two arguments.
    ///
    /// # Errors
    /// When there are more or fewer.
    pub(crate) fn two_arguments(&self) -> Result<(&str, &str), Failure> {
        match self.args.words.as_slice() {
            [first, second] => Ok((first, second)),
            _ => Err(self.usage(&format!("This command takes two arguments: {}", self.command.arguments))),
        }
    }

    /// Rejects a flag of Nomad Enterprise.
    ///
    /// # Errors
    /// When it was given.
    pub(crate) fn reject_enterprise(&self, flag: &Flag<String>) -> Result<(), Failure> {
        match self.args.value(flag) {
            None | Some("") => Ok(()),
            Some(_) => {
                Err(anyhow::anyhow!("-{} is a flag of Nomad Enterprise: leave it out", flag.name()).into())
            }
        }
    }

    /// # Errors
    /// When there are any.
    pub(crate) fn no_arguments(&self) -> Result<(), Failure> {
        if self.args.words.is_empty() { Ok(()) } else { Err(self.usage("This command takes no arguments")) }
    }

    /// An error about wrong arguments. It mentions a flag after the arguments, which is the most common mistake.
    pub(crate) fn usage(&self, message: &str) -> Failure {
        let late = self.args.words.iter().skip(1).find(|word| word.starts_with('-') && word.len() > 1);
        Failure::Usage(match late {
            Some(flag) => format!("{message} ({flag} must come before the arguments)"),
            None => message.to_string(),
        })
    }
}

/// A word, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The current time.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
