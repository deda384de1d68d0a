//! Interpreters and other tools outside of the system's program directories: found as a
//! shell would find them, and shown with what they need and nothing else.

use super::elf;
use super::host::{Top, Wanted};
use super::installation;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Programs that kernels run in.
const INTERPRETERS: &[&str] = &["bash", "sh", "zsh", "dash", "python3", "python", "node"];

/// Further programs that work in a project needs, and that people install in their homes.
const TOOLS: &[&str] =
    &["cargo", "rustc", "go", "uv", "uvx", "bun", "bunx", "deno", "pnpm", "yarn"];

/// As many as the system follows.
const MOST_LINKS: usize = 40;
/// Limit for one program: its own libraries, and what these need.
const MOST_LIBRARIES: usize = 64;

/// Interpreters outside of the system's directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The programs and their libraries, or parts of their installations.
    pub files: Vec<PathBuf>,
    /// Parts of their installations.
    pub directories: Vec<PathBuf>,
    /// Links on the way to them, with their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The search path inside.
    pub search: OsString,
    /// The directory of rustup's toolchains, if its programs choose from there.
    pub rustup: Option<PathBuf>,
}

/// Finds interpreters and tools, and what they need of the host.
pub(super) fn programs(wanted: Wanted<'_>, tops: &[(PathBuf, Top)]) -> Programs {
    let mut names: Vec<&str> = [INTERPRETERS, TOOLS].concat();
    if !wanted.program.contains('/') {
        names.push(wanted.program);
    }
    let directories: Vec<PathBuf> = std::env::split_paths(wanted.search).collect();
    let mut paths: Vec<PathBuf> = names
        .iter()
        .filter_map(|name| {
            directories.iter().map(|directory| directory.join(name)).find(|path| is_program(path))
        })
        .filter(|path| path.is_absolute())
        .collect();
    if wanted.program.starts_with('/') {
        paths.push(wanted.program.into());
    }
    let mut view = View { wanted, tops, shown: Vec::new(), links: Vec::new() };
    let mut real_directories: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in paths {
        let Some(real) = view.program(&path) else { continue };
        if let (Some(of_name), Some(of_real)) = (path.parent(), real.parent()) {
            real_directories.push((of_name.to_owned(), of_real.to_owned()));
        }
    }
    let rustup = view.toolchains(&real_directories);
    let search = view.search(&directories, &real_directories);
    let View { shown, links, .. } = view;
    let is_within = |path: &Path| shown.iter().any(|tree| path.starts_with(tree));
    let links = links.into_iter().filter(|(at, _)| !is_within(at)).collect();
    let (directories, files) = shown.into_iter().partition(|path| path.is_dir());
    Programs { files, directories, links, search, rustup }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// What is shown so far.
struct View<'a> {
    wanted: Wanted<'a>,
    tops: &'a [(PathBuf, Top)],
    shown: Vec<PathBuf>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl View<'_> {
    /// Shows a program, and returns its path without links, if it exists.
    fn program(&mut self, path: &Path) -> Option<PathBuf> {
        let route = resolve(path)?;
        let real = route.stops.last()?.clone();
        for stop in &route.stops {
            match self.installation(stop) {
                Some(parts) => parts.iter().for_each(|part| self.show(part)),
                None if *stop == real && !self.is_there(stop) => {
                    self.show(stop);
                    self.libraries(stop);
                }
                None => {}
            }
        }
        self.follow(route.links);
        Some(real)
    }

    /// Returns the parts of the program's installation, unless it is the system's or
    /// somebody's home.
    fn installation(&self, program: &Path) -> Option<Vec<PathBuf>> {
        let prefix = program.parent()?.parent()?;
        let has = |inner: &Path| inner.starts_with(prefix);
        let is_somebodys = prefix.components().count() < 3
            || self.wanted.home.is_some_and(has)
            || prefix.parent() == Some(Path::new("/home"));
        if is_somebodys || self.is_there(program) {
            return None;
        }
        let mut parts = installation::parts(program, self.wanted.workspace)?;
        let is_private = |part: &Path| {
            let mut private = self.wanted.hidden.iter().map(PathBuf::as_path);
            self.wanted.workspace.starts_with(part) || private.any(|path| path.starts_with(part))
        };
        parts.retain(|part| !is_private(part));
        // A link among the parts is a link inside, too, and its target is a part as well.
        Some(parts)
    }

    /// Shows the toolchains of rustup if one of the programs is in its directory: these only
    /// start the program of that name in a toolchain. Returns where rustup looks for them.
    fn toolchains(&mut self, programs: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
        programs.iter().find(|(_, real)| is_program(&real.join("rustup")))?;
        let home = self.wanted.home.map(|home| home.join(".rustup"));
        let root = self.wanted.rustup.map(Path::to_owned).or(home)?;
        let parts = installation::of_rustup(&root)?;
        let is_apart = |path: &Path| !path.starts_with(&root) && !root.starts_with(path);
        let mut kept_apart = self.wanted.hidden.iter().map(PathBuf::as_path);
        if !is_apart(self.wanted.workspace) || !kept_apart.all(is_apart) {
            return None;
        }
        parts.iter().for_each(|part| self.show(part));
        Some(root)
    }

    /// Shows the libraries that the loader would find by the program's own headers.
    fn libraries(&mut self, program: &Path) {
        let mut waiting = vec![program.to_owned()];
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut inherited: Vec<PathBuf> = Vec::new();
        while let Some(object) = waiting.pop() {
            let linked = elf::linked(&object);
            if object == program {
                inherited.clone_from(&linked.directories);
            }
            for library in &linked.libraries {
                let mut places =
                    linked.directories.iter().chain(&inherited).map(|place| place.join(library));
                let Some(found) = places.find(|path| path.is_file()) else {
                    continue;
                };
                if seen.contains(&found) || seen.len() == MOST_LIBRARIES {
                    continue;
                }
                seen.push(found.clone());
                let Some(route) = resolve(&found) else { continue };
                let Some(real) = route.stops.last().cloned() else { continue };
                if !self.is_there(&real) {
                    self.show(&real);
                    waiting.push(real);
                }
                self.follow(route.links);
            }
        }
    }

    fn show(&mut self, path: &Path) {
        let Some(Route { stops, links }) = resolve(path) else { return };
        let Some(real) = stops.last() else { return };
        if !self.is_there(real) {
            self.shown.retain(|other| !other.starts_with(real));
            self.shown.push(real.clone());
        }
        self.follow(links);
    }

    /// Adds links. Links at the top belong to the system, or are a home: they are not made.
    fn follow(&mut self, links: Vec<(PathBuf, PathBuf)>) {
        for link in links {
            let is_top = link.0.components().count() < 3;
            if !is_top && !self.is_there(&link.0) && !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }

    /// Whether it is already visible.
    fn is_there(&self, path: &Path) -> bool {
        let is_system = self.tops.iter().any(|(top, _)| path.starts_with(top));
        is_system
            || path.starts_with(self.wanted.workspace)
            || self.shown.iter().any(|tree| path.starts_with(tree))
    }

    /// Returns the directories of a search path that are not empty inside. If a program
    /// is a link, the directory of its target is added, too.
    fn search(&self, directories: &[PathBuf], real: &[(PathBuf, PathBuf)]) -> OsString {
        let mut search: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf| {
            if !search.contains(&path) {
                search.push(path);
            }
        };
        for directory in directories.iter().filter(|directory| directory.is_absolute()) {
            if let Ok(below) = directory.strip_prefix(self.wanted.workspace) {
                add(Path::new(super::WORKSPACE).join(below));
                continue;
            }
            let canonical = fs::canonicalize(directory).unwrap_or_else(|_| directory.clone());
            let is_whole = self.is_there(directory);
            if is_whole {
                add(directory.clone());
            } else if self.is_there(&canonical) || self.has_some(&canonical) {
                add(canonical);
            }
            let beside = real.iter().filter(|(of_name, _)| of_name == directory);
            for (_, beside) in beside.filter(|_| !is_whole) {
                if self.is_there(beside) || self.has_some(beside) {
                    add(beside.clone());
                }
            }
        }
        std::env::join_paths(search).unwrap_or_default()
    }

    /// Whether a single program, or a link to one, is shown in a directory.
    fn has_some(&self, directory: &Path) -> bool {
        let shown = self.shown.iter().chain(self.links.iter().map(|(at, _)| at));
        shown.filter_map(|path| path.parent()).any(|parent| parent == directory)
    }
}

/// How a path leads to a file.
#[derive(Debug, Default)]
struct Route {
    /// Its own path, and each path that a link replaces it by. Their directories are
    /// without links; the last one is the file itself.
    stops: Vec<PathBuf>,
    /// All links, with their targets.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Follows a path and its links to a file. Returns none if there is no file.
fn resolve(path: &Path) -> Option<Route> {
    let mut route = Route::default();
    let mut at = PathBuf::from("/");
    // The last one comes first.
    let mut rest: Vec<OsString> = names(path);
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let found = fs::symlink_metadata(&next).ok()?;
        if rest.is_empty() {
            route.stops.push(next.clone());
        }
        if !found.is_symlink() {
            at = next;
            continue;
        }
        let to = fs::read_link(&next).ok()?;
        if to.is_absolute() {
            at = "/".into();
        }
        rest.extend(names(&to));
        route.links.push((next, to));
        if route.links.len() > MOST_LINKS {
            return None;
        }
    }
    // A path that ends in `..` has led somewhere else.
    (route.stops.last() == Some(&at)).then_some(route)
}

fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            fs::canonicalize(self.0.path()).unwrap().join(path)
        }

        fn program(&self, path: &str) -> PathBuf {
            self.file(path);
            fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
            self.at(path)
        }

        fn file(&self, path: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            fs::write(self.at(path), "").unwrap();
        }

        fn link(&self, path: &str, to: impl AsRef<Path>) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            symlink(to, self.at(path)).unwrap();
        }

        /// Finds programs by a search path of these directories, and the system's.
        fn find(&self, directories: &[&str]) -> Programs {
            let mut search: Vec<PathBuf> = directories.iter().map(|at| self.at(at)).collect();
            search.extend(["/usr/bin".into(), "relative".into()]);
            let wanted = Wanted {
                search: &std::env::join_paths(search).unwrap(),
                program: "bash",
                home: Some(&self.at("")),
                rustup: None,
                workspace: Path::new("/srv/project"),
                hidden: &[],
                rootfs: None,
            };
            programs(wanted, &[(PathBuf::from("/usr"), Top::Directory)])
        }
    }

    fn search(found: &Programs) -> Vec<PathBuf> {
        std::env::split_paths(&found.search).collect()
    }

    #[test]
    fn a_program_is_shown_alone_and_nothing_beside_it() {
        let home = Home::new();
        let bash = home.program("work/bin/bash");
        home.file("work/private/secret");
        let found = home.find(&["work/bin"]);
        assert_eq!((&*found.files, &*found.directories), (&[bash][..], &[][..]));
        assert_eq!(search(&found), [home.at("work/bin"), "/usr/bin".into()]);
    }

    #[test]
    fn a_home_is_no_installation_whatever_it_has() {
        let home = Home::new();
        let python = home.program("bin/python3");
        home.file("lib/python3.13/os.py");
        let found = home.find(&["bin"]);
        assert_eq!((found.files, found.directories), (vec![python], vec![]));
    }

    #[test]
    fn links_are_made_anew_and_lead_to_installations() {
        let home = Home::new();
        home.program("versions/22/bin/node");
        home.file("versions/22/include/node/node.h");
        home.link("current", "versions/22");
        home.link("links/node", home.at("current/bin/node"));
        let found = home.find(&["secret/bin", "links"]);
        assert_eq!(
            found.directories,
            [home.at("versions/22/bin"), home.at("versions/22/include/node")]
        );
        assert_eq!(
            found.links,
            [
                (home.at("links/node"), home.at("current/bin/node")),
                (home.at("current"), "versions/22".into()),
            ]
        );
        assert_eq!(
            search(&found),
            [home.at("links"), home.at("versions/22/bin"), "/usr/bin".into()]
        );
    }

    #[test]
    fn an_environment_and_the_python_that_it_was_made_with_are_both_shown() {
        let home = Home::new();
        home.program("python/bin/python3.13");
        home.file("python/lib/python3.13/os.py");
        home.link("mine/venv/bin/python3", home.at("python/bin/python3.13"));
        home.file("mine/venv/pyvenv.cfg");
        home.file("mine/secret");
        let mut found = home.find(&["mine/venv/bin"]);
        found.directories.sort();
        let parts = ["mine/venv/bin", "python/bin", "python/lib"];
        assert_eq!(found.directories, parts.map(|part| home.at(part)));
        assert_eq!(found.files, [home.at("mine/venv/pyvenv.cfg")]);
        assert_eq!(found.links, []);
    }

    #[test]
    fn of_rustup_the_toolchains_are_shown_and_of_cargo_the_programs() {
        let home = Home::new();
        home.program(".cargo/bin/rustup");
        home.link(".cargo/bin/cargo", "rustup");
        home.file(".cargo/credentials.toml");
        home.program(".rustup/toolchains/stable/bin/cargo");
        home.file(".rustup/settings.toml");
        home.file(".rustup/downloads/x");
        let found = home.find(&[".cargo/bin"]);
        let directories = [".cargo/bin", ".rustup/toolchains"].map(|part| home.at(part));
        assert_eq!(found.directories, directories);
        assert_eq!(found.files, [home.at(".rustup/settings.toml")]);
        assert_eq!(found.rustup, Some(home.at(".rustup")));
        assert_eq!(search(&found), [home.at(".cargo/bin"), "/usr/bin".into()]);
    }

    #[test]
    fn a_cargo_without_rustup_is_shown_alone() {
        let home = Home::new();
        let cargo = home.program("tools/bin/cargo");
        home.file(".rustup/settings.toml");
        let found = home.find(&["tools/bin"]);
        assert_eq!((found.files, found.directories, found.rustup), (vec![cargo], vec![], None));
    }

    #[test]
    fn links_in_a_circle_lead_nowhere() {
        let home = Home::new();
        home.link("bin/a", "b");
        home.link("bin/b", "a");
        assert!(resolve(&home.at("bin/a")).is_none());
        assert!(resolve(&home.at("bin/..")).is_none());
    }
}
