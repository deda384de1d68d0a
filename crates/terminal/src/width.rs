//! The number of columns of a character, for the emulator and for everything that reads its
//! screens.

use unicode_width::UnicodeWidthChar;

/// Returns whether a character is drawn over the one before it and takes no column:
/// accents, joiners, variation selectors.
pub(crate) fn is_mark(ch: char) -> bool {
    ch >= '\u{300}' && ch.width() == Some(0)
}

/// Returns the characters of a text, each with its marks.
pub(crate) fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, ch)| !is_mark(*ch))
            .map_or(rest.len(), |(at, _)| at);
        let (cluster, tail) = rest.split_at(end);
        rest = tail;
        (!cluster.is_empty()).then_some(cluster)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_belong_to_the_character_before_them() {
        let all: Vec<_> = clusters("ae\u{301}\u{302}❤\u{fe0f}界").collect();
        assert_eq!(all, ["a", "e\u{301}\u{302}", "❤\u{fe0f}", "界"]);
        assert_eq!(clusters("").count(), 0);
    }
}
