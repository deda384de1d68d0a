//! Nothing leads out.

use super::{link, place, usual};
use sessile_files::{FileError, Kind, Replace, Writing};
use std::fs;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn is_outside<T: std::fmt::Debug>(outcome: Result<T, FileError>) {
    match outcome {
        Err(FileError::Outside(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn links_that_lead_out_are_not_followed() {
    let p = place();
    let outer = p.secret.parent().unwrap();
    link(&p.secret, &p.at("absolute"));
    link("../secret", &p.at("relative"));
    link(outer, &p.at("up"));
    link("/proc/self/cwd", &p.at("magic"));
    for name in ["absolute", "relative", "up/secret", "up/inside/x", "magic/x"] {
        is_outside(p.read(name));
        is_outside(p.write(name, b"forged"));
    }
    is_outside(p.root.make(&p.path("up/new")));
    is_outside(p.root.remove(&p.path("up/secret")));
    is_outside(p.root.remove_all(&p.path("up/secret")));
    p.write("mine", b"x").unwrap();
    is_outside(p.root.rename(&p.path("mine"), &p.path("up/mine"), Replace::Yes));
    is_outside(p.root.rename(&p.path("up/secret"), &p.path("stolen"), Replace::Yes));
    is_outside(p.root.list(&p.path("up"), 1, |_| std::ops::ControlFlow::Continue(())));
    assert_eq!(p.root.stat(&p.path("up")).unwrap().kind, Kind::Symlink, "the link itself is seen");
    assert!(p.names(9).iter().all(|name| !name.contains('/')), "and not looked behind");
    p.secret_is_safe();
}

#[test]
fn a_link_that_stays_within_is_written_through() {
    let p = place();
    p.root.make_all(&p.path("d")).unwrap();
    p.write("d/real", b"one").unwrap();
    link("d/real", &p.at("link"));
    link("d", &p.at("way"));
    p.write("link", b"two").unwrap();
    assert_eq!(p.root.stat(&p.path("link")).unwrap().kind, Kind::Symlink);
    assert_eq!(p.read("d/real").unwrap(), "two");
    p.write("way/real", b"three").unwrap();
    assert_eq!(p.read("link").unwrap(), "three");
}

#[test]
fn only_files_are_opened() {
    let p = place();
    let fifo = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, p.at("fifo"), fifo).unwrap();
    let _socket = UnixListener::bind(p.at("socket")).unwrap();
    for name in ["fifo", "socket"] {
        assert!(matches!(p.read(name), Err(FileError::NotAFile(_))), "{name}");
        assert!(matches!(p.write(name, b"x"), Err(FileError::NotAFile(_))), "{name}");
    }
    assert!(matches!(p.read(""), Err(FileError::IsADirectory(_))));
}

#[test]
fn a_hard_link_is_replaced_and_what_it_shares_stays() {
    let p = place();
    fs::hard_link(&p.secret, p.at("shared")).unwrap();
    p.write("shared", b"forged").unwrap();
    p.secret_is_safe();
}

/// Somebody swaps a directory for a link that leads out, again and again, while
/// others use it.
#[test]
fn no_race_leads_out() {
    let p = place();
    fs::create_dir(p.at("way")).unwrap();
    fs::write(p.at("way/secret"), "decoy").unwrap();
    link(p.secret.parent().unwrap(), &p.at("trap"));
    let (trap, way) = (p.at("trap"), p.at("way"));
    let is_over = Arc::new(AtomicBool::new(false));
    let swaps = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &trap, CWD, &way, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let mut read = 0;
    let mut round = 0;
    // On a busy machine, the swaps of a whole second may hit each of our reads.
    while round < 3000 || (read == 0 && round < 300_000) {
        round += 1;
        if let Ok(text) = p.read("way/secret") {
            assert_eq!(text, "decoy");
            read += 1;
        }
        let writing = Writing { parents: round % 2 == 0, ..usual() };
        if let Ok(mut draft) = p.root.write(&p.path("way/new"), writing) {
            let _ = draft.write(b"x");
            let _ = draft.finish();
        }
        let _ = p.root.remove_all(&p.path("way/new"));
        let _ = p.root.make(&p.path("way/directory"));
    }
    is_over.store(true, Ordering::Relaxed);
    swaps.join().unwrap();
    assert!(read > 0, "never got through");
    p.secret_is_safe();
}
