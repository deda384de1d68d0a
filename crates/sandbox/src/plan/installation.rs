//! Which parts of a directory make up an installation of a program. A tree counts as one
//! only if there is evidence for it, and then its parts are shown by name: other files
//! beside them are not.

use std::fs;
use std::path::{Path, PathBuf};

/// Parts of a Python installation, and of a conda environment.
const PYTHON: &[&str] = &[
    "bin",
    "lib",
    "lib64",
    "include",
    "ssl",
    "pyvenv.cfg",
    "conda-meta",
    "share/terminfo",
    "share/zoneinfo",
];
/// Parts of a virtual environment, which may also be a project. Its packages are shown as well.
const ENVIRONMENT: &[&str] = &["bin", "pyvenv.cfg"];
const NODE: &[&str] = &["bin", "lib/node_modules", "include/node"];
const GO: &[&str] = &["bin", "pkg", "src", "lib", "misc", "go.env", "VERSION"];
const ZSH: &[&str] = &["lib/zsh", "share/zsh"];
/// Not `var`, which has the data of services.
const HOMEBREW: &[&str] = &[
    "bin",
    "sbin",
    "Cellar",
    "opt",
    "lib",
    "include",
    "share",
    "etc/ca-certificates",
    "etc/openssl@3",
];
/// pyenv and nodenv. Versions are shown one by one.
const SHIMS: &[&str] = &["bin", "shims", "libexec", "pyenv.d", "nodenv.d", "version"];

/// Returns the parts of the installation that has this program, by its path without
/// links. None if it belongs to no installation.
pub(super) fn parts(program: &Path, workspace: &Path) -> Option<Vec<PathBuf>> {
    let name = program.file_name()?.to_str()?;
    let directory = program.parent()?;
    let prefix = directory.parent()?;
    let of = |names: &[&str]| {
        let parts = names.iter().map(|name| prefix.join(name));
        parts.filter(|part| part.exists()).collect::<Vec<_>>()
    };
    if directory.ends_with("shims") {
        return shims(prefix, workspace).map(|versions| [of(SHIMS), versions].concat());
    }
    if !directory.ends_with("bin") {
        return None;
    }
    if prefix.join("Cellar").is_dir() && prefix.join("bin/brew").is_file() {
        return Some(of(HOMEBREW));
    }
    if name.starts_with("python") || name.starts_with("pypy") {
        if prefix.join("pyvenv.cfg").is_file() {
            return Some([of(ENVIRONMENT), libraries(prefix)].concat());
        }
        let is_whole = libraries(prefix).iter().any(|library| library.join("os.py").is_file());
        return is_whole.then(|| of(PYTHON));
    }
    let has = |part: &str| prefix.join(part).is_dir();
    match name {
        "node" if has("lib/node_modules/npm") || has("include/node") => Some(of(NODE)),
        "go" if has("src/runtime") => Some(of(GO)),
        // Not the registry and its credentials beside them.
        _ if directory.join("rustup").is_file() => Some(of(&["bin"])),
        "zsh" if has("lib/zsh") => Some([vec![program.to_owned()], of(ZSH)].concat()),
        _ => None,
    }
}

/// Returns the parts of a directory of rustup: the compilers, and which is the default.
pub(super) fn of_rustup(root: &Path) -> Option<Vec<PathBuf>> {
    // It makes the last one whenever that is missing.
    let parts = ["settings.toml", "toolchains", "update-hashes"].map(|part| root.join(part));
    let found: Vec<PathBuf> = parts.into_iter().filter(|part| part.exists()).collect();
    (found.len() > 1).then_some(found)
}

/// Returns `lib/python3.13` and the like. A directory with nothing but packages is not an
/// installation: `pip install --user` makes it, below a home.
fn libraries(prefix: &Path) -> Vec<PathBuf> {
    let within = |lib: &str| {
        let names = fs::read_dir(prefix.join(lib)).into_iter().flatten().filter_map(Result::ok);
        let is_pythons = |name: &str| ["python", "pypy"].iter().any(|kind| name.starts_with(kind));
        names
            .filter(|entry| entry.file_name().to_str().is_some_and(is_pythons))
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect::<Vec<_>>()
    };
    [within("lib"), within("lib64")].concat()
}

/// Returns the versions that shims would choose in this workspace.
fn shims(root: &Path, workspace: &Path) -> Option<Vec<PathBuf>> {
    let chosen_by = [("pyenv", ".python-version"), ("nodenv", ".node-version")];
    let (_, file) =
        chosen_by.into_iter().find(|(name, _)| root.join("libexec").join(name).is_file())?;
    let mut versions = Vec::new();
    for path in [workspace.join(file), root.join("version")] {
        for word in fs::read_to_string(path).unwrap_or_default().split_whitespace() {
            versions.extend(versions_called(&root.join("versions"), word));
        }
    }
    Some(versions)
}

/// Returns the matching versions: `3.12` matches `3.12.1` and `3.12.7`. A virtual
/// environment is a link into the version that it was made with, which is shown as well.
fn versions_called(versions: &Path, word: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(versions).into_iter().flatten().filter_map(Result::ok);
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_meant = |name: &String| {
        name.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut found: Vec<PathBuf> = names.filter(is_meant).map(|name| versions.join(name)).collect();
    let bases: Vec<PathBuf> = found
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter_map(|real| {
            let below = real.strip_prefix(fs::canonicalize(versions).ok()?).ok()?;
            Some(versions.join(below.components().next()?))
        })
        .collect();
    found.extend(bases);
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn with(files: &[&str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            for file in files {
                let path = directory.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Self(directory)
        }

        fn parts(&self, program: &str) -> Option<Vec<String>> {
            let root = self.0.path();
            let parts = parts(&root.join(program), &root.join("workspace"))?;
            let below = parts.iter().map(|part| part.strip_prefix(root).unwrap());
            Some(below.map(|part| part.to_str().unwrap().to_owned()).collect())
        }
    }

    #[test]
    fn a_program_in_a_directory_of_its_own_is_no_installation() {
        let tree = Tree::with(&[
            "bin/bash",
            "bin/python3",
            "bin/node",
            "lib/python3.13/site-packages/x.py",
            "lib/node_modules/mine/index.js",
            "private/secret",
        ]);
        for name in ["bin/bash", "bin/python3", "bin/node"] {
            assert_eq!(tree.parts(name), None, "{name}");
        }
    }

    #[test]
    fn of_an_installation_its_own_parts_are_shown() {
        let python = Tree::with(&["bin/python3", "lib/python3.13/os.py", "private/secret"]);
        assert_eq!(python.parts("bin/python3").unwrap(), ["bin", "lib"]);
        let environment =
            Tree::with(&["bin/python3", "pyvenv.cfg", "lib/python3.13/x.py", "lib/mine.py"]);
        assert_eq!(
            environment.parts("bin/python3").unwrap(),
            ["bin", "pyvenv.cfg", "lib/python3.13"]
        );
        let node = Tree::with(&["bin/node", "lib/node_modules/npm/index.js", "lib/mine", "work/x"]);
        assert_eq!(node.parts("bin/node").unwrap(), ["bin", "lib/node_modules"]);
        let brew = Tree::with(&["bin/brew", "bin/bash", "Cellar/bash/5/bin/bash", "var/db/x"]);
        assert_eq!(brew.parts("bin/bash").unwrap(), ["bin", "Cellar"]);
    }

    #[test]
    fn of_many_versions_the_chosen_ones_are_shown() {
        let tree = Tree::with(&[
            "libexec/pyenv",
            "shims/python3",
            "versions/3.11.7/envs/mine/pyvenv.cfg",
            "versions/3.12.1/bin/python3",
            "versions/3.1.0/bin/python3",
            "versions/3.9.1/bin/python3",
            "cache/x",
            "workspace/.python-version",
        ]);
        let root = tree.0.path();
        std::os::unix::fs::symlink("3.11.7/envs/mine", root.join("versions/mine")).unwrap();
        fs::write(root.join("version"), "3.12\n").unwrap();
        fs::write(root.join("workspace/.python-version"), "mine\n").unwrap();
        assert_eq!(
            tree.parts("shims/python3").unwrap(),
            ["shims", "libexec", "version", "versions/3.11.7", "versions/mine", "versions/3.12.1"]
        );
    }
}
