//! What each key and each answer means: `update` takes a state and an input to the next state, and says what has to be done.

use std::time::Duration;

use base::Index;
use ratatui_termion::termion::event::Key;

use super::model::{Detail, Moment, Order, Request, Row, Scope, Snapshot, View};
use crate::changes::Stamps;
use crate::output::OutputStyle;

/// Between two attempts to reach the agent: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Batches of the log that the arrow keys with Shift go over.
const SCRUB_FAR: u64 = 100;

/// Longest text that can be typed; more is not taken.
const TYPED_MAX: usize = 200;

/// What has happened.
#[derive(Debug)]
pub(super) enum Input {
    Key(Key),
    Read(Box<Snapshot>),
    Failed {
        reason: String,
        is_transient: bool,
    },
    /// Something that is shown has changed, or the time has come to try again.
    Due,
}

/// What is to be done. Each replaces what was being done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read(Request),
    /// Wait until there is something newer.
    Watch(Stamps),
    Retry(Duration),
    /// Wait for keys alone.
    Rest,
    Quit,
}

/// What keys mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// The filter is being typed.
    Filter,
    /// A moment is being typed.
    Moment(String),
}

/// How the agent is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Connecting,
    Up,
    Lost { reason: String, attempts: u32 },
}

/// Everything that is shown, and where the user is in it.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) mode: Mode,
    pub(super) wanted: Request,
    pub(super) shown: Option<Snapshot>,
    /// The newest index that was seen live.
    pub(super) newest: Index,
    pub(super) link: Link,
    pub(super) filter: String,
    pub(super) orders: [Order; View::ALL.len()],
    /// The key of the selected row.
    pub(super) selected: Option<String>,
    /// The first line of a detail that is shown.
    pub(super) scroll: usize,
    /// Lines that one page has. Set when the screen is drawn.
    pub(super) page: usize,
    /// What the user should know about the last key.
    pub(super) note: String,
    /// The row of an event in full, instead of the list.
    pub(super) opened: Option<Row>,
}

impl State {
    pub(crate) fn new(wanted: Request) -> State {
        State {
            mode: Mode::Browse,
            wanted,
            shown: None,
            newest: Index::ZERO,
            link: Link::Connecting,
            filter: String::new(),
            orders: View::ALL.map(View::first_order),
            selected: None,
            scroll: 0,
            page: 1,
            note: String::new(),
            opened: None,
        }
    }

    /// Shows what was read.
    pub(crate) fn take(&mut self, snapshot: Snapshot) {
        self.read(snapshot);
    }

    pub(super) fn order(&self) -> Order {
        self.orders[self.wanted.view.number()]
    }

    /// The rows that are shown, sorted; none while those of another list are still being read.
    pub(super) fn rows(&self, style: &OutputStyle) -> Vec<&Row> {
        let current = |shown: &&Snapshot| {
            shown.request.view == self.wanted.view && shown.request.scope == self.wanted.scope
        };
        let Some(shown) = self.shown.as_ref().filter(current) else { return Vec::new() };
        let needle = self.filter.to_lowercase();
        let matches = |row: &&Row| {
            needle.is_empty()
                || row.key.to_lowercase().contains(&needle)
                || row.cells.iter().any(|cell| cell.text(style).to_lowercase().contains(&needle))
        };
        let mut rows: Vec<&Row> = shown.rows.iter().filter(matches).collect();
        let Order { column, down } = self.order();
        rows.sort_by(|one, two| {
            let order = one.cells[column].order(&two.cells[column]);
            let order = if down { order.reverse() } else { order };
            order.then_with(|| one.key.cmp(&two.key))
        });
        rows
    }

    /// Where the selected row is; the first one if it is gone.
    pub(super) fn cursor(&self, rows: &[&Row]) -> usize {
        let selected = self.selected.as_deref();
        rows.iter().position(|row| Some(row.key.as_str()) == selected).unwrap_or(0)
    }

    /// The lines of a detail are shown, not the list.
    pub(super) fn is_text(&self) -> bool {
        self.wanted.detail.is_some() || self.opened.is_some()
    }

    /// What follows an input.
    pub(super) fn update(&mut self, style: &OutputStyle, input: Input) -> Option<Effect> {
        match input {
            Input::Key(key) => self.key(style, key),
            Input::Read(snapshot) => Some(self.read(*snapshot)),
            Input::Failed { reason, is_transient } => Some(self.failed(reason, is_transient)),
            Input::Due => Some(Effect::Read(self.wanted.clone())),
        }
    }

    fn read(&mut self, snapshot: Snapshot) -> Effect {
        self.link = Link::Up;
        let effect = match self.wanted.moment {
            Moment::Live => {
                self.newest = snapshot.index;
                Effect::Watch(snapshot.stamps)
            }
            Moment::At(_) | Moment::Asked(_) => {
                self.wanted.moment = Moment::At(snapshot.index);
                self.newest = self.newest.max(snapshot.index);
                Effect::Rest
            }
        };
        self.shown = Some(Snapshot { request: self.wanted.clone(), ..snapshot });
        effect
    }

    /// A connection comes back; a request that was refused would be refused again, so the last that was answered counts.
    fn failed(&mut self, reason: String, is_transient: bool) -> Effect {
        let answered = self.shown.as_ref().map(|shown| shown.request.clone());
        if let Some(answered) = answered.filter(|answered| !is_transient && *answered != self.wanted) {
            self.note = reason;
            self.link = Link::Up;
            self.wanted = answered;
            return self.go_on();
        }
        let attempts = match self.link {
            Link::Lost { attempts, .. } => attempts.saturating_add(1),
            Link::Connecting | Link::Up => 1,
        };
        self.link = Link::Lost { reason, attempts };
        Effect::Retry(pause(attempts))
    }

    /// What there is to wait for with what is shown.
    fn go_on(&self) -> Effect {
        match (&self.wanted.moment, &self.shown) {
            (Moment::Live, Some(shown)) => Effect::Watch(shown.stamps),
            _ => Effect::Rest,
        }
    }

    fn key(&mut self, style: &OutputStyle, key: Key) -> Option<Effect> {
        self.note.clear();
        if key == Key::Ctrl('c') {
            return Some(Effect::Quit);
        }
        match &self.mode {
            Mode::Help => {
                self.mode = Mode::Browse;
                None
            }
            Mode::Filter => {
                self.type_filter(key);
                None
            }
            Mode::Moment(_) => self.type_moment(key),
            Mode::Browse => self.browse(style, key),
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char('\n') => self.mode = Mode::Browse,
            Key::Esc => {
                self.filter.clear();
                self.mode = Mode::Browse;
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(typed) if takes(&self.filter, typed) => self.filter.push(typed),
            _ => {}
        }
    }

    fn type_moment(&mut self, key: Key) -> Option<Effect> {
        let Mode::Moment(text) = &mut self.mode else { return None };
        match key {
            Key::Char('\n') => {
                let asked = std::mem::take(text);
                self.mode = Mode::Browse;
                return (!asked.is_empty()).then(|| self.go_to(Moment::Asked(asked)));
            }
            Key::Esc => self.mode = Mode::Browse,
            Key::Backspace => drop(text.pop()),
            Key::Char(typed) if takes(text, typed) => text.push(typed),
            _ => {}
        }
        None
    }

    fn browse(&mut self, style: &OutputStyle, key: Key) -> Option<Effect> {
        match key {
            Key::Char('q') => Some(Effect::Quit),
            Key::Char('?') => self.turn_to(Mode::Help),
            Key::Char('/') if !self.is_text() => self.turn_to(Mode::Filter),
            Key::Char('t') => self.turn_to(Mode::Moment(String::new())),
            Key::Char('p') => self.pause(),
            Key::Char('l') => self.back_to_live(),
            Key::Left => self.earlier(1),
            Key::ShiftLeft => self.earlier(SCRUB_FAR),
            Key::Right => self.later(1),
            Key::ShiftRight => self.later(SCRUB_FAR),
            Key::Char(digit @ '1'..='5') => self.show(View::ALL[digit as usize - '1' as usize]),
            Key::Char('\t') => self.show(self.neighbour(1)),
            Key::BackTab => self.show(self.neighbour(View::ALL.len() - 1)),
            Key::Char('\n') if !self.is_text() => self.open(style),
            Key::Esc | Key::Backspace => self.close(),
            Key::Char('s') => self.sort(|order, columns| order.column = (order.column + 1) % columns),
            Key::Char('r') => self.sort(|order, _| order.down = !order.down),
            key => {
                self.move_by(style, key);
                None
            }
        }
    }

    fn turn_to(&mut self, mode: Mode) -> Option<Effect> {
        self.mode = mode;
        None
    }

    fn sort(&mut self, change: impl Fn(&mut Order, usize)) -> Option<Effect> {
        change(&mut self.orders[self.wanted.view.number()], self.wanted.view.columns().len());
        None
    }

    fn neighbour(&self, steps: usize) -> View {
        View::ALL[(self.wanted.view.number() + steps) % View::ALL.len()]
    }

    fn ask(&mut self) -> Option<Effect> {
        Some(Effect::Read(self.wanted.clone()))
    }

    fn show(&mut self, view: View) -> Option<Effect> {
        self.wanted = Request { view, scope: None, detail: None, moment: self.wanted.moment.clone() };
        (self.selected, self.scroll, self.opened) = (None, 0, None);
        self.ask()
    }

    fn go_to(&mut self, moment: Moment) -> Effect {
        self.wanted.moment = moment;
        Effect::Read(self.wanted.clone())
    }

    /// To pause is to stay at the index that is shown, whatever is looked at next.
    fn pause(&mut self) -> Option<Effect> {
        match (&self.wanted.moment, &self.shown) {
            (Moment::Live, Some(shown)) => {
                let index = shown.index;
                Some(self.go_to(Moment::At(index)))
            }
            (Moment::Live, None) => None,
            (Moment::At(_) | Moment::Asked(_), _) => self.back_to_live(),
        }
    }

    fn back_to_live(&mut self) -> Option<Effect> {
        match self.wanted.moment {
            Moment::Live => None,
            Moment::At(_) | Moment::Asked(_) => Some(self.go_to(Moment::Live)),
        }
    }

    fn earlier(&mut self, step: u64) -> Option<Effect> {
        let from = match &self.wanted.moment {
            Moment::At(index) => *index,
            Moment::Live | Moment::Asked(_) => self.shown.as_ref()?.index,
        };
        if from == Index::ZERO {
            self.note = "this is where the log begins".to_string();
            return None;
        }
        Some(self.go_to(Moment::At(Index(from.0.saturating_sub(step)))))
    }

    fn later(&mut self, step: u64) -> Option<Effect> {
        let Moment::At(from) = self.wanted.moment else { return None };
        if from >= self.newest {
            self.note = "this is the newest index that was seen: l goes back to live".to_string();
            return None;
        }
        Some(self.go_to(Moment::At(Index((from.0 + step).min(self.newest.0)))))
    }

    fn open(&mut self, style: &OutputStyle) -> Option<Effect> {
        let rows = self.rows(style);
        let row = rows.get(self.cursor(&rows)).map(|row| (*row).clone())?;
        let (namespace, id) = (row.namespace.clone(), row.key.clone());
        self.scroll = 0;
        match self.wanted.view {
            View::Nodes => self.allocs_of(Scope::Node { id, name: row.cells[1].text(style) }),
            View::Jobs => self.allocs_of(Scope::Job { id: row.cells[0].text(style), namespace }),
            View::Allocs => {
                self.wanted.detail = Some(Detail::Alloc { namespace, id });
                self.ask()
            }
            View::Evals => {
                self.wanted.detail = Some(Detail::Eval { namespace, id });
                self.ask()
            }
            View::Events => {
                self.opened = Some(row);
                None
            }
        }
    }

    fn allocs_of(&mut self, scope: Scope) -> Option<Effect> {
        (self.wanted.view, self.wanted.scope) = (View::Allocs, Some(scope));
        self.selected = None;
        self.filter.clear();
        self.ask()
    }

    /// One step back: from a detail to its list, from the allocations of an object to the list of those.
    fn close(&mut self) -> Option<Effect> {
        self.scroll = 0;
        if self.opened.take().is_some() {
            return None;
        }
        if self.wanted.detail.take().is_some() {
            return self.ask();
        }
        match self.wanted.scope.take() {
            Some(Scope::Job { .. }) => self.show(View::Jobs),
            Some(Scope::Node { .. }) => self.show(View::Nodes),
            None => {
                self.filter.clear();
                None
            }
        }
    }

    fn move_by(&mut self, style: &OutputStyle, key: Key) {
        let page = self.page.max(1);
        let moved = |at: usize, last: usize| match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => at.saturating_add(1).min(last),
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at.saturating_add(page).min(last),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => at,
        };
        if self.is_text() {
            // How many lines there are depends on the width: the drawing takes back what is too much.
            self.scroll = moved(self.scroll, usize::MAX);
            return;
        }
        let rows = self.rows(style);
        let at = moved(self.cursor(&rows), rows.len().saturating_sub(1));
        self.selected = rows.get(at).map(|row| row.key.clone());
    }
}

/// What can be typed there.
fn takes(text: &str, typed: char) -> bool {
    !typed.is_control() && text.chars().count() < TYPED_MAX
}

/// Doubles with each attempt that failed.
pub(super) fn pause(attempts: u32) -> Duration {
    let doubled = RETRY_FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(RETRY_MAX)
}
