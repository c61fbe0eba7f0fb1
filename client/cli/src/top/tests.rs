//! What keys and answers lead to, and what is drawn of it, from fixed data.

use std::time::Duration;

use base::Index;
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use ratatui_termion::termion::event::Key;

use super::draw::{draw, plain};
use super::machine::{Effect, Input, Link, Mode, State, pause};
use super::model::{Cell, Cluster, Detail, Moment, Request, Row, Scope, Share, Snapshot, View};
use crate::changes::Stamps;
use crate::output::OutputStyle;

const STAMPS: Stamps = [Index(3), Index(4), Index(5), Index(6), Index(7)];

fn style() -> OutputStyle {
    OutputStyle::for_tests()
}

fn cluster() -> Cluster {
    Cluster {
        leader: Some("a.global".to_string()),
        servers: Some((2, 3)),
        nodes: [("down".to_string(), 1), ("ready".to_string(), 2)].into(),
        cpu_mhz: Share { used: 1500, total: 4000 },
        memory_mib: Share { used: 512, total: 8192 },
        is_cut: false,
    }
}

fn job(id: &str, status: &str, running: i64) -> Row {
    let text = |text: &str| Cell::Text(text.to_string());
    let cells = vec![
        text(id),
        text("default"),
        text("service"),
        Cell::Count(50),
        Cell::Status(status.to_string()),
        Cell::Count(running),
        Cell::Count(0),
        Cell::Count(0),
        Cell::Ago(style().now.0 - 90 * 1_000_000_000),
    ];
    Row { key: format!("default/{id}"), namespace: "default".to_string(), cells }
}

fn jobs() -> Vec<Row> {
    vec![job("web", "running", 3), job("api", "pending", 0), job("db", "dead", 0)]
}

fn snapshot(request: &Request, index: u64) -> Snapshot {
    Snapshot {
        request: request.clone(),
        index: Index(index),
        time: None,
        cluster: cluster(),
        rows: if request.view == View::Jobs { jobs() } else { Vec::new() },
        is_cut: false,
        refused: None,
        detail: Vec::new(),
        stamps: STAMPS,
    }
}

/// A state that shows jobs live, at index 100.
fn live() -> State {
    let request = Request::list(View::Jobs, "");
    let mut state = State::new(request.clone());
    let effect = state.update(&style(), Input::Read(Box::new(snapshot(&request, 100))));
    assert_eq!(effect, Some(Effect::Watch(STAMPS)));
    state
}

fn press(state: &mut State, key: Key) -> Option<Effect> {
    state.update(&style(), Input::Key(key))
}

fn type_text(state: &mut State, text: &str) {
    for c in text.chars() {
        assert_eq!(press(state, Key::Char(c)), None);
    }
}

/// The answer to what is asked for.
fn answer(state: &mut State, effect: Option<Effect>, index: u64) -> Option<Effect> {
    let Some(Effect::Read(request)) = effect else { panic!("nothing is read: {effect:?}") };
    state.update(&style(), Input::Read(Box::new(snapshot(&request, index))))
}

fn names(state: &State) -> Vec<String> {
    state.rows(&style()).iter().map(|row| row.cells[0].text(&style())).collect()
}

fn drawn(state: &mut State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            draw(frame.buffer_mut(), area, state, &style());
        })
        .unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..height).map(line).collect()
}

#[test]
fn a_screen_shows_the_cluster_and_a_sorted_list() {
    let mut state = live();
    assert_eq!(
        drawn(&mut state, 104, 10),
        [
            " LIVE index 100  2026-01-02T03:04:05Z",
            " leader a.global  servers 2/3 alive  nodes 3: 1 down, 2 ready",
            " allocated: cpu [###.......] 37% 1500/4000 MHz  memory [..........] 6% 512 MiB/8.0 GiB",
            " 1 Nodes   2 Jobs   3 Allocations   4 Evaluations   5 Events",
            "ID▲  Namespace  Type     Priority  Status   Running  Waiting  Failed  Submitted",
            "api  default    service  50        pending  0        0        0       1m30s ago",
            "db   default    service  50        dead     0        0        0       1m30s ago",
            "web  default    service  50        running  3        0        0       1m30s ago",
            "",
            "? help  q quit  / filter  s sort  enter open  p pause  left/right time  l live",
        ]
    );
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_a_tiny_one_says_so() {
    let mut state = live();
    let lines = drawn(&mut state, 34, 9);
    assert_eq!(lines[4], "ID▲  Status   Running  Waiting");
    assert_eq!(lines[5], "api  pending  0        0");
    assert_eq!(drawn(&mut state, 19, 9)[0], "19x9: at least 20x8", "cut by the edge");
    assert_eq!(drawn(&mut state, 60, 4)[0], "60x4: at least 20x8 needed");
}

#[test]
fn colours_are_drawn_unless_they_are_unwanted() {
    let colours = |wanted: bool| {
        let style = OutputStyle { colour: wanted, ..style() };
        let mut terminal = Terminal::new(TestBackend::new(104, 10)).unwrap();
        let mut state = live();
        terminal
            .draw(|frame| {
                let area = frame.area();
                draw(frame.buffer_mut(), area, &mut state, &style);
            })
            .unwrap();
        let cells = terminal.backend().buffer().content().to_vec();
        cells.iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(colours(true) > 0);
    assert_eq!(colours(false), 0);
}

#[test]
fn plain_text_has_every_row_and_column() {
    let mut state = live();
    if let Some(shown) = &mut state.shown {
        shown.is_cut = true;
        shown.cluster.is_cut = true;
    }
    assert_eq!(
        plain(&state, &style()),
        "LIVE index 100  2026-01-02T03:04:05Z\n \
         leader a.global  servers 2/3 alive  nodes 3: 1 down, 2 ready\n \
         allocated: cpu [###.......] 37% 1500/4000 MHz  memory [..........] 6% 512 MiB/8.0 GiB (at least: not all was read)\n\n\
         ID   Namespace  Type     Priority  Status   Running  Waiting  Failed  Submitted\n\
         api  default    service  50        pending  0        0        0       1m30s ago\n\
         db   default    service  50        dead     0        0        0       1m30s ago\n\
         web  default    service  50        running  3        0        0       1m30s ago\n\
         only 3 are listed: there are more\n"
    );
}

#[test]
fn keys_sort_and_filter_and_the_selected_row_stays_selected() {
    let mut state = live();
    assert_eq!(names(&state), ["api", "db", "web"]);
    assert_eq!(press(&mut state, Key::Char('r')), None);
    assert_eq!(names(&state), ["web", "db", "api"]);
    press(&mut state, Key::Down);
    assert_eq!(state.selected.as_deref(), Some("default/db"));
    (0..5).for_each(|_| assert_eq!(press(&mut state, Key::Char('s')), None));
    assert_eq!(names(&state), ["web", "api", "db"], "by running allocations, most first");
    let rows = state.rows(&style());
    assert_eq!(state.cursor(&rows), 2, "the same row, where it is now");
    press(&mut state, Key::Char('/'));
    type_text(&mut state, "PEND");
    assert_eq!(
        (names(&state).as_slice(), state.mode.clone()),
        (["api".to_string()].as_slice(), Mode::Filter)
    );
    assert!(drawn(&mut state, 104, 10).last().unwrap().starts_with("filter: PEND_"));
    press(&mut state, Key::Char('\n'));
    assert_eq!(state.mode, Mode::Browse);
    press(&mut state, Key::Char('/'));
    type_text(&mut state, "x");
    assert!(drawn(&mut state, 104, 10)[5].starts_with("no jobs that hold \"PENDx\""));
    press(&mut state, Key::Esc);
    assert_eq!(names(&state).len(), 3, "esc drops it");
}

#[test]
fn to_pause_is_to_stay_at_an_index_and_arrows_go_through_the_log() {
    let mut state = live();
    let at = |effect: &Option<Effect>| match effect {
        Some(Effect::Read(request)) => request.moment.clone(),
        other => panic!("nothing is read: {other:?}"),
    };
    let paused = press(&mut state, Key::Char('p'));
    assert_eq!(at(&paused), Moment::At(Index(100)));
    assert_eq!(answer(&mut state, paused, 100), Some(Effect::Rest), "nothing is waited for");
    assert!(drawn(&mut state, 104, 10)[0].starts_with(" PAST index 100"));
    let back = press(&mut state, Key::Left);
    assert_eq!(at(&back), Moment::At(Index(99)));
    answer(&mut state, back, 99);
    let far = press(&mut state, Key::ShiftLeft);
    assert_eq!(at(&far), Moment::At(Index(0)), "no further than the beginning");
    answer(&mut state, far, 0);
    assert_eq!(press(&mut state, Key::Left), None);
    assert_eq!(state.note, "this is where the log begins");
    let forward = press(&mut state, Key::ShiftRight);
    assert_eq!(at(&forward), Moment::At(Index(100)));
    answer(&mut state, forward, 100);
    assert_eq!(press(&mut state, Key::Right), None);
    assert!(state.note.contains("l goes back to live"), "{}", state.note);
    let live = press(&mut state, Key::Char('l'));
    assert_eq!(at(&live), Moment::Live);
    assert_eq!(answer(&mut state, live, 120), Some(Effect::Watch(STAMPS)));
    assert_eq!(press(&mut state, Key::Char('l')), None, "it is live already");
}

#[test]
fn a_moment_is_typed_and_one_that_there_is_not_leaves_everything_as_it_was() {
    let mut state = live();
    press(&mut state, Key::Char('t'));
    type_text(&mut state, "-15mq");
    press(&mut state, Key::Backspace);
    assert!(drawn(&mut state, 104, 10).last().unwrap().starts_with("moment: -15m_"));
    let asked = press(&mut state, Key::Char('\n'));
    assert_eq!(state.wanted.moment, Moment::Asked("-15m".to_string()));
    assert_eq!(answer(&mut state, asked, 70), Some(Effect::Rest));
    assert_eq!(state.wanted.moment, Moment::At(Index(70)), "what it means is looked up once");
    press(&mut state, Key::Char('t'));
    type_text(&mut state, "soon");
    assert!(matches!(press(&mut state, Key::Char('\n')), Some(Effect::Read(_))));
    let refused = Input::Failed { reason: "invalid moment".to_string(), is_transient: false };
    assert_eq!(state.update(&style(), refused), Some(Effect::Rest));
    assert_eq!((state.wanted.moment.clone(), state.note.as_str()), (Moment::At(Index(70)), "invalid moment"));
    assert!(drawn(&mut state, 104, 10)[9].starts_with("invalid moment"));
}

#[test]
fn enter_opens_a_job_then_an_allocation_and_esc_goes_back_step_by_step() {
    let mut state = live();
    press(&mut state, Key::End);
    let opened = press(&mut state, Key::Char('\n'));
    let scope = Scope::Job { namespace: "default".to_string(), id: "web".to_string() };
    assert_eq!((state.wanted.view, state.wanted.scope.as_ref()), (View::Allocs, Some(&scope)));
    assert!(state.rows(&style()).is_empty(), "the jobs are not shown as allocations");
    let Some(Effect::Read(request)) = opened else { panic!("{opened:?}") };
    let cells: Vec<Cell> = View::Allocs.columns().iter().map(|c| Cell::Text(c.title.to_string())).collect();
    let row = Row { key: "a1".to_string(), namespace: "default".to_string(), cells };
    let read = Snapshot { rows: vec![row], ..snapshot(&request, 101) };
    state.update(&style(), Input::Read(Box::new(read)));
    assert!(drawn(&mut state, 104, 10)[3].ends_with("5 Events   of job web"));
    let opened = press(&mut state, Key::Char('\n'));
    let Some(Effect::Read(request)) = opened else { panic!("{opened:?}") };
    let alloc = Detail::Alloc { namespace: "default".to_string(), id: "a1".to_string() };
    assert_eq!(request.detail, Some(alloc));
    let detail = (0..20).map(|line| format!("line {line}")).collect();
    state.update(&style(), Input::Read(Box::new(Snapshot { detail, ..snapshot(&request, 101) })));
    assert_eq!(drawn(&mut state, 104, 10)[4], "line 0");
    press(&mut state, Key::End);
    assert_eq!(drawn(&mut state, 104, 10)[8], "line 19", "the last line is at the bottom");
    press(&mut state, Key::Up);
    assert_eq!(drawn(&mut state, 104, 10)[8], "line 18");
    assert!(matches!(press(&mut state, Key::Esc), Some(Effect::Read(_))));
    assert_eq!((state.wanted.detail.clone(), state.wanted.scope.clone()), (None, Some(scope)));
    press(&mut state, Key::Esc);
    assert_eq!((state.wanted.view, state.wanted.scope.clone()), (View::Jobs, None));
}

#[test]
fn a_lost_connection_is_tried_again_at_growing_intervals_and_what_was_read_stays() {
    let mut state = live();
    let lost = |state: &mut State| {
        let reason = "connection refused".to_string();
        state.update(&style(), Input::Failed { reason, is_transient: true })
    };
    assert_eq!(lost(&mut state), Some(Effect::Retry(Duration::from_secs(1))));
    let lines = drawn(&mut state, 104, 10);
    assert_eq!(lines[0], " LOST index 100  connection refused: trying again in 1 s");
    assert!(lines[5].starts_with("api "));
    assert_eq!(state.update(&style(), Input::Due), Some(Effect::Read(state.wanted.clone())));
    assert_eq!(lost(&mut state), Some(Effect::Retry(Duration::from_secs(2))));
    assert_eq!(pause(6), Duration::from_secs(30), "and no longer");
    assert_eq!(pause(u32::MAX), Duration::from_secs(30));
    let again = state.update(&style(), Input::Due);
    assert_eq!(answer(&mut state, again, 130), Some(Effect::Watch(STAMPS)));
    assert_eq!(state.link, Link::Up);
}

#[test]
fn other_keys_show_help_lists_and_the_end() {
    let mut state = live();
    press(&mut state, Key::Char('?'));
    assert!(drawn(&mut state, 104, 20).iter().any(|line| line.contains("p or l goes on")));
    assert_eq!(press(&mut state, Key::Char('q')), None, "any key closes the help");
    assert!(matches!(press(&mut state, Key::Char('\t')), Some(Effect::Read(_))));
    assert_eq!(state.wanted.view, View::Allocs);
    press(&mut state, Key::BackTab);
    press(&mut state, Key::BackTab);
    assert_eq!(state.wanted.view, View::Nodes);
    press(&mut state, Key::Char('5'));
    assert_eq!(state.wanted.view, View::Events);
    assert_eq!(press(&mut state, Key::Char('\n')), None, "there is no row");
    assert_eq!(drawn(&mut state, 60, 10)[5], "reading");
    assert_eq!(press(&mut state, Key::Char('q')), Some(Effect::Quit));
    assert_eq!(press(&mut state, Key::Ctrl('c')), Some(Effect::Quit));
}

#[test]
fn what_the_token_may_not_read_is_said_in_its_place() {
    let request = Request::list(View::Events, "");
    let mut state = State::new(request.clone());
    let refused = Some("Unexpected response code: 403 (Permission denied)".to_string());
    state.take(Snapshot { refused, ..snapshot(&request, 7) });
    assert_eq!(
        drawn(&mut state, 80, 10)[5],
        "cannot be read: Unexpected response code: 403 (Permission denied)"
    );
}

#[test]
fn every_view_is_sorted_by_a_column_it_has_and_named_once() {
    for view in View::ALL {
        assert!(view.first_order().column < view.columns().len());
        assert!(view.columns().iter().any(|column| column.rank == 0));
    }
    let job = Scope::Job { namespace: "default".to_string(), id: "a \"b\"".to_string() };
    assert_eq!(job.filter(), r#"JobID == "a \"b\"""#);
}
