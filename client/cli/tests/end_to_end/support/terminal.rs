//! A user's terminal with the program on it: what the program writes, as it is read, or as it stands on the screen.

use std::io::{Read, Write};
use std::process::{Child, Command};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::{TIMEOUT, eventually};

pub struct Terminal {
    master: std::fs::File,
    child: Child,
    seen: String,
    screen: Screen,
}

impl Terminal {
    /// With this many lines and columns.
    pub fn start(mut command: Command, size: (u16, u16)) -> Terminal {
        use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        set(&master, size);
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        Terminal { master: master.into(), child, seen: String::new(), screen: Screen::new(size) }
    }

    /// The program has no controlling terminal here, so the signal that goes with it is sent by hand.
    pub fn resize(&mut self, height: u16, width: u16) {
        set(&self.master, (height, width));
        self.screen = Screen::new((height, width));
        self.send(Signal::WINCH);
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until this was printed.
    pub fn until(&mut self, wanted: &str) {
        while !self.seen.contains(wanted) {
            self.read();
        }
        self.seen.clear();
    }

    /// Reads until the screen is as it is wanted, and gives it: its lines, without blanks at their ends.
    pub fn shows(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let shown = self.screen.text();
            if is_wanted(&shown) {
                return shown;
            }
            assert!(Instant::now() < deadline, "never shown: {what}\n{shown}");
            let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
            let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
            if poll(&mut ready, Some(&wait)).unwrap() > 0 {
                self.read();
            }
        }
    }

    fn read(&mut self) {
        let mut chunk = [0; 4096];
        let length = self.master.read(&mut chunk).unwrap_or_else(|error| panic!("{error}: {}", self.seen));
        let text = String::from_utf8_lossy(&chunk[..length]).into_owned();
        self.seen.push_str(&text);
        self.screen.print(&chunk[..length]);
    }

    pub fn is_restored(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.master).unwrap().local_modes;
        modes.contains(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO)
    }

    pub fn ended(&mut self) -> i32 {
        eventually("the program ends", || self.child.try_wait().unwrap()).code().expect("it ends by itself")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn set(master: impl rustix::fd::AsFd, (ws_row, ws_col): (u16, u16)) {
    let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(master, size).unwrap();
}

/// The cells of a terminal: text at the cursor, and of all that a program may order where the cursor goes and what is cleared.
struct Screen {
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// What is not yet whole: an order, or a character.
    rest: Vec<u8>,
}

impl Screen {
    fn new((height, width): (u16, u16)) -> Screen {
        let cells = vec![vec![' '; usize::from(width)]; usize::from(height)];
        Screen { cells, row: 0, column: 0, rest: Vec::new() }
    }

    fn text(&self) -> String {
        let lines =
            self.cells.iter().map(|line| line.iter().collect::<String>().trim_end().to_string() + "\n");
        lines.collect()
    }

    fn print(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(self.rest[..whole].to_vec()).unwrap();
        let mut left = text.as_str();
        while let Some(c) = left.chars().next() {
            let after = match left.strip_prefix("\u{1b}[") {
                Some(order) => match order.find(|c: char| c.is_ascii_alphabetic()) {
                    Some(end) => {
                        self.obey(&order[..end], order.as_bytes()[end]);
                        &order[end + 1..]
                    }
                    None => break,
                },
                None if c == '\u{1b}' && left.len() == 1 => break,
                None => {
                    self.put(c);
                    &left[c.len_utf8()..]
                }
            };
            left = after;
        }
        self.rest.drain(..whole - left.len());
    }

    fn obey(&mut self, numbers: &str, order: u8) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
        match order {
            b'H' => {
                self.row = numbers.next().unwrap_or(1) - 1;
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            b'J' => self.cells.iter_mut().for_each(|line| line.fill(' ')),
            _ => {}
        }
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            c => {
                if let Some(cell) = self.cells.get_mut(self.row).and_then(|line| line.get_mut(self.column)) {
                    *cell = c;
                }
                self.column += 1;
            }
        }
    }
}
