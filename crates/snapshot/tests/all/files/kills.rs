//! Killed at any moment, files are old or new, never half.

use super::workspace::{Place, Seen, assert_equal, copy, look, write};
use sessile_snapshot::files::{Depot, Rules, TreeId};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 40;

/// This very program, doing what `job` says and nothing else.
pub(crate) fn child(job: &str, test: &str, paths: &[&Path]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("SNAPSHOT_JOB", job);
    for (number, path) in paths.iter().enumerate() {
        command.env(format!("SNAPSHOT_PATH_{number}"), path);
    }
    command
}

/// What this process was started for, if it is a child of a test.
pub(crate) fn job() -> Option<String> {
    std::env::var("SNAPSHOT_JOB").ok()
}

pub(crate) fn path(number: u32) -> PathBuf {
    std::env::var_os(format!("SNAPSHOT_PATH_{number}")).unwrap().into()
}

#[test]
fn the_child() {
    let Some(job) = job() else { return };
    let depot = Depot::open(&path(0)).unwrap();
    println!("ready");
    match job.split_once(' ') {
        Some(("restore", tree)) => {
            depot.restore(tree.parse().unwrap(), &path(1), &Rules::default()).unwrap();
        }
        _ => drop(depot.snapshot(&path(1), &Rules::default()).unwrap()),
    }
    println!("done");
}

fn start(job: &str, place: &Place) -> Child {
    let mut command = child(job, "files::kills::the_child", &[place.depot.path(), &place.root]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !seen.contains("ready") {
        let mut bytes = [0; 64];
        let read = stdout.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    child
}

/// Kills a child a while after it has begun, and says whether it was done.
fn kill(mut child: Child, after: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < after {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    let mut rest = String::new();
    child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    rest.contains("done")
}

/// How long a job takes when nobody kills it.
fn duration(job: &str, place: &Place) -> Duration {
    let mut child = start(job, place);
    let start = Instant::now();
    let mut rest = String::new();
    child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    start.elapsed()
}

/// The same files in two versions, some in one of them only.
fn version(root: &Path, version: u32) {
    for n in 0..200 {
        let path = root.join(format!("{}/{n}", n % 9));
        if n % 5 == version {
            let _ = std::fs::remove_file(path);
        } else {
            let size = if n % 50 == 7 { 400_000 } else { 100 };
            write(&path, format!("{version}").repeat(size));
        }
    }
}

#[test]
fn a_killed_restore_leaves_each_file_old_or_new_and_can_be_done_again() {
    let place = Place::in_memory();
    let mut states: Vec<(TreeId, PathBuf, BTreeMap<PathBuf, Seen>)> = Vec::new();
    for number in 0..2 {
        version(&place.root, number);
        let original = place.directory.path().join(format!("original{number}"));
        copy(&place.root, &original);
        let seen = look(&original);
        states.push((place.take(), original, seen));
    }
    let whole = duration(&format!("restore {}", states[0].0), &place);
    let (mut early, mut late) = (0, 0);
    for round in 0..ROUNDS {
        // From state 0 or 1 towards the other.
        let (tree, original, new) = &states[1 - (round as usize % 2)];
        let old = &states[round as usize % 2].2;
        let child = start(&format!("restore {tree}"), &place);
        match kill(child, whole * round / ROUNDS) {
            true => late += 1,
            false => early += 1,
        }
        for (path, seen) in look(&place.root) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let known = [old.get(&path), new.get(&path)].into_iter().flatten();
            let whole = known.clone().any(|known| known.content == seen.content);
            let ours = name.starts_with(".sessile-restoring-");
            assert!(whole || ours, "{path:?} is neither old nor new");
        }
        place.restore(*tree);
        assert_equal(&place.root, original);
    }
    assert!(early > 0, "{late} were done before they were killed");
}

#[test]
fn a_killed_snapshot_leaves_a_depot_that_works() {
    let place = Place::in_memory();
    version(&place.root, 0);
    let whole = duration("snapshot", &place);
    let other = place.directory.path().join("other");
    for round in 0..ROUNDS {
        place.depot.sweep().unwrap().keep(&[]).unwrap();
        for n in 0..200 {
            let size = if n % 50 == 7 { 400_000 } else { 10 };
            write(&place.root.join(format!("{}/{n}", n % 9)), format!("{round} {n}").repeat(size));
        }
        kill(start("snapshot", &place), whole * round / ROUNDS);
        for shelf in ["blobs", "trees"] {
            for (path, seen) in look(&place.depot.path().join(shelf)) {
                let name = path.to_string_lossy().replace('/', "");
                let is_file = seen.mode & 0o170_000 == 0o100_000;
                assert!(!is_file || blake3::hash(&seen.content).to_string() == name);
            }
        }
        let tree = place.take();
        let _ = std::fs::remove_dir_all(&other);
        std::fs::create_dir(&other).unwrap();
        place.depot.restore(tree, &other, &Rules::default()).unwrap();
        assert_equal(&place.root, &other);
    }
}
