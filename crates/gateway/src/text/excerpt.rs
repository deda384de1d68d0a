//! The beginning and the end of a long text.

/// Where a text is cut: the part between the two offsets is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) head: usize,
    pub(super) tail: usize,
}

/// Returns how many bytes a character takes in a JSON string: everything that a model
/// reads comes in one.
fn weight(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// Returns how many bytes a text takes in a JSON string.
pub(super) fn encoded_len(text: &str) -> usize {
    text.chars().map(weight).sum()
}

/// Whether a text weighs at most `limit`. Mostly this is clear without counting.
pub(super) fn fits(text: &str, limit: usize) -> bool {
    text.len().saturating_mul(6) <= limit || (text.len() <= limit && encoded_len(text) <= limit)
}

/// Cuts a text that weighs more than `limit`, at nearby line ends if possible.
pub(super) fn cut(text: &str, limit: usize) -> Option<Cut> {
    if fits(text, limit) {
        return None;
    }
    let ends = limit / 2;
    Some(Cut { head: beginning(text, limit - ends), tail: ending(text, ends) })
}

/// Returns where the longest beginning that weighs at most `limit` ends.
pub(super) fn beginning(text: &str, limit: usize) -> usize {
    let mut left = limit;
    let end = text.char_indices().find(|(_, c)| match left.checked_sub(weight(*c)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    let Some((end, _)) = end else { return text.len() };
    let line_end = text[..end].rfind('\n').map(|at| at + 1).filter(|at| *at > end / 2);
    line_end.unwrap_or(end)
}

/// Returns where the longest ending that weighs at most `limit` begins.
pub(super) fn ending(text: &str, limit: usize) -> usize {
    let mut left = limit;
    let before = text.char_indices().rev().find(|(_, c)| match left.checked_sub(weight(*c)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    let Some((before, c)) = before else { return 0 };
    let start = before + c.len_utf8();
    let next_line = text[start..].find('\n').map(|at| start + at + 1);
    let next_line = next_line.filter(|at| text.len() - at > (text.len() - start) / 2);
    next_line.unwrap_or(start)
}

/// Divides `limit` among texts of these lengths: the short ones leave what they do not
/// need to the others.
pub(super) fn shares(lengths: &[usize], limit: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|at| lengths[*at]);
    let mut shares = vec![0; lengths.len()];
    let mut left = limit;
    for (taken, at) in order.into_iter().enumerate() {
        let share = lengths[at].min(left / (lengths.len() - taken));
        shares[at] = share;
        left -= share;
    }
    shares
}

/// Returns the beginning of a text that is normally short.
pub(super) fn clip(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_is_made_between_lines() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let cut = cut(&text, 200).unwrap();
        assert!(text[..cut.head].ends_with('\n'));
        assert!(text[cut.tail..].starts_with("line "));
    }

    #[test]
    fn short_texts_leave_room_for_long_ones() {
        assert_eq!(shares(&[10, 1000], 100), [10, 90]);
        assert_eq!(shares(&[1000, 1000, 0], 100), [50, 50, 0]);
        assert_eq!(shares(&[], 100), Vec::<usize>::new());
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn no_more_is_kept_than_was_allowed(text in "(\\PC|[\x00-\x1f\"\\\\]){0,300}", limit in 0usize..200) {
            let json = |text: &str| serde_json::to_string(text).unwrap().len() - 2;
            match cut(&text, limit) {
                None => prop_assert!(json(&text) <= limit),
                Some(Cut { head, tail }) => {
                    prop_assert!(head <= tail && json(&text) > limit);
                    prop_assert!(json(&text[..head]) + json(&text[tail..]) <= limit);
                }
            }
        }

        #[test]
        fn shares_fit(lengths in prop::collection::vec(0usize..500, 0..5), limit in 0usize..1000) {
            let shares = shares(&lengths, limit);
            prop_assert!(shares.iter().sum::<usize>() <= limit);
            prop_assert!(shares.iter().zip(&lengths).all(|(share, length)| share <= length));
            let all: usize = lengths.iter().sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), all.min(limit));
        }
    }
}
