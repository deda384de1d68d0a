use super::*;
use crate::render::columns;
use proptest::prelude::*;
use sessile_protocol::{Color, Style};

fn emulator(cols: u16, rows: u16) -> Emulator {
    Emulator::new(TerminalSize { cols, rows })
}

fn fed(cols: u16, rows: u16, bytes: &str) -> Emulator {
    let mut emulator = emulator(cols, rows);
    emulator.feed(bytes.as_bytes());
    emulator
}

fn answer(bytes: &str) -> String {
    String::from_utf8(emulator(80, 24).feed(bytes.as_bytes())).unwrap()
}

fn cursor(emulator: &Emulator) -> (u16, u16) {
    let cursor = emulator.screen().cursor.unwrap();
    (cursor.col, cursor.row)
}

#[test]
fn the_screen_is_what_a_person_would_see() {
    let e = fed(20, 4, "loading 10%\rloading 99%\r\n\x1b[1mdone\x1b[0m\x1b[K\r\n$ ");
    assert_eq!(e.text(), "loading 99%\ndone\n$");
    assert_eq!(cursor(&e), (2, 2));
    assert_eq!(e.screen().lines.len(), 4);
}

#[test]
fn colours_and_attributes_come_out() {
    let e = fed(
        40,
        1,
        "\x1b[31mr\x1b[38;5;208;48;5;17mi\x1b[0;38;2;1;2;3mt\x1b[38:2::4:5:6mc\x1b[0;1;3;4;7;9mx\x1b[0;2;5my",
    );
    let style = |n: usize| e.screen().lines[0].spans[n].style;
    assert_eq!(style(0).foreground, Some(Color::Indexed(1)));
    assert_eq!(style(1).foreground, Some(Color::Indexed(208)));
    assert_eq!(style(1).background, Some(Color::Indexed(17)));
    assert_eq!(style(2).foreground, Some(Color::Rgb(1, 2, 3)));
    assert_eq!(style(2).background, None);
    assert_eq!(style(3).foreground, Some(Color::Rgb(4, 5, 6)));
    let x = Style {
        bold: true,
        italic: true,
        underline: true,
        inverse: true,
        strikethrough: true,
        ..Style::default()
    };
    assert_eq!(style(4), x);
    assert_eq!(style(5), Style { faint: true, blink: true, ..Style::default() });
}

#[test]
fn wide_characters_take_two_columns() {
    let e = fed(10, 3, "a界b😀c\r\n123456789界");
    let lines = e.screen().lines;
    let parts: Vec<_> =
        lines[0].spans.iter().map(|span| (span.text.as_str(), span.is_wide)).collect();
    assert_eq!(parts, [("a", false), ("界", true), ("b", false), ("😀", true), ("c", false)]);
    assert_eq!(e.text(), "a界b😀c\n123456789\n界");
    assert!(lines[1].is_wrapped);
    assert_eq!(cursor(&e), (2, 2));
}

#[test]
fn a_wide_character_is_erased_whole() {
    let e = fed(10, 1, "界界\x1b[2Gx");
    assert_eq!(e.text(), " x界");
}

#[test]
fn marks_stay_with_their_character() {
    let e = fed(20, 2, "e\u{301}x ❤\u{fe0f}! 界\u{301}. 1\u{fe0f}\u{20e3}\r\n\u{301}a");
    assert_eq!(e.text(), "e\u{301}x ❤\u{fe0f}! 界\u{301}. 1\u{fe0f}\u{20e3}\na");
    assert_eq!(columns(&e.screen().lines[0]), 11);
    assert_eq!(cursor(&e), (1, 1));
}

#[test]
fn joined_emoji_take_the_columns_that_programs_count() {
    let e = fed(20, 1, "👨\u{200d}👩\u{200d}👧|");
    assert_eq!(e.text(), "👨\u{200d}👩\u{200d}👧|");
    assert_eq!(cursor(&e), (7, 0));
}

#[test]
fn a_mark_at_the_right_edge_does_not_wrap() {
    let mut e = fed(3, 2, "abe\u{301}");
    assert_eq!(e.text(), "abe\u{301}");
    assert_eq!(cursor(&e), (2, 0));
    e.feed(b"x");
    assert_eq!(e.text(), "abe\u{301}\nx");
}

#[test]
fn a_mark_in_insert_mode_does_not_insert() {
    assert_eq!(fed(10, 1, "xy\x1b[1G\x1b[4he\u{301}f").text(), "e\u{301}fxy");
}

#[test]
fn more_clusters_than_there_is_room_for_go_without_marks_for_a_while_only() {
    let mut e = emulator(40, 10);
    let all: String = ('\u{4e00}'..).take(20_000).flat_map(|ch| [ch, '\u{301}']).collect();
    e.feed(all.as_bytes());
    e.feed("\x1b[2J\x1b[H".as_bytes());
    let bases = ('\u{ac00}'..).take(5000).flat_map(|ch| [ch, '\u{301}']);
    e.feed(bases.collect::<String>().as_bytes());
    assert!(e.text().contains('\u{301}'));
    assert_eq!(e.screen().lines.len(), 10);
}

#[test]
fn what_stands_for_clusters_cannot_be_forged() {
    assert_eq!(fed(10, 1, "e\u{301}\r\n\u{10f000}\u{3f000}").text(), "\u{fffd}\u{fffd}");
}

#[test]
fn narrower_and_wider_again_wraps_and_unwraps() {
    let mut e = fed(10, 4, "abcdefgh\r\n界界界\r\nx");
    e.resize(TerminalSize { cols: 4, rows: 6 });
    assert_eq!(e.text(), "abcd\nefgh\n界界\n界\nx");
    assert_eq!(cursor(&e), (1, 4));
    e.resize(TerminalSize { cols: 10, rows: 4 });
    assert_eq!(e.text(), "abcdefgh\n界界界\nx");
    e.resize(TerminalSize { cols: 1, rows: 1 });
    assert_eq!(e.text(), "x");
    e.resize(TerminalSize { cols: 0, rows: 5000 });
    assert_eq!(e.size(), TerminalSize { cols: 1, rows: 1000 });
    assert_eq!(e.screen().lines.len(), 1000);
}

#[test]
fn a_question_is_answered_for_its_place_in_the_stream() {
    assert_eq!(answer("ab\x1b[6ncd\r\n\x1b[6n"), "\x1b[1;3R\x1b[2;1R");
    assert_eq!(answer("\x1b[5n\x1b[?6n"), "\x1b[0n\x1b[?1;1R");
    assert_eq!(answer("\x1b[999;999H\x1b[6n"), "\x1b[24;80R");
    // After the last column the cursor is still in it.
    assert_eq!(answer(&format!("{}\x1b[6n", "x".repeat(80))), "\x1b[1;80R");
}

#[test]
fn the_cursor_is_told_from_the_origin() {
    let asked = "\x1b[5;10r\x1b[?6h\x1b[3;4H\x1b[6nx\x1b[?6l\x1b[6n";
    let mut e = emulator(80, 24);
    assert_eq!(e.feed(asked.as_bytes()), b"\x1b[3;4R\x1b[1;1R");
    assert_eq!(e.text(), "\n\n\n\n\n\n   x");
}

#[test]
fn programs_that_ask_what_we_are_are_told() {
    assert_eq!(answer("\x1b[c\x1b[0c\x1bZ"), "\x1b[?62;22c".repeat(3));
    assert_eq!(answer("\x1b[>c\x1b[>0c"), "\x1b[>1;10;0c".repeat(2));
    assert!(answer("\x1b[>q").starts_with("\x1bP>|sessile("));
    assert_eq!(answer("\x1b[18t\x1b[19t"), "\x1b[8;24;80t\x1b[9;24;80t");
}

#[test]
fn colours_are_told_in_the_form_of_the_question() {
    assert_eq!(answer("\x1b]11;?\x07"), "\x1b]11;rgb:0000/0000/0000\x07");
    assert_eq!(answer("\x1b]10;?\x1b\\"), "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\");
    assert_eq!(
        answer("\x1b]4;1;?;208;?\x07"),
        "\x1b]4;1;rgb:cdcd/0000/0000\x07\x1b]4;208;rgb:ffff/8787/0000\x07"
    );
    assert_eq!(answer("\x1b]11;#123456\x07\x1b]4;300;?\x07\x1b]11;?\x18"), "");
}

#[test]
fn modes_are_told() {
    assert_eq!(answer("\x1b[?2004$p\x1b[?2004h\x1b[?2004$p"), "\x1b[?2004;2$y\x1b[?2004;1$y");
    assert_eq!(
        answer("\x1b[?25$p\x1b[?1049h\x1b[?1049$p\x1b[?1$p"),
        "\x1b[?25;1$y\x1b[?1049;1$y\x1b[?1;2$y"
    );
    assert_eq!(answer("\x1b[?2026$p\x1b[4$p\x1b[4h\x1b[4$p"), "\x1b[?2026;0$y\x1b[4;2$y\x1b[4;1$y");
}

#[test]
fn a_question_that_we_do_not_know_is_not_answered() {
    for unknown in [
        "\x1b[?u",
        "\x1b[14t",
        "\x1b[21t",
        "\x1b[7n",
        "\x1b[1c",
        "\x1b[=c",
        "\x1b]52;c;?\x07",
        "\x1bP+q436f\x1b\\",
        "\x1bP$qm\x1b\\",
        "\x1b[?4m",
        "\x1b[6\x18n",
        "\x1b[?6$n",
    ] {
        assert_eq!(answer(unknown), "", "{unknown:?}");
    }
}

#[test]
fn one_who_only_asks_is_answered_within_bounds() {
    assert!(answer(&"\x1b[c".repeat(100_000)).len() <= 16 * 1024);
}

#[test]
fn modes_decide_what_keys_send() {
    let mut e = fed(80, 24, "\x1b[?1h\x1b=\x1b[?2004h\x1b[?1000;1006h\x1b[?1004h");
    let all = Modes {
        application_cursor: true,
        application_keypad: true,
        bracketed_paste: true,
        focus_reports: true,
        mouse: true,
    };
    assert_eq!(e.modes(), all);
    e.feed(b"\x1b[!p");
    assert!(!e.modes().application_cursor);
    e.feed(b"\x1bc");
    assert_eq!(e.modes(), Modes::default());
}

#[test]
fn the_other_screen_leaves_the_first_as_it_was() {
    for (on, off) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?47h", "\x1b[?47l")] {
        let mut e = fed(20, 3, &format!("$ vim{on}\x1b[H\x1b[2J~\r\n~"));
        assert!(e.screen().is_alternate);
        assert!(e.text().starts_with("~\n~"));
        e.feed(off.as_bytes());
        assert!(!e.screen().is_alternate);
        assert_eq!(e.text(), "$ vim");
    }
}

#[test]
fn titles_are_kept_short_and_restored() {
    let mut e = fed(20, 3, "\x1b]0;bash\x07\x1b[22;2t\x1b]2;vim – é\x1b\\");
    assert_eq!(e.title(), "vim – é");
    e.feed(b"\x1b[23;2t");
    assert_eq!(e.title(), "bash");
    e.feed(format!("\x1b]2;{}\x07", "x".repeat(1 << 20)).as_bytes());
    assert_eq!(e.title(), "x".repeat(256));
    e.feed(b"\x1b]2;never ended");
    assert_eq!(e.title(), "x".repeat(256));
    assert_eq!(e.screen().title, e.title());
}

#[test]
fn a_hidden_cursor_is_none() {
    assert_eq!(fed(20, 3, "\x1b[?25l").screen().cursor, None);
}

#[test]
fn what_left_the_screen_is_history() {
    let text: String = (0..2000).map(|n| format!("{n}\r\n")).collect();
    let e = fed(20, 3, &text);
    assert_eq!(e.text(), "1998\n1999");
    let lines =
        |limit| e.history(limit).iter().map(|line| line.spans[0].text.clone()).collect::<Vec<_>>();
    assert_eq!(lines(2), ["1996", "1997"]);
    assert_eq!(lines(usize::MAX).len(), HISTORY_LINES);
}

#[test]
fn a_panic_in_the_emulator_leads_to_an_empty_one() {
    let mut e = fed(20, 3, "hello");
    let size = e.size;
    guard(&mut e.core, size, |_| panic!("on purpose"));
    assert_eq!(e.text(), "");
    e.feed(b"on we go");
    assert_eq!(e.text(), "on we go");
}

#[test]
fn delete_characters_are_not_shown() {
    assert_eq!(fed(20, 1, "a\x7fb").text(), "ab");
}

#[test]
fn a_flood_is_taken_in_parts() {
    let mut e = emulator(300, 300);
    let flood = b"\x1b[2J\x1b[6n".repeat(1000);
    let fed = e.feed_within(&flood, 1_000_000);
    assert!((1..flood.len() / 10).contains(&fed.taken), "{}", fed.taken);
    let mut rest = &flood[fed.taken..];
    let mut told = fed.replies.len();
    while !rest.is_empty() {
        let fed = e.feed_within(rest, 1_000_000);
        rest = &rest[fed.taken..];
        told += fed.replies.len();
    }
    assert_eq!(told, 1000 * "\x1b[1;1R".len());
    assert_eq!(e.feed_within(b"", 1), FeedResult::default());
    assert_eq!(e.feed_within(b"x", 0).taken, 1);
    let text = "hello world\r\n".repeat(1000);
    assert_eq!(emulator(80, 24).feed_within(text.as_bytes(), 1_000_000).taken, text.len());
}

#[test]
fn a_huge_screen_can_be_made_one_column_wide() {
    let mut e = emulator(1000, 1000);
    e.feed("x".repeat(1_200_000).as_bytes());
    e.resize(TerminalSize { cols: 1, rows: 3 });
    assert_eq!(e.text(), "x\nx\nx");
    e.resize(TerminalSize { cols: 1000, rows: 1000 });
    assert_eq!(e.screen().lines.len(), 1000);
}

/// Pieces of the output of full-screen programs, and of invalid output.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b[m\x1b[H\x1b[2J",
        "\x1b[?1049l\x1b[23;0;0t",
        "\x1b[?1h\x1b=\x1b[?2004h\x1b[>4;2m\x1b[?12h\x1b[?25h\x1b[>c\x1b]10;?\x07\x1b]11;?\x07",
        "\x1b(0lqqqk\x1b(B",
        "\x1b[6n",
        "\x1b[c",
        "\x1b[5;3r",
        "\x1b[?6h",
        "\x1b[999;999H",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[3L",
        "\x1b[2M",
        "\x1b[5@",
        "\x1b[5P",
        "\x1b[9X",
        "\x1b[65535b",
        "\x1b[S",
        "\x1b[T",
        "\x1bM",
        "\x1bc",
        "\x1b[!p",
        "\x1b#8",
        "\x1b7",
        "\x1b8",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?47h",
        "\x1b[38;5;9;48;2;1;2;3m",
        "\x1b]0;title\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b_apc\x1b\\",
        "\r\n",
        "\t",
        "\x08",
        "hello world ",
        "界",
        "😀",
        "e\u{301}",
        "\u{301}",
        "\u{200d}",
        "\u{fe0f}",
        "\u{9b}",
        "\u{9c}",
        "\u{10f001}",
        "\x18",
        "\x1b",
        "[",
        "]",
        ";",
        "?",
        "1",
    ]);
    prop_oneof![
        8 => known.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    #![proptest_config(sessile_testkit::cases(512))]

    #[test]
    fn cuts_make_no_difference(
        input in prop::collection::vec(pieces(), 0..40),
        every in 1usize..9,
        cols in 1u16..30,
        rows in 1u16..12,
    ) {
        let bytes = input.concat();
        let (mut whole, mut cut) = (emulator(cols, rows), emulator(cols, rows));
        let told = whole.feed(&bytes);
        let told_in_pieces: Vec<u8> = bytes.chunks(every).flat_map(|piece| cut.feed(piece)).collect();
        prop_assert_eq!(told, told_in_pieces);
        prop_assert_eq!(whole.screen(), cut.screen());
        prop_assert_eq!(whole.modes(), cut.modes());
    }

    #[test]
    fn screens_have_their_size(
        steps in prop::collection::vec((pieces(), prop::option::of((1u16..40, 1u16..20))), 0..40),
        cols in 1u16..30,
        rows in 1u16..12,
    ) {
        let mut e = emulator(cols, rows);
        for (bytes, size) in steps {
            e.feed(&bytes);
            if let Some((cols, rows)) = size {
                e.resize(TerminalSize { cols, rows });
            }
            let screen = e.screen();
            prop_assert_eq!(screen.lines.len(), usize::from(e.size().rows));
            for line in &screen.lines {
                prop_assert!(columns(line) <= usize::from(e.size().cols), "{:?}", line);
                prop_assert!(line.spans.iter().all(|span| !span.text.is_empty()));
            }
            if let Some(cursor) = screen.cursor {
                prop_assert!(cursor.col < e.size().cols && cursor.row < e.size().rows);
            }
            let lines = screen.lines.iter().map(|line| {
                let text: String = line.spans.iter().map(|span| span.text.as_str()).collect();
                text.trim_end().to_owned()
            });
            let text = lines.collect::<Vec<_>>().join("\n");
            prop_assert_eq!(text.trim_end_matches('\n'), e.text());
        }
    }
}
