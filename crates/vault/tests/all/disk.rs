//! Saves on a disk, and URLs of all kinds.

use sessile_protocol::{RunNo, SessionId};
use sessile_vault::{Holder, NewSave, Variables, Vault, VaultError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

struct Disk {
    root: tempfile::TempDir,
    vault: Vault,
}

impl Disk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let url = format!("file://{}/kept", root.path().display());
        Self { root, vault: Vault::open(&url, &Variables::new()).unwrap() }
    }

    fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.root.path().join("file");
        std::fs::write(&path, content).unwrap();
        path
    }

    fn put(&self, run: u64, content: &[u8]) -> Result<(), VaultError> {
        self.vault.put(&session(1), &new_save(run, &self.file(content))).map(|_| ())
    }

    fn get(&self) -> Result<Vec<u8>, VaultError> {
        let to = self.root.path().join("got");
        self.vault.get(&session(1), &to)?;
        Ok(std::fs::read(to).unwrap())
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("kept").join(session(1).as_str())
    }

    /// The saves that are there, by name.
    fn saves(&self) -> Vec<PathBuf> {
        let mut saves: Vec<PathBuf> = std::fs::read_dir(self.home())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "sessile"))
            .collect();
        saves.sort();
        saves
    }
}

fn session(n: u8) -> SessionId {
    SessionId::from_random([n; 12])
}

fn new_save(run: u64, file: &Path) -> NewSave<'_> {
    let since = "2026-11-16T06:00:00.000Z".to_owned();
    let by = Holder { epoch: 0, host: "here".to_owned(), since };
    NewSave { as_of_run: RunNo(run), file, by, about: serde_json::json!({"name": "work"}) }
}

#[test]
fn what_is_put_is_got_and_the_last_two_are_kept() {
    let disk = Disk::new();
    assert_eq!(disk.vault.latest(&session(1)).unwrap(), None);
    for run in [1, 4, 9] {
        disk.put(run, format!("as of {run}").as_bytes()).unwrap();
        let latest = disk.vault.latest(&session(1)).unwrap().unwrap();
        assert_eq!(latest.as_of_run, RunNo(run));
        assert_eq!(disk.get().unwrap(), format!("as of {run}").as_bytes());
    }
    assert_eq!(disk.saves().len(), 2);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&disk.home()), 0o700);
    assert_eq!(mode(&disk.root.path().join("got")), 0o600);
}

#[test]
fn an_earlier_run_never_replaces_a_later_one() {
    let disk = Disk::new();
    disk.put(5, b"later").unwrap();
    let error = disk.put(4, b"earlier").unwrap_err();
    assert_eq!(error.code(), "superseded");
    assert!(error.to_string().contains("run 5"), "{error}");
    assert_eq!(disk.get().unwrap(), b"later");
    disk.put(5, b"the same run again").unwrap();
    assert_eq!(disk.get().unwrap(), b"the same run again");
}

#[test]
fn of_many_writers_at_once_the_latest_run_wins() {
    let disk = Disk::new();
    let url = format!("file://{}/kept", disk.root.path().display());
    std::thread::scope(|scope| {
        for run in 1..=8_u64 {
            let (url, file) = (&url, disk.root.path().join(run.to_string()));
            scope.spawn(move || {
                std::fs::write(&file, run.to_string()).unwrap();
                let vault = Vault::open(url, &Variables::new()).unwrap();
                match vault.put(&session(1), &new_save(run, &file)) {
                    Ok(_) | Err(VaultError::Superseded(_)) => {}
                    Err(error) => panic!("{run}: {error}"),
                }
            });
        }
    });
    assert_eq!(disk.get().unwrap(), b"8");
}

#[test]
fn a_save_that_was_changed_is_not_handed_out() {
    let disk = Disk::new();
    disk.put(1, b"what was saved").unwrap();
    let save = disk.saves().remove(0);
    for damaged in [&b"what was savef"[..], b"what was save", b"what was saved and more", b""] {
        std::fs::write(&save, damaged).unwrap();
        assert_eq!(disk.get().unwrap_err().code(), "damaged");
        assert!(!disk.root.path().join("got").exists());
    }
    std::fs::remove_file(&save).unwrap();
    assert_eq!(disk.get().unwrap_err().code(), "damaged");
    let left: Vec<_> = std::fs::read_dir(disk.root.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}: no half of a file is left");
}

#[test]
fn a_pointer_that_was_changed_is_told() {
    let disk = Disk::new();
    disk.put(1, b"x").unwrap();
    let pointer = disk.home().join("latest.json");
    let text = std::fs::read_to_string(&pointer).unwrap();
    let outside = text.replace("00000000000000000001-", "../../../../etc/");
    for bad in ["", "null", &outside, &" ".repeat(100_000)] {
        std::fs::write(&pointer, bad).unwrap();
        assert_eq!(disk.get().unwrap_err().code(), "damaged");
        let kept = disk.vault.list().unwrap();
        assert!(kept[0].latest.is_err());
    }
}

#[test]
fn deleting_leaves_nothing_and_others_alone() {
    let disk = Disk::new();
    disk.put(1, b"one").unwrap();
    disk.vault.put(&session(2), &new_save(3, &disk.file(b"two"))).unwrap();
    std::fs::create_dir(disk.root.path().join("kept/notes")).unwrap();
    let ids = |disk: &Disk| -> Vec<SessionId> {
        disk.vault.list().unwrap().into_iter().map(|kept| kept.session).collect()
    };
    assert_eq!(ids(&disk), [session(1), session(2)]);
    disk.vault.delete(&session(1)).unwrap();
    assert_eq!(ids(&disk), [session(2)]);
    assert!(!disk.home().exists());
    assert_eq!(disk.get().unwrap_err().code(), "not_found");
    disk.vault.delete(&session(1)).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let disk = Disk::new();
    disk.put(1, b"old").unwrap();
    let got = disk.vault.get(&session(1), &disk.root.path().join("no such directory/x"));
    assert_eq!(got.unwrap_err().code(), "io");
    let put = disk.vault.put(&session(1), &new_save(2, &disk.root.path().join("no such file")));
    assert_eq!(put.unwrap_err().code(), "io");
    assert_eq!(disk.get().unwrap(), b"old");
}

#[test]
fn a_large_file_survives_the_way_there_and_back() {
    let disk = Disk::new();
    let content: Vec<u8> =
        (0..25_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761) as u8).collect();
    disk.put(1, &content).unwrap();
    assert!(disk.get().unwrap() == content);
}

#[test]
fn a_url_that_is_no_place_is_refused_with_a_reason() {
    let bad = [
        ("", "relative URL"),
        ("/tmp/x", "relative URL"),
        ("ftp://host/x", "s3://bucket/prefix"),
        ("https://host/x", "s3://bucket/prefix"),
        ("memory:///x", "s3://bucket/prefix"),
        ("s3:///prefix", "no bucket"),
        ("gs://", "no bucket"),
        ("az:///x", "no bucket"),
        ("file://host/path", "three slashes"),
        ("s3://bucket/x?versionId=1", "no ?"),
        ("s3://bucket/x#y", "no ?"),
    ];
    for (url, why) in bad {
        let error = Vault::open(url, &Variables::new()).unwrap_err();
        assert_eq!(error.code(), "bad_url", "{url}: {error}");
        assert!(error.to_string().contains(why), "{url}: {error}");
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_not_repeated() {
    let error = Vault::open("s3://key:hidden@bucket/x", &Variables::new()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hidden"), "{error}");
}

#[test]
fn a_session_is_taken_up_by_one_machine_at_a_time() {
    let disk = Disk::new();
    let got = disk.root.path().join("got");
    let none = disk.vault.take(&session(1), "there", &got).unwrap_err();
    assert_eq!(none.code(), "not_found");
    disk.put(3, b"as of 3").unwrap();
    let taken = disk.vault.take(&session(1), "there", &got).unwrap();
    assert_eq!((taken.epoch, taken.save.as_of_run), (1, RunNo(3)));
    assert_eq!(taken.before.as_ref().map(|before| before.host.as_str()), Some("here"));
    assert_eq!(std::fs::read(&got).unwrap(), b"as of 3");

    // Whoever had it is told who has it, and its save changes nothing.
    let fenced = disk.put(4, b"late").unwrap_err();
    assert_eq!(fenced.code(), "session_moved");
    assert!(fenced.to_string().contains("now lives on there"), "{fenced}");
    assert_eq!(disk.get().unwrap(), b"as of 3");
    let file = disk.file(b"as of 4");
    let by = Holder { epoch: 1, host: "there".to_owned(), since: String::new() };
    let new = NewSave { by, ..new_save(4, &file) };
    disk.vault.put(&session(1), &new).unwrap();
    assert_eq!(disk.get().unwrap(), b"as of 4");

    // What could not be used is given back.
    let again = disk.vault.take(&session(1), "third", &got).unwrap();
    assert_eq!(disk.vault.put(&session(1), &new).unwrap_err().code(), "session_moved");
    disk.vault.give_back(&session(1), &again).unwrap();
    disk.vault.put(&session(1), &new).unwrap();
}

#[test]
fn beside_each_save_is_a_record_that_goes_with_it() {
    let disk = Disk::new();
    for run in [1, 2, 3] {
        disk.put(run, b"x").unwrap();
    }
    for save in disk.saves() {
        let text = std::fs::read_to_string(save.with_extension("json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["session"]["name"], "work");
        assert_eq!(record["session_id"], session(1).as_str());
        assert_eq!(record["host"], "here");
        assert_eq!(record["object"], save.file_name().unwrap().to_str().unwrap());
    }
    let names = std::fs::read_dir(disk.home()).unwrap();
    let is_record = |path: &Path| path.extension().is_some_and(|e| e == "json");
    let records = names.filter(|entry| is_record(&entry.as_ref().unwrap().path())).count();
    assert_eq!(records, 3, "two saves' and the pointer");
    disk.vault.delete(&session(1)).unwrap();
    assert!(!disk.home().exists());
}
