//! Folds long stack traces: of hundreds of frames, a reader needs the outermost and the
//! innermost.

use super::screen::RenderedText;

/// A trace of more frames than this is shortened.
const LONG: usize = 50;

/// How many frames are kept at the beginning, and at the end, where most languages have
/// the error.
const FIRST: usize = 10;
const LAST: usize = 20;

/// A line with its offset in the text, including its line end.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    at: usize,
    text: &'a str,
}

/// Leaves out the middle of long traces. `rest` says how to read on from a byte of the
/// original. Returns none if there is no long trace.
pub(super) fn fold(
    settled: &RenderedText<'_>,
    rest: impl Fn(usize) -> String,
) -> Option<RenderedText<'static>> {
    let lines = lines(&settled.text);
    let traces = traces(&lines);
    if traces.is_empty() {
        return None;
    }
    let (mut text, mut origins, mut next) = (String::new(), Vec::new(), 0);
    let mut keep = |text: &mut String, kept: &[Line<'_>]| {
        for line in kept {
            origins.push((text.len(), settled.origin(line.at)));
            text.push_str(line.text);
        }
    };
    for frames in traces {
        let (from, to) = (frames[FIRST], frames[frames.len() - LAST]);
        keep(&mut text, &lines[next..from]);
        let (left_out, at) = (frames.len() - FIRST - LAST, settled.origin(lines[from].at));
        let note = format!("[… {left_out} frames left out; {} …]\n", rest(at));
        keep(&mut text, &[Line { at: lines[from].at, text: &note }]);
        next = to;
    }
    keep(&mut text, &lines[next..]);
    Some(RenderedText::of_lines(text, origins))
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut at = 0;
    let place = |line| {
        let here = Line { at, text: line };
        at += line.len();
        here
    };
    text.split_inclusive('\n').map(place).collect()
}

/// Returns the first lines of the frames of each long trace.
fn traces(lines: &[Line<'_>]) -> Vec<Vec<usize>> {
    let (mut all, mut open) = (Vec::new(), Vec::new());
    let mut indent = 0;
    for (number, line) in lines.iter().enumerate() {
        let depth = line.text.len() - line.text.trim_start().len();
        if is_frame(line.text) {
            open.push(number);
            indent = depth;
        } else if !open.is_empty() && !belongs(line.text, depth, indent) {
            all.push(std::mem::take(&mut open));
        }
    }
    all.push(open);
    all.retain(|frames| frames.len() > LONG);
    all
}

/// Whether a line begins a frame, as in the traces of Python, Node, Java, Rust, Ruby, gdb
/// and the like.
fn is_frame(line: &str) -> bool {
    let text = line.trim_start();
    if text.len() == line.len() && !text.starts_with('#') {
        return false;
    }
    let is_numbered = |text: &str, end: char| {
        text.split_once(end).is_some_and(|(number, rest)| {
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && !rest.is_empty()
        })
    };
    (text.starts_with("File \"") && text.contains("\", line "))
        || text.starts_with("at ")
        || text.starts_with("from ")
        || is_numbered(text, ':')
        || text.strip_prefix('#').is_some_and(|text| is_numbered(text, ' '))
}

/// Whether a line belongs to the frame before it: source text, marks below it.
fn belongs(line: &str, depth: usize, indent: usize) -> bool {
    !line.trim().is_empty()
        && (depth > indent || line.trim_start().starts_with("[Previous line repeated"))
}

#[cfg(test)]
mod tests {
    use super::super::screen::settle;
    use super::*;

    fn folded(text: &str) -> Option<String> {
        let settled = settle(text);
        fold(&settled, |at| format!("from {at}")).map(|folded| folded.text.into_owned())
    }

    #[test]
    fn a_long_trace_has_its_ends_and_what_was_raised() {
        let frame = |n: usize| format!("  File \"/a.py\", line {n}, in f\n    f()\n    ^^^\n");
        let frames: String = (0..400).map(frame).collect();
        let text =
            format!("before\nTraceback (most recent call last):\n{frames}ValueError: no\nafter\n");
        let told = folded(&text).unwrap();
        assert!(told.starts_with("before\nTraceback"), "{told}");
        assert!(told.ends_with("line 399, in f\n    f()\n    ^^^\nValueError: no\nafter\n"));
        let at = text.find("  File \"/a.py\", line 10,").unwrap();
        assert!(told.contains(&format!("[… 370 frames left out; from {at} …]\n")), "{told}");
        assert_eq!(told.matches("File").count(), FIRST + LAST);
    }

    #[test]
    fn traces_of_other_languages_are_known() {
        for frame in ["    at f (/a.js:1:2)\n", "\tat a.B.f(B.java:3)\n", "\tfrom a.rb:1:in `f'\n"]
        {
            let text = format!("Error: no\n{}\n", frame.repeat(400));
            assert!(folded(&text).unwrap().contains("370 frames"), "{frame}");
        }
        let rust: String =
            (0..99).map(|n| format!("  {n}: a::b\n             at ./a.rs:1\n")).collect();
        let told = folded(&rust).unwrap();
        assert!(told.contains("frames left out") && told.len() < rust.len() / 2, "{told}");
    }

    #[test]
    fn what_is_no_long_trace_stays() {
        let few = "    at f (/a.js:1:2)\n".repeat(LONG);
        assert_eq!(folded(&few), None);
        let text = "at noon\n".repeat(400);
        assert_eq!(folded(&text), None);
    }
}
