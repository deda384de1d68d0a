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
    with_env(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), args, env)
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

/// Runs `cargo test`, and returns the names of the tests that failed.
pub(crate) fn cargo_tests(
    args: &[&str],
    env: &[(&str, &str)],
) -> anyhow::Result<(ExitStatus, Vec<String>)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    eprintln!("+ cargo {}", args.join(" "));
    let mut child = Command::new(cargo)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut failed = Vec::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            let name = line.strip_prefix("test ").and_then(|it| it.strip_suffix(" ... FAILED"));
            failed.extend(name.map(str::to_owned));
        }
    }
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
