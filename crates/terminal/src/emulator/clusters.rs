//! Characters with marks (accents, variation selectors, joiners).
//!
//! A cell of avt holds one `char`. A base with marks is stored there as a stand-in from an
//! unused range: private use for narrow ones, and for wide ones the end of the ideographic
//! plane, which is two columns wide though nothing is assigned there.
//!
//! Invariant: there are never more stand-ins than `CAPACITY` of each kind; those that are
//! no longer on the screen make room.

use std::collections::{HashMap, HashSet};

const NARROW: u32 = 0x10_f000;
const WIDE: u32 = 0x3_f000;
const CAPACITY: usize = 4000;

/// Letters of living languages have at most four; more is decoration.
const MOST_MARKS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Narrow,
    Wide,
}

#[derive(Debug)]
pub(super) struct NoFreeSlot;

#[derive(Debug)]
pub(super) struct Clusters {
    narrow: Slots,
    wide: Slots,
}

#[derive(Debug)]
struct Slots {
    base: u32,
    texts: Vec<Option<Box<str>>>,
    places: HashMap<Box<str>, usize>,
    free: Vec<usize>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self { narrow: Slots::new(NARROW), wide: Slots::new(WIDE) }
    }
}

/// Returns whether a character of a program would be mistaken for a stand-in.
pub(super) fn is_reserved(ch: char) -> bool {
    let code = u32::from(ch);
    let capacity = CAPACITY as u32;
    (WIDE..WIDE + capacity).contains(&code) || (NARROW..NARROW + capacity).contains(&code)
}

impl Clusters {
    /// Appends the text of a cell's character.
    pub(super) fn write(&self, ch: char, text: &mut String) {
        match self.slots_of(ch).and_then(|slots| slots.text(ch)) {
            Some(cluster) => text.push_str(cluster),
            None => text.push(ch),
        }
    }

    /// Returns the stand-in for a character with one more mark.
    pub(super) fn join(&mut self, base: char, kind: Kind, mark: char) -> Result<char, NoFreeSlot> {
        let mut text = String::new();
        self.write(base, &mut text);
        if text.chars().count() > MOST_MARKS {
            return Ok(base);
        }
        text.push(mark);
        match kind {
            Kind::Narrow => self.narrow.place(text),
            Kind::Wide => self.wide.place(text),
        }
    }

    /// Forgets all stand-ins that are not in use.
    pub(super) fn retain(&mut self, used: &HashSet<char>) {
        self.narrow.retain(used);
        self.wide.retain(used);
    }

    fn slots_of(&self, ch: char) -> Option<&Slots> {
        if !is_reserved(ch) {
            return None;
        }
        Some(if u32::from(ch) >= NARROW { &self.narrow } else { &self.wide })
    }
}

impl Slots {
    fn new(base: u32) -> Self {
        Self { base, texts: Vec::new(), places: HashMap::new(), free: Vec::new() }
    }

    fn text(&self, ch: char) -> Option<&str> {
        let index = u32::from(ch).checked_sub(self.base)? as usize;
        self.texts.get(index)?.as_deref()
    }

    fn place(&mut self, text: String) -> Result<char, NoFreeSlot> {
        let text = text.into_boxed_str();
        let index = if let Some(&index) = self.places.get(&text) {
            index
        } else if let Some(index) = self.free.pop() {
            self.texts[index] = Some(text.clone());
            self.places.insert(text, index);
            index
        } else if self.texts.len() < CAPACITY {
            self.texts.push(Some(text.clone()));
            self.places.insert(text, self.texts.len() - 1);
            self.texts.len() - 1
        } else {
            return Err(NoFreeSlot);
        };
        self.char_at(index).ok_or(NoFreeSlot)
    }

    fn char_at(&self, index: usize) -> Option<char> {
        char::from_u32(self.base + u32::try_from(index).ok()?)
    }

    fn retain(&mut self, used: &HashSet<char>) {
        for index in 0..self.texts.len() {
            if self.char_at(index).is_some_and(|ch| used.contains(&ch)) {
                continue;
            }
            if let Some(text) = self.texts[index].take() {
                self.places.remove(&text);
                self.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthChar;

    #[test]
    fn stand_ins_are_as_wide_as_what_they_stand_for() {
        for offset in 0..CAPACITY as u32 {
            assert_eq!(char::from_u32(NARROW + offset).unwrap().width(), Some(1));
            assert_eq!(char::from_u32(WIDE + offset).unwrap().width(), Some(2));
        }
    }

    #[test]
    fn a_full_table_makes_room_for_what_is_used() {
        let mut clusters = Clusters::default();
        let letters: Vec<_> = ('\u{4e00}'..).take(CAPACITY).collect();
        let stand_ins: Vec<_> =
            letters.iter().map(|&ch| clusters.join(ch, Kind::Wide, '\u{301}').unwrap()).collect();
        assert!(clusters.join('x', Kind::Wide, '\u{301}').is_err());
        assert!(clusters.join('x', Kind::Narrow, '\u{301}').is_ok());
        clusters.retain(&HashSet::from([stand_ins[7]]));
        assert!(clusters.join('x', Kind::Wide, '\u{301}').is_ok());
        let mut text = String::new();
        clusters.write(stand_ins[7], &mut text);
        assert_eq!(text, format!("{}\u{301}", letters[7]));
    }

    #[test]
    fn marks_without_end_are_not_kept() {
        let mut clusters = Clusters::default();
        let mut ch = 'a';
        for _ in 0..1000 {
            ch = clusters.join(ch, Kind::Narrow, '\u{301}').unwrap();
        }
        let mut text = String::new();
        clusters.write(ch, &mut text);
        assert_eq!(text.chars().count(), MOST_MARKS + 1);
    }
}
