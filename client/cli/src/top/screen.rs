//! The terminal, and the loop: draw, wait for a key, an answer or a change, decide, do.

use std::io::{self, IsTerminal, Stdout, Write};
use std::pin::Pin;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use anyhow::Context;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::{Terminal, TerminalOptions, Viewport};
use ratatui_termion::TermionBackend;
use ratatui_termion::termion::event::Key;
use ratatui_termion::termion::input::TermRead;
use ratatui_termion::termion::screen::{ToAlternateScreen, ToMainScreen};
use ratatui_termion::termion::{clear, cursor};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::draw;
use super::machine::{Effect, Input, State};
use super::read::Reader;
use crate::call::{Failure, now};
use crate::output::OutputStyle;

/// How often what is shown as a span is drawn anew. The agent is not asked for that.
const REDRAW: Duration = Duration::from_secs(1);

/// Keys that are typed ahead; more are left in the terminal.
const KEYS_MAX: usize = 64;

/// What a terminal is that does not say how large it is.
const SIZE_DEFAULT: (u16, u16) = (80, 24);

type Pending<'a> = Option<Pin<Box<dyn Future<Output = Input> + 'a>>>;

/// Shows the state until the user quits, or a signal ends it.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn run(mut state: State, mut style: OutputStyle, reader: &Reader) -> Result<(), Failure> {
    let (mut stops, mut resized) = (Stops::new()?, listen(SignalKind::window_change())?);
    let mut screen = Screen::open()?;
    let mut keys = keys();
    let mut seconds = tokio::time::interval(REDRAW);
    let mut pending = start(reader, Effect::Read(state.wanted.clone()));
    loop {
        style.now = now();
        screen.draw(&mut state, &style)?;
        let input = tokio::select! {
            // The terminal is gone.
            key = keys.recv() => match key {
                None => return Ok(()),
                Some(key) => Some(Input::Key(key.context("Error reading keys")?)),
            },
            () = stops.next() => return Ok(()),
            _ = resized.recv() => {
                screen.resize()?;
                None
            }
            _ = seconds.tick() => None,
            input = answer(&mut pending) => {
                pending = None;
                Some(input)
            }
        };
        match input.and_then(|input| state.update(&style, input)) {
            None => {}
            Some(Effect::Quit) => return Ok(()),
            Some(effect) => pending = start(reader, effect),
        }
    }
}

/// The input that is waited for; never, when there is none.
async fn answer(pending: &mut Pending<'_>) -> Input {
    match pending {
        Some(pending) => pending.await,
        None => std::future::pending().await,
    }
}

/// What is to be done, under way. What was under way before is dropped: nobody needs it any more.
fn start(reader: &Reader, effect: Effect) -> Pending<'_> {
    let failed =
        |error: sdk::Error| Input::Failed { reason: error.to_string(), is_transient: error.is_transient() };
    match effect {
        Effect::Read(request) => Some(Box::pin(async move {
            let read = reader.read(request).await;
            read.map_or_else(failed, |snapshot| Input::Read(Box::new(snapshot)))
        })),
        Effect::Watch(stamps) => Some(Box::pin(async move {
            let changed = reader.changed(stamps).await;
            changed.map_or_else(failed, |()| Input::Due)
        })),
        Effect::Retry(pause) => Some(Box::pin(async move {
            tokio::time::sleep(pause).await;
            Input::Due
        })),
        Effect::Rest | Effect::Quit => None,
    }
}

/// Keys, from a thread that ends with the program: a terminal cannot be read without waiting.
fn keys() -> mpsc::Receiver<io::Result<Key>> {
    let (typed, keys) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        for key in io::stdin().keys() {
            if typed.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

/// Signals that end the program: the terminal has to be put back first.
struct Stops([Signal; 3]);

impl Stops {
    fn new() -> Result<Stops, Failure> {
        let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [terminate, hangup, interrupt] = kinds.map(listen);
        Ok(Stops([terminate?, hangup?, interrupt?]))
    }

    async fn next(&mut self) {
        let [terminate, hangup, interrupt] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    Ok(signal(kind).context("Error waiting for signals")?)
}

/// How the terminal was before. A panic prints into it before anything is dropped, so it is known everywhere.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// The user's terminal, until it is dropped: then it is as it was before.
struct Screen {
    terminal: Terminal<TermionBackend<Stdout>>,
}

impl Screen {
    fn open() -> Result<Screen, Failure> {
        const DOING: &str = "Error setting up the terminal";
        static RESTORES: Once = Once::new();
        RESTORES.call_once(|| {
            let print = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                print(panic);
            }));
        });
        let before = tcgetattr(io::stdin()).context(DOING)?;
        let mut raw = BEFORE.get_or_init(|| before).clone();
        raw.make_raw();
        let options = TerminalOptions { viewport: Viewport::Fixed(area()) };
        let terminal = Terminal::with_options(TermionBackend::new(io::stdout()), options).context(DOING)?;
        let screen = Screen { terminal };
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw).context(DOING)?;
        let mut out = io::stdout();
        write!(out, "{ToAlternateScreen}{}{}", clear::All, cursor::Hide).context(DOING)?;
        out.flush().context(DOING)?;
        Ok(screen)
    }

    fn draw(&mut self, state: &mut State, style: &OutputStyle) -> Result<(), Failure> {
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            draw::draw(frame.buffer_mut(), area, state, style);
        });
        drawn.context("Error drawing")?;
        Ok(())
    }

    fn resize(&mut self) -> Result<(), Failure> {
        Ok(self.terminal.resize(area()).context("Error drawing")?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Also what was never set up can be put back. Nothing can be done about a terminal that is gone.
fn restore() {
    let mut out = io::stdout();
    let _ = write!(out, "{}{ToMainScreen}", cursor::Show).and_then(|()| out.flush());
    if let Some(before) = BEFORE.get() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, before);
    }
}

/// The size of the terminal that is drawn on, which need not be the one that controls the program.
fn area() -> Rect {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let (width, height) = size.map_or(SIZE_DEFAULT, |size| (size.ws_col, size.ws_row));
    Rect::new(0, 0, width, height)
}

/// Both ends of the program are a terminal.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::Command;

    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
    use rustix::termios::LocalModes;

    use super::*;

    /// Set in the process that is started below.
    const IN_A_TERMINAL: &str = "TOP_TEST_PANICS_IN_A_TERMINAL";
    const PANIC: &str = "in the middle of it";

    /// Not a test of its own: what [`a_panic_finds_the_terminal_as_it_was`] runs in a terminal.
    #[test]
    fn panics_in_a_terminal() {
        if std::env::var_os(IN_A_TERMINAL).is_some() {
            let _screen = Screen::open().unwrap_or_else(|error| panic!("no screen: {error:?}"));
            panic!("{PANIC}");
        }
    }

    #[test]
    fn a_panic_finds_the_terminal_as_it_was() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "top::screen::tests::panics_in_a_terminal", "--nocapture"]);
        program.env(IN_A_TERMINAL, "1").env("RUST_BACKTRACE", "0");
        program.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let mut child = program.spawn().unwrap();
        // Its ends of the terminal are open as long as this is there.
        drop(program);
        let (mut master, mut seen, mut chunk) = (File::from(master), Vec::new(), [0; 4096]);
        // Nobody has the other end any more: that is an error.
        while let Ok(length @ 1..) = master.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..length]);
        }
        assert!(!child.wait().unwrap().success());
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let at = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no {text:?} in {seen:?}"));
        let (begun, ended) = (at(&ToAlternateScreen.to_string()), at(&ToMainScreen.to_string()));
        assert!(begun < ended && ended < at(PANIC), "it is read on the screen that stays: {seen:?}");
        let modes = tcgetattr(&master).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
    }
}
