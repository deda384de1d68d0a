//! Makes the packages.

use super::{Release, shown};
use crate::{clients, run};
use anyhow::{Context, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const PYTHON: &str = "sdk/python";
const NODE: &str = "sdk/typescript";

/// Makes the wheel, with the program and the SDK.
const MATURIN: &str = "maturin==1.16.0";

/// Both licences are in each package.
pub(super) const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

impl Release {
    /// Writes the program, manual pages and completions with their paths below /usr.
    pub(super) fn tree(&self, root: &Path) -> anyhow::Result<()> {
        let program = root.join("bin/sessile");
        put(&program, &fs::read(&self.binary)?)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        let ask = |args: &[&str]| run::output(&shown(&self.binary), args);
        put(&root.join("share/man/man1/sessile.1"), ask(&["man"])?.as_bytes())?;
        for command in commands(&ask(&["--help"])?) {
            let page = root.join(format!("share/man/man1/sessile-{command}.1"));
            put(&page, ask(&["man", &command])?.as_bytes())?;
        }
        for (shell, place) in [
            ("bash", "share/bash-completion/completions/sessile"),
            ("zsh", "share/zsh/site-functions/_sessile"),
            ("fish", "share/fish/vendor_completions.d/sessile.fish"),
        ] {
            put(&root.join(place), ask(&["completions", shell])?.as_bytes())?;
        }
        for name in ["README.md"].into_iter().chain(LICENCES) {
            put(&root.join("share/doc/sessile").join(name), &fs::read(run::root().join(name))?)?;
        }
        Ok(())
    }

    pub(super) fn archive(&self) -> anyhow::Result<PathBuf> {
        let name = format!("sessile-{}-{}-linux", self.version, self.architecture.rust);
        self.tree(&self.work.join(&name))?;
        let archive = self.folder.join(format!("{name}.tar.gz"));
        let plain = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
        let what = ["-czf", &shown(&archive), "-C", &shown(&self.work), &name];
        run::program("tar", &[&plain[..], &what].concat())?;
        Ok(archive)
    }

    /// Makes the wheel with maturin, which names it after the C library and the
    /// architecture that the program needs.
    pub(super) fn wheel(&self) -> anyhow::Result<PathBuf> {
        // Built from a copy, because a build leaves files behind.
        let source = self.work.join("python");
        copy(PYTHON, &source)?;
        licences(&source)?;
        let project = fs::read_to_string(source.join("pyproject.toml"))?;
        let root = run::root().display().to_string();
        put(
            &source.join("pyproject.toml"),
            project.replace("\"../..", &format!("\"{root}")).as_bytes(),
        )?;
        let folder = run::target().join("maturin");
        let python = clients::python_environment(&folder, "python3", &[MATURIN])?;
        let wheels = self.work.join("wheel");
        let maturin = python.replace("bin/python", "bin/maturin");
        let build = format!(
            "cd '{}' && CARGO_TARGET_DIR='{}' '{maturin}' build --strip --profile {} --out '{}'",
            source.display(),
            run::target().display(),
            self.profile,
            wheels.display()
        );
        run::program("sh", &["-c", &build])?;
        let found = fs::read_dir(&wheels)?.flatten().map(|entry| entry.path()).next();
        let found = found.context("no wheel was built")?;
        let name = found.file_name().context("a wheel has a name")?;
        let begins = format!("sessile-{}-py3-none-manylinux_", self.version);
        let is_named = name.to_string_lossy().starts_with(&begins);
        ensure!(is_named, "{} does not begin with {begins}", found.display());
        let wheel = self.folder.join(name);
        fs::rename(&found, &wheel)?;
        Ok(wheel)
    }

    /// Makes the wheel without the program, for machines without a wheel.
    pub(super) fn wheel_without_program(&self, wheel: &Path) -> anyhow::Result<PathBuf> {
        let script = format!("{PYTHON}/scripts/without_program.py");
        let made = run::output("python3", &[&script, &shown(wheel)])?;
        Ok(PathBuf::from(made.trim()))
    }

    pub(super) fn npm(&self) -> anyhow::Result<[PathBuf; 2]> {
        let sdk = self.work.join("npm");
        copy(NODE, &sdk)?;
        let inside = |script: &str| -> anyhow::Result<()> {
            run::program("sh", &["-c", &format!("cd '{}' && {script}", sdk.display())])
        };
        inside("npm ci --silent --no-audit --no-fund && npm run --silent build")?;
        inside(&format!("npm pkg set version={}", self.version))?;
        let script = shown(&sdk.join("scripts/pack.mjs"));
        let root = shown(&run::root());
        let (binary, folder) = (shown(&self.binary), shown(&self.folder));
        let what = [&script, "--binary", &binary, "--out", &folder, "--licences", &root];
        let arch = ["--platform", "linux", "--arch", self.architecture.node];
        run::program("node", &[&what[..], &arch].concat())?;
        // npm names its archives after the package.
        let packed = |name: &str| self.folder.join(format!("{name}-{}.tgz", self.version));
        let carrier = self.architecture.npm().replace('@', "").replace('/', "-");
        Ok([packed("sessile"), packed(&carrier)])
    }
}

fn licences(folder: &Path) -> anyhow::Result<()> {
    for name in LICENCES {
        put(&folder.join(name), &fs::read(run::root().join(name))?)?;
    }
    Ok(())
}

/// Copies the files of a folder that are in the repository.
fn copy(folder: &str, to: &Path) -> anyhow::Result<()> {
    let files = run::output("git", &["ls-files", "-z", folder])?;
    for file in files.split('\0').filter(|file| !file.is_empty()) {
        let name = Path::new(file).strip_prefix(folder)?;
        put(&to.join(name), &fs::read(run::root().join(file))?)?;
    }
    Ok(())
}

pub(super) fn put(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
