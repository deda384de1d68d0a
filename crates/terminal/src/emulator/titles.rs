//! The window's title, and the stack of saved titles.

const MOST_CHARS: usize = 256;
const MOST_SAVED: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Titles {
    current: String,
    saved: Vec<String>,
}

impl Titles {
    pub(super) fn current(&self) -> &str {
        &self.current
    }

    /// OSC 0 and 2.
    pub(super) fn osc(&mut self, text: &str) {
        if let Some(("0" | "2", title)) = text.split_once(';') {
            self.current = title.chars().filter(|ch| !ch.is_control()).take(MOST_CHARS).collect();
        }
    }

    /// XTWINOPS 22 and 23: vim saves the title of its parent there.
    pub(super) fn csi(&mut self, params: &str, last: char) {
        match (params, last) {
            ("22" | "22;0" | "22;2" | "22;0;0" | "22;2;0", 't') => {
                if self.saved.len() == MOST_SAVED {
                    self.saved.remove(0);
                }
                self.saved.push(self.current.clone());
            }
            ("23" | "23;0" | "23;2" | "23;0;0" | "23;2;0", 't') => {
                if let Some(title) = self.saved.pop() {
                    self.current = title;
                }
            }
            _ => {}
        }
    }
}
