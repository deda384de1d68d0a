//! The beginning and the end of a long text.

/// Where a text is cut: what lies between the two is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) head: usize,
    pub(super) tail: usize,
}

/// Cuts a text of more than `limit` characters, at line ends where there are
/// any near.
pub(super) fn cut(text: &str, limit: usize) -> Option<Cut> {
    // The most common case, without a count.
    if text.len() <= limit || text.chars().count() <= limit {
        return None;
    }
    let ends = limit / 2;
    let head = text.char_indices().nth(limit - ends).map_or(text.len(), |(at, _)| at);
    let tail = match ends {
        0 => text.len(),
        _ => text.char_indices().nth_back(ends - 1).map_or(0, |(at, _)| at),
    };
    let line_end = text[..head].rfind('\n').map(|at| at + 1).filter(|at| *at > head / 2);
    let next_line = text[tail..].find('\n').map(|at| tail + at + 1);
    let next_line = next_line.filter(|at| text.len() - at > (text.len() - tail) / 2);
    Some(Cut { head: line_end.unwrap_or(head), tail: next_line.unwrap_or(tail) })
}

/// Shares `limit` among texts of these lengths: the short ones leave what they
/// do not need to the others.
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

/// The beginning of a text, for what is short unless something is wrong.
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
        #[test]
        fn no_more_is_kept_than_was_allowed(text in "(\\PC|\n){0,300}", limit in 0usize..200) {
            let count = text.chars().count();
            match cut(&text, limit) {
                None => prop_assert!(count <= limit),
                Some(Cut { head, tail }) => {
                    prop_assert!(head <= tail && count > limit);
                    let kept = text[..head].chars().count() + text[tail..].chars().count();
                    prop_assert!(kept <= limit);
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
