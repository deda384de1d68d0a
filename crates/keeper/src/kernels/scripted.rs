//! Python and Node: our driver inside the interpreter takes orders and reports as lines
//! of JSON.

use super::launch::{DriverFiles, Invocation, install};
use super::secret::{Secret, Secrets};
use super::shell::write_orders;
use super::{
    Copy, CopyEvent, CopyReport, DumpOutcome, Ended, Kernel, Kind, LastState, Lines, LoadOutcome,
    Order, Question, RawCapture, Release, Report, SignalTarget, Stdin,
};
use crate::scratch::{PipeAccess, make_orders, name_orders_again, write_file};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sessile_protocol::{Language, RunError, RunNo, RunValue};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const PYTHON: &[(&str, &str)] = &[
    ("driver.py", include_str!("python/driver.py")),
    ("aio.py", include_str!("python/aio.py")),
    ("background.py", include_str!("python/background.py")),
    ("boot.py", include_str!("python/boot.py")),
    ("carry.py", include_str!("python/carry.py")),
    ("channel.py", include_str!("python/channel.py")),
    ("defined.py", include_str!("python/defined.py")),
    ("display.py", include_str!("python/display.py")),
    ("errors.py", include_str!("python/errors.py")),
    ("forking.py", include_str!("python/forking.py")),
    ("habits.py", include_str!("python/habits.py")),
    ("imports.py", include_str!("python/imports.py")),
    ("kernel.py", include_str!("python/kernel.py")),
    ("magics.py", include_str!("python/magics.py")),
    ("pickled.py", include_str!("python/pickled.py")),
    ("run.py", include_str!("python/run.py")),
    ("seals.py", include_str!("python/seals.py")),
    ("sharing.py", include_str!("python/sharing.py")),
    ("source.py", include_str!("python/source.py")),
    ("state.py", include_str!("python/state.py")),
    ("streams.py", include_str!("python/streams.py")),
];
const NODE: &[(&str, &str)] = &[
    ("driver.js", include_str!("node/driver.js")),
    ("bytes.js", include_str!("node/bytes.js")),
    ("carry.js", include_str!("node/carry.js")),
    ("code.js", include_str!("node/code.js")),
    ("contents.js", include_str!("node/contents.js")),
    ("declaration.js", include_str!("node/declaration.js")),
    ("descriptors.js", include_str!("node/descriptors.js")),
    ("environment.js", include_str!("node/environment.js")),
    ("evaluate.js", include_str!("node/evaluate.js")),
    ("files.js", include_str!("node/files.js")),
    ("graph.js", include_str!("node/graph.js")),
    ("imports.js", include_str!("node/imports.js")),
    ("interrupt.js", include_str!("node/interrupt.js")),
    ("kernel.js", include_str!("node/kernel.js")),
    ("kinds.js", include_str!("node/kinds.js")),
    ("known.js", include_str!("node/known.js")),
    ("lexer.js", include_str!("node/lexer.js")),
    ("loading.js", include_str!("node/loading.js")),
    ("patches.js", include_str!("node/patches.js")),
    ("rebuild.js", include_str!("node/rebuild.js")),
    ("redeclare.js", include_str!("node/redeclare.js")),
    ("report.js", include_str!("node/report.js")),
    ("safe.js", include_str!("node/safe.js")),
    ("state.js", include_str!("node/state.js")),
    ("streams.js", include_str!("node/streams.js")),
    ("watcher.js", include_str!("node/watcher.js")),
];

/// Maximum length of a text inside its order. A longer one goes into a file, because a
/// pipe takes only 64 KiB at once.
const INLINE: usize = 16 << 10;
/// Length of a control character in JSON: `\u0007`.
const ESCAPED: usize = 6;

/// A report may contain a picture, but its size is limited.
const LONGEST_REPORT: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Scripted {
    directory: PathBuf,
    /// The files of its driver there.
    driver: &'static [(&'static str, &'static str)],
    paths: Paths,
    orders: OwnedFd,
    lines: Lines,
    secrets: Secrets,
    secret_place: SecretPlace,
    current: Option<Current>,
    /// The secret of the run before: its report may come twice.
    former: Option<Secret>,
    /// The "as of" runs of captures in progress.
    capturing: std::collections::VecDeque<RunNo>,
    has_event_loop: bool,
    version: Option<String>,
}

/// The run that the driver executes.
#[derive(Debug)]
struct Current {
    run: RunNo,
    secret: Secret,
}

/// Where the secret of a run is while user code runs; see `secret.rs`.
#[derive(Debug)]
enum SecretPlace {
    /// In this pipe, from which the driver reads it when the run is done: in Python, user
    /// code can find everything that the driver has.
    Pipe(OwnedFd),
    /// With the driver, which got it in the order.
    Driver,
}

/// Files of a run in the kernel's directory. The driver knows these paths.
#[derive(Debug)]
struct Paths {
    code: PathBuf,
    stdin: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Paths {
    fn of(directory: &Path) -> Self {
        let [code, stdin, stdout, stderr] = ["c", "i", "o", "e"].map(|name| directory.join(name));
        Self { code, stdin, stdout, stderr }
    }
}

/// What is missing is as in most runs, because each field takes the driver time.
#[derive(Serialize)]
struct RunOrder<'a> {
    op: &'static str,
    run: RunNo,
    /// None if it is in the file for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// None if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<&'a Path>,
    /// None if they are the files with the usual names.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<&'a Path>,
    /// None if there are none: nothing is restored after such a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a Secret>,
}

/// Prefix of the report of a run's end. Such a report is parsed directly: trying the
/// other kinds first would take longer than all the rest.
const DONE: &[u8] = br#"{"op":"done","#;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Message {
    Ready {
        #[serde(default)]
        version: Option<String>,
    },
    Done(Done),
    State(Map<String, Value>),
    /// Nothing keeps its terminal from hanging up.
    LetGo,
    Input {
        question: Question,
        waits: bool,
    },
    Born(CopyReport),
    Unborn {
        directory: String,
        error: String,
    },
    Copied {
        directory: String,
        pid: i32,
    },
    /// A fork writes the dump; the outcome is in a file when it has ended.
    Dumping {
        path: PathBuf,
        pid: i32,
    },
    Dumped(DumpOutcome),
    Loaded(LoadOutcome),
}

#[derive(Deserialize)]
struct Done {
    run: RunNo,
    #[serde(default)]
    secret: String,
    exit_code: i32,
    #[serde(default)]
    result: Option<DoneValue>,
    #[serde(default)]
    error: Option<RunError>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct DoneValue {
    text: String,
    #[serde(default)]
    data: Map<String, Value>,
}

impl Scripted {
    pub(super) fn prepare(
        language: Language,
        directory: &Path,
        orders: OwnedFd,
        (driver, pipe_access): (DriverFiles, PipeAccess),
    ) -> io::Result<(Self, Invocation)> {
        let (files, flags): (_, &[&str]) = match language {
            // Unbuffered, so that the output of C code comes in order.
            Language::Python => (PYTHON, &["-u"]),
            Language::Node => (NODE, &["--no-force-async-hooks-checks"]),
            Language::Bash | Language::Sh | Language::Zsh => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        let driver = match driver {
            DriverFiles::Installed => files,
            DriverFiles::Absent => &[],
        };
        install(directory, driver)?;
        // The drivers know the two FIFOs by these names.
        for (name, fifo) in [("ctl", "t"), ("rep", "s")] {
            let link = directory.join(name);
            let _ = std::fs::remove_file(&link);
            std::fs::hard_link(directory.join(fifo), link)?;
        }
        let secret_place = if language == Language::Python {
            SecretPlace::Pipe(make_orders(&directory.join("n"), pipe_access)?)
        } else {
            SecretPlace::Driver
        };
        let mut args: Vec<std::ffi::OsString> = flags.iter().map(Into::into).collect();
        args.push(directory.join(files[0].0).into());
        args.push(directory.into());
        let kernel = Self {
            directory: directory.to_owned(),
            driver,
            paths: Paths::of(directory),
            orders,
            lines: Lines::of_at_most(LONGEST_REPORT),
            secrets: Secrets::default(),
            secret_place,
            current: None,
            former: None,
            capturing: std::collections::VecDeque::new(),
            has_event_loop: language == Language::Node,
            version: None,
        };
        Ok((kernel, Invocation { args, stdin: None, env: Vec::new() }))
    }

    fn order(&self, order: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        write_orders(&self.orders, &line)
    }

    /// Interprets a line, the beginning of which may come from another process.
    fn understand(&mut self, line: &[u8]) -> Vec<Report> {
        match parse(line) {
            Some(message) => self.take(message).into_iter().collect(),
            None => {
                let own = memchr::memmem::rfind(line, DONE);
                let own = own.and_then(|at| parse(&line[at..]));
                let own = own.and_then(|message| self.take(message));
                [Report::Stray].into_iter().chain(own).collect()
            }
        }
    }

    fn take(&mut self, message: Message) -> Option<Report> {
        match message {
            Message::Ready { version } => {
                self.version = version;
                Some(Report::Ready)
            }
            Message::Done(done) => self.done(done),
            Message::LetGo => Some(Report::LetGo),
            Message::State(view) => {
                let as_of = self.capturing.pop_front()?;
                let saved = SavedKernel {
                    as_of_run: as_of,
                    view: tidy(view),
                    restore: None,
                    dump: None,
                    dump_as_of_run: None,
                };
                Some(Report::Captured(RawCapture::Described(Box::new(saved))))
            }
            Message::Born(born) => {
                self.version.clone_from(&born.version);
                Some(Report::Copy(CopyEvent::Up(Box::new(born))))
            }
            Message::Unborn { directory, error } => {
                Some(Report::Copy(CopyEvent::Failed { directory, error }))
            }
            Message::Copied { directory, pid } => {
                let pid = rustix::process::Pid::from_raw(pid)?;
                Some(Report::Copy(CopyEvent::Copied { directory, pid }))
            }
            Message::Input { question, waits } => Some(Report::Wants { question, input: waits }),
            Message::Dumping { path, pid } => {
                Some(Report::Dumping { path, writer: rustix::process::Pid::from_raw(pid)? })
            }
            Message::Dumped(dumped) => Some(Report::Dumped(Box::new(dumped))),
            Message::Loaded(loaded) => Some(Report::Loaded(Box::new(loaded))),
        }
    }

    fn done(&mut self, done: Done) -> Option<Report> {
        if self.former.as_ref().is_some_and(|former| former.as_str() == done.secret) {
            return None;
        }
        // Other processes may have written to the pipe too.
        let tells = |current: &mut Current| {
            current.run == done.run && current.secret.position_in(done.secret.as_bytes()).is_some()
        };
        let Some(current) = self.current.take_if(tells) else {
            self.ask_again();
            return Some(Report::Stray);
        };
        self.former = Some(current.secret);
        Some(Report::Ended(Ended {
            run: done.run,
            exit_code: done.exit_code,
            value: done.result.map(|value| RunValue {
                text: value.text,
                data_json: (!value.data.is_empty()).then(|| Value::Object(value.data).to_string()),
            }),
            error: done.error,
            notes: done.notes,
        }))
    }
}

fn parse(line: &[u8]) -> Option<Message> {
    if line.starts_with(DONE) {
        serde_json::from_slice(line).ok().map(Message::Done)
    } else {
        serde_json::from_slice(line).ok()
    }
}

impl Kernel for Scripted {
    /// Asks for the report again. A report without the secret may come from the driver
    /// itself, if another process has taken the secret from its pipe.
    fn ask_again(&self) {
        let (SecretPlace::Pipe(pipe), Some(current)) = (&self.secret_place, &self.current) else {
            return;
        };
        if rustix::io::ioctl_fionread(pipe) == Ok(0) {
            let _ = write_orders(pipe, current.secret.as_bytes());
            let _ = self.order(&json!({"op": "again"}));
        }
    }

    fn pipes(&mut self) -> Vec<&mut OwnedFd> {
        let secrets = match &mut self.secret_place {
            SecretPlace::Pipe(pipe) => Some(pipe),
            SecretPlace::Driver => None,
        };
        [&mut self.orders].into_iter().chain(secrets).collect()
    }

    fn recreate_files(&mut self, pipe_access: PipeAccess) -> io::Result<Vec<OwnedFd>> {
        install(&self.directory, self.driver)?;
        let mut named = Vec::new();
        named.extend(name_orders_again(&self.directory.join("ctl"), &self.orders, pipe_access)?);
        if let SecretPlace::Pipe(pipe) = &self.secret_place {
            named.extend(name_orders_again(&self.directory.join("n"), pipe, pipe_access)?);
        }
        let rep = self.directory.join("rep");
        let _ = std::fs::remove_file(&rep);
        rustix::fs::symlink("s", rep)?;
        Ok(named)
    }

    fn begin(&mut self, order: &Order<'_>) -> io::Result<()> {
        let Paths { code, stdin, stdout: usual_stdout, stderr: usual_stderr } = &self.paths;
        let [stdout, stderr] = order.output;
        let text = inline(order.text);
        if text.is_none() {
            write_file(code, order.text)?;
        }
        if let Stdin::Bytes(bytes) = order.stdin {
            // A background process may still read the last one.
            let _ = std::fs::remove_file(stdin);
            write_file(stdin, bytes)?;
        }
        let stdin = match order.stdin {
            Stdin::Open | Stdin::Bytes(_) => Some(stdin.as_path()),
            Stdin::Empty => None,
        };
        let terminal = order.terminal.map(|terminal| Path::new(terminal.path));
        let secret = self.secrets.next()?;
        let inline = match &self.secret_place {
            SecretPlace::Pipe(pipe) => {
                write_orders(pipe, secret.as_bytes())?;
                None
            }
            SecretPlace::Driver => Some(&secret),
        };
        self.order(&RunOrder {
            op: "run",
            run: order.run,
            text,
            stdin: terminal.or(stdin),
            stdout: terminal.or(Some(stdout)).filter(|path| path != usual_stdout),
            stderr: terminal.or(Some(stderr)).filter(|path| path != usual_stderr),
            env: Some(order.env).filter(|env| !env.is_empty()),
            secret: inline,
        })?;
        self.current = Some(Current { run: order.run, secret });
        Ok(())
    }

    fn pressing(&mut self, run: RunNo) {
        // Tells Node which run is meant, so that its SIGINT cannot hit the next one.
        let _ = write_file(&self.directory.join("interrupt"), run.to_string().as_bytes());
    }

    fn pressed(&mut self, _: RunNo, _: SignalTarget) -> io::Result<()> {
        Ok(())
    }

    fn capture(&mut self, as_of: RunNo) -> io::Result<()> {
        self.order(&json!({"op": "state"}))?;
        self.capturing.push_back(as_of);
        Ok(())
    }

    fn exit(&mut self, _: LastState) -> io::Result<()> {
        self.order(&json!({"op": "exit"}))
    }

    fn release(&mut self) -> io::Result<Release> {
        self.order(&json!({"op": "release"}))?;
        Ok(Release::Pending)
    }

    fn released(&mut self) -> io::Result<()> {
        self.order(&json!({"op": "released"}))
    }

    fn copy(&mut self, copy: &Copy<'_>) -> io::Result<()> {
        if self.has_event_loop {
            // Node has threads of its own, which a copy would not have.
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (kind, session, cwd, env) = match copy.kind {
            Kind::Image => ("image", None, None, None),
            Kind::Kernel => ("kernel", None, None, None),
            Kind::Fork { session, cwd, env } => ("fork", Some(session), cwd, Some(env)),
        };
        self.order(&json!({
            "op": "fork",
            "directory": copy.directory,
            "kind": kind,
            "session": session,
            "cwd": cwd,
            "env": env,
        }))
    }

    fn parse_reports(&mut self, bytes: &[u8]) -> Vec<Report> {
        let lines = self.lines.push(bytes);
        lines.iter().flat_map(|line| self.understand(line)).collect()
    }

    fn final_state(&mut self) -> Option<SavedKernel> {
        None
    }

    fn is_capturing(&self) -> bool {
        !self.capturing.is_empty()
    }

    fn has_event_loop(&self) -> bool {
        self.has_event_loop
    }

    fn version(&self) -> Option<String> {
        self.version.clone()
    }

    fn dump(&mut self, path: &Path) -> io::Result<()> {
        self.order(&json!({"op": "dump", "path": path}))
    }

    fn load(&mut self, path: &Path, cwd: Option<&Path>) -> io::Result<()> {
        self.order(&json!({"op": "load", "path": path, "cwd": cwd}))
    }

    fn ask(&mut self, run: RunNo, question: Question) -> io::Result<()> {
        self.order(&json!({"op": "input", "run": run, "question": question}))
    }
}

/// Returns the text, if it fits into an order.
fn inline(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= INLINE)?;
    let control = text.bytes().filter(u8::is_ascii_control).count();
    (text.len() + control * (ESCAPED - 1) <= INLINE).then_some(text)
}

/// Keys the variables by name, as in a shell's state.
fn tidy(mut view: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(list)) = view.remove("variables") {
        let named = list.into_iter().filter_map(|variable| {
            let name = variable.get("name")?.as_str()?.to_owned();
            Some((name, variable))
        });
        view.insert("variables".into(), Value::Object(named.collect()));
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_driver_is_embedded() {
        for (folder, files) in [("python", PYTHON), ("node", NODE)] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels").join(folder);
            let is_source = |name: &str| name.ends_with(".py") || name.ends_with(".js");
            let mut there: Vec<String> = std::fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| is_source(name))
                .collect();
            let mut embedded: Vec<String> =
                files.iter().map(|(name, _)| (*name).to_owned()).collect();
            there.sort();
            embedded.sort();
            assert_eq!(there, embedded);
        }
    }
}
