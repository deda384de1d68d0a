//! The documentation, executed.
//!
//! Two kinds of fenced blocks in README.md and docs/ are run, with the built
//! `sessile` first in PATH and each page in a temporary directory of its own:
//!
//! - `console`: lines that begin with `$ ` are commands (`> ` continues one), all
//!   of a page in one shell; the lines below them are what they must print,
//!   stdout and stderr together. `…` stands for anything within a line, and a
//!   line that is only `…` for any number of lines. Ids, times, durations and
//!   process ids may be written as anything of their kind, and the page's
//!   directory is called /home/me/project.
//! - `sh run=1`: a script of its own, which must exit 0 under `set -eu`, in an
//!   empty directory. A `text output` block right below it is what it prints.
//!
//! `needs=zsh,node` after either passes the block over, and says so, where one
//! of these is not installed. Other blocks are not run.

use sessile_testkit::{needs, processes_with};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds for a whole page: many times what a loaded machine needs.
const PAGE_PATIENCE: &str = "240";

/// What the page's directory is called in the pages.
const PROJECT: &str = "/home/me/project";

/// The user of the pages.
const HOME: &str = "/home/me";

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(#[test]
        fn $name() {
            run_page($path);
        })*

        /// Those that have a test above.
        const PAGES: &[&str] = &[$($path),*];
    };
}

pages! {
    readme: "README.md",
    command_line: "docs/command-line.md",
    sandbox: "docs/sandbox.md",
    runtime_tool: "docs/runtime-tool.md",
    session_directory: "docs/session-directory.md",
    shells: "docs/shells.md",
    python: "docs/python.md",
    node: "docs/node.md",
    server: "docs/server.md",
    examples: "docs/examples.md",
    http_api: "docs/http-api.md",
    mcp: "docs/mcp.md",
    terminals: "docs/terminals.md",
    save_and_restore: "docs/save-and-restore.md",
    time_travel: "docs/time-travel.md",
    durable: "docs/durable.md",
    policies: "docs/policies.md",
    agents: "docs/agents.md",
    coming_from_testbase: "docs/coming-from-testbase.md",
}

#[test]
fn every_page_with_something_to_run_is_run() {
    let docs = std::fs::read_dir(repository().join("docs")).expect("docs");
    let names = docs.flatten().map(|entry| entry.file_name().into_string().expect("a name"));
    for name in names.filter(|name| name.ends_with(".md")) {
        let page = format!("docs/{name}");
        let runs = |block: &Block| matches!(block.kind, Kind::Console | Kind::Script);
        let is_listed = PAGES.contains(&page.as_str());
        assert!(is_listed || !blocks(&read(&page)).iter().any(runs), "{page} is not run");
    }
}

#[test]
fn there_are_twelve_examples_and_each_is_a_script() {
    let text = read("docs/examples.md");
    let titles = text.lines().filter(|line| line.starts_with("## ")).count();
    let scripts = blocks(&text).iter().filter(|block| block.kind == Kind::Script).count();
    assert!(titles >= 12 && titles == scripts, "{titles} titles, {scripts} scripts");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/performance.md"];
    for page in PAGES.iter().chain(&others) {
        let text = read(page);
        let folder = repository().join(page).parent().expect("a folder").to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            if path.starts_with("http") {
                continue;
            }
            let file = if path.is_empty() { repository().join(page) } else { folder.join(path) };
            assert!(file.exists(), "{page} links to {target}, which does not exist");
            let has = |line: &str| line.starts_with('#') && slug(line) == anchor;
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(anchor.is_empty() || text.lines().any(has), "{page}: no such part: {target}");
        }
    }
}

/// The name that a heading is linked by.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let keeps = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.chars().filter(keeps).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_pattern_language_matches_what_it_should() {
    assert!(matches(&["a…c", "…", "end"], &["abbc", "x", "y", "end"]));
    assert!(matches(&["…"], &[]));
    assert!(!matches(&["a…c"], &["ab"]));
    assert!(!matches(&["a"], &["a", "b"]));
    let told = r#"{"id":"sess_…","execution_time_ms":2.5,"t":"2026-01-31T12:00:00.000Z"}"#;
    let real =
        r#"{"id":"sess_0123456789ab","execution_time_ms":71,"t":"2031-12-01T01:02:03.456Z"}"#;
    assert!(matches(&[&plain(told)], &[&plain(real)]));
    assert!(!matches(&[&plain(r#"{"run":1}"#)], &[&plain(r#"{"run":2}"#)]));
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Console,
    Script,
    Output,
    Other,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    needs: Vec<String>,
    /// Where it begins in its page.
    line: usize,
    text: String,
}

/// A command of a console block and what it has to print.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    let path = repository().join(page);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {page}: {e}"))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, None) => {}
            (None, Some(info)) => {
                let words: Vec<&str> = info.split_whitespace().collect();
                let kind = match words.as_slice() {
                    ["console", ..] => Kind::Console,
                    ["sh", "run=1", ..] => Kind::Script,
                    ["text", "output", ..] => Kind::Output,
                    _ => Kind::Other,
                };
                let needs = words.iter().filter_map(|word| word.strip_prefix("needs="));
                let needs = needs.flat_map(|list| list.split(',')).map(str::to_owned).collect();
                open = Some(Block { kind, needs, line: index + 1, text: String::new() });
            }
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (Some(_), Some(_)) => found.extend(open.take()),
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, line) in block.text.lines().enumerate() {
        let number = block.line + 1 + offset;
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: number, command: format!("{command}\n"), output: Vec::new() });
            continue;
        }
        let step = steps.last_mut().unwrap_or_else(|| panic!("line {number}: no command yet"));
        match line.strip_prefix("> ").or_else(|| (line == ">").then_some("")) {
            Some(more) if step.output.is_empty() => {
                step.command.push_str(more);
                step.command.push('\n');
            }
            Some(_) | None => step.output.push(line.to_owned()),
        }
    }
    steps
}

/// A page's directory, and whatever it has started.
struct Page {
    path: &'static str,
    root: PathBuf,
    failures: String,
}

fn run_page(path: &'static str) {
    let blocks = blocks(&read(path));
    let mut page = Page::new(path);
    let (mut console, mut scripts) = (Vec::new(), 0);
    for (index, block) in blocks.iter().enumerate() {
        let is_run = matches!(block.kind, Kind::Console | Kind::Script);
        if is_run && !block.needs.iter().all(|program| needs::has_program(program)) {
            eprintln!("{path}:{}: passed over", block.line);
            continue;
        }
        match block.kind {
            Kind::Console => console.extend(steps(block)),
            Kind::Script => {
                let output = blocks.get(index + 1).filter(|next| next.kind == Kind::Output);
                page.run_script(block, output);
                scripts += 1;
            }
            Kind::Output | Kind::Other => {}
        }
    }
    page.run_console(&console);
    eprintln!("{path}: ran {} commands and {scripts} scripts", console.len());
    page.finish();
}

impl Page {
    fn new(path: &'static str) -> Self {
        let name = path.replace(['/', '.'], "-");
        let root = std::env::temp_dir().join(format!("sessile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("project")).expect("a temporary directory");
        let root = root.canonicalize().expect("our own directory");
        Self { path, root, failures: String::new() }
    }

    /// Set for everything that the page starts, and inherited from there.
    fn mark(&self) -> (&'static str, String) {
        ("SESSILE_TEST", self.root.display().to_string())
    }

    fn bash(&self, script: &Path, directory: &Path) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_sessile"));
        let mut path = binary.parent().expect("a folder").as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let (mark, value) = self.mark();
        let mut command = Command::new("timeout");
        command
            .args([PAGE_PATIENCE, "bash", "--norc"])
            .arg(script)
            .current_dir(directory)
            .env("PATH", path)
            .env("PWD", directory)
            .env("XDG_STATE_HOME", self.root.join(".local/state"))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env(mark, value)
            .env_remove("SESSILE_SESSIONS_DIR")
            .stdin(Stdio::null());
        command
    }

    fn run_script(&mut self, block: &Block, output: Option<&Block>) {
        let name = format!("script-{}", block.line);
        let directory = self.root.join(&name);
        std::fs::create_dir(&directory).expect("a directory");
        let (script, out) = (self.root.join(name.clone() + ".sh"), self.root.join(name + ".out"));
        std::fs::write(&script, format!("set -eu\n{}", block.text)).expect("a script");
        let status = self.execute(&script, &directory, &out);
        let printed = std::fs::read_to_string(&out).unwrap_or_default();
        let printed = printed.replace(&directory.display().to_string(), PROJECT);
        let printed = plain(&printed.replace(&self.root.display().to_string(), HOME));
        if status != Some(0) {
            self.fail(block.line, &format!("exit status {status:?} after printing\n{printed}"));
        } else if let Some(output) = output {
            self.compare(output.line, &plain(&output.text), &printed);
        }
    }

    /// All commands in one shell, each one's output in a file of its own.
    fn run_console(&mut self, steps: &[Step]) {
        let directory = self.root.join("project");
        let mut script = String::new();
        for (number, step) in steps.iter().enumerate() {
            let path = self.root.join(format!("step-{number}"));
            std::fs::write(&path, &step.command).expect("a command");
            let path = path.display();
            let _ = writeln!(script, ". '{path}' >'{path}.out' 2>&1");
        }
        let file = self.root.join("console.sh");
        std::fs::write(&file, script).expect("a script");
        let out = self.root.join("console.out");
        self.execute(&file, &directory, &out);
        for (number, step) in steps.iter().enumerate() {
            let path = self.root.join(format!("step-{number}.out"));
            let Ok(printed) = std::fs::read(&path) else {
                self.fail(step.line, "not reached: one before it did not end, or ended the shell");
                continue;
            };
            let printed = String::from_utf8_lossy(&printed);
            let printed = printed.replace(&directory.display().to_string(), PROJECT);
            let printed = printed.replace(&self.root.display().to_string(), HOME);
            self.compare(step.line, &plain(&step.output.join("\n")), &plain(&printed));
        }
    }

    fn execute(&self, script: &Path, directory: &Path, out: &Path) -> Option<i32> {
        let file = std::fs::File::create(out).expect("a file");
        let other = file.try_clone().expect("a descriptor");
        let mut command = self.bash(script, directory);
        command.stdout(file).stderr(other).status().expect("bash").code()
    }

    fn compare(&mut self, line: usize, expected: &str, printed: &str) {
        let (expected, printed): (Vec<&str>, Vec<&str>) =
            (expected.lines().collect(), printed.lines().collect());
        if !matches(&expected, &printed) {
            let text =
                format!("expected\n{}\nbut got\n{}", expected.join("\n"), printed.join("\n"));
            self.fail(line, &text);
        }
    }

    fn fail(&mut self, line: usize, what: &str) {
        let _ = writeln!(self.failures, "{}:{line}: {what}\n", self.path);
    }

    /// Ends every session of the page; nothing may be left of it.
    fn finish(self) {
        for directory in sessions_below(&self.root) {
            let mut end = Command::new(env!("CARGO_BIN_EXE_sessile"));
            end.args(["end", "--all", "--sessions-dir"]).arg(directory).stdout(Stdio::null());
            assert!(end.status().expect("sessile").success(), "cannot end sessions");
        }
        let (mark, value) = self.mark();
        for process in processes_with(&format!("{mark}={value}")) {
            if !self.failures.is_empty() {
                process.kill();
            }
            process.wait_gone();
        }
        assert!(self.failures.is_empty(), "{}(see {})", self.failures, self.root.display());
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The `.sessions` directories somewhere below.
fn sessions_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let holds = |kind: std::fs::FileType| kind.is_dir() && !kind.is_symlink();
        if !entry.file_type().is_ok_and(holds) {
            continue;
        }
        let path = entry.path();
        let is_session = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("sess_");
        if entry.path().file_name().is_some_and(is_session) {
            found.push(root.to_owned());
        } else {
            found.extend(sessions_below(&path));
        }
    }
    found.dedup();
    found
}

/// Whether lines are as told.
fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((line, rest)), Some((found, others))) => {
            line_matches(line, found) && matches(rest, others)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let Some((start, mut rest)) = expected.split_once('…') else {
        return expected == printed;
    };
    let Some(mut printed) = printed.strip_prefix(start) else {
        return false;
    };
    while let Some((part, more)) = rest.split_once('…') {
        let Some(at) = printed.find(part) else {
            return false;
        };
        printed = &printed[at + part.len()..];
        rest = more;
    }
    printed.ends_with(rest)
}

/// A text without what differs from one time to the next.
fn plain(text: &str) -> String {
    const NUMBERS: [&str; 5] =
        ["execution_time_ms", "duration_ms", "duration_us", "duration", "keeper_pid"];
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = id_length(rest) {
            out.push_str("sess_…");
            rest = &rest[length..];
        } else if let Some(length) = time_length(rest) {
            out.push_str("TIME");
            rest = &rest[length..];
        } else if let Some(length) = NUMBERS.iter().find_map(|name| number_length(rest, name)) {
            out.push_str("NUMBER");
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn id_length(text: &str) -> Option<usize> {
    let hex = text.strip_prefix("sess_")?;
    let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits >= 12).then_some("sess_".len() + digits)
}

fn time_length(text: &str) -> Option<usize> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00.000Z";
    let found = text.as_bytes().get(..SHAPE.len())?;
    let fits = |(want, byte): (&u8, &u8)| match want {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    SHAPE.iter().zip(found).all(fits).then_some(SHAPE.len())
}

/// `"name":` and its number.
fn number_length(text: &str, name: &str) -> Option<usize> {
    let rest = text.strip_prefix('"')?.strip_prefix(name)?.strip_prefix("\":")?;
    let rest = rest.trim_start_matches(' ');
    let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    (digits > 0).then(|| text.len() - rest.len() + digits)
}
