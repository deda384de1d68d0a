//! What may not be read or written at one path cannot be had at another.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};

use crate::{Place, can_mount, inventory};

fn denied<T: std::fmt::Debug>(outcome: std::io::Result<T>) {
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_directory_takes_along_what_is_hidden_to_where_it_stays_hidden() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    place.put("a/x/.env", "secret");
    place.put("a/x/code", "code");
    let shown = place.show(&["**/.env=none@9"]);
    std::fs::rename(place.shown.join("a"), place.shown.join("b")).unwrap();
    assert!(place.source.join("b/x/.env").exists());
    assert_eq!(std::fs::read(place.shown.join("b/x/code")).unwrap(), b"code");
    assert!(!place.shown.join("b/x/.env").exists());
    drop(shown);
}

#[test]
fn a_directory_does_not_take_what_is_in_it_to_another_level() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    place.put("a/key", "secret");
    place.put("ro/deep/settings", "settings");
    place.put("plant/settings", "planted");
    let before = inventory(&place.source);
    let shown = place.show(&["/a/key=none", "/ro/deep/settings=read", "/new/settings=read"]);
    let at = |path: &str| place.shown.join(path);
    // What is hidden would be seen.
    denied(std::fs::rename(at("a"), at("b")));
    // What can only be read would be written to, or gone from its place.
    denied(std::fs::rename(at("ro"), at("b")));
    denied(std::fs::rename(at("ro/deep"), at("b")));
    // What can only be read would be written, before it is there.
    denied(std::fs::rename(at("plant"), at("new")));
    std::fs::create_dir(at("empty")).unwrap();
    let flags = RenameFlags::EXCHANGE;
    for (from, to) in [("empty", "a"), ("a", "empty"), ("ro", "empty")] {
        let swapped = rustix::fs::renameat_with(CWD, at(from), CWD, at(to), flags);
        denied(swapped.map_err(std::io::Error::from));
    }
    std::fs::remove_dir(at("empty")).unwrap();
    assert_eq!(std::fs::remove_dir(at("a")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    drop(shown);
    assert_eq!(inventory(&place.source), before);
}

#[test]
fn links_lead_nowhere_that_names_do_not() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    place.put("secrets/key", "secret");
    place.put("look", "content");
    let shown = place.show(&["**/secrets/**=none@9", "/look=view"]);
    let at = |path: &str| place.shown.join(path);
    std::os::unix::fs::symlink("secrets/key", at("l")).unwrap();
    std::os::unix::fs::symlink("look", at("v")).unwrap();
    std::os::unix::fs::symlink("secrets", at("d")).unwrap();
    assert_eq!(std::fs::read(at("l")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read(at("d/key")).unwrap_err().kind(), ErrorKind::NotFound);
    denied(std::fs::read(at("v")));
    assert!(at("v").metadata().is_ok());
    drop(shown);
}

#[test]
fn no_race_of_renames_and_links_shows_what_is_hidden() {
    if !can_mount() {
        return;
    }
    let place = Place::new();
    place.put("a/pub/key", "public");
    place.put("a/secrets/key", "SECRET");
    place.put("look", "SECRET");
    std::fs::create_dir(place.source.join("b")).unwrap();
    let shown = place.show(&["**/secrets/**=none@9", "/look=view"]);
    let at = |path: &str| place.shown.join(path);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..600 {
                let _ = std::fs::rename(at("a"), at("b/a"));
                let _ = std::fs::rename(at("b/a/pub"), at("b/a/secrets"));
                let _ = std::fs::rename(at("b/a"), at("a"));
                let _ = std::fs::remove_file(at("l"));
                let target = ["a/secrets/key", "look", "b/a/secrets", "a/pub/key"][n % 4];
                let _ = std::os::unix::fs::symlink(target, at("l"));
                let _ = std::fs::hard_link(at("look"), at("h"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for path in ["l", "l/key", "a/secrets/key", "b/a/secrets/key", "h", "look"] {
                        if let Ok(content) = std::fs::read(at(path)) {
                            assert_eq!(content, b"public", "{path}");
                        }
                    }
                }
            });
        }
    });
    drop(shown);
    assert_eq!(std::fs::read(place.source.join("a/secrets/key")).unwrap(), b"SECRET");
}
