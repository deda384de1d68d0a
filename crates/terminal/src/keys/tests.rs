use super::*;
use proptest::prelude::*;

fn typed(text: &str) -> String {
    String::from_utf8(encode(text, Modes::default()).unwrap()).unwrap()
}

fn in_application(text: &str) -> String {
    let modes = Modes { application_cursor: true, ..Modes::default() };
    String::from_utf8(encode(text, modes).unwrap()).unwrap()
}

#[test]
fn text_and_keys_may_be_mixed() {
    assert_eq!(typed("ihello<Esc>:wq<Enter>"), "ihello\x1b:wq\r");
    assert_eq!(typed("<cr><RETURN><enter><LF>"), "\r\r\r\n");
    assert_eq!(typed("é界😀"), "é界😀");
    assert_eq!(typed("one\ntwo\r\n"), "one\rtwo\r");
}

#[test]
fn a_bracket_that_is_no_key_is_itself() {
    for text in [
        "a < b",
        "<<EOF",
        "a <- b",
        "<",
        "<>",
        "</div>",
        "#include <stdio.h>",
        "1<2>1",
        "<=>",
        "if (a<b && c>d)",
        "<!-- x -->",
        "<é>",
    ] {
        assert_eq!(typed(text), text);
    }
    assert_eq!(typed("<lt>div>"), "<div>");
    assert_eq!(typed("<<Esc>"), "<\x1b");
}

#[test]
fn an_unknown_name_says_what_to_do() {
    let error = encode("a<div>b", Modes::default()).unwrap_err();
    assert_eq!(error, KeyError::UnknownInText("div".into()));
    let text = error.to_string();
    assert!(text.contains("<lt>div>") && text.contains("PageUp"), "{text}");
    for wrong in ["<F25>", "<F0>", "<Hyper-x>", "<C-Foo>", "<T>"] {
        assert!(matches!(encode(wrong, Modes::default()), Err(KeyError::UnknownInText(_))));
    }
    assert!(matches!(encode("<C-%>", Modes::default()), Err(KeyError::NoSuchCombination(_))));
    assert!(matches!(encode("<S-1>", Modes::default()), Err(KeyError::NoSuchCombination(_))));
}

#[test]
fn control_and_alt_are_those_of_xterm() {
    assert_eq!(typed("<C-a><c-z><Ctrl-C><CTRL-S-c>"), "\x01\x1a\x03\x03");
    assert_eq!(typed("<C-@><C-[><C-\\><C-]><C-^><C-_><C-?>"), "\0\x1b\x1c\x1d\x1e\x1f\x7f");
    assert_eq!(typed("<C-Space><C-/>"), "\0\x1f");
    assert_eq!(typed("<M-x><A-X><Alt-.><M-C-x>"), "\x1bx\x1bX\x1b.\x1b\x18");
    assert_eq!(typed("<M-Enter><M-BS><C-BS><M-lt>"), "\x1b\r\x1b\x7f\x08\x1b<");
    assert_eq!(typed("<S-a><M-S-a>"), "A\x1bA");
}

#[test]
fn editing_keys_are_those_of_xterm() {
    assert_eq!(typed("<Tab><S-Tab><Space><BS><Backspace>"), "\t\x1b[Z \x7f\x7f");
    assert_eq!(typed("<Del><Insert><PageUp><PageDown>"), "\x1b[3~\x1b[2~\x1b[5~\x1b[6~");
    assert_eq!(typed("<C-Del><S-PageUp>"), "\x1b[3;5~\x1b[5;2~");
    assert_eq!(typed("<C-Left><C-S-Left><M-Up><S-Home>"), "\x1b[1;5D\x1b[1;6D\x1b[1;3A\x1b[1;2H");
}

#[test]
fn arrows_follow_the_mode() {
    assert_eq!(typed("<Up><Down><Right><Left><Home><End>"), "\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F");
    assert_eq!(in_application("<Up><Home><End>"), "\x1bOA\x1bOH\x1bOF");
    assert_eq!(in_application("<C-Up><PageUp>"), "\x1b[1;5A\x1b[5~");
}

#[test]
fn function_keys_are_those_of_terminfo() {
    assert_eq!(typed("<F1><F4><F5><F6>"), "\x1bOP\x1bOS\x1b[15~\x1b[17~");
    assert_eq!(typed("<F10><F11><F12>"), "\x1b[21~\x1b[23~\x1b[24~");
    assert_eq!(typed("<F13><F17><F24>"), "\x1b[1;2P\x1b[15;2~\x1b[24;2~");
    assert_eq!(typed("<C-F1><C-F13><M-F5>"), "\x1b[1;5P\x1b[1;6P\x1b[15;3~");
}

#[test]
fn a_single_key_has_many_spellings() {
    for (name, bytes) in [
        ("Enter", "\r"),
        ("ctrl-c", "\x03"),
        ("C-c", "\x03"),
        ("Ctrl+C", "\x03"),
        ("^C", "\x03"),
        ("^[", "\x1b"),
        ("<Esc>", "\x1b"),
        ("up", "\x1b[A"),
        ("ArrowUp", "\x1b[A"),
        ("shift+tab", "\x1b[Z"),
        ("x", "x"),
        ("<", "<"),
        ("-", "-"),
        ("C--", ""),
        ("é", "é"),
    ] {
        match named(name, Modes::default()) {
            Ok(sent) => assert_eq!(sent, bytes.as_bytes(), "{name}"),
            Err(error) => assert_eq!(error, KeyError::NoSuchCombination("C--".into())),
        }
    }
    let error = named("Entr", Modes::default()).unwrap_err();
    assert!(error.to_string().contains("Enter, Esc"), "{error}");
    assert!(named("", Modes::default()).is_err());
}

#[test]
fn a_paste_cannot_end_itself() {
    let on = Modes { bracketed_paste: true, ..Modes::default() };
    assert_eq!(paste("a\nb", Modes::default()), b"a\rb");
    assert_eq!(paste("a\x1b[201~rm\n", on), b"\x1b[200~a[201~rm\r\x1b[201~");
}

proptest! {
    #![proptest_config(sessile_testkit::cases(256))]
    #[test]
    fn nothing_typed_panics(text in ".{0,40}") {
        let _ = encode(&text, Modes::default());
        let _ = named(&text, Modes::default());
    }

    #[test]
    fn text_without_brackets_is_typed_as_it_is(text in "[^<\r\n]{0,40}") {
        prop_assert_eq!(typed(&text), text);
    }

    #[test]
    fn brackets_of_all_kinds_do_not_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["<", ">", "C-", "M-", "-", "+", "F", "1", "x", "é", "Esc", " "]),
            0..10,
        ),
    ) {
        let _ = encode(&pieces.concat(), Modes::default());
        let _ = named(&pieces.concat(), Modes::default());
    }
}
