//! Twelve commands at which persistent shells are known to fail. A case holds if it is
//! answered in time, with the right status and exactly its output, and the session still
//! has its state afterwards.

use super::Language;
use super::driver::{Driver, Outcome};
use super::results::Results;
use base64::Engine;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const HOLDS: &str = "holds";

/// A command, and its correct result.
#[derive(Clone, Debug)]
struct Case {
    name: &'static str,
    command: String,
    timeout: f64,
    output: Output,
    status: Status,
}

#[derive(Clone, Debug)]
enum Output {
    Exactly(Vec<u8>),
    /// Except for empty lines around it, which a terminal may add.
    Text(String),
    Bytes(u64),
    Any,
}

#[derive(Clone, Copy, Debug)]
enum Status {
    Is(i64),
    /// Not zero, or refused.
    Failure,
    TimedOut,
}

/// In the order of the table.
pub(super) const NAMES: [&str; 12] = [
    "output with the peers' own markers",
    "`cat` without input",
    "`exit 3`",
    "`set -e; false`",
    "an endless loop, timed out",
    "`sleep 100 &`",
    "a heredoc of 200 KB",
    "binary output",
    "`exec >/dev/null`, and the next command",
    "50 MB of output",
    "no newline at the end",
    "an open quote",
];

const HEREDOC: usize = 200_000;
const MUCH: u64 = 50_000_000;
const QUICK: f64 = 4.0;
const SLOW: f64 = 20.0;

/// Markers that peers look for in the output.
const MARKERS: &str = "SHELLPS1PREFIX\n[PEXPECT_PROMPT>\nEXITCODESTART0EXITCODEEND\n";

fn cases(language: Language) -> [Case; 12] {
    let of = |name: usize, command: &str, output: Output, status: Status| Case {
        name: NAMES[name],
        command: command.to_owned(),
        timeout: QUICK,
        output,
        status,
    };
    let text = |text: &str| Output::Text(text.to_owned());
    let exactly = |text: &str| Output::Exactly(text.as_bytes().to_vec());
    let (line, bytes) = ("0123456789abcde\n", (0..=255).collect());
    let lines = line.repeat(HEREDOC / line.len());
    let length = format!("{HEREDOC}\n");
    let slow = |case: Case| Case { timeout: SLOW, ..case };
    match language {
        Language::Bash => [
            of(
                0,
                "echo SHELLPS1PREFIX; echo '[PEXPECT_PROMPT>'; echo EXITCODESTART0EXITCODEEND",
                text(MARKERS),
                Status::Is(0),
            ),
            of(1, "cat", text(""), Status::Is(0)),
            of(2, "exit 3", text(""), Status::Is(3)),
            of(3, "set -e; false", text(""), Status::Is(1)),
            of(4, "while :; do :; done", Output::Any, Status::TimedOut),
            of(5, "sleep 100 &", text(""), Status::Is(0)),
            slow(of(6, &format!("wc -c <<'END'\n{lines}END"), text(&length), Status::Is(0))),
            of(
                7,
                r#"for i in {0..255}; do printf "\\x$(printf %x "$i")"; done"#,
                Output::Exactly(bytes),
                Status::Is(0),
            ),
            of(8, "exec >/dev/null", text(""), Status::Is(0)),
            slow(of(9, &language.output(MUCH), Output::Bytes(MUCH), Status::Is(0))),
            of(10, "printf abc", exactly("abc"), Status::Is(0)),
            of(11, "echo \"abc", Output::Any, Status::Failure),
        ],
        Language::Python => [
            of(0, &format!("print({MARKERS:?}, end='')"), text(MARKERS), Status::Is(0)),
            of(1, "import subprocess; _ = subprocess.run(['cat'])", text(""), Status::Is(0)),
            of(2, "import sys; sys.exit(3)", text(""), Status::Is(3)),
            of(3, "assert False", Output::Any, Status::Is(1)),
            of(4, "while True: pass", Output::Any, Status::TimedOut),
            of(
                5,
                "import subprocess; p = subprocess.Popen(['sleep', '100'])",
                text(""),
                Status::Is(0),
            ),
            slow(of(6, &format!("print(len('''{lines}'''))"), text(&length), Status::Is(0))),
            of(
                7,
                "import os; _ = os.write(1, bytes(range(256)))",
                Output::Exactly(bytes),
                Status::Is(0),
            ),
            of(
                8,
                "import os; _ = os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
                text(""),
                Status::Is(0),
            ),
            slow(of(9, &language.output(MUCH), Output::Bytes(MUCH), Status::Is(0))),
            of(10, "print('abc', end='')", exactly("abc"), Status::Is(0)),
            of(11, "y = \"abc", Output::Any, Status::Failure),
        ],
    }
}

pub(super) fn measure(
    language: Language,
    drivers: &mut [Driver],
    results: &mut Results,
) -> anyhow::Result<()> {
    let (prepare, then) = match language {
        Language::Bash => ("x=41", "echo $((x+1))"),
        Language::Python => ("x = 41", "print(x + 1)"),
    };
    for case in cases(language) {
        let Case { command, timeout, .. } = &case;
        let order = json!({
            "do": "case", "prepare": prepare, "command": command, "timeout": timeout, "then": then,
        });
        for driver in drivers.iter_mut() {
            let patience = Duration::from_secs_f64(timeout * 2.0 + 15.0);
            let verdict = match driver.ask(&order, patience)? {
                Outcome::Answer(answer) => judge(&case, &answer),
                Outcome::Error(_) => "error",
                Outcome::Hangs => "hangs",
            };
            results.set_case(case.name, driver.peer.key, verdict);
        }
    }
    Ok(())
}

/// Returns whether a case holds, or its first problem in a word.
fn judge(case: &Case, told: &Value) -> &'static str {
    let (answer, after) = (&told["answer"], &told["after"]);
    let status = answer["status"].as_i64();
    let (timed_out, refused) = (answer["timed_out"] == true, answer["refused"] == true);
    if let Some(error) = answer["error"].as_str() {
        return if error.starts_with("Timeout") { "hangs" } else { "error" };
    }
    if told["took"].as_f64().is_none_or(|took| took > case.timeout + 3.0) {
        return "hangs";
    }
    let is_right = match case.status {
        Status::Is(_) if timed_out => return "hangs",
        Status::Is(right) => status == Some(right),
        Status::Failure => refused || status.is_some_and(|status| status != 0),
        Status::TimedOut => timed_out,
    };
    if !is_right {
        return "status";
    }
    if !is_exact(&case.output, answer) {
        return "output";
    }
    if after["error"].is_string() || after["timed_out"] == true {
        return "dead";
    }
    if is_exact(&Output::Text("42".to_owned()), after) { HOLDS } else { "state" }
}

fn is_exact(right: &Output, answer: &Value) -> bool {
    let told = || bytes_of(answer["output"].as_str().unwrap_or_default());
    match right {
        Output::Any => true,
        Output::Bytes(length) => answer["length"].as_u64() == Some(*length),
        Output::Exactly(bytes) => told() == *bytes,
        Output::Text(text) => told().trim_ascii() == text.trim().as_bytes(),
    }
}

/// Decodes the base64 of the drivers.
fn bytes_of(text: &str) -> Vec<u8> {
    base64::prelude::BASE64_STANDARD.decode(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(text: &str) -> String {
        base64::prelude::BASE64_STANDARD.encode(text)
    }

    fn told(output: &str, status: i64, after: &str) -> Value {
        json!({
            "took": 0.1,
            "answer": {
                "output": base64(output), "length": output.len(), "status": status,
                "timed_out": false, "refused": false,
            },
            "after": {"output": base64(after), "timed_out": false},
        })
    }

    #[test]
    fn a_case_holds_only_if_all_of_it_is_right() {
        let exit = &cases(Language::Bash)[2];
        assert_eq!(judge(exit, &told("", 3, "42\n")), HOLDS);
        assert_eq!(judge(exit, &told("", 0, "42\n")), "status");
        assert_eq!(judge(exit, &told("\r\n", 3, "\n42\n")), HOLDS);
        assert_eq!(judge(exit, &told("exit\n", 3, "42\n")), "output");
        assert_eq!(judge(exit, &told("", 3, "1\n")), "state");
        let mut late = told("", 3, "42\n");
        late["took"] = json!(100.0);
        assert_eq!(judge(exit, &late), "hangs");
        let mut dead = told("", 3, "");
        dead["after"] = json!({"error": "EOF"});
        assert_eq!(judge(exit, &dead), "dead");
    }

    #[test]
    fn what_was_to_be_timed_out_must_be() {
        let endless = &cases(Language::Python)[4];
        assert_eq!(judge(endless, &told("", 0, "42\n")), "status");
        let mut right = told("", 0, "42\n");
        right["answer"]["timed_out"] = json!(true);
        assert_eq!(judge(endless, &right), HOLDS);
    }
}
