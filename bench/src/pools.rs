//! New sessions from prepared ones: Python with numpy and pandas loaded.

use crate::server::{Http, Serve};
use crate::stats::{Table, print_ratio};
use crate::timed;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PACKAGES: [&str; 2] = ["numpy", "pandas"];

const ROUNDS: usize = 30;

const SETTLING: Duration = Duration::from_millis(50);

/// Number of copies that the server has made before each round.
const READY: usize = 2;

const COPIED: &str = "new session from a prepared one, numpy and pandas loaded";
const GIVEN: &str = "the same, one that was ready";
const FIRST: &str = "its first run, `pass`";
const WARM: &str = "its later runs";

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            println!("  not measured: numpy and pandas cannot be had ({why:#})");
            return Ok(());
        }
    };
    let shell = python.display().to_string();
    let configuration = format!(
        "[[pool]]\nname = \"data\"\nshell = {shell:?}\ncode = \"import numpy, pandas\"\nready = {READY}\n"
    );
    let serve = Serve::with_configuration(sessile, &configuration)?;
    let mut http = serve.connect()?;
    let template = http.start_session(&shell)?;
    exec(&mut http, &template, "import numpy, pandas")?;
    let id = template.rsplit('/').next().context("an id")?;
    let mut table = Table::default();
    for _ in 0..ROUNDS {
        wait_for_copies(&mut http)?;
        for (name, from) in [(COPIED, id), (GIVEN, "data")] {
            let mut made = String::new();
            table.add(name, timed(|| start_from(&mut http, from).map(|path| made = path))?);
            if from == "data" {
                table.add(FIRST, timed(|| exec(&mut http, &made, "pass"))?);
                exec(&mut http, &made, "pandas.DataFrame({'a': numpy.arange(3)}).sum()")?;
                for _ in 0..5 {
                    table.add(WARM, timed(|| exec(&mut http, &made, "pass"))?);
                }
            }
            http.delete(&made)?;
        }
    }
    table.print(&[(FIRST, WARM, None)]);
    for name in [COPIED, GIVEN] {
        let milliseconds = table.median(name).as_secs_f64() * 1000.0;
        print_ratio(&format!("{name}, ms"), milliseconds, Some(10.0));
    }
    Ok(())
}

fn start_from(http: &mut Http, from: &str) -> anyhow::Result<String> {
    let answer = http.post("/v1/sessions", &format!(r#"{{"from":"{from}"}}"#))?;
    let answer: serde_json::Value = serde_json::from_str(&answer)?;
    Ok(format!("/v1/sessions/{}", answer["session_id"].as_str().context("no session")?))
}

fn exec(http: &mut Http, session: &str, command: &str) -> anyhow::Result<()> {
    let body = serde_json::json!({"command": command}).to_string();
    let answer = http.post(&format!("{session}/exec"), &body)?;
    let answer: serde_json::Value = serde_json::from_str(&answer)?;
    ensure!(answer["exit_code"] == 0, "{answer}");
    Ok(())
}

/// Waits for the copies: they are made in the background, which would be measured otherwise.
fn wait_for_copies(http: &mut Http) -> anyhow::Result<()> {
    loop {
        let list: serde_json::Value =
            serde_json::from_str(&http.get("/v1/sessions?status=active")?)?;
        let rows = list["sessions"].as_array().context("a list")?;
        let is_copy = |row: &&serde_json::Value| {
            row["owner"].as_str().is_some_and(|owner| owner.ends_with(":ready"))
        };
        if rows.iter().filter(is_copy).count() == READY {
            // What was needed to make the last one is still being given back.
            std::thread::sleep(SETTLING);
            return Ok(());
        }
    }
}

/// Returns a Python that has the packages, beside this program; installs them if needed.
fn python() -> anyhow::Result<PathBuf> {
    let place = std::env::current_exe()?.with_file_name("bench-python");
    let python = place.join("bin/python3");
    let imports = format!("import {}", PACKAGES.join(", "));
    let works = |python: &Path| quiet(Command::new(python).args(["-c", &imports])).is_ok();
    if !works(&python) {
        println!("  installing {} into {}", PACKAGES.join(" and "), place.display());
        quiet(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        let options = ["install", "--quiet", "--disable-pip-version-check"];
        quiet(Command::new(place.join("bin/pip")).args(options).args(PACKAGES))?;
    }
    ensure!(works(&python), "they are installed, and cannot be imported");
    Ok(python)
}

fn quiet(command: &mut Command) -> anyhow::Result<()> {
    let status =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{:?} has failed", command.get_program());
    Ok(())
}
