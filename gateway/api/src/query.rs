//! Query parameters that many routes share. Names, defaults and error texts are Nomad's.

use std::net::{IpAddr, SocketAddr};

use base::{Duration, Index, Time};
use model::document::Timestamp;

/// Longest, and default, time a blocking read waits.
pub const WAIT_MAX: Duration = Duration::from_secs(300);

/// Where servers listen for nodes and each other, unless they say otherwise.
const RPC_PORT: u16 = 4647;

/// The decoded parameters of one request, in the order they were given.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(String, String)>);

/// A parameter with a value that cannot be read. Every one of them is the caller's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("Invalid index")]
    Index,
    #[error("Invalid wait time")]
    Wait,
    #[error("Expect `true` or `false` for `stale` query string parameter")]
    Stale,
    #[error("Expect a number for `per_page` query string parameter")]
    PerPage,
    #[error("Expect `true` or `false` for `consistent` query string parameter")]
    Consistent,
    #[error("`stale` and `consistent` exclude each other")]
    StaleAndConsistent,
    #[error("Expect an index for `min_index` query string parameter")]
    MinIndex,
    #[error(
        "\"{value}\" is not an index, a time like 2026-01-02T15:04:05Z or a span like -15m, for `{name}`"
    )]
    Moment { name: &'static str, value: String },
    #[error("`fork` and `{0}`: a fork is one state, which waits for nothing: expected one of them")]
    ForkWith(&'static str),
    #[error("missing server addresses")]
    NoServers,
    #[error("`address` {value:?}: expected HOST or HOST:PORT")]
    Server { value: String },
    #[error("\"{value}\" is not true or false, for `{name}`")]
    Bool { name: &'static str, value: String },
    #[error("\"{value}\" is not a whole number, for `{name}`")]
    Number { name: &'static str, value: String },
}

/// The moment a read of the past asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    Index(Index),
    Time(Time),
    /// This long before now.
    Ago(Duration),
}

/// What a read may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Anything: whatever this server has, also while nobody leads.
    Stale,
    /// Nothing that was acknowledged before, as far as clocks run at about the same speed.
    Leased,
    /// Nothing that was acknowledged before: a majority of the servers confirms it.
    Confirmed,
}

/// What every read may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Block until the result is newer than this; 0 answers at once.
    pub index: Index,
    /// Within [`WAIT_MAX`]; the server adds its jitter.
    pub wait: Duration,
    pub consistency: Consistency,
    /// The answer has to be at least this new: the index of a write at another server. 0 accepts any.
    pub min_index: Index,
    /// `default` unless given; `*` means every namespace, on lists.
    pub namespace: String,
    /// Empty means the region of the agent.
    pub region: String,
    pub prefix: String,
    /// `None` asks for everything.
    pub per_page: Option<u32>,
    pub next_token: String,
    pub filter: String,
    pub reverse: bool,
    pub pretty: bool,
    pub as_of: Option<AsOf>,
    /// The fork that is read instead of what is.
    pub fork: Option<String>,
}

impl ReadOptions {
    /// What the cluster is, neither what it was nor what it would be.
    pub fn is_of_now(&self) -> bool {
        self.as_of.is_none() && self.fork.is_none()
    }
}

impl Params {
    /// Takes pairs that are already percent-decoded.
    pub fn new(pairs: Vec<(String, String)>) -> Params {
        Params(pairs)
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The same with these values in place of what there was.
    #[must_use]
    pub fn with<'a>(mut self, name: &str, values: impl IntoIterator<Item = &'a str>) -> Params {
        self.0.retain(|(key, _)| key != name);
        self.0.extend(values.into_iter().map(|value| (name.to_string(), value.to_string())));
        self
    }

    /// Every value of a repeatable parameter.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean; absent and empty are false.
    ///
    /// # Errors
    /// [`QueryError::Bool`] with the parameter's name.
    pub fn boolean(&self, name: &'static str) -> Result<bool, QueryError> {
        match self.get(name) {
            None | Some("") => Ok(false),
            Some(value) => go_bool(value).ok_or_else(|| QueryError::Bool { name, value: value.to_string() }),
        }
    }

    /// A whole number, if given.
    ///
    /// # Errors
    /// [`QueryError::Number`] with the parameter's name.
    pub fn number(&self, name: &'static str) -> Result<Option<i64>, QueryError> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| QueryError::Number { name, value: value.to_string() })
    }

    /// The namespace: as given, else `default`.
    pub fn namespace(&self) -> &str {
        self.get("namespace").filter(|name| !name.is_empty()).unwrap_or("default")
    }

    /// Present and not `0`.
    pub fn pretty(&self) -> bool {
        self.get("pretty").is_some_and(|value| value != "0")
    }

    /// The addresses of servers that `address` lists, each with the port of the node RPC unless it has one.
    ///
    /// # Errors
    /// There are none, or one has another form.
    pub fn server_addresses(&self) -> Result<Vec<String>, QueryError> {
        let given = self.all("address").flat_map(|list| list.split(','));
        let addresses = given.map(server_address).collect::<Result<Vec<String>, QueryError>>()?;
        if addresses.is_empty() { Err(QueryError::NoServers) } else { Ok(addresses) }
    }

    /// Everything that a read may be asked, checked.
    ///
    /// # Errors
    /// The first parameter that cannot be read.
    pub fn read_options(&self) -> Result<ReadOptions, QueryError> {
        let text = |name| self.get(name).unwrap_or_default().to_string();
        Ok(ReadOptions {
            index: self.index()?,
            wait: self.wait()?,
            consistency: self.consistency()?,
            min_index: self.min_index()?,
            namespace: self.namespace().to_string(),
            region: text("region"),
            prefix: text("prefix"),
            per_page: self.per_page()?,
            next_token: text("next_token"),
            filter: text("filter"),
            reverse: self.get("reverse") == Some("true"),
            pretty: self.pretty(),
            as_of: self.moment("as_of")?,
            fork: self.fork()?,
        })
    }

    /// A fork has neither a past nor something new to wait for.
    fn fork(&self) -> Result<Option<String>, QueryError> {
        let given = |name| self.get(name).filter(|value| !value.is_empty());
        let Some(fork) = given("fork") else { return Ok(None) };
        if given("as_of").is_some() {
            return Err(QueryError::ForkWith("as_of"));
        }
        if self.index()? != Index::ZERO {
            return Err(QueryError::ForkWith("index"));
        }
        Ok(Some(fork.to_string()))
    }

    fn index(&self) -> Result<Index, QueryError> {
        match self.get("index") {
            None | Some("") => Ok(Index::ZERO),
            Some(value) => value.parse().map(Index).map_err(|_| QueryError::Index),
        }
    }

    fn wait(&self) -> Result<Duration, QueryError> {
        let wait = match self.get("wait") {
            None | Some("") => WAIT_MAX,
            Some(value) => value.parse().map_err(|_| QueryError::Wait)?,
        };
        Ok(if wait <= Duration::ZERO || wait > WAIT_MAX { WAIT_MAX } else { wait })
    }

    /// # Errors
    /// [`QueryError::Stale`] or [`QueryError::Consistent`].
    pub fn consistency(&self) -> Result<Consistency, QueryError> {
        let asked = |name, error| match self.get(name) {
            None => Ok(false),
            Some("") => Ok(true),
            Some(value) => go_bool(value).ok_or(error),
        };
        let confirmed = asked("consistent", QueryError::Consistent)?;
        match (asked("stale", QueryError::Stale)?, confirmed) {
            (true, true) => Err(QueryError::StaleAndConsistent),
            (true, false) => Ok(Consistency::Stale),
            (false, true) => Ok(Consistency::Confirmed),
            (false, false) => Ok(Consistency::Leased),
        }
    }

    fn min_index(&self) -> Result<Index, QueryError> {
        match self.get("min_index") {
            None | Some("") => Ok(Index::ZERO),
            Some(value) => value.parse().map(Index).map_err(|_| QueryError::MinIndex),
        }
    }

    fn per_page(&self) -> Result<Option<u32>, QueryError> {
        let Some(value) = self.get("per_page").filter(|value| !value.is_empty()) else { return Ok(None) };
        let count: i32 = value.parse().map_err(|_| QueryError::PerPage)?;
        match u32::try_from(count) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(QueryError::PerPage),
        }
    }

    /// A moment of the past, if one is given.
    ///
    /// # Errors
    /// [`QueryError::Moment`] with the parameter's name.
    pub fn moment(&self, name: &'static str) -> Result<Option<AsOf>, QueryError> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        if let Ok(index) = value.parse() {
            return Ok(Some(AsOf::Index(Index(index))));
        }
        if let Some(Ok(span)) = value.strip_prefix('-').map(str::parse) {
            return Ok(Some(AsOf::Ago(span)));
        }
        match value.parse::<Timestamp>() {
            Ok(stamp) => Ok(Some(AsOf::Time(stamp.time()))),
            Err(_) => Err(QueryError::Moment { name, value: value.to_string() }),
        }
    }
}

fn server_address(text: &str) -> Result<String, QueryError> {
    let is_fit = match text.rsplit_once(':') {
        _ if text.parse::<IpAddr>().is_ok() => true,
        Some((host, port)) => !host.is_empty() && port.parse::<u16>().is_ok(),
        None => !text.is_empty(),
    };
    if is_fit { Ok(with_port(text, RPC_PORT)) } else { Err(QueryError::Server { value: text.to_string() }) }
}

/// `HOST` or `HOST:PORT`, with the port it lacks. An IPv6 address alone has colons too.
pub fn with_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) if host.contains(':') => host.to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

/// The spellings of truth that Go reads.
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::new(pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
    }

    #[test]
    fn a_missing_port_is_added() {
        let cases = [
            ("10.0.0.1", "10.0.0.1:4647"),
            ("10.0.0.1:5000", "10.0.0.1:5000"),
            ("server.lan", "server.lan:4647"),
            ("::1", "[::1]:4647"),
            ("[::1]:5000", "[::1]:5000"),
        ];
        for (given, expected) in cases {
            assert_eq!(with_port(given, 4647), expected);
        }
    }

    #[test]
    fn addresses_of_servers_get_the_port_they_lack() {
        let of = |list: &str| params(&[("address", list)]).server_addresses();
        assert_eq!(of("a,b:1").unwrap(), ["a:4647", "b:1"]);
        assert_eq!(of("10.0.0.1,::1").unwrap(), ["10.0.0.1:4647", "[::1]:4647"]);
        for wrong in ["", "a,", ":1", "a:x"] {
            assert!(matches!(of(wrong), Err(QueryError::Server { .. })), "{wrong}");
        }
        assert_eq!(params(&[]).server_addresses(), Err(QueryError::NoServers));
    }

    #[test]
    fn a_bare_request_reads_everything_at_once_in_the_default_namespace() {
        let options = params(&[]).read_options().unwrap();
        assert_eq!((options.index, options.wait, options.per_page), (Index::ZERO, WAIT_MAX, None));
        assert_eq!((options.namespace.as_str(), options.reverse), ("default", false));
        assert_eq!((options.consistency, options.min_index), (Consistency::Leased, Index::ZERO));
        assert_eq!((options.pretty, options.as_of), (false, None));
    }

    #[test]
    fn given_options_are_read() {
        let options = params(&[
            ("index", "42"),
            ("wait", "30s"),
            ("stale", ""),
            ("namespace", "*"),
            ("per_page", "20"),
            ("reverse", "true"),
            ("pretty", ""),
            ("filter", "Status == \"dead\""),
            ("as_of", "-15m"),
        ]);
        let options = options.read_options().unwrap();
        assert_eq!((options.index, options.wait), (Index(42), Duration::from_secs(30)));
        assert_eq!((options.namespace.as_str(), options.per_page), ("*", Some(20)));
        assert_eq!(options.consistency, Consistency::Stale);
        assert_eq!((options.reverse, options.pretty), (true, true));
        assert_eq!(options.filter, "Status == \"dead\"");
        assert_eq!(options.as_of, Some(AsOf::Ago(Duration::from_secs(900))));
    }

    #[test]
    fn a_wait_out_of_bounds_becomes_the_longest() {
        for wait in ["0s", "-3s", "301s"] {
            assert_eq!(params(&[("wait", wait)]).read_options().unwrap().wait, WAIT_MAX, "{wait}");
        }
    }

    #[test]
    fn a_bad_value_is_refused_by_name() {
        let cases = [
            ("index", "abc", "Invalid index"),
            ("index", "-1", "Invalid index"),
            ("wait", "10", "Invalid wait time"),
            ("consistent", "maybe", "Expect `true` or `false` for `consistent` query string parameter"),
            ("min_index", "-1", "Expect an index for `min_index` query string parameter"),
            ("stale", "maybe", "Expect `true` or `false` for `stale` query string parameter"),
            ("per_page", "ten", "Expect a number for `per_page` query string parameter"),
            ("per_page", "-1", "Expect a number for `per_page` query string parameter"),
        ];
        for (name, value, message) in cases {
            assert_eq!(params(&[(name, value)]).read_options().unwrap_err().to_string(), message);
        }
        assert_eq!(
            params(&[("all", "yes")]).boolean("all").unwrap_err().to_string(),
            "\"yes\" is not true or false, for `all`"
        );
    }

    #[test]
    fn the_past_is_an_index_a_time_or_a_span() {
        let as_of = |value| params(&[("as_of", value)]).read_options().map(|options| options.as_of);
        assert_eq!(as_of("17"), Ok(Some(AsOf::Index(Index(17)))));
        assert_eq!(as_of("2001-09-09T01:46:40Z"), Ok(Some(AsOf::Time(Time::from_secs(1_000_000_000)))));
        assert_eq!(as_of("soon"), Err(QueryError::Moment { name: "as_of", value: "soon".to_string() }));
    }
}
