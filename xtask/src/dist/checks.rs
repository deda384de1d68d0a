//! Installs each package in a clean environment, and runs its README's example.

use super::packages::LICENCES;
use super::readme::{Console, block};
use super::{Release, debian, shown};
use crate::run;
use anyhow::{Context, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn archive(release: &Release, archive: &Path) -> anyhow::Result<()> {
    let place = release.clean("archive")?;
    run::program("tar", &["-xzf", &shown(archive), "-C", &shown(&place), "--strip-components=1"])?;
    program(&place, &place)
}

pub(super) fn debian(release: &Release, package: &Path) -> anyhow::Result<()> {
    let place = release.clean("debian")?;
    let root = place.join("root");
    debian::install(package, &root)?;
    program(&place, &root.join("usr"))
}

/// Checks a tree with the program.
fn program(home: &Path, usr: &Path) -> anyhow::Result<()> {
    for page in ["share/man/man1/sessile.1", "share/man/man1/sessile-exec.1"] {
        ensure!(fs::read_to_string(usr.join(page))?.contains(".TH"), "{page} is no manual page");
    }
    for script in ["share/bash-completion/completions/sessile", "share/zsh/site-functions/_sessile"]
    {
        ensure!(fs::metadata(usr.join(script))?.len() > 0, "{script} is empty");
    }
    licensed(&usr.join("share/doc/sessile"))?;
    let example = Console::of(&fs::read_to_string(usr.join("share/doc/sessile/README.md"))?)?;
    let project = home.join("project");
    fs::create_dir_all(&project)?;
    let user = User { home, directory: &project, bin: usr.join("bin") };
    example.expect(&user.said("sh", &["-c", &example.script])?, &shown(&project))
}

/// Installs a wheel into its own environment.
fn installed(place: &Path, wheel: &Path) -> anyhow::Result<PathBuf> {
    let environment = place.join("environment");
    run::program("python3", &["-m", "venv", &shown(&environment)])?;
    let pip = shown(&environment.join("bin/pip"));
    run::program(&pip, &["install", "--quiet", "--disable-pip-version-check", &shown(wheel)])?;
    Ok(environment)
}

/// Checks that the wheel without the program explains what to do, and works with `SESSILE_BIN`.
pub(super) fn pure_wheel(release: &Release, wheel: &Path) -> anyhow::Result<()> {
    let place = release.clean("python-alone")?;
    let environment = installed(&place, wheel)?;
    let user = User { home: &place, directory: &place, bin: environment.join("bin") };
    ensure!(!user.bin.join("sessile").exists(), "{} has the program", wheel.display());
    let say = "import sessile\ntry: sessile.Session()\n\
               except sessile.BinaryNotFoundError as error: print(error)";
    let said = user.said("python", &["-c", say])?;
    ensure!(said.contains("SESSILE_BIN"), "it does not say what to do: {said}");
    let use_it = "import os, subprocess, sys\nos.environ['SESSILE_BIN'] = program = sys.argv[1]\n\
                  import sessile, json\n\
                  with sessile.Session() as session: print(session.exec('echo $((6*7))').stdout)\n\
                  told = subprocess.check_output([program, 'serve', '--local', '--background'])\n\
                  os.kill(json.loads(told)['pid'], 15)";
    expect(&user.said("python", &["-c", use_it, &shown(&release.binary)])?, "42\n\n")
}

pub(super) fn wheel(release: &Release, wheel: &Path) -> anyhow::Result<()> {
    let place = release.clean("python")?;
    let environment = installed(&place, wheel)?;
    let user = User { home: &place, directory: &place, bin: environment.join("bin") };
    let find = "from importlib.metadata import distribution; \
                print(distribution('sessile')._path / 'licenses')";
    licensed(Path::new(user.said("python", &["-c", find])?.trim()))?;
    user.has_the_command()?;
    let version = user.said("python", &["-c", "import sessile; print(sessile.__version__)"])?;
    expect(&version, &format!("{}\n", release.version))?;
    let readme = fs::read_to_string(run::root().join("sdk/python/README.md"))?;
    let example = block(&readme, "python").context("the README has no example")?;
    let shows = block(&readme, "text output").context("the README shows no output")?;
    let outcome = user.said("python", &["-c", example]);
    user.stop_server();
    expect(&outcome?, shows)
}

pub(super) fn npm(release: &Release, packages: &[PathBuf; 2]) -> anyhow::Result<()> {
    let place = release.clean("node")?;
    fs::write(place.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n")?;
    let [sdk, program] = packages.each_ref().map(|package| shown(package));
    let options = ["install", "--silent", "--no-audit", "--no-fund", "--prefix"];
    run::program("npm", &[&options[..], &[&shown(&place), &sdk, &program]].concat())?;
    let modules = place.join("node_modules");
    let carrier = modules.join(release.architecture.npm());
    for folder in [modules.join("sessile"), carrier] {
        licensed(&folder)?;
        ensure!(folder.join("README.md").exists(), "{} has no README", folder.display());
    }
    let readme = fs::read_to_string(modules.join("sessile/README.md"))?;
    let example = block(&readme, "ts").context("the README has no example")?;
    let shows = example.lines().filter_map(|line| line.strip_prefix("// → "));
    let shows: String = shows.map(|line| format!("{line}\n")).collect();
    // As the README says for Node versions without `await using`.
    let example = example.replace("await using session", "const session");
    fs::write(place.join("example.mjs"), format!("{example}\nawait session.end();\n"))?;
    let user = User { home: &place, directory: &place, bin: modules.join(".bin") };
    let outcome = user.said("node", &["example.mjs"]);
    user.stop_server();
    expect(&outcome?, &shows)?;
    user.has_the_command()
}

fn licensed(folder: &Path) -> anyhow::Result<()> {
    for name in LICENCES {
        ensure!(folder.join(name).exists(), "{} has no {name}", folder.display());
    }
    Ok(())
}

fn expect(said: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(said == wanted, "the example says\n{said}and not\n{wanted}");
    Ok(())
}

impl Release {
    /// Returns an empty directory.
    fn clean(&self, name: &str) -> anyhow::Result<PathBuf> {
        let place = self.work.join("checks").join(name);
        fs::create_dir_all(&place)?;
        Ok(place)
    }
}

/// A user who has installed one package, and nothing else of ours.
struct User<'a> {
    home: &'a Path,
    directory: &'a Path,
    /// The directory with the package's programs.
    bin: PathBuf,
}

impl User<'_> {
    fn said(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(program)?.args(args).output();
        let output = output.with_context(|| format!("cannot run {program}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} failed ({}): {errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Checks a basic use of a session on the command line.
    fn has_the_command(&self) -> anyhow::Result<()> {
        expect(&self.said("sessile", &["run", "x=41", "echo $((x+1))"])?, "42\n")
    }

    fn command(&self, program: &str) -> anyhow::Result<Command> {
        // Through a shell, which finds programs in the PATH that we set.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\"", program]);
        command.env_clear().env("PATH", self.path()?).env("LC_ALL", "C.UTF-8");
        command.env("HOME", self.home).env("XDG_STATE_HOME", self.home.join("state"));
        command.current_dir(self.directory);
        Ok(command)
    }

    /// Returns a PATH with the package's programs, and no other `sessile`.
    fn path(&self) -> anyhow::Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let others = std::env::split_paths(&path).filter(|place| !place.join("sessile").exists());
        Ok(std::env::join_paths(std::iter::once(self.bin.clone()).chain(others))?)
    }

    /// Stops the server that an example has started; nothing else uses it.
    fn stop_server(&self) {
        let find =
            "kill $(sessile serve --local --background | tr ',' '\\n' | sed -n 's/\"pid\"://p')";
        let _ = self.command("sh").and_then(|mut sh| Ok(sh.args(["-c", find]).status()?));
    }
}
