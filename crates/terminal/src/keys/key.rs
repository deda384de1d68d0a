//! One key with its modifiers.

use crate::Modes;

pub(super) const NAMES: &str = "Enter, Esc, Tab, Space, BS, Del, Insert, Up, Down, Left, Right, \
     Home, End, PageUp, PageDown, F1 to F24, lt, gt; with C- (Ctrl), M- (Alt) or S- (Shift) \
     before them, as in C-c, M-x, C-S-Left";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyProblem {
    Name,
    Combination,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    base: Base,
    held: Modifiers,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Char(char),
    Enter,
    LineFeed,
    Escape,
    Tab,
    Backspace,
    /// `ESC [ letter`, and `ESC O letter` in application mode.
    Cursor(char),
    /// `ESC [ number ~`.
    Editing(u8),
    /// Counted from one.
    Function(u8),
}

#[derive(Clone, Copy, Debug, Default)]
struct Modifiers {
    shift: bool,
    alt: bool,
    ctrl: bool,
}

impl Modifiers {
    /// Returns xterm's number for the modifiers; one means none.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.ctrl)
    }
}

impl Key {
    pub(super) fn parse(name: &str) -> Result<Self, KeyProblem> {
        let mut held = Modifiers::default();
        let mut rest = name;
        while let Some((modifier, after)) = split_modifier(rest) {
            match modifier {
                Modifier::Shift => held.shift = true,
                Modifier::Alt => held.alt = true,
                Modifier::Ctrl => held.ctrl = true,
            }
            rest = after;
        }
        let is_combined = rest.len() < name.len();
        let mut chars = rest.chars();
        let base = match (chars.next(), chars.next()) {
            (Some(ch), None) if is_combined => Base::Char(ch),
            _ => Base::named(rest).ok_or(KeyProblem::Name)?,
        };
        let key = Self { base, held };
        key.check()?;
        Ok(key)
    }

    fn check(self) -> Result<(), KeyProblem> {
        let Base::Char(ch) = self.base else { return Ok(()) };
        let is_possible = if self.held.ctrl {
            control(ch).is_some()
        } else {
            !self.held.shift || ch.is_alphabetic() || ch == ' '
        };
        if is_possible { Ok(()) } else { Err(KeyProblem::Combination) }
    }

    pub(super) fn write(self, modes: Modes, bytes: &mut Vec<u8>) {
        let Self { base, held } = self;
        let number = held.number();
        match base {
            Base::Cursor(letter) if number == 1 && modes.application_cursor => {
                push(bytes, &format!("\x1bO{letter}"));
            }
            Base::Cursor(letter) if number == 1 => push(bytes, &format!("\x1b[{letter}")),
            Base::Cursor(letter) => push(bytes, &format!("\x1b[1;{number}{letter}")),
            Base::Editing(code) => write_numbered(code, number, bytes),
            Base::Function(function) => write_function(function, held, bytes),
            Base::Char(_)
            | Base::Enter
            | Base::LineFeed
            | Base::Escape
            | Base::Tab
            | Base::Backspace => {
                // Alt is an ESC before the bytes of the key without it.
                if held.alt {
                    bytes.push(0x1b);
                }
                write_plain(base, held, bytes);
            }
        }
    }
}

fn write_plain(base: Base, held: Modifiers, bytes: &mut Vec<u8>) {
    match base {
        Base::Char(ch) => match control(ch).filter(|_| held.ctrl) {
            Some(code) => bytes.push(code),
            None if held.shift => ch.to_uppercase().for_each(|ch| write_char(ch, bytes)),
            None => write_char(ch, bytes),
        },
        Base::Enter => bytes.push(b'\r'),
        Base::LineFeed => bytes.push(b'\n'),
        Base::Escape => bytes.push(0x1b),
        Base::Tab if held.shift => push(bytes, "\x1b[Z"),
        Base::Tab => bytes.push(b'\t'),
        Base::Backspace => bytes.push(if held.ctrl { 0x08 } else { 0x7f }),
        Base::Cursor(_) | Base::Editing(_) | Base::Function(_) => {}
    }
}

fn write_numbered(code: u8, held: u8, bytes: &mut Vec<u8>) {
    if held == 1 {
        push(bytes, &format!("\x1b[{code}~"));
    } else {
        push(bytes, &format!("\x1b[{code};{held}~"));
    }
}

fn write_function(function: u8, held: Modifiers, bytes: &mut Vec<u8>) {
    // As in terminfo: F13 is F1 with Shift.
    let (function, held) = match function {
        0..=12 => (function, held),
        shifted => (shifted - 12, Modifiers { shift: true, ..held }),
    };
    let number = held.number();
    match function {
        0..=4 => {
            let letter = char::from(b'O' + function);
            if number == 1 {
                push(bytes, &format!("\x1bO{letter}"));
            } else {
                push(bytes, &format!("\x1b[1;{number}{letter}"));
            }
        }
        // The numbers have gaps, like the keyboard of the VT220.
        5 => write_numbered(15, number, bytes),
        6..=10 => write_numbered(function + 11, number, bytes),
        _ => write_numbered(function + 12, number, bytes),
    }
}

fn push(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
}

fn write_char(ch: char, bytes: &mut Vec<u8>) {
    push(bytes, ch.encode_utf8(&mut [0; 4]));
}

/// Returns the control character for Ctrl with a character.
fn control(ch: char) -> Option<u8> {
    match ch {
        'a'..='z' | 'A'..='Z' | '@' | '[' | '\\' | ']' | '^' | '_' => {
            u8::try_from(ch).ok().map(|code| code & 0x1f)
        }
        ' ' => Some(0),
        '/' => Some(0x1f),
        '?' => Some(0x7f),
        _ => None,
    }
}

enum Modifier {
    Shift,
    Alt,
    Ctrl,
}

/// Splits `C-x` into Ctrl and `x`. The last character of a name is never a separator.
fn split_modifier(name: &str) -> Option<(Modifier, &str)> {
    let at = name.find(['-', '+'])?;
    let (word, after) = (&name[..at], &name[at + 1..]);
    if after.is_empty() {
        return None;
    }
    let modifier = match word.to_ascii_lowercase().as_str() {
        "s" | "shift" => Modifier::Shift,
        "m" | "a" | "alt" | "meta" => Modifier::Alt,
        "c" | "ctrl" | "control" => Modifier::Ctrl,
        _ => return None,
    };
    Some((modifier, after))
}

impl Base {
    fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if let Some(number) = name.strip_prefix('f').and_then(|rest| rest.parse::<u8>().ok()) {
            return (1..=24).contains(&number).then_some(Self::Function(number));
        }
        Some(match name.as_str() {
            "enter" | "return" | "cr" => Self::Enter,
            "lf" | "nl" => Self::LineFeed,
            "esc" | "escape" => Self::Escape,
            "tab" => Self::Tab,
            "space" => Self::Char(' '),
            "bs" | "backspace" => Self::Backspace,
            "lt" => Self::Char('<'),
            "gt" => Self::Char('>'),
            "up" | "arrowup" => Self::Cursor('A'),
            "down" | "arrowdown" => Self::Cursor('B'),
            "right" | "arrowright" => Self::Cursor('C'),
            "left" | "arrowleft" => Self::Cursor('D'),
            "home" => Self::Cursor('H'),
            "end" => Self::Cursor('F'),
            "insert" | "ins" => Self::Editing(2),
            "delete" | "del" => Self::Editing(3),
            "pageup" | "pgup" => Self::Editing(5),
            "pagedown" | "pgdn" | "pgdown" => Self::Editing(6),
            _ => return None,
        })
    }
}
