//! Programs that the tests and checks need besides Rust.

use crate::run;
use anyhow::bail;
use std::process::{Command, Stdio};

/// Programs that the tests use, and their system packages.
const WANTED: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("dash", "dash"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("git", "git"),
    ("curl", "curl"),
    ("jq", "jq"),
    ("openssl", "openssl"),
    // For the tests of completions.
    ("fish", "fish"),
    // For the tests of terminals.
    ("vim", "vim"),
    ("less", "less"),
    ("top", "procps"),
    ("htop", "htop"),
    ("whiptail", "whiptail"),
    ("sqlite3", "sqlite3"),
    // Maps the user ids of ordinary users who have a range.
    ("newuidmap", "uidmap"),
];

const DENY_VERSION: &str = "0.20.2";

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Installs missing programs, and returns what could not be installed.
pub(crate) fn prepare() -> Vec<String> {
    let mut missing: Vec<&str> =
        WANTED.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    // Debian has this part of Python in a separate package.
    if has("apt-get") && !makes_environments() {
        missing.push("python3-venv");
    }
    if missing.is_empty() {
        return Vec::new();
    }
    eprintln!("installing {}", missing.join(", "));
    if let Err(error) = install(&missing) {
        eprintln!("could not install them: {error:#}");
    }
    let is_missing = |(program, _): &&(&str, &str)| !has(program);
    let shown = |(program, package): &(&str, &str)| format!("{program} (package {package})");
    WANTED.iter().filter(is_missing).map(shown).collect()
}

/// Installs bubblewrap, for the comparison with a sandbox. Without it, that row is skipped
/// by name.
pub(crate) fn prepare_bench() {
    if has("bwrap") {
        return;
    }
    eprintln!("installing bubblewrap");
    if let Err(error) = install(&["bubblewrap"]) {
        eprintln!("could not install it: {error:#}");
    }
}

/// Returns whether `python3 -m venv` works.
fn makes_environments() -> bool {
    let mut call = Command::new("python3");
    call.args(["-c", "import ensurepip, venv"]).stderr(Stdio::null());
    call.status().is_ok_and(|status| status.success())
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    let sudo: &[&str] = if is_root()? { &[] } else { &["sudo", "--non-interactive"] };
    let call = |args: &[&str]| {
        let mut words = sudo.to_vec();
        words.extend(args);
        run::with_env(words[0], &words[1..], &[("DEBIAN_FRONTEND", "noninteractive")])
    };
    if has("apt-get") {
        call(&["apt-get", "update"])?;
        call(&[&["apt-get", "install", "--yes"], packages].concat())
    } else if has("dnf") {
        call(&[&["dnf", "install", "--assumeyes"], packages].concat())
    } else {
        bail!("no apt-get or dnf here; install them by hand")
    }
}

fn is_root() -> anyhow::Result<bool> {
    Ok(run::output("id", &["-u"])?.trim() == "0")
}

/// Returns the Python interpreters to test with: the one in PATH, and the oldest and newest
/// that is installed under a versioned name.
pub(crate) fn pythons() -> Vec<String> {
    let mut found = vec!["python3".to_owned()];
    for name in ["python3.8", "python3.13"] {
        // A version manager's stub may be in PATH, and fail when called.
        let call = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if call.is_ok_and(|status| status.success()) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Checks licences, sources and duplicates of dependencies. (Advisories need a database
/// from the network, and are not checked here.)
pub(crate) fn deny() -> anyhow::Result<()> {
    if !has("cargo-deny") {
        run::cargo(&["install", "cargo-deny", "--locked", "--version", DENY_VERSION])?;
    }
    run::cargo(&["deny", "--all-features", "check", "bans", "licenses", "sources"])
}
