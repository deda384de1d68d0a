//! What the kernel remembers, and when it asks again.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use sessile_sandbox::fuse::{Caching, Server};

use crate::mounted::{self, Mounted};
use crate::{Place, can_mount, rules};

/// Waits until somebody has opened a directory for listing, and closed it again.
fn wait_for_listing(directory: &Path, meanwhile: impl FnOnce()) {
    let watch = inotify::init(CreateFlags::CLOEXEC).unwrap();
    let flags = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
    inotify::add_watch(&watch, directory, flags).unwrap();
    meanwhile();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(watch, &mut buffer);
    loop {
        let event = events.next().unwrap();
        let is_own = event.file_name().is_none();
        if is_own && event.events().contains(ReadFlags::CLOSE_NOWRITE) {
            return;
        }
    }
}

#[test]
fn names_are_told_before_they_are_asked_for() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    for n in 0..300 {
        place.put(&format!("d/f{n}"), "x");
    }
    place.put("d/secret.key", "x");
    let shown = place.show(&["**/*.key=none@9"]);
    let at = place.shown.join("d");
    wait_for_listing(&place.source.join("d"), || {
        at.join("f1").symlink_metadata().unwrap();
        at.join("f2").symlink_metadata().unwrap();
    });
    // Somebody who asked now would not find it.
    fs::remove_file(place.source.join("d/f299")).unwrap();
    assert!(at.join("f299").symlink_metadata().is_ok(), "it was asked for");
    assert!(at.join("secret.key").symlink_metadata().is_err());
    drop(shown);
}

fn follows_the_host(prepare: fn(Server) -> Server) {
    let place = Place::new();
    place.put("a", "one\n");
    mounted::part_mounts();
    let rules = rules(&["/none=none"]);
    let shown = Mounted::with(&place.source, &place.shown, rules, Caching::ALONE, prepare);
    let read = || fs::read_to_string(place.shown.join("a")).unwrap();
    assert_eq!(read(), "one\n");
    for text in ["two\n", "longer than before\n", "", "3\n"] {
        // In place, as `>>` and some editors do.
        fs::write(place.source.join("a"), text).unwrap();
        assert_eq!(read(), text);
        assert_eq!(read(), text);
    }
    drop(shown);
}

#[test]
fn a_file_that_the_host_has_changed_is_read_anew() {
    if can_mount() {
        follows_the_host(|server| server);
    }
}

#[test]
fn a_file_that_the_host_has_changed_is_read_anew_by_those_without_privileges() {
    if can_mount() {
        follows_the_host(Server::without_passthrough);
    }
}

/// A file that is open for reading by one name, while it is written by that one
/// and by another.
fn follows_writers(prepare: fn(Server) -> Server, names: &[&str]) {
    use std::os::unix::fs::FileExt;
    let place = Place::new();
    place.put("a", "old");
    mounted::part_mounts();
    let rules = rules(&["/none=none"]);
    let shown = Mounted::with(&place.source, &place.shown, rules, Caching::ALONE, prepare);
    let reader = fs::File::open(place.shown.join("a")).unwrap();
    let mut buffer = [0; 3];
    reader.read_exact_at(&mut buffer, 0).unwrap();
    for (n, name) in names.iter().enumerate() {
        let path = place.shown.join(name);
        if *name != "a" {
            fs::hard_link(place.shown.join("a"), &path).unwrap();
        }
        let text = format!("n{n}.");
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_all_at(text.as_bytes(), 0)
            .unwrap();
        reader.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(str::from_utf8(&buffer).unwrap(), text, "written by {name}");
    }
    // What is open keeps it mounted.
    drop(reader);
    drop(shown);
}

#[test]
fn an_open_file_shows_what_is_written_to_it() {
    if can_mount() {
        follows_writers(|server| server, &["a", "b"]);
    }
}

#[test]
fn an_open_file_shows_what_is_written_to_it_without_privileges() {
    if can_mount() {
        // By another name it may come late.
        follows_writers(Server::without_passthrough, &["a"]);
    }
}
