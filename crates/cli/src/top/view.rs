//! The content of the screen: pure text, from rows and keys.

use sessile_client::top::{Row, Running};
use sessile_protocol::SessionId;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Cpu,
    Memory,
    Newest,
}

/// The effect of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    None,
    Quit,
    /// Interrupt what this session runs.
    Interrupt(SessionId),
}

#[derive(Debug)]
pub(crate) struct View {
    rows: Vec<Row>,
    order: Order,
    /// Ended and lost sessions are shown, too.
    is_all: bool,
    /// The line of the selected session.
    selected: usize,
    /// The session that was selected; none means the first line.
    chosen: Option<SessionId>,
    /// The session to interrupt, once that is confirmed.
    asked: Option<SessionId>,
    message: Option<String>,
}

const HELP: &str =
    "q quit  ↑↓ select  c by CPU  m by memory  n newest first  a ended too  i interrupt";

const REVERSE: &str = "\x1b[7m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl View {
    pub(crate) fn new(is_all: bool) -> Self {
        let order = Order::Cpu;
        Self {
            rows: Vec::new(),
            order,
            is_all,
            selected: 0,
            chosen: None,
            asked: None,
            message: None,
        }
    }

    /// Takes new rows; the selected session stays selected.
    pub(crate) fn update(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.rearrange();
    }

    pub(crate) fn tell(&mut self, message: String) {
        self.message = Some(message);
    }

    fn rearrange(&mut self) {
        let shown = self.shown();
        let last = shown.len().saturating_sub(1);
        self.selected = match &self.chosen {
            None => 0,
            Some(id) => {
                let place = shown.iter().position(|row| row.session_id == *id);
                place.unwrap_or(self.selected).min(last)
            }
        };
    }

    fn select(&mut self, line: usize) {
        let line = line.min(self.shown().len().saturating_sub(1));
        self.chosen = self.shown().get(line).map(|row| row.session_id.clone());
        self.selected = line;
    }

    /// Returns the rows in their order.
    pub(crate) fn shown(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> =
            self.rows.iter().filter(|row| self.is_all || row.is_live()).collect();
        let cpu = |row: &Row| row.usage.cpu_percent.unwrap_or(0.0);
        match self.order {
            Order::Cpu => rows.sort_by(|a, b| cpu(b).total_cmp(&cpu(a))),
            Order::Memory => rows.sort_by_key(|row| std::cmp::Reverse(row.usage.memory_bytes)),
            Order::Newest => {}
        }
        rows
    }

    pub(crate) fn press(&mut self, keys: &[u8]) -> Action {
        self.message = None;
        if let Some(id) = self.asked.take() {
            return if keys == b"y" { Action::Interrupt(id) } else { Action::None };
        }
        match keys {
            b"q" | b"Q" | b"\x03" | b"\x1b" => return Action::Quit,
            b"j" | b"\x1b[B" | b"\x1bOB" => self.select(self.selected + 1),
            b"k" | b"\x1b[A" | b"\x1bOA" => self.select(self.selected.saturating_sub(1)),
            b"c" => self.order = Order::Cpu,
            b"m" => self.order = Order::Memory,
            b"n" => self.order = Order::Newest,
            b"a" => self.is_all = !self.is_all,
            b"i" => self.ask(),
            _ => {}
        }
        self.rearrange();
        Action::None
    }

    fn ask(&mut self) {
        let shown = self.shown();
        let busy = shown.get(self.selected).filter(|row| !row.running.is_empty());
        match busy.map(|row| row.session_id.clone()) {
            Some(id) => self.asked = Some(id),
            None => self.message = Some("nothing is running there".to_owned()),
        }
    }

    /// Draws the whole screen, each line at most `width` wide.
    pub(crate) fn draw(&self, width: usize, height: usize) -> String {
        let rows = self.shown();
        let table = table(&rows);
        let mut out = String::from("\x1b[H");
        let mut line = |style: &str, text: &str| {
            let _ = write!(out, "{style}{}{PLAIN}\x1b[K\r\n", cut(text, width));
        };
        let busy = rows.iter().filter(|row| !row.running.is_empty()).count();
        line(BOLD, &format!("sessile top: {} sessions, {busy} busy", rows.len()));
        line(REVERSE, table.first().map_or("", String::as_str));
        // Two lines above, two below; the selected one is always visible.
        let room = height.saturating_sub(4).max(1);
        let first = (self.selected + 1).saturating_sub(room);
        for (n, text) in table[1..].iter().enumerate().skip(first).take(room) {
            line(if n == self.selected { REVERSE } else { "" }, text);
        }
        let foot = match (&self.asked, &self.message) {
            (Some(id), _) => format!("interrupt what {id} runs? y/n"),
            (None, Some(message)) => message.clone(),
            (None, None) => HELP.to_owned(),
        };
        let _ = write!(out, "\x1b[J\x1b[{height};1H{BOLD}{}{PLAIN}\x1b[K", cut(&foot, width));
        out
    }
}

/// Splits input into keys: several may have been read at once.
pub(crate) fn keys(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let length = match bytes {
            [0x1b, b'[' | b'O', _, ..] => 3,
            _ => 1,
        };
        let (key, rest) = bytes.split_at(length);
        keys.push(key);
        bytes = rest;
    }
    keys
}

/// Returns a table for people: its head, then a line for each session.
pub(crate) fn table(rows: &[&Row]) -> Vec<String> {
    let heads = ["SESSION", "NAME", "STATE", "CPU%", "MEMORY", "PROCS", "QUEUED", "KERNELS", "RUN"];
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    crate::output::table(&heads, &cells).lines().map(str::to_owned).collect()
}

fn cells(row: &Row) -> Vec<String> {
    let kernels: Vec<String> =
        row.kernels.iter().map(|kernel| format!("{}:{}", kernel.language, kernel.pid)).collect();
    let run = match (&row.running[..], row.idle_ms) {
        ([], Some(idle)) => format!("idle for {}", time(idle)),
        ([], None) => String::new(),
        (running, _) => running.iter().map(doing).collect::<Vec<_>>().join("; "),
    };
    vec![
        row.session_id.to_string(),
        cut(&printable(row.label().unwrap_or("-")), 20),
        row.state.as_str().to_owned(),
        row.usage.cpu_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}")),
        memory(row),
        processes(row),
        row.queued.to_string(),
        kernels.join(" "),
        run,
    ]
}

/// Returns the used memory, with its limit if there is one.
fn memory(row: &Row) -> String {
    let limit = row.resources.as_ref().and_then(|limits| limits.memory.as_ref());
    match limit {
        Some(limit) => {
            let used = limit.used_bytes.unwrap_or(row.usage.memory_bytes);
            format!("{}/{}", size(used), size(limit.limit_bytes))
        }
        None => size(row.usage.memory_bytes),
    }
}

fn processes(row: &Row) -> String {
    let limit = row.resources.as_ref().and_then(|limits| limits.pids.as_ref());
    match limit {
        Some(limit) => {
            format!("{}/{}", limit.used.unwrap_or(row.usage.processes), limit.limit)
        }
        None => row.usage.processes.to_string(),
    }
}

fn doing(running: &Running) -> String {
    let since = running.running_ms.map(|ms| format!(" {}", time(ms))).unwrap_or_default();
    let waits = if running.waiting_for_input { " (waits for input)" } else { "" };
    format!("{}{since}{waits} {}", running.run, printable(running.command.trim()))
}

/// Removes what would move the cursor.
fn printable(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn size(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1000.0 { format!("{mib:.1}M") } else { format!("{:.1}G", mib / 1024.0) }
}
