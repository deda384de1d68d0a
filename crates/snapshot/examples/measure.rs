//! What snapshots cost, against a plain walk of the same files in the same run.
//!
//! `cargo run --release -p sessile-snapshot --example measure [DIRECTORY]`:
//! makes 10,000 files of about 2 kB in 200 directories in a temporary
//! directory below DIRECTORY, and removes them.

use sessile_snapshot::bundle::{Limits, Reader, Writer};
use sessile_snapshot::files::{Depot, Rules, copy};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 10_000;

fn timed<T>(label: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{label:<52} {:>9.2} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn run(label: &str, root: &Path, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null());
    let status = timed(label, || command.status());
    assert!(status.is_ok_and(|status| status.success()), "{program}");
}

fn write(root: &Path, n: usize, version: usize) {
    let path = root.join(format!("{}/{}", n % 200, n));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{version} {n} line of text\n").repeat(100)).unwrap();
}

/// One file of 256 MB, and how much memory it takes to handle it.
fn large(directory: &Path) {
    let root = directory.join("large");
    std::fs::create_dir(&root).unwrap();
    let bytes: Vec<u8> =
        (0..1 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut file = std::fs::File::create(root.join("f")).unwrap();
    for n in 0..256_u32 {
        file.write_all(&n.to_le_bytes()).unwrap();
        file.write_all(&bytes[4..]).unwrap();
    }
    drop((file, bytes));
    let depot = Depot::open(&directory.join("depot")).unwrap();
    let taken =
        timed("256 MB in one file: snapshot", || depot.snapshot(&root, &Rules::default()).unwrap());
    println!("    {} of 1 cloned", taken.report.cloned);
    std::fs::remove_file(root.join("f")).unwrap();
    timed("256 MB in one file: restore", || {
        depot.restore(taken.tree, &root, &Rules::default()).unwrap()
    });
    timed("256 MB in one file: copy", || copy(&root, &directory.join("large-copy"), &[]).unwrap());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("    peak memory of all of this: {}", peak.trim_start_matches("VmHWM:").trim());
}

fn main() {
    let below = std::env::args().nth(1).unwrap_or_else(|| "/tmp".into());
    let directory = tempfile::tempdir_in(below).unwrap();
    let root = directory.path().join("work");
    for n in 0..FILES {
        write(&root, n, 0);
    }
    let rules = Rules::default();
    let depot = Depot::open(&directory.path().join("depot")).unwrap();
    // Files that have just been written are read again the next time.
    std::thread::sleep(Duration::from_millis(100));
    let first = timed("snapshot, first", || depot.snapshot(&root, &rules).unwrap());
    println!("    {} blobs, {} listings", first.report.new_blobs, first.report.new_listings);
    for _ in 0..3 {
        timed("snapshot, nothing changed", || depot.snapshot(&root, &rules).unwrap());
        run(
            "    find -size +100M (walks and looks at each)",
            &root,
            "find",
            &[".", "-size", "+100M"],
        );
    }
    for round in 1..=3 {
        for n in 0..5 {
            write(&root, n * 1_999, round);
        }
        let told = timed("snapshot, 5 changed", || depot.snapshot(&root, &rules).unwrap()).report;
        let bytes = told.new_blob_bytes + told.new_listing_bytes;
        println!("    {} blobs, {} listings, {bytes} bytes", told.new_blobs, told.new_listings);
    }
    for _ in 0..3 {
        for n in 0..5 {
            write(&root, n * 1_999, 9);
        }
        timed("restore, 5 changed", || depot.restore(first.tree, &root, &rules).unwrap());
    }
    let other = directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    timed("restore into an empty directory", || depot.restore(first.tree, &other, &rules).unwrap());
    timed("copy", || copy(&root, &directory.path().join("copy"), &[]).unwrap());
    let target = directory.path().join("cp");
    run("    cp -a", &root, "cp", &["-a", ".", target.to_str().unwrap()]);
    let bundle = directory.path().join("bundle");
    timed("export to a bundle", || {
        let mut writer = Writer::create(&bundle).unwrap();
        depot.export(first.tree, &mut writer, "files").unwrap();
        writer.finish().unwrap();
    });
    let import = Depot::open(&directory.path().join("import")).unwrap();
    timed("import from it", || {
        let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
        import.import(&mut reader, "files").unwrap()
    });
    let tree = first.tree;
    drop(first);
    timed("sweep", || depot.sweep().unwrap().keep(&[tree]).unwrap());
    timed("snapshot after a sweep", || depot.snapshot(&root, &rules).unwrap());
    large(directory.path());
    run("    git init", &root, "git", &["init", "-q"]);
    run("    git add", &root, "git", &["add", "."]);
    for _ in 0..3 {
        run("    git status", &root, "git", &["status", "--short"]);
    }
}
