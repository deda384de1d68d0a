use super::*;
use crate::Emulator;
use sessile_protocol::{Cursor, ScreenLine, Span, Style, TerminalSize};

fn screen(cols: u16, rows: u16, bytes: &str) -> Screen {
    let mut emulator = Emulator::new(TerminalSize { cols, rows });
    emulator.feed(bytes.as_bytes());
    emulator.screen()
}

struct Pixels {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    fn of(screen: &Screen) -> Self {
        let encoded = png(screen).unwrap();
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(encoded)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        Self { width: info.width as usize, height: info.height as usize, bytes }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        self.bytes[at..at + 3].try_into().unwrap()
    }

    /// Returns the number of pixels of a cell, in double size, with a colour.
    fn count(&self, col: usize, row: usize, color: [u8; 3]) -> usize {
        let all = (0..16).flat_map(|x| (0..32).map(move |y| (x, y)));
        all.filter(|(x, y)| self.at(col * 16 + x, row * 32 + y) == color).count()
    }
}

const INK: [u8; 3] = [0xe5, 0xe5, 0xe5];
const PAPER: [u8; 3] = [0, 0, 0];
const CELL: usize = 16 * 32;

#[test]
fn text_has_no_blanks_at_its_ends() {
    let bytes = "  one  \r\n\r\n\x1b[44mtwo \x1b[0m";
    assert_eq!(text(&screen(20, 9, bytes)), "  one\n\ntwo");
    assert_eq!(text(&screen(20, 9, "")), "");
    assert_eq!(text(&Screen::default()), "");
}

#[test]
fn cells_say_where_spans_stand_and_how_they_look() {
    let bytes = "\x1b]2;vi\x07\x1b[1;32mok\x1b[0m 界\x1b[38;5;208;48;2;1;2;3;7mx";
    let value = serde_json::to_value(cells(&screen(20, 2, bytes))).unwrap();
    let expected = serde_json::json!({
        "size": {"cols": 20, "rows": 2},
        "cursor": {"col": 6, "row": 0},
        "title": "vi",
        "is_alternate": false,
        "lines": [
            {"row": 0, "text": "ok 界x", "spans": [
                {"col": 0, "width": 2, "text": "ok", "foreground": "green", "bold": true},
                {"col": 2, "width": 1, "text": " "},
                {"col": 3, "width": 2, "text": "界", "is_wide": true},
                {"col": 5, "width": 1, "text": "x", "foreground": "color208",
                 "background": "#010203", "inverse": true},
            ]},
            {"row": 1, "text": "", "spans": []},
        ],
    });
    assert_eq!(value, expected);
    let hidden = serde_json::to_value(cells(&screen(5, 2, "\x1b[?25l"))).unwrap();
    assert!(hidden["cursor"].is_null());
}

#[test]
fn a_drawing_tells_each_character_its_column() {
    let svg = svg(&screen(20, 2, "\x1b]0;a<b & \"c\"\x07ab <\x1b[1;31m界\x1b[41m \x1b[4m_"));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("<title>a&lt;b &amp; &quot;c&quot;</title>"), "{svg}");
    assert!(svg.contains("<text x=\"0 9\" y=\"14\" fill=\"#e5e5e5\">ab</text>"), "{svg}");
    assert!(svg.contains("<text x=\"27\" y=\"14\" fill=\"#e5e5e5\">&lt;</text>"), "{svg}");
    let wide = "<text x=\"45\" text-anchor=\"middle\" y=\"14\" fill=\"#cd0000\" \
                font-weight=\"bold\">界</text>";
    assert!(svg.contains(wide), "{svg}");
    let rect = "<rect x=\"54\" y=\"0\" width=\"18\" height=\"18\" fill=\"#cd0000\"/>";
    assert!(svg.contains(rect), "{svg}");
    // The cursor, on a blank cell.
    let cursor = "<rect x=\"72\" y=\"0\" width=\"9\" height=\"18\" fill=\"#e5e5e5\"/>";
    assert!(svg.contains(cursor), "{svg}");
}

#[test]
fn a_drawing_of_anything_is_well_formed() {
    let style = Style::default();
    let text = "\u{0}\u{1b}<&>]]>\u{fffe}\u{85}x".to_owned();
    let line = ScreenLine { spans: vec![Span { text, is_wide: false, style }], is_wrapped: false };
    let screen = Screen { lines: vec![line], title: "\u{7}".into(), ..Screen::default() };
    let svg = svg(&screen);
    assert!(svg.chars().all(|ch| !ch.is_control() || ch == '\n'));
    assert!(!svg.contains("]]>"));
}

#[test]
fn a_picture_has_the_colours_of_its_cells() {
    let pixels =
        Pixels::of(&screen(10, 3, "\x1b[41m \x1b[0mA\x1b[7m \x1b[0m\x1b[38;2;1;2;3m█\x1b[?25l"));
    assert_eq!((pixels.width, pixels.height), (10 * 16, 3 * 32));
    assert_eq!(pixels.count(0, 0, [0xcd, 0, 0]), CELL);
    let ink = pixels.count(1, 0, INK);
    assert!(ink > 40 && ink + pixels.count(1, 0, PAPER) == CELL, "{ink}");
    assert_eq!(pixels.count(2, 0, INK), CELL);
    assert_eq!(pixels.count(3, 0, [1, 2, 3]), CELL);
    assert_eq!(pixels.count(4, 0, PAPER), CELL);
    assert_eq!(pixels.count(0, 2, PAPER), CELL);
}

#[test]
fn wide_characters_fill_two_cells_of_a_picture() {
    let pixels = Pixels::of(&screen(10, 1, "界😀\x1b[?25l"));
    for col in 0..4 {
        assert!(pixels.count(col, 0, INK) > 20, "column {col}");
    }
    assert_eq!(pixels.count(4, 0, INK), 0);
}

#[test]
fn attributes_are_seen_in_a_picture() {
    let count = |bytes: &str, color| Pixels::of(&screen(4, 1, bytes)).count(0, 0, color);
    let plain = count("n\x1b[?25l", INK);
    assert!(count("\x1b[1mn\x1b[?25l", INK) > plain);
    assert_eq!(count("\x1b[4m \x1b[?25l", INK), 16 * 2);
    assert_eq!(count("\x1b[9m \x1b[?25l", INK), 16 * 2);
    assert_eq!(count("\x1b[2mn\x1b[?25l", [0x72; 3]), plain);
    assert!(count("n\u{303}\x1b[?25l", INK) > plain);
    assert_eq!(count("n\u{fe0f}\x1b[?25l", INK), plain);
    // The cursor.
    assert_eq!(count("", INK), CELL);
}

#[test]
fn a_large_picture_is_drawn_in_single_size() {
    let pixels = Pixels::of(&screen(200, 2, "x"));
    assert_eq!((pixels.width, pixels.height), (1600, 32));
}

#[test]
fn a_screen_that_lies_about_its_size_harms_nobody() {
    let span = Span { text: "界".repeat(50), is_wide: true, style: Style::default() };
    let line = ScreenLine { spans: vec![span], is_wrapped: true };
    let screen = Screen {
        size: TerminalSize { cols: 3, rows: 0 },
        cursor: Some(Cursor { col: 900, row: 0 }),
        lines: vec![line; 5],
        ..Screen::default()
    };
    let pixels = Pixels::of(&screen);
    assert_eq!((pixels.width, pixels.height), (48, 32));
    assert!(svg(&screen).contains("界"));
    assert_eq!(text(&screen).lines().count(), 5);
    assert_eq!(cells(&screen).lines.len(), 5);
}
