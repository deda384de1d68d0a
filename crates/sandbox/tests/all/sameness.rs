//! What is not restricted behaves as a plain directory does, whatever is done.

use sessile_sandbox::fuse::{Caching, Server};
use sessile_testkit::Chance;

use crate::mounted::{self, Mounted};
use crate::steps::{Program, Step};
use crate::{Place, can_mount, inventory, rules};

const STEPS: usize = 4000;

/// The same steps in a plain directory and in one that is shown.
fn compare(mut chance: Chance, caching: Caching, links: bool, prepare: fn(Server) -> Server) {
    let place = Place::new();
    let plain = tempfile::tempdir().unwrap();
    mounted::part_mounts();
    let shown = Mounted::with(
        &place.source,
        &place.shown,
        rules(&["**/hidden*=none@9", "/no/**=read@3"]),
        caching,
        prepare,
    );
    // Hidden files are in the way of nobody.
    let (mut one, mut other) =
        (Program::new(plain.path(), links), Program::new(&place.shown, links));
    let mut taken = Vec::new();
    for n in 0..STEPS {
        let step = Step::random(&mut chance);
        let (expected, got) = (one.take(&step), other.take(&step));
        taken.push(format!("{step:?}: {expected:?}"));
        let last = taken.len().saturating_sub(25);
        assert_eq!(expected, got, "step {n}:\n{}", taken[last..].join("\n"));
    }
    assert_eq!(inventory(plain.path()), inventory(&place.shown));
    assert_eq!(inventory(plain.path()), inventory(&place.source));
    drop((one, other, shown));
}

#[test]
fn it_is_a_directory_like_any_other() {
    if can_mount() {
        compare(Chance::new(), Caching::ALONE, true, |server| server);
    }
}

#[test]
fn it_is_a_directory_like_any_other_to_those_without_privileges() {
    if can_mount() {
        // Each name of a file has a cache of its own then.
        compare(Chance::new(), Caching::ALONE, false, Server::without_passthrough);
    }
}

#[test]
fn it_is_a_directory_like_any_other_when_others_work_in_it_too() {
    if can_mount() {
        compare(Chance::new(), Caching::SHARED, true, |server| server);
    }
}
