//! Running programs, from the project's root.

use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
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
