//! What programs send and what a person sees then: vim, top and less shortened
//! from recordings to a small screen, Python as readline writes it.

use sessile_protocol::{Color, TerminalSize};
use sessile_terminal::watch::Pattern;
use sessile_terminal::{Emulator, encode, render};

fn emulator() -> Emulator {
    Emulator::new(TerminalSize { cols: 40, rows: 6 })
}

#[test]
fn vim_opens_a_file_and_goes_back_to_the_shell() {
    let mut emulator = emulator();
    emulator.feed(b"$ vim width.rs\r\n");
    let opening = "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[1;6r\x1b[?12h\
                   \x1b[?12l\x1b[22;2t\x1b[22;1t\x1b[27m\x1b[23m\x1b[29m\x1b[m\x1b[H\x1b[2J\
                   \x1b[?25l\x1b[6;1H\"width.rs\" 2 lines, 70 bytes\x1b[1;1H\x1b[38;5;130m  1 \
                   \x1b[m\x1b[35m//! How many columns a character takk\x1b[2;1Hes, the same\
                   \x1b[m\r\n\x1b[38;5;130m  2 \x1b[m\x1b[35m//! ever.\x1b[m\r\n\x1b[94m~     \
                   \x1b[5;1H~     \x1b[1;5H\x1b[?25h";
    assert_eq!(emulator.feed(opening.as_bytes()), b"");
    let screen = emulator.screen();
    assert!(screen.is_alternate);
    assert_eq!(
        render::text(&screen),
        "  1 //! How many columns a character tak\nes, the same\n  2 //! ever.\n~\n~\n\
         \"width.rs\" 2 lines, 70 bytes"
    );
    assert_eq!(screen.cursor.map(|cursor| (cursor.col, cursor.row)), Some((4, 0)));
    assert_eq!(screen.lines[0].spans[0].style.foreground, Some(Color::Indexed(130)));
    assert_eq!(encode("<Up>", emulator.modes()).unwrap(), b"\x1bOA");

    let questions = "\x1b[>c\x1b]10;?\x07\x1b]11;?\x07\x1b[6n";
    let told = emulator.feed(questions.as_bytes());
    assert_eq!(
        told,
        b"\x1b[>1;10;0c\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07\x1b[1;5R"
    );

    emulator.feed(
        b"\x1b[23;2t\x1b[23;1t\x1b[6;1H\x1b[K\x1b[6;1H\x1b[?2004l\x1b[>4;m\x1b[23;0;0t\
          \x1b[?1l\x1b>\x1b[?1049l\x1b[?25h$ ",
    );
    assert_eq!(emulator.text(), "$ vim width.rs\n$");
    assert_eq!(encode("<Up>", emulator.modes()).unwrap(), b"\x1b[A");
}

#[test]
fn top_draws_over_itself() {
    let mut emulator = emulator();
    let page = |cpu: &str| {
        format!(
            "\x1b[?25l\x1b[H\x1b[2J\x1b(B\x1b[mtop - up\x1b(B\x1b[m\x1b[39;49m\x1b[K\r\n\x1b[K\r\n\
             \x1b[7m  PID USER      %CPU COMMAND            \x1b(B\x1b[m\x1b[39;49m\r\n\
             \x1b(B\x1b[m    1 root      {cpu} init\x1b(B\x1b[m\x1b[39;49m\r\n"
        )
    };
    emulator.feed(page(" 0.0").as_bytes());
    emulator.feed(page("99.9").as_bytes());
    let screen = emulator.screen();
    assert_eq!(
        render::text(&screen),
        "top - up\n\n  PID USER      %CPU COMMAND\n    1 root      99.9 init"
    );
    assert_eq!(screen.cursor, None);
    // The heading is inverse to the right edge.
    let heading = &screen.lines[2].spans;
    assert!(heading.len() == 1 && heading[0].style.inverse && heading[0].text.len() == 40);
}

#[test]
fn less_waits_at_its_prompt() {
    let mut emulator = emulator();
    emulator.feed(
        b"\x1b[?1049h\x1b[22;0;0t\x1b[?1h\x1b=\r# Sessile\x1b[m\r\n\x1b[m\r\n\
          keeps a live bash\x1b[m\r\n\x1b[7mREADME.md\x1b[27m\x1b[K",
    );
    assert_eq!(emulator.text(), "# Sessile\n\nkeeps a live bash\nREADME.md");
    assert!(Pattern::new("^README.md$").unwrap().matches(&emulator.screen()));
    emulator.feed(b"\r\x1b[K:\x1b[K");
    assert!(Pattern::new("^:$").unwrap().matches(&emulator.screen()));
}

#[test]
fn python_edits_its_line() {
    let mut emulator = emulator();
    emulator.feed(b"Python 3.12\r\n\x1b[?2004h>>> prnt\x08\x08\x08\x1b[1@int\x1b[4C(1)");
    // One letter is inserted in the middle of the line.
    emulator.feed(b"\r\n\x1b[?2004l\r1\r\n\x1b[?2004h>>> ");
    assert!(emulator.modes().bracketed_paste);
    assert!(Pattern::new("^>>> $").unwrap().matches(&emulator.screen()));
    assert!(emulator.text().contains(">>> pint"), "{}", emulator.text());
}
