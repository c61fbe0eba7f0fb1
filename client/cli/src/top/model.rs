//! What the screen shows: rows of plain cells, however large the objects are that they are of.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base::Index;

use crate::changes::Stamps;
use crate::output::{OutputStyle, bytes};

/// Most rows of one list that are read and held. The screen says when there are more.
pub(crate) const ROWS_MAX: usize = 1_000;

/// Most lines of a detail that are held; what comes after is left out, which the last line says.
pub(super) const DETAIL_LINES_MAX: usize = 2_000;

const MIB: u64 = 1 << 20;

/// What the list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Nodes,
    Jobs,
    Allocs,
    Evals,
    Events,
}

/// One column of a view.
#[derive(Debug)]
pub(super) struct Column {
    pub title: &'static str,
    /// On a narrow terminal the columns with the largest number go first; those with 0 stay.
    pub rank: u8,
}

const fn column(title: &'static str, rank: u8) -> Column {
    Column { title, rank }
}

const NODES: &[Column] = &[
    column("ID", 3),
    column("Name", 0),
    column("Pool", 7),
    column("DC", 6),
    column("Status", 0),
    column("Eligibility", 4),
    column("Allocs", 1),
    column("CPU", 2),
    column("Memory", 2),
];
const JOBS: &[Column] = &[
    column("ID", 0),
    column("Namespace", 4),
    column("Type", 3),
    column("Priority", 6),
    column("Status", 0),
    column("Running", 1),
    column("Waiting", 1),
    column("Failed", 2),
    column("Submitted", 5),
];
const ALLOCS: &[Column] = &[
    column("ID", 0),
    column("Name", 0),
    column("Namespace", 7),
    column("Node", 2),
    column("Version", 6),
    column("Desired", 4),
    column("Status", 0),
    column("CPU", 3),
    column("Memory", 3),
    column("Created", 5),
    column("Modified", 1),
];
const EVALS: &[Column] = &[
    column("ID", 0),
    column("Job", 0),
    column("Namespace", 5),
    column("Type", 4),
    column("Triggered By", 2),
    column("Priority", 6),
    column("Status", 0),
    column("Modified", 1),
];
const EVENTS: &[Column] = &[
    column("Index", 0),
    column("Time", 3),
    column("Object", 0),
    column("Event", 0),
    column("Actor", 2),
    column("Description", 1),
];

impl View {
    pub(crate) const ALL: [View; 5] = [View::Nodes, View::Jobs, View::Allocs, View::Evals, View::Events];

    pub(super) fn title(self) -> &'static str {
        match self {
            View::Nodes => "Nodes",
            View::Jobs => "Jobs",
            View::Allocs => "Allocations",
            View::Evals => "Evaluations",
            View::Events => "Events",
        }
    }

    /// As `-view` takes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            View::Nodes => "nodes",
            View::Jobs => "jobs",
            View::Allocs => "allocs",
            View::Evals => "evals",
            View::Events => "events",
        }
    }

    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            View::Nodes => NODES,
            View::Jobs => JOBS,
            View::Allocs => ALLOCS,
            View::Evals => EVALS,
            View::Events => EVENTS,
        }
    }

    /// The column that it is sorted by at first, and whether the largest comes first.
    pub(super) fn first_order(self) -> Order {
        match self {
            View::Nodes => Order { column: 1, down: false },
            View::Jobs => Order { column: 0, down: false },
            View::Allocs => Order { column: 10, down: true },
            View::Evals => Order { column: 7, down: true },
            View::Events => Order { column: 0, down: true },
        }
    }

    pub(super) fn number(self) -> usize {
        View::ALL.iter().position(|view| *view == self).expect("every view is listed")
    }
}

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub column: usize,
    pub down: bool,
}

/// What is used of what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub used: i64,
    pub total: i64,
}

impl Share {
    pub(super) fn percent(self) -> i64 {
        if self.total > 0 { self.used.saturating_mul(100) / self.total } else { 0 }
    }
}

/// One value of a row: sorted as what it is, and printed when it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Text(String),
    /// A word that says how it is doing, which has a colour.
    Status(String),
    Count(i64),
    Megahertz(i64),
    Mebibytes(i64),
    Share(Share),
    /// Nanoseconds: how long ago.
    Ago(i64),
    /// Nanoseconds: exactly.
    Time(i64),
}

impl Cell {
    pub(super) fn text(&self, style: &OutputStyle) -> String {
        match self {
            Cell::Text(text) | Cell::Status(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Megahertz(count) => format!("{count} MHz"),
            Cell::Mebibytes(count) => mebibytes(*count),
            Cell::Share(share) => format!("{}%", share.percent()),
            Cell::Ago(nanos) => style.ago(*nanos),
            Cell::Time(nanos) => style.time(*nanos),
        }
    }

    pub(super) fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Share(one), Cell::Share(two)) => one.percent().cmp(&two.percent()),
            _ => match (self.number(), other.number()) {
                (Some(one), Some(two)) => one.cmp(&two),
                _ => self.word().cmp(other.word()),
            },
        }
    }

    fn number(&self) -> Option<i64> {
        match self {
            Cell::Text(_) | Cell::Status(_) | Cell::Share(_) => None,
            Cell::Count(number)
            | Cell::Megahertz(number)
            | Cell::Mebibytes(number)
            | Cell::Ago(number)
            | Cell::Time(number) => Some(*number),
        }
    }

    fn word(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Status(text) => text,
            _ => "",
        }
    }
}

pub(super) fn mebibytes(count: i64) -> String {
    bytes(u64::try_from(count).unwrap_or(0) * MIB)
}

/// One object of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// What it is known by from one reading to the next.
    pub key: String,
    pub namespace: String,
    pub cells: Vec<Cell>,
}

/// The lines above the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cluster {
    /// The leader's name. Of the present alone: what servers are doing is not in the log.
    pub leader: Option<String>,
    /// Servers that are alive, and all of them. Of the present alone.
    pub servers: Option<(usize, usize)>,
    /// Nodes by status.
    pub nodes: BTreeMap<String, usize>,
    pub cpu_mhz: Share,
    pub memory_mib: Share,
    /// There are more nodes or allocations than were read: the numbers are too small.
    pub is_cut: bool,
}

/// Only the allocations of a job, or of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Job { namespace: String, id: String },
    Node { id: String, name: String },
}

impl Scope {
    /// The expression by which the agent selects them.
    pub(super) fn filter(&self) -> String {
        match self {
            // As JSON writes a text, a filter reads it.
            Scope::Job { id, .. } => format!("JobID == {}", serde_json::Value::from(id.as_str())),
            Scope::Node { id, .. } => format!("NodeID == \"{id}\""),
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Scope::Job { id, .. } => format!("of job {id}"),
            Scope::Node { name, .. } => format!("on node {name}"),
        }
    }
}

/// What is shown as text instead of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Alloc { namespace: String, id: String },
    Eval { namespace: String, id: String },
}

/// The moment that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Live,
    At(Index),
    /// As the user wrote it: what `-as-of` takes.
    Asked(String),
}

/// What is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(super) view: View,
    pub(super) scope: Option<Scope>,
    pub(super) detail: Option<Detail>,
    pub(super) moment: Moment,
}

impl Request {
    /// A list as it is now, or as it was at `as_of`.
    pub(crate) fn list(view: View, as_of: &str) -> Request {
        let moment = if as_of.is_empty() { Moment::Live } else { Moment::Asked(as_of.to_string()) };
        Request { view, scope: None, detail: None, moment }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(super) request: Request,
    pub(super) index: Index,
    /// When that index was written, where it is not the present and can be known.
    pub(super) time: Option<i64>,
    pub(super) cluster: Cluster,
    pub(super) rows: Vec<Row>,
    /// There are more rows.
    pub(super) is_cut: bool,
    /// Why there is no list, in the agent's words: the token has no right to it.
    pub(super) refused: Option<String>,
    pub(super) detail: Vec<String>,
    pub(super) stamps: Stamps,
}
