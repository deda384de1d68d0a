//! Running programs, from the project's root.

use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Where cargo puts what it makes.
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

/// Runs a program beside others: what it prints is shown when it is over.
pub(crate) fn at_once(name: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let output = Command::new(name)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let line = format!("{name} {}", args.join(" "));
    let (out, err) = (&output.stdout, &output.stderr);
    eprint!("+ {line}\n{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    ensure!(output.status.success(), "{line} failed ({})", output.status);
    Ok(())
}

pub(crate) fn output(name: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(name).args(args).current_dir(root()).output()?;
    ensure!(output.status.success(), "{name} {} failed", args.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// Files of a folder whose names end in a certain way, sorted.
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
