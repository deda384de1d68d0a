//! The modes that a program has set in its terminal.

/// The modes that determine the bytes of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Arrow keys, Home and End are sent in their application form.
    pub application_cursor: bool,
    pub application_keypad: bool,
    /// Pasted text is marked.
    pub bracketed_paste: bool,
    pub focus_reports: bool,
    /// Mouse clicks are reported.
    pub mouse: bool,
}

/// DEC's private modes that we know. They are kept by number, so that queries get the right
/// answer.
#[derive(Debug)]
pub(super) struct PrivateModes {
    set: Vec<u16>,
}

pub(super) const CURSOR_KEYS: u16 = 1;
pub(super) const ORIGIN: u16 = 6;
const AUTO_WRAP: u16 = 7;
pub(super) const SHOW_CURSOR: u16 = 25;
pub(super) const OLD_ALTERNATE: u16 = 47;
const KEYPAD: u16 = 66;
const FOCUS: u16 = 1004;
const MOUSE: [u16; 4] = [9, 1000, 1002, 1003];
const MOUSE_FORMS: [u16; 3] = [1005, 1006, 1015];
pub(super) const ALTERNATES: [u16; 3] = [OLD_ALTERNATE, 1047, 1049];
const BRACKETED_PASTE: u16 = 2004;

impl Default for PrivateModes {
    fn default() -> Self {
        Self { set: vec![AUTO_WRAP, SHOW_CURSOR] }
    }
}

fn is_known(mode: u16) -> bool {
    matches!(
        mode,
        CURSOR_KEYS | ORIGIN | AUTO_WRAP | SHOW_CURSOR | KEYPAD | FOCUS | BRACKETED_PASTE
    ) || MOUSE.contains(&mode)
        || MOUSE_FORMS.contains(&mode)
        || ALTERNATES.contains(&mode)
}

impl PrivateModes {
    pub(super) fn set(&mut self, mode: u16) {
        if is_known(mode) && !self.is_set(mode) {
            self.set.push(mode);
        }
    }

    pub(super) fn reset(&mut self, mode: u16) {
        self.set.retain(|set| *set != mode);
    }

    fn is_set(&self, mode: u16) -> bool {
        self.set.contains(&mode)
    }

    pub(super) fn set_keypad(&mut self) {
        self.set(KEYPAD);
    }

    pub(super) fn reset_keypad(&mut self) {
        self.reset(KEYPAD);
    }

    /// Soft reset (DECSTR).
    pub(super) fn reset_softly(&mut self) {
        for mode in [CURSOR_KEYS, ORIGIN, KEYPAD] {
            self.reset(mode);
        }
        self.set(SHOW_CURSOR);
    }

    /// Returns the state for DECRPM; none for an unknown mode.
    pub(super) fn state(&self, mode: u16) -> Option<bool> {
        is_known(mode).then(|| self.is_set(mode))
    }

    pub(super) fn summary(&self) -> Modes {
        Modes {
            application_cursor: self.is_set(CURSOR_KEYS),
            application_keypad: self.is_set(KEYPAD),
            bracketed_paste: self.is_set(BRACKETED_PASTE),
            focus_reports: self.is_set(FOCUS),
            mouse: MOUSE.iter().any(|mode| self.is_set(*mode)),
        }
    }
}
