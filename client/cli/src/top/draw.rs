//! One screen of it. Pure: the same state draws the same cells.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::machine::{Link, Mode, State, pause};
use super::model::{Cell, Cluster, Moment, Row, Share, Snapshot, View, mebibytes};
use super::table::{GAP, cut, fit, width, wrap};
use crate::output::{OutputStyle, Table};

/// Less than this cannot be read.
const WIDTH_MIN: u16 = 20;
const HEIGHT_MIN: u16 = 8;

/// The lines above the list, and the one below.
const HEAD: u16 = 4;
const FOOT: u16 = 1;

/// How long the bar of a share is.
const BAR: usize = 10;

const KEYS: &str = "? help  q quit  / filter  s sort  enter open  p pause  left/right time  l live";

const HELP: &[&str] = &[
    "1-5, tab         another list",
    "up, down, j, k   the row; also page up and down, home and end (g, G)",
    "enter            of a node or job: its allocations; of the rest: all there is to know",
    "esc              back",
    "/                filter: rows that hold the text; enter keeps it, esc drops it",
    "s, r             sort by the next column; the other way round",
    "p                pause: everything stays as it was at the index shown; p or l goes on",
    "left, right      one batch of the log back, or forward; with shift 100",
    "t                go to a moment: an index, a time like 2026-01-02T15:04:05Z, or a span like -15m",
    "l                back to the present",
    "q, ctrl-c        quit",
    "",
    "any key closes this",
];

/// Draws the state, and remembers in it how many lines a page has.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &mut State, style: &OutputStyle) {
    let mut screen = Screen { buffer, area, colour: style.colour };
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!("{}x{}: at least {WIDTH_MIN}x{HEIGHT_MIN} needed", area.width, area.height);
        return screen.put(0, 0, &text, Style::new());
    }
    let body = area.height - HEAD - FOOT;
    screen.head(state, style);
    match (&state.mode, &state.opened) {
        (Mode::Help, _) => screen.help(),
        (_, Some(row)) => {
            let lines = in_full(state.wanted.view, row, style);
            state.scroll = screen.text(&lines, state.scroll, body);
        }
        _ if state.wanted.detail.is_some() => {
            let lines = state.shown.as_ref().map(|shown| shown.detail.as_slice()).unwrap_or_default();
            state.scroll = screen.text(lines, state.scroll, body);
        }
        _ => screen.list(state, style, body),
    }
    state.page = usize::from(body).saturating_sub(1).max(1);
    screen.foot(state);
}

/// The same as plain text: the lines above the list, and the whole list in all its columns.
pub(crate) fn plain(state: &State, style: &OutputStyle) -> String {
    let mut text = format!("{}\n", moment(state, style).trim_start());
    if let Some(shown) = &state.shown {
        text.push_str(&format!("{}\n{}\n\n", servers(&shown.cluster), resources(&shown.cluster)));
    }
    let rows = state.rows(style);
    if let Some(why) = nothing(state, rows.len()) {
        return format!("{text}{why}\n");
    }
    let view = state.wanted.view;
    let mut table = Table::new(view.columns().iter().map(|column| column.title));
    for row in &rows {
        table.row(row.cells.iter().map(|cell| cell.text(style)));
    }
    text.push_str(&table.render());
    if let Some(cut) = cut_short(state) {
        text.push_str(&format!("{cut}\n"));
    }
    text
}

struct Screen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    colour: bool,
}

impl Screen<'_> {
    fn put(&mut self, x: usize, y: u16, text: &str, style: Style) {
        let Ok(x) = u16::try_from(x) else { return };
        if x < self.area.width && y < self.area.height {
            let most = usize::from(self.area.width - x);
            self.buffer.set_stringn(self.area.x + x, self.area.y + y, text, most, style);
        }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn reverse(&mut self, y: u16) {
        let line = Rect { y: self.area.y + y, height: 1, ..self.area };
        self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
    }

    fn head(&mut self, state: &State, style: &OutputStyle) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let colour = match (&state.link, &state.wanted.moment) {
            (Link::Lost { .. }, _) => Color::Red,
            (_, Moment::Live) => Color::Green,
            (_, Moment::At(_) | Moment::Asked(_)) => Color::Yellow,
        };
        let first = moment(state, style);
        self.put(0, 0, &first, self.colour(colour).patch(bold));
        if let Some(shown) = &state.shown {
            self.put(0, 1, &servers(&shown.cluster), Style::new());
            self.put(0, 2, &resources(&shown.cluster), Style::new());
        }
        let mut x = 0;
        for (number, view) in View::ALL.into_iter().enumerate() {
            let title = format!(" {} {} ", number + 1, view.title());
            let chosen = view == state.wanted.view;
            let look = if chosen { bold.add_modifier(Modifier::REVERSED) } else { Style::new() };
            self.put(x, HEAD - 1, &title, look);
            x += width(&title) + 1;
        }
        self.put(x + 1, HEAD - 1, &conditions(state), self.colour(Color::Cyan));
    }

    fn list(&mut self, state: &State, style: &OutputStyle, body: u16) {
        let columns = state.wanted.view.columns();
        let rows = state.rows(style);
        let texts: Vec<Vec<String>> =
            rows.iter().map(|row| row.cells.iter().map(|cell| cell.text(style)).collect()).collect();
        let cursor = state.cursor(&rows);
        let most = usize::from(body).saturating_sub(1);
        // The selected row in the middle, as far as there are rows above and below.
        let first = cursor.saturating_sub(most / 2).min(rows.len().saturating_sub(most));
        let seen = first..rows.len().min(first + most);
        let sign = if state.order().down { "▼" } else { "▲" };
        let title = |at: usize| {
            let sorted = if at == state.order().column { sign } else { "" };
            format!("{}{sorted}", columns[at].title)
        };
        let natural: Vec<usize> = (0..columns.len())
            .map(|at| {
                texts[seen.clone()].iter().map(|row| width(&row[at])).fold(width(&title(at)), usize::max)
            })
            .collect();
        let fitting = fit(columns, &natural, usize::from(self.area.width));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        self.line(HEAD, &fitting, |at| (title(at), bold));
        for (at, y) in seen.zip(HEAD + 1..) {
            let colours: Vec<Style> = rows[at].cells.iter().map(|cell| self.tone(cell)).collect();
            self.line(y, &fitting, |column| (texts[at][column].clone(), colours[column]));
            if at == cursor {
                self.reverse(y);
            }
        }
        if let Some(why) = nothing(state, rows.len()) {
            self.put(0, HEAD + 1, &why, Style::new());
        }
    }

    fn line(&mut self, y: u16, fitting: &[(usize, usize)], cell: impl Fn(usize) -> (String, Style)) {
        let mut x = 0;
        for (column, wide) in fitting {
            let (text, style) = cell(*column);
            self.put(x, y, &cut(&text, *wide), style);
            x += wide + GAP;
        }
    }

    fn tone(&self, cell: &Cell) -> Style {
        let Cell::Status(word) = cell else { return Style::new() };
        match word.as_str() {
            "ready" | "running" | "complete" | "eligible" => self.colour(Color::Green),
            "pending" | "blocked" | "initializing" | "draining" | "ineligible" | "unknown" => {
                self.colour(Color::Yellow)
            }
            "failed" | "lost" | "down" | "disconnected" => self.colour(Color::Red),
            _ => Style::new(),
        }
    }

    /// Lines from `scroll` on, or from where the last page begins: that is returned.
    fn text(&mut self, lines: &[String], scroll: usize, body: u16) -> usize {
        let wrapped = wrap(lines, usize::from(self.area.width));
        let first = scroll.min(wrapped.len().saturating_sub(usize::from(body)));
        for (line, y) in wrapped.iter().skip(first).take(usize::from(body)).zip(HEAD..) {
            self.put(0, y, line, Style::new());
        }
        first
    }

    fn help(&mut self) {
        let most = self.area.height - FOOT;
        for (line, y) in HELP.iter().zip(HEAD..most) {
            self.put(2, y, line, Style::new());
        }
    }

    fn foot(&mut self, state: &State) {
        let y = self.area.height - 1;
        let (text, style) = match &state.mode {
            Mode::Filter => (format!("filter: {}_", state.filter), Style::new()),
            Mode::Moment(typed) => (format!("moment: {typed}_"), Style::new()),
            _ if !state.note.is_empty() => (state.note.clone(), self.colour(Color::Yellow)),
            _ => match cut_short(state) {
                Some(cut) => (cut, self.colour(Color::Yellow)),
                None => (KEYS.to_string(), Style::new().add_modifier(Modifier::DIM)),
            },
        };
        self.put(0, y, &cut(&text, usize::from(self.area.width)), style);
    }
}

/// Whether it is live, or of when, and whether the agent answers.
fn moment(state: &State, style: &OutputStyle) -> String {
    let index = state.shown.as_ref().map(|shown| format!(" index {}", shown.index)).unwrap_or_default();
    match (&state.link, &state.wanted.moment) {
        (Link::Lost { reason, attempts }, _) => {
            let seconds = pause(*attempts).as_secs();
            format!(" LOST{index}  {reason}: trying again in {seconds} s")
        }
        (Link::Connecting, _) => " connecting".to_string(),
        (Link::Up, Moment::Live) => format!(" LIVE{index}  {}", style.time(style.now.0)),
        (Link::Up, Moment::Asked(asked)) => format!(" PAST{index}  going to {asked}"),
        (Link::Up, Moment::At(_)) => {
            let time = state.shown.as_ref().and_then(|shown| shown.time);
            let time = time.map(|time| format!("  {} ({})", style.time(time), style.ago(time)));
            format!(" PAST{index}{}", time.unwrap_or_default())
        }
    }
}

fn servers(cluster: &Cluster) -> String {
    let servers = match (&cluster.leader, cluster.servers) {
        (_, None) => "servers not known of the past".to_string(),
        (leader, Some((alive, all))) => {
            let leader = leader.as_deref().unwrap_or("none");
            format!("leader {leader}  servers {alive}/{all} alive")
        }
    };
    let count: usize = cluster.nodes.values().sum();
    let nodes: Vec<String> =
        cluster.nodes.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let nodes = if nodes.is_empty() { "none".to_string() } else { nodes.join(", ") };
    format!(" {servers}  nodes {count}: {nodes}")
}

fn resources(cluster: &Cluster) -> String {
    let least = if cluster.is_cut { " (at least: not all was read)" } else { "" };
    let (cpu, memory) = (cluster.cpu_mhz, cluster.memory_mib);
    format!(
        " allocated: cpu {} {}/{} MHz  memory {} {}/{}{least}",
        bar(cpu),
        cpu.used,
        cpu.total,
        bar(memory),
        mebibytes(memory.used),
        mebibytes(memory.total),
    )
}

/// `[###.......] 31%`.
fn bar(share: Share) -> String {
    let percent = share.percent();
    let full = usize::try_from(percent.clamp(0, 100)).unwrap_or(0) * BAR / 100;
    format!("[{}{}] {percent}%", "#".repeat(full), ".".repeat(BAR - full))
}

/// By what the list is limited.
fn conditions(state: &State) -> String {
    let scope = state.wanted.scope.as_ref().map(super::model::Scope::words);
    let filter = (!state.filter.is_empty()).then(|| format!("filter {:?}", state.filter));
    scope.into_iter().chain(filter).collect::<Vec<_>>().join("  ")
}

/// Why there is no row.
fn nothing(state: &State, rows: usize) -> Option<String> {
    let current = |shown: &&Snapshot| shown.request.view == state.wanted.view;
    let Some(shown) = state.shown.as_ref().filter(current) else { return Some("reading".to_string()) };
    if let Some(refused) = &shown.refused {
        return Some(format!("cannot be read: {refused}"));
    }
    let title = state.wanted.view.title().to_lowercase();
    match (rows, shown.rows.len()) {
        (0, 0) => Some(format!("no {title}")),
        (0, _) => Some(format!("no {title} that hold {:?}", state.filter)),
        _ => None,
    }
}

fn cut_short(state: &State) -> Option<String> {
    let shown = state.shown.as_ref().filter(|shown| shown.is_cut)?;
    Some(format!("only {} are listed: there are more", shown.rows.len()))
}

/// All cells of a row, one on a line.
fn in_full(view: View, row: &Row, style: &OutputStyle) -> Vec<String> {
    let cells = view.columns().iter().zip(&row.cells);
    cells.map(|(column, cell)| format!("{:12} = {}", column.title, cell.text(style))).collect()
}
