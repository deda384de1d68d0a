//! Plays the keeper for a real Node with our driver: two FIFOs in a private
//! directory, a JSON object a line. What is waited for is what the driver says.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::TempDir;

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/node");
/// Far beyond what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the keeper presses, at most.
const PRESS: Duration = Duration::from_millis(50);

pub(crate) struct Kernel {
    child: Child,
    orders: File,
    reports: Receiver<Value>,
    runs: u64,
    home: TempDir,
    work: TempDir,
}

impl Kernel {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(env: &[(&str, &str)]) -> Self {
        let home = TempDir::new().unwrap();
        let work = TempDir::new().unwrap();
        for entry in std::fs::read_dir(DRIVER).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), home.path().join(entry.file_name())).unwrap();
        }
        let fifo = |name: &str| {
            let path = home.path().join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        };
        let (orders, reports) = (fifo("ctl"), fifo("rep"));
        let child = Command::new("node")
            .arg("--no-force-async-hooks-checks")
            .arg(home.path().join("driver.js"))
            .arg(home.path())
            .current_dir(work.path())
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is in PATH");
        let kernel = Self { child, orders, reports: listen(reports), runs: 0, home, work };
        kernel.hear("ready");
        kernel
    }

    pub(crate) fn work(&self) -> &Path {
        self.work.path()
    }

    /// A file in the kernel's private directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn tell(&mut self, order: &Value) {
        self.orders.write_all(format!("{order}\n").as_bytes()).unwrap();
    }

    /// The next report, which has to be such a one.
    pub(crate) fn hear(&self, op: &str) -> Value {
        let report = self.reports.recv_timeout(PATIENCE).expect("the driver says something");
        assert_eq!(report["op"], op, "{report}");
        report
    }

    pub(crate) fn press(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Sends SIGINT until the driver says something, as the keeper does.
    pub(crate) fn press_until(&self, op: &str) -> Value {
        for _ in 0..PATIENCE.as_millis() / PRESS.as_millis() {
            self.press();
            match self.reports.recv_timeout(PRESS) {
                Ok(report) => {
                    assert_eq!(report["op"], op, "{report}");
                    return report;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        panic!("no {op}, however often it was pressed");
    }

    pub(crate) fn begin(&mut self, text: &str) {
        self.runs += 1;
        let nowhere = "/dev/null";
        self.tell(&json!({
            "op": "run",
            "run": self.runs,
            "text": text,
            "stdin": nowhere,
            "stdout": nowhere,
            "stderr": nowhere,
        }));
    }

    /// The value of a text that must succeed.
    #[track_caller]
    pub(crate) fn run(&mut self, text: &str) -> String {
        self.begin(text);
        let done = self.hear("done");
        assert_eq!(done["error"], Value::Null, "{text}");
        done["result"]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// The name of the error that a text throws.
    pub(crate) fn fails(&mut self, text: &str) -> String {
        self.begin(text);
        self.hear("done")["error"]["type"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn dump(&mut self, path: &Path) -> Carried {
        self.tell(&json!({"op": "dump", "path": path}));
        Carried(self.hear("dumped"))
    }

    pub(crate) fn load(&mut self, path: &Path) -> Carried {
        self.tell(&json!({"op": "load", "path": path}));
        Carried(self.hear("loaded"))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a dump or a load says.
#[derive(Debug)]
pub(crate) struct Carried(pub(crate) Value);

impl Carried {
    pub(crate) fn count(&self) -> u64 {
        self.0["carried"].as_u64().unwrap()
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.0["error"].as_str()
    }

    pub(crate) fn left(&self) -> Vec<(&str, &str)> {
        let list = self.0["left"].as_array().unwrap();
        list.iter()
            .map(|left| (left["name"].as_str().unwrap(), left["reason"].as_str().unwrap()))
            .collect()
    }

    /// Why a name was left.
    #[track_caller]
    pub(crate) fn reason(&self, name: &str) -> &str {
        let found = self.left().into_iter().find(|(left, _)| *left == name);
        found.unwrap_or_else(|| panic!("{name} was carried: {}", self.0)).1
    }

    /// Everything was carried.
    #[track_caller]
    pub(crate) fn whole(self) -> Self {
        assert_eq!((self.error(), self.left()), (None, Vec::new()));
        self
    }
}

fn listen(reports: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    // Ends with the test's process: the FIFO never closes, being open both ways.
    std::thread::spawn(move || {
        for line in BufReader::new(reports).lines() {
            let Ok(line) = line else { return };
            if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}
