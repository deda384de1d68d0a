//! Tests of the parser with texts that people write, and with noise.

use super::*;
use proptest::prelude::*;

/// Returns the sources of what is found.
fn sources(text: &str) -> Vec<String> {
    definitions(text).into_iter().map(|found| found.source).collect()
}

#[track_caller]
fn finds(text: &str, expected: &[&str]) {
    assert_eq!(sources(text), expected, "in {text:?}");
}

#[test]
fn a_definition_is_found_whatever_its_body() {
    for body in [
        "{ echo hi; }",
        "{\n\techo hi\n}",
        "( echo hi )",
        "(echo hi)",
        "if a; then b; elif c; then d; else e; fi",
        "while read -r x; do echo \"$x\"; done",
        "until false; do :; done",
        "for x; do :; done",
        "for x in a b 'c d' $(ls); do :; done",
        "for x\nin a b\ndo\n:\ndone",
        "case $1 in a) x;; (b|c) y ;; *) z; esac",
        "case $1 in esac",
        "{ echo \"}\" '}' \\} }x; }",
        "{ { :; } }",
        "{ (:) }",
        "{ if a; then { b; } fi; }",
        "{ g() { :; }; g; }",
        "{ ! a && b || c | d & }",
        "{ :; } >&2 2>\"$log\" </dev/null",
        "{ echo a#b # it's }\n}",
    ] {
        let source = format!("f() {body}");
        finds(&source, &[&source]);
        finds(&format!("\n  {source} # done\nf"), &[&source]);
    }
}

#[test]
fn no_quotes_or_expansions_lead_astray() {
    for word in [
        "'}; '",
        "\"}; \\\" $(echo \"}\") `echo }` ${x:-}} \"",
        "$(case x in x) echo ')';; esac)",
        "$(cat <<X\n)}\nX\n)",
        "$(( (1 + 2) * $((3)) ))",
        "`echo \\` }`",
        "${x:-'}'\"}\"\\}}",
        "${#x}${x#\\}}${x%%;*}",
        "\"${x:-\"y z\"}${x=':'}\"",
        "\\;\\}\\\n\\(",
        "$x$#$$$?$!$-$",
        "é\"é\"\\é'é'",
    ] {
        let source = format!("f () {{ echo {word} }}; }}");
        finds(&source, &[&source]);
    }
}

#[test]
fn here_documents_are_part_of_a_body() {
    for source in [
        "f() { cat <<X\n}\nX\n}",
        "f() { cat <<'X' <<-\\Y; echo z\n$(} `\nX\n\t}\n\tY\n}",
        "f() { cat <<\"X Y\"\n}\nX Y\n}",
        "f() { cat <<X\n$(echo }) ${a} `b`\\\n}\nX\n}",
    ] {
        finds(source, &[source]);
    }
}

#[test]
fn a_here_document_that_lies_elsewhere_leaves_it_out() {
    finds("f() { cat <<X; }\n}\nX\ng() { :; }", &["g() { :; }"]);
    finds("f() { cat; } <<X\n}\nX\ng() { :; }", &["g() { :; }"]);
    finds("cat <<X; f() {\nf() { a; }\nX\n:; }\ng() { :; }", &["g() { :; }"]);
}

#[test]
fn definitions_stand_wherever_a_command_can() {
    finds("a; f() { :; }; g() { :; }", &["f() { :; }", "g() { :; }"]);
    finds("a && f() { :; } || g() { :; }", &["f() { :; }", "g() { :; }"]);
    finds("if a; then f() { :; }; else f() { b; }; fi", &["f() { :; }", "f() { b; }"]);
    finds("{ f() { :; }; }; for i in 1; do g() ( : ); done", &["f() { :; }", "g() ( : )"]);
    finds("case x in x) f() { :; };; esac", &["f() { :; }"]);
    finds("f ( )\n\n# body\n{ :; }", &["f ( )\n\n# body\n{ :; }"]);
    finds("x=1 y=2\nf()\\\n{ :; }", &["f()\\\n{ :; }"]);
}

#[test]
fn what_another_process_defines_does_not_count() {
    finds("(f() { :; }); x=$(f() { :; }; f)", &[]);
    finds("f() { :; } | cat; a | f() { :; }", &[]);
    finds("f() { :; } & a && g() { :; } &\nh() { :; }", &["h() { :; }"]);
    finds("outer() { f() { :; }; }", &["outer() { f() { :; }; }"]);
}

#[test]
fn what_only_looks_like_a_definition_is_not_one() {
    finds("echo 'f() { :; }' \"f() { :; }\" # f() { :; }", &[]);
    finds("cat <<X\nf() { :; }\nX\n", &[]);
    finds("echo f\\(\\) { :; }", &[]);
    finds("f() echo simple", &[]);
}

#[test]
fn doubt_costs_what_follows_and_nothing_before() {
    for doubtful in [
        "echo (",
        "a=(1 2)",
        "function g { :; }",
        "echo $'it\\'s'",
        "echo \"${x:-it's}\"",
        "cat <<<x",
        "cat <(ls)",
        "f() { :; ",
        "fi",
        "echo 'open",
        "cat <<X\nno end",
        "cat <<X\n$(\nX\n)\nX",
        "cat <<X\nend\\\nX\nX",
        "cat <<$x\n$x\n",
        "exit() { :; }",
        "f() g() { :; }",
        "case x in x) ;& esac",
        "echo `open",
        "echo $((1)",
        "{ fi; }",
        "{ }",
        "( )",
    ] {
        finds(&format!("a() {{ :; }}\n{doubtful}\nb() {{ :; }}"), &["a() { :; }"]);
    }
}

#[test]
fn depth_is_limited() {
    for open in ["(", "$(", "${", "$((", "{ ", "f() { ", "\"${x:-", "if ", "a && ", "f() "] {
        assert_eq!(definitions(&open.repeat(100_000)), []);
    }
}

/// A command that does not depend on its surroundings.
fn command() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(":".to_owned()),
        Just("echo 'a b}' \"$x )\" \\; ${y:-z} # }".to_owned() + "\n:"),
        Just("x=$(echo \"`a`\" $((1 + 2)))".to_owned()),
        Just("cat <<E >&2\n} fi $x\nE\n:".to_owned()),
        Just("cat <<-'E F' | b\n\t} $( `\n\tE F\n:".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            inner.clone().prop_map(|a| format!("( {a} )")),
            inner.clone().prop_map(|a| format!("for i in 1 2; do {a}; done >x 2>&1")),
            inner.clone().prop_map(|a| format!("x=\"$( {a} )\"")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} | {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}; {b}")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("if {a}; then {b}; else :; fi")),
            (inner.clone(), inner)
                .prop_map(|(a, b)| format!("case $x in (a|'b)') {a};; *) {b}\n;;\nesac")),
        ]
    })
}

proptest! {
    #![proptest_config(sessile_testkit::cases(256))]
    #[test]
    fn a_definition_among_commands_is_found_as_it_is(
        before in command(), body in command(), after in command(),
    ) {
        let source = format!("f() {{ {body}; }}");
        let text = format!("{before}\n{source}; {after}\n");
        prop_assert_eq!(sources(&text), vec![source]);
    }

    #[test]
    fn a_text_that_breaks_off_has_no_halves(body in command(), cut in 0.0..1.0) {
        let source = format!("f() {{ {body}; }}");
        let mut cut = (source.len() as f64 * cut) as usize;
        while !source.is_char_boundary(cut) {
            cut -= 1;
        }
        prop_assert_eq!(sources(&source[..cut]), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_found_stands_in_the_text_and_on_its_own(
        text in "([ \n;&|<>(){}$`'\"\\\\#=a-cé-]|f\\(\\)|if |then |fi |case |in |esac|do |done|<<)*",
    ) {
        for found in definitions(&text) {
            prop_assert!(text.contains(&found.source));
            prop_assert!(found.source.starts_with(&found.name));
            prop_assert_eq!(definitions(&found.source), vec![found]);
        }
    }
}
