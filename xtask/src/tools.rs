//! Programs that the tests and checks need besides Rust.

use crate::run;
use anyhow::bail;
use std::path::{Path, PathBuf};
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
    // For the tests of sandboxes.
    ("patch", "patch"),
    ("prlimit", "util-linux"),
    ("su", "util-linux"),
    ("useradd", "passwd"),
];

/// Trusted certificates, where Debian has them.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

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
    if has("apt-get") && !Path::new(CERTIFICATES).exists() {
        missing.push("ca-certificates");
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

/// The oldest and the newest Python that the driver is tested with, besides the one in PATH.
pub(crate) const OTHER_PYTHONS: [&str; 2] = ["python3.8", "python3.13"];

/// Returns a working interpreter of this name: in PATH, or among pyenv's versions. pyenv
/// puts a script into PATH, which fails for versions that are not selected.
pub(crate) fn python(name: &str) -> Option<String> {
    let in_path = std::iter::once(name.to_owned());
    let installed = pyenv_versions().into_iter().map(|version| {
        let program = version.join("bin").join(name);
        program.display().to_string()
    });
    in_path.chain(installed).find_map(|candidate| executable_of(&candidate))
}

/// Returns the real program behind a name in PATH. pyenv's scripts look it up at each
/// start, which takes longer than the start itself.
fn executable_of(python: &str) -> Option<String> {
    let program = run::output(python, &["-c", "import sys; print(sys.executable)"]).ok()?;
    Some(program.trim().to_owned()).filter(|program| !program.is_empty())
}

fn pyenv_versions() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let Some(root) = root.or_else(|| Some(std::env::home_dir()?.join(".pyenv"))) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    versions.sort();
    versions
}

/// Returns PATH with the directory of the real `python3` in front. It avoids pyenv's lookup
/// at each start, of which there are hundreds in the tests.
pub(crate) fn path_to_python() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let program = PathBuf::from(python("python3")?);
    let first = program.parent()?.to_owned();
    let joined = std::env::join_paths([first].into_iter().chain(std::env::split_paths(&path)));
    joined.ok()?.into_string().ok()
}

/// Checks licences, sources and duplicates of dependencies. (Advisories need a database
/// from the network, and are not checked here.)
pub(crate) fn deny() -> anyhow::Result<()> {
    if !has("cargo-deny") {
        run::cargo(&["install", "cargo-deny", "--locked", "--version", DENY_VERSION])?;
    }
    run::cargo(&["deny", "--all-features", "check", "bans", "licenses", "sources"])
}
