//! Runs programs in the project's root.

use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Returns cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

pub(crate) fn cargo(args: &[&str]) -> anyhow::Result<()> {
    cargo_with_env(args, &[])
}

pub(crate) fn cargo_with_env(args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    with_env(&cargo_program(), args, env)
}

pub(crate) fn program(name: &str, args: &[&str]) -> anyhow::Result<()> {
    with_env(name, args, &[])
}

pub(crate) fn with_env(name: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    eprintln!("+ {name} {}", args.join(" "));
    let status = Command::new(name)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name} {} failed ({status})", args.join(" "));
    Ok(())
}

/// Runs a program concurrently with others: its output is shown when it has ended. A
/// failure is an [`Unsuccessful`].
pub(crate) fn at_once(name: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let owned = |text: &&str| (*text).to_owned();
    let env = env.iter().map(|(name, value)| (owned(name), owned(value))).collect();
    Call { name: owned(&name), args: args.iter().map(owned).collect(), env }.make()
}

/// A program with its arguments and variables.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    name: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Call {
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        let output = Command::new(&self.name)
            .args(&self.args)
            .envs(self.env.iter().cloned())
            .current_dir(root())
            .output()
            .with_context(|| format!("cannot run {}", self.name))?;
        let (out, err) = (&output.stdout, &output.stderr);
        eprint!("+ {self}\n{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
        if output.status.success() {
            return Ok(());
        }
        Err(Unsuccessful { call: self.clone(), status: output.status }.into())
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.args.join(" "))
    }
}

/// A program that has run and failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed ({status})")]
pub(crate) struct Unsuccessful {
    pub(crate) call: Call,
    status: ExitStatus,
}

/// Runs these tests by name with `cargo test`, one by one.
pub(crate) fn cargo_tests(
    names: &[String],
    env: &[(&str, &str)],
) -> anyhow::Result<(ExitStatus, Vec<String>)> {
    let mut args = vec!["test", "--workspace", "--all-targets", "--no-fail-fast", "--", "--exact"];
    args.extend(names.iter().map(String::as_str));
    eprintln!("+ cargo {}", args.join(" "));
    let mut command = Command::new(cargo_program());
    command.args(args).envs(env.iter().copied()).env("RUST_TEST_THREADS", "1").current_dir(root());
    tests(command, Output::Live)
}

fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Builds an example with the features of the whole workspace, which the tests are built
/// with: nothing else is compiled again. Returns its path.
pub(crate) fn example(name: &str) -> anyhow::Result<String> {
    let build = ["build", "--workspace", "--example", name, "--message-format=json"];
    let built = output(&cargo_program(), &build)?;
    let path = built.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_wanted = message["target"]["name"] == name;
        message["executable"].as_str().filter(|_| is_wanted).map(str::to_owned)
    });
    path.with_context(|| format!("cargo has not built the example {name}"))
}

/// An executable with tests.
#[derive(Debug)]
pub(crate) struct TestExecutable {
    path: PathBuf,
    /// The directory of its package.
    package: PathBuf,
}

impl TestExecutable {
    /// Builds all tests, and returns their executables.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let build = ["test", "--workspace", "--all-targets", "--no-run"];
        cargo(&build)?;
        let built = output(&cargo_program(), &[&build[..], &["--message-format=json"]].concat())?;
        let found = built.lines().filter_map(Self::of_message).collect();
        Ok(found)
    }

    /// Returns the executable in one of cargo's messages, if there is one.
    fn of_message(line: &str) -> Option<Self> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == true;
        let path = message["executable"].as_str().filter(|_| is_test)?;
        let package = PathBuf::from(message["manifest_path"].as_str()?);
        Some(Self { path: path.into(), package: package.parent()?.to_owned() })
    }

    /// Whether it has the tests on real processes, which take the longest.
    pub(crate) fn is_of_real_processes(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.package == root().join("crates/cli") && name.starts_with("all-")
    }

    /// Runs it as `cargo test` does with these arguments, and returns the names of the tests
    /// that failed.
    pub(crate) fn run(
        &self,
        args: &[&str],
        env: &[(&str, &str)],
        output: Output,
    ) -> anyhow::Result<(ExitStatus, Vec<String>)> {
        let mut command = Command::new(&self.path);
        command.args(args).envs(env.iter().copied()).env("CARGO_MANIFEST_DIR", &self.package);
        command.current_dir(&self.package);
        eprintln!("+ {}", self.path.display());
        let (status, failed) = tests(command, output)
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        let is_told = status.success() || !failed.is_empty();
        ensure!(is_told, "{} failed ({status})", self.path.display());
        Ok((status, failed))
    }
}

/// When the output of tests is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Line by line.
    Live,
    /// When they are over, because others run at the same time.
    AtEnd,
}

fn tests(mut command: Command, output: Output) -> anyhow::Result<(ExitStatus, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (mut failed, mut held) = (Vec::new(), String::new());
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let name = line.strip_prefix("test ").and_then(|it| it.strip_suffix(" ... FAILED"));
            failed.extend(name.map(str::to_owned));
            match output {
                Output::Live => println!("{line}"),
                Output::AtEnd => {
                    held.push_str(&line);
                    held.push('\n');
                }
            }
        }
    }
    print!("{held}");
    Ok((child.wait()?, failed))
}

pub(crate) fn output(name: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(name).args(args).current_dir(root()).output()?;
    ensure!(output.status.success(), "{name} {} failed", args.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the files of a folder with this ending, sorted.
pub(crate) fn files(folder: &str, ending: &str) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(ending) {
            found.push(format!("{folder}/{name}"));
        }
    }
    found.sort();
    Ok(found)
}
