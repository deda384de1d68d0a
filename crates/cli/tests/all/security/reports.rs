//! Reports that a kernel did not make.

use sessile_protocol::{Exec, KernelFate, Language};
use sessile_testkit::{Harness, harness, order};

const TOLD: &str = "did not make was dropped";

/// The kernel's private directory, as a text finds it.
fn directory(shell: &str) -> &'static str {
    match shell {
        "zsh" => "${(%):-%x}",
        // dash does not say, but its descriptors do.
        "sh" => "$(readlink /proc/$$/fd/1)",
        _ => "$BASH_SOURCE",
    }
}

#[test]
fn a_report_that_a_text_writes_is_dropped_and_told() {
    let h = harness!();
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        let s = h.session_of(shell);
        let place = directory(shell);
        let find = format!("f={place}; d=${{f%/*}}; kept=1");
        for (run, forged) in [(1, "r 1 0 -"), (2, "d 2"), (3, "ready - x"), (4, "nonsense")] {
            let text = format!("{find}; echo '{forged}' >$d/s; echo real; (exit 3)");
            let answer = s.run(text).exits(3).prints("real\n").is_kept();
            assert_eq!(answer.run(), run);
            assert!(answer.notes().contains(TOLD), "{shell} {forged}: {}", answer.notes());
        }
        // Without an end, so that it is the beginning of the shell's own report.
        let text = format!("{find}; printf 'r 5 0 \\377' >$d/s; echo real; (exit 4)");
        let answer = s.run(text).exits(4).prints("real\n").is_kept();
        assert!(answer.notes().contains(TOLD), "{shell}: {}", answer.notes());
        let answer = s.run("echo $kept").exits(0).prints("1\n").is_kept();
        assert_eq!(answer.notes(), "", "{shell}");
    }
}

#[test]
fn a_forgery_and_an_exit_are_not_the_next_runs() {
    let h = harness!();
    let s = h.session();
    s.run("d=${BASH_SOURCE%/*}; echo 'r 1 0 -' >$d/s; exit 7").exits(7).is_restarted();
    s.run("echo next").exits(0).prints("next\n").is_kept();
}

#[test]
fn a_report_with_the_right_secret_is_too_early_while_the_text_runs() {
    let h = harness!();
    if Harness::shells(&["zsh"]).is_empty() {
        return;
    }
    let s = h.session_of("zsh");
    // It reads its orders a byte at a time, so that the secret is in those which
    // it has not read. They are put back, and only the time is wrong.
    let text = "f=${(%):-%x}; d=${f%/*}; IFS= read -r line <>$d/t; echo -E \"$line\" >$d/t; \
                w=${line#*\\\"r }; w=${w%% *}; echo \"r $w 0 -\" >$d/s; mkfifo go; \
                echo >forged; read <go; echo ${#w}; (exit 3)";
    let client = s.begin(text);
    h.wait_for_line("forged");
    // The keeper has heard of it when it has done something else.
    s.python("1").exits(0);
    std::fs::write(h.path("go"), "\n").unwrap();
    let answer = s.answer(client, text).exits(3).prints("8\n").is_kept();
    assert!(answer.notes().contains(TOLD), "{}", answer.notes());
}

#[test]
fn what_a_shell_shows_of_its_lines_has_no_secret_of_the_run_in_it() {
    let h = harness!();
    let s = h.session();
    s.run("set -o history; exec 5>>trace; BASH_XTRACEFD=5; set -x; f=${BASH_SOURCE%/*}").exits(0);
    let look = "{ history; fc -l; env; set; declare -f; tr '\\0' ' ' </proc/$$/cmdline; \
                echo \"$_\" \"$BASH_COMMAND\"; for n in $f/*; do [[ -p $n ]] || cat $n; done; \
                cat trace; } >seen";
    s.run(look).exits(0);
    // The trace has it in the end, when the shell has reported.
    let secrets = s.run("set +x; exec 5>&-; sed -n \"s/.*echo 'r \\([^ ]*\\) .*/\\1/p\" trace");
    let secrets: Vec<&str> = secrets.stdout().lines().collect();
    assert_eq!(secrets.len(), 2, "{secrets:?}");
    let seen = std::fs::read_to_string(h.path("seen")).unwrap();
    assert!(seen.contains(secrets[0]), "a secret of a run that is over is none");
    assert!(!seen.contains(secrets[1]), "{seen}");
}

/// Python and Node that find their private directory by what they have open.
const PYTHON: &str = "
import os
kept = 1
def target(n):
    try:
        return os.readlink('/proc/self/fd/' + n)
    except OSError:
        return ''
links = map(target, os.listdir('/proc/self/fd'))
d = next(os.path.dirname(t) for t in links if t.endswith(('/s', '/rep')))
";
const NODE: &str = "
var kept = 1, fds = fs.readdirSync('/proc/self/fd');
var link = (n) => { try { return fs.readlinkSync('/proc/self/fd/' + n) } catch { return '' } };
var d = require('path').dirname(fds.map(link).find((t) => t.endsWith('/s') || t.endsWith('/rep')));
";

#[test]
fn a_report_that_python_or_node_code_writes_is_dropped_and_told() {
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    let python = format!(
        "{PYTHON}f = open(d + '/s', 'w'); f.write('FORGED'); f.close()\nprint('real')\nexit(3)"
    );
    let node =
        format!("{NODE}fs.writeFileSync(d + '/s', 'FORGED'); console.log('real'); process.exit(3)");
    for (language, text) in [(Language::Python, &python), (Language::Node, &node)] {
        let mut run = |text: &str| link.complete(Exec { language: Some(language), ..order(text) });
        // With an end of line, and without: then the driver's own report follows it.
        for end in ["\\n", ""] {
            let number = run("0").run.0 + 1;
            let done =
                format!(r#"{{"op":"done","run":{number},"secret":"AAAAAAAA","exit_code":0}}{end}"#);
            let answer = run(&text.replace("FORGED", &done));
            assert_eq!(answer.exit_code, 3, "{language} {end:?}: {answer:?}");
            assert_eq!(answer.stdout.head, b"real\n", "{language}: {answer:?}");
            assert_eq!(answer.kernel, KernelFate::Kept, "{language}: {answer:?}");
            assert!(answer.notes.iter().any(|note| note.contains(TOLD)), "{language}: {answer:?}");
        }
        let next = run("kept");
        assert_eq!(next.result.unwrap().text, "1", "{language}");
        assert_eq!(next.notes, Vec::<String>::new(), "{language}");
    }
}

#[test]
fn a_secret_that_python_code_takes_harms_its_own_run_alone() {
    let h = harness!();
    let s = h.session();
    let text = format!("{PYTHON}print(len(os.read(os.open(d + '/n', os.O_RDONLY), 99)))");
    let answer = s.python(text).exits(0).prints("8\n").is_kept();
    assert!(answer.notes().contains(TOLD), "{}", answer.notes());
    assert_eq!(s.python("print(kept)").exits(0).prints("1\n").is_kept().notes(), "");
}

/// Node's module system leads to no part of the driver, and what Python code
/// changes of it is put back.
#[test]
fn later_runs_are_answered_truly_whatever_a_run_does_to_the_driver() {
    const NODE: &str = "
const main = Object.getPrototypeOf(module).require.main;
const part = main?.children.find((c) => c.filename.endsWith('/safe.js'))?.exports;
if (part) part.JSONStringify = (m) => JSON.stringify({ ...m, exit_code: 0 });
const write = Buffer.prototype.utf8Write;
Buffer.prototype.utf8Write = function (text, ...rest) {
  return write.call(this, String(text).replace('\"exit_code\":3', '\"exit_code\":0'), ...rest);
};
typeof part";
    const PYTHON: &str = "
import sys
f = sys._getframe()
while 'kernel' not in f.f_locals: f = f.f_back
C = type(f.f_locals['kernel'].channel)
send = C.send
C.send = lambda s, t: send(s, t.replace('\"exit_code\":3', '\"exit_code\":0'))";
    let h = harness!();
    let s = h.session();
    let mut link = s.link();
    for (language, attack, text) in
        [(Language::Node, NODE, "process.exit(3)"), (Language::Python, PYTHON, "exit(3)")]
    {
        let mut run = |text: &str| link.complete(Exec { language: Some(language), ..order(text) });
        let first = run(attack);
        assert_eq!(first.exit_code, 0, "{language}: {first:?}");
        let later = run(text);
        assert_eq!(later.exit_code, 3, "{language}: {later:?}");
        assert_eq!(later.kernel, KernelFate::Kept, "{language}: {later:?}");
    }
}

#[test]
fn python_code_without_a_free_descriptor_can_close_some() {
    let h = harness!();
    let s = h.session();
    s.python("import os\nfs = []\nwhile 1: fs.append(os.open('/dev/null', 0))").exits(1);
    let told = s.python("for f in fs: os.close(f)\nprint('closed')").exits(0).prints("closed\n");
    assert!(told.is_kept().notes().contains("ulimit -n"));
    assert_eq!(s.python("print(1)").prints("1\n").is_kept().notes(), "");
}

/// Of the driver's files, some are loaded when they are first needed.
#[test]
fn what_is_put_into_the_files_of_the_driver_is_not_run() {
    let h = harness!();
    let s = h.session_of("python3");
    s.run("import os; folder = open('/proc/self/cmdline').read().split('\\0')[2]");
    let text = "open('forged', 'w').write('yes')";
    s.run(format!(
        "for name in os.listdir(os.path.dirname(folder)):\n \
           if name.endswith('.py'):\n  \
             with open(os.path.join(os.path.dirname(folder), name), 'a') as file: \
                 done = file.write('\\n\\n\\n' + {text:?})"
    ))
    .exits(0);
    for text in ["1/0", "!true", "import asyncio\nawait asyncio.sleep(0)", "[1, 2]"] {
        s.run(text);
    }
    assert!(!h.path("forged").exists());
    s.run("1/0").exits(1);
    s.run("print(6 * 7)").prints("42\n").exits(0);
}
