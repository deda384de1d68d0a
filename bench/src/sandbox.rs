//! Sessions with and without a sandbox: each row is the same work in a session without a
//! sandbox, in one with mounts only (`full-access`) and in one with rules for single paths
//! (`development`), in turns.

use crate::memory;
use crate::session::Session;
use crate::stats::{Limit, Table, print_held};
use crate::timed;
use crate::turn::Turn;
use anyhow::{Context, ensure};
use sessile_sandbox::Draft;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILES: usize = 20_000;
const UNPACKED: usize = 10_000;
/// Files per directory.
const EACH: usize = 100;
const GIGABYTE: u64 = 1 << 30;

const STARTS: usize = 20;
const RUNS: usize = 300;
const ROUNDS: usize = 5;
/// Rounds of work that takes seconds.
const FEW: usize = 3;
const IDLE: usize = 20;

/// The confinement of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wall {
    None,
    Uniform,
    Rules,
}

impl Wall {
    fn name(self) -> &'static str {
        match self {
            Self::None => "without",
            Self::Uniform => "uniform",
            Self::Rules => "per-path rules",
        }
    }

    fn start(self, sessile: &Path, directory: &Path) -> anyhow::Result<Session> {
        match self {
            Self::None => Session::start_in(sessile, directory, None),
            Self::Uniform => start(sessile, directory, "full-access"),
            Self::Rules => start(sessile, directory, "development"),
        }
    }
}

/// Starts a shell with a preset.
pub(crate) fn start(sessile: &Path, directory: &Path, preset: &str) -> anyhow::Result<Session> {
    let policy = serde_json::to_value(Draft::of_preset(preset).resolve()?)?;
    Session::start_in(sessile, directory, Some(policy))
}

/// A measured command, and the limits of its ratios.
struct Work<'a> {
    name: &'a str,
    command: &'a str,
    /// Restores the initial state, unmeasured.
    after: &'a str,
    rounds: usize,
    limits: [f64; 2],
}

/// The parts that can be measured by themselves.
const PARTS: &[&str] = &["start", "warm", "memory", "git", "small", "large", "unpacking", "venv"];

/// Measures these parts, or all.
pub(crate) fn measure(sessile: &Path, parts: &[String]) -> anyhow::Result<()> {
    for part in parts {
        ensure!(PARTS.contains(&part.as_str()), "{part:?} is none of the parts: {PARTS:?}");
    }
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let place = tempfile::tempdir()?;
    let walls = walls(sessile, place.path());
    if wants("start") {
        starts(sessile, place.path(), &walls)?;
        bubblewrap()?;
    }
    if wants("warm") {
        warm(sessile, place.path(), &walls)?;
    }
    if wants("memory") {
        memory_of_each(sessile, place.path(), &walls)?;
    }
    if wants("git") || wants("small") {
        let tree = make_repository(place.path())?;
        if wants("git") {
            git_status(sessile, &tree, &walls)?;
        }
        if wants("small") {
            compare(sessile, &tree, &walls, &SMALL)?;
        }
    }
    if wants("large") {
        let large = make_large(place.path())?;
        compare(sessile, &large, &walls, &LARGE)?;
        fs::remove_file(large.join("large"))?;
    }
    if wants("unpacking") || wants("venv") {
        let archive = make_archive(place.path())?;
        for (part, work) in [("unpacking", &UNPACKING), ("venv", &VENV)] {
            if wants(part) {
                compare(sessile, &archive, &walls, work)?;
            }
        }
    }
    Ok(())
}

const SMALL: Work<'_> = Work {
    name: "reading 20,000 small files",
    command: "find . -name 'f*' -type f -print0 | xargs -0 cat >/dev/null",
    after: ":",
    rounds: ROUNDS,
    limits: [1.2, 4.0],
};

const LARGE: Work<'_> = Work {
    name: "reading 1 GB",
    command: "cat large >/dev/null",
    after: ":",
    rounds: ROUNDS,
    limits: [1.2, 1.3],
};

const UNPACKING: Work<'_> = Work {
    name: "unpacking 10,000 files",
    command: "tar xf ten.tar",
    after: "rm -r ten",
    rounds: FEW,
    limits: [1.2, f64::INFINITY],
};

const VENV: Work<'_> = Work {
    name: "python -m venv",
    command: "python3 -m venv env",
    after: "rm -r env",
    rounds: FEW,
    limits: [1.2, 2.5],
};

/// Returns those that this machine can enforce, and prints the others.
fn walls(sessile: &Path, directory: &Path) -> Vec<Wall> {
    let mut walls = vec![Wall::None];
    for wall in [Wall::Uniform, Wall::Rules] {
        match wall.start(sessile, directory) {
            Ok(_) => walls.push(wall),
            Err(error) => println!("  skipped: {}: {error}", wall.name()),
        }
    }
    walls
}

fn starts(sessile: &Path, directory: &Path, walls: &[Wall]) -> anyhow::Result<()> {
    let mut table = Table::default();
    let name = |wall: Wall| format!("start to the first answer, {}", wall.name());
    for _ in 0..STARTS {
        for wall in walls {
            let mut session = None;
            let took = timed(|| {
                let mut started = wall.start(sessile, directory)?;
                started.run(":")?;
                session = Some(started);
                Ok(())
            })?;
            table.add(&name(*wall), took);
        }
    }
    table.print(&[]);
    let base = table.median(&name(Wall::None));
    for (wall, limit) in [(Wall::Uniform, 15.0), (Wall::Rules, 25.0)] {
        if walls.contains(&wall) {
            let more = table.median(&name(wall)).saturating_sub(base).as_secs_f64() * 1000.0;
            let what = format!("{}: ms more to the first answer", wall.name());
            print_held(&what, more, Limit::AtMost(limit));
        }
    }
    Ok(())
}

/// Measures a command in another sandbox, and a shell without any.
fn bubblewrap() -> anyhow::Result<()> {
    let is_there = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        println!("  skipped: bubblewrap is not installed");
        return Ok(());
    }
    let mut table = Table::default();
    let run = |program: &str, args: &[&str]| -> anyhow::Result<()> {
        let status = Command::new(program).args(args).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{program} {args:?} gave {status}");
        Ok(())
    };
    let wrapped = [
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "bash",
        "-c",
        ":",
    ];
    for _ in 0..STARTS {
        table.add("bash -c :", timed(|| run("bash", &["-c", ":"]))?);
        table.add("the same in bubblewrap", timed(|| run("bwrap", &wrapped))?);
    }
    table.print(&[]);
    let more = table.median("the same in bubblewrap").saturating_sub(table.median("bash -c :"));
    print_held("bubblewrap: ms more", more.as_secs_f64() * 1000.0, Limit::None);
    Ok(())
}

fn warm(sessile: &Path, directory: &Path, walls: &[Wall]) -> anyhow::Result<()> {
    let name = |wall: Wall| format!("warm run, {}", wall.name());
    let mut sessions = Vec::new();
    for wall in walls {
        sessions.push((*wall, wall.start(sessile, directory)?));
    }
    for (title, rounds, turn, limit) in [
        ("in a steady loop", 5, Turn::Steady, 1.1),
        ("a few calls after a pause", 60, Turn::Burst, f64::INFINITY),
    ] {
        println!("  {title}:");
        let mut table = Table::default();
        for _ in 0..rounds {
            for (wall, session) in &mut sessions {
                turn.take(&mut table, &name(*wall), || session.run(":"))?;
                // The session's work in idle time would be measured with the next row.
                session.settle()?;
            }
        }
        print_ratios(&table, walls, name, [limit, limit]);
    }
    println!("  one call each, in turns:");
    let mut table = Table::default();
    for _ in 0..RUNS {
        for (wall, session) in &mut sessions {
            table.add(&name(*wall), timed(|| session.run(":"))?);
        }
    }
    print_ratios(&table, walls, name, [f64::INFINITY, f64::INFINITY]);
    Ok(())
}

fn memory_of_each(sessile: &Path, directory: &Path, walls: &[Wall]) -> anyhow::Result<()> {
    let mut base = None;
    for wall in walls {
        let mut sessions = Vec::new();
        for _ in 0..IDLE {
            let mut session = wall.start(sessile, directory)?;
            session.run("x=1")?;
            sessions.push(session);
        }
        let mut kilobytes = 0;
        for session in &mut sessions {
            session.settle()?;
            kilobytes += memory::of(memory::parent(session.keeper)?)?.1;
            kilobytes += below(session.keeper);
        }
        let each = kilobytes as f64 / IDLE as f64 / 1024.0;
        println!("  {:40} {each:>10.2} MiB PSS a session at {IDLE}", wall.name());
        match base {
            None => base = Some(each),
            Some(base) => {
                let what = format!("{}: MiB more a session", wall.name());
                print_held(&what, each - base, Limit::AtMost(2.0));
            }
        }
    }
    Ok(())
}

/// Returns the memory of a process with all its descendants.
fn below(pid: u32) -> u64 {
    // A fork for a capture may be gone by now.
    let own = memory::of(pid).map_or(0, |(_, pss)| pss);
    own + memory::children(pid).into_iter().map(below).sum::<u64>()
}

/// Measures git with the setting of a sandbox, whose /etc/gitconfig has
/// `core.checkStat = minimal`, and with git's default. With the default, git reads all
/// files once, because the user has another id inside than in an index that was written
/// outside.
fn git_status(sessile: &Path, tree: &Path, walls: &[Wall]) -> anyhow::Result<()> {
    let limits = [[1.2, 6.0], [1.2, 2.5]];
    git_status_by(sessile, tree, walls, ("git status", "git status --porcelain"), limits)?;
    let by_default = "git -c core.checkStat=default status --porcelain";
    let no_limits = [[f64::INFINITY; 2]; 2];
    git_status_by(sessile, tree, walls, ("git status, checkStat=default", by_default), no_limits)
}

/// Runs it twice in one session: first with empty caches, then again.
fn git_status_by(
    sessile: &Path,
    tree: &Path,
    walls: &[Wall],
    (what, command): (&str, &str),
    limits: [[f64; 2]; 2],
) -> anyhow::Result<()> {
    let mut table = Table::default();
    let first = |wall: Wall| format!("{what}, first, {}", wall.name());
    let after = |wall: Wall| format!("{what}, after, {}", wall.name());
    for _ in 0..ROUNDS {
        for wall in walls {
            let mut session = wall.start(sessile, tree)?;
            session.run("git --version")?;
            table.add(&first(*wall), timed(|| session.run(command))?);
            table.add(&after(*wall), timed(|| session.run(command))?);
        }
    }
    print_ratios(&table, walls, first, limits[0]);
    print_ratios(&table, walls, after, limits[1]);
    Ok(())
}

/// Measures the work in a new session each time.
fn compare(sessile: &Path, at: &Path, walls: &[Wall], work: &Work<'_>) -> anyhow::Result<()> {
    let mut table = Table::default();
    let name = |wall: Wall| format!("{}, {}", work.name, wall.name());
    for _ in 0..work.rounds {
        for wall in walls {
            let mut session = wall.start(sessile, at)?;
            session.run(":")?;
            table.add(&name(*wall), timed(|| session.run(work.command))?);
            session.run(work.after)?;
        }
    }
    print_ratios(&table, walls, name, work.limits);
    Ok(())
}

fn print_ratios(table: &Table, walls: &[Wall], name: impl Fn(Wall) -> String, limits: [f64; 2]) {
    for wall in walls {
        table.print_row(&name(*wall));
    }
    for (wall, limit) in [Wall::Uniform, Wall::Rules].into_iter().zip(limits) {
        if walls.contains(&wall) {
            let ratio = table.ratio(&name(wall), &name(Wall::None), 0.5);
            let limit = if limit.is_finite() { Limit::AtMost(limit) } else { Limit::None };
            print_held(&format!("{} / without", name(wall)), ratio, limit);
        }
    }
}

/// Makes small files in directories of a hundred.
fn make_files(at: &Path, count: usize) -> anyhow::Result<()> {
    for n in 0..count {
        let directory = at.join(format!("d{}", n / EACH));
        if n % EACH == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{n}")), format!("file {n}\n").repeat(20))?;
    }
    Ok(())
}

fn command(at: &Path, program: &str, args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(args).current_dir(at).output();
    let output = output.with_context(|| format!("{program} is needed"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{program} {args:?}: {said}");
    Ok(())
}

fn make_repository(place: &Path) -> anyhow::Result<PathBuf> {
    let tree = place.join("repository");
    make_files(&tree, FILES)?;
    command(&tree, "git", &["init", "-q"])?;
    command(&tree, "git", &["add", "."])?;
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
    command(&tree, "git", &[&who[..], &["commit", "-q", "-m", "all"]].concat())?;
    command(&tree, "git", &["status"])?;
    Ok(tree)
}

fn make_large(place: &Path) -> anyhow::Result<PathBuf> {
    let at = place.join("one");
    fs::create_dir(&at)?;
    let piece = vec![b'x'; 1 << 20];
    let mut file = fs::File::create(at.join("large"))?;
    for _ in 0..GIGABYTE >> 20 {
        std::io::Write::write_all(&mut file, &piece)?;
    }
    Ok(at)
}

fn make_archive(place: &Path) -> anyhow::Result<PathBuf> {
    let at = place.join("archive");
    make_files(&at.join("ten"), UNPACKED)?;
    command(&at, "tar", &["cf", "ten.tar", "ten"])?;
    fs::remove_dir_all(at.join("ten"))?;
    Ok(at)
}
