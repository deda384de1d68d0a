use super::*;
use proptest::prelude::*;

fn view(text: &[u8]) -> StreamView {
    let total = text.len() as u64;
    StreamView { head: text.to_vec(), tail: Vec::new(), total, stored: total }
}

fn sizing(limit: usize, form: TextForm) -> Sizing {
    let rest = Rest::Directory(PathBuf::from("/w/.sessions/sess_1"));
    Sizing { options: OutputOptions { limit, form }, rest }
}

fn shown_with(sizing: &Sizing, stdout: &StreamView, value: RunText<'_>) -> ShownRun {
    let nothing = StreamView::default();
    let stdout = StreamFrom { view: stdout, first: 0 };
    sizing.run(RunNo(7), stdout, StreamFrom { view: &nothing, first: 0 }, value)
}

fn shown(text: &str) -> ShownStream {
    shown_with(&sizing(LIMIT, TextForm::Rendered), &view(text.as_bytes()), RunText::Nothing).stdout
}

#[test]
fn short_output_is_byte_for_byte() {
    for text in ["", "a\tb\n", "dos\r\nlines\r\n", "über\n"] {
        let shown = shown(text);
        assert_eq!((shown.text.as_str(), shown.is_rendered), (text, false));
        assert!(shown.truncated.is_none());
    }
}

#[test]
fn long_output_has_both_ends_and_says_where_the_rest_is() {
    let text: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    let shown = shown(&text);
    assert!(shown.text.len() < LIMIT + 300, "{}", shown.text.len());
    assert!(shown.text.starts_with("1\n2\n") && shown.text.ends_with("\n199999\n200000\n"));
    let truncated = shown.truncated.unwrap();
    let from = truncated.head_bytes;
    let hint = format!("read on with: tail -c +{} /w/.sessions/sess_1/runs/7.stdout |", from + 1);
    assert!(shown.text.contains(&hint), "{}", shown.text);
    let head = &text[..usize::try_from(from).unwrap()];
    assert!(shown.text.starts_with(head));
    assert_eq!(
        truncated.head_bytes + truncated.dropped_bytes + truncated.tail_bytes,
        text.len() as u64
    );
    assert!(!shown.is_rendered);
}

#[test]
fn a_progress_bar_is_told_as_it_ended() {
    let redraws: String =
        (0..=5000).map(|n| format!("\r{:>5}/5000 {}", n, "#".repeat(n / 100))).collect();
    let shown = shown(&format!("begin\n{redraws}\nend\n"));
    assert_eq!(shown.text, format!("begin\n 5000/5000 {}\nend\n", "#".repeat(50)));
    assert!(shown.is_rendered && shown.truncated.is_none());
}

#[test]
fn colours_are_not_told_unless_asked_for() {
    let red = "\x1b[31mred\x1b[0m\n";
    let seen = shown(red);
    assert_eq!((seen.text.as_str(), seen.is_rendered), ("red\n", true));
    let raw = shown_with(&sizing(LIMIT, TextForm::Raw), &view(red.as_bytes()), RunText::Nothing);
    assert_eq!((raw.stdout.text.as_str(), raw.rendered().is_empty()), (red, true));
}

#[test]
fn a_stack_trace_has_its_ends() {
    let frames = "  File \"a.py\", line 1, in f\n    f()\n".repeat(400);
    let shown = shown(&format!("Traceback (most recent call last):\n{frames}ValueError: no\n"));
    assert!(shown.text.len() < 2000, "{}", shown.text.len());
    assert!(
        shown.text.contains("[… 370 frames left out; read on with: tail -c +"),
        "{}",
        shown.text
    );
    assert!(shown.text.ends_with("ValueError: no\n"));
}

#[test]
fn a_value_shares_the_room() {
    let long = "x".repeat(100_000);
    let run = shown_with(
        &sizing(1000, TextForm::Rendered),
        &view(long.as_bytes()),
        RunText::Value(&long),
    );
    let value = run.value.unwrap();
    assert!(
        run.stdout.text.len() < 700 && value.len() < 700,
        "{} {}",
        run.stdout.text.len(),
        value.len()
    );
    assert!(value.contains("print a part of it"));
    let printed = shown_with(&sizing(1000, TextForm::Rendered), &view(b"a\n"), RunText::Printed);
    assert_eq!(printed.value.as_deref(), Some("a"));
}

#[test]
fn bytes_are_cut_and_still_decode() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8 | 0x80).collect();
    let shown =
        shown_with(&sizing(1000, TextForm::Rendered), &view(&bytes), RunText::Nothing).stdout;
    let truncated = shown.truncated.unwrap();
    let decoded = STANDARD.decode(&shown.text).unwrap();
    assert!(shown.text.len() <= 1004, "{}", shown.text.len());
    assert_eq!(decoded.len() as u64, truncated.head_bytes + truncated.tail_bytes);
    let head = usize::try_from(truncated.head_bytes).unwrap();
    assert!(bytes.starts_with(&decoded[..head]) && bytes.ends_with(&decoded[head..]));
}

#[test]
fn a_gap_that_was_there_is_told_as_one() {
    let (head, tail) = ("é".repeat(600), "ü".repeat(600));
    let total = 1_000_000;
    let view =
        StreamView { head: head.into_bytes(), tail: tail.into_bytes(), total, stored: total };
    let shown = shown_with(&sizing(100_000, TextForm::Rendered), &view, RunText::Nothing).stdout;
    let truncated = shown.truncated.unwrap();
    assert_eq!((truncated.head_bytes, truncated.tail_bytes), (1200, 1200));
    assert!(shown.text.contains("[… 997600 of 1000000 bytes left out; "), "{}", shown.text);
}

#[test]
fn notes_are_few_and_short() {
    let told = sentences(&vec!["x".repeat(5000); 40]);
    assert_eq!((told.len(), told[10].as_str()), (11, "and 30 more notes"));
    assert!(told[0].len() < SENTENCE + 10);
}

proptest! {
    #![proptest_config(sessile_testkit::cases(256))]
    #[test]
    fn no_more_is_told_than_was_allowed(
        out in prop::collection::vec(any::<u8>(), 0..3000),
        text in "(\\PC|\n|\r|\x1b){0,2000}",
        value in "\\PC{0,2000}",
        limit in 0usize..2000,
        is_raw: bool,
    ) {
        let sizing = sizing(limit, if is_raw { TextForm::Raw } else { TextForm::Rendered });
        let (out, err) = (view(&out), view(text.as_bytes()));
        let (out, err) = (StreamFrom { view: &out, first: 0 }, StreamFrom { view: &err, first: 0 });
        let run = sizing.run(RunNo(1), out, err, RunText::Value(&value));
        let json = |text: &str| serde_json::to_string(text).unwrap().len();
        let all = json(&run.stdout.text) + json(&run.stderr.text) + json(&run.value.unwrap());
        // The hints for two streams and for the value.
        prop_assert!(all <= limit + 3 * 200, "{} of {}", all, limit);
    }
}
