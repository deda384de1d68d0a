//! The Debian package: it depends on the libraries that the program is linked with.

use super::{Release, shown};
use crate::run;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

impl Release {
    pub(super) fn debian(&self) -> anyhow::Result<PathBuf> {
        let root = self.work.join("debian");
        self.tree(&root.join("usr"))?;
        let arch = self.architecture.debian;
        let libraries = run::output("ldd", &[&shown(&self.binary)])?;
        let depends = depends(&packages_of(&libraries)?, self.libc);
        let control = format!(
            "Package: sessile\nVersion: {}\nArchitecture: {arch}\nSection: devel\nPriority: optional\n\
             Maintainer: The Sessile authors <sessile@localhost>\n\
             Depends: {depends}\n\
             Recommends: bash\nSuggests: python3, nodejs, zsh\n\
             Description: live shells, Python and Node that remember, for agents\n \
             Sessions that keep their directory, variables and processes from one call\n \
             to the next, on the command line, over HTTP and MCP.\n",
            self.version
        );
        super::packages::put(&root.join("DEBIAN/control"), control.as_bytes())?;
        let package = self.folder.join(format!("sessile_{}_{arch}.deb", self.version));
        let options = ["--build", "--root-owner-group", "-z1", &shown(&root), &shown(&package)];
        run::program("dpkg-deb", &options)?;
        Ok(package)
    }
}

/// Returns the packages with the libraries that `ldd` lists.
fn packages_of(libraries: &str) -> anyhow::Result<BTreeSet<&'static str>> {
    let names = libraries.lines().filter_map(|line| line.split_whitespace().next());
    let names = names.map(|name| name.rsplit('/').next().unwrap_or(name));
    let wanted = names.filter(|name| !name.starts_with("linux-vdso"));
    wanted
        .map(|name| match name.split(".so").next().unwrap_or(name) {
            "libc" | "libm" | "libdl" | "librt" | "libpthread" => Ok("libc6"),
            loader if loader.starts_with("ld-linux") => Ok("libc6"),
            "libgcc_s" => Ok("libgcc-s1"),
            _ => bail!("the program is linked with {name}; say here which package has it"),
        })
        .collect()
}

fn depends(packages: &BTreeSet<&str>, (major, minor): (u32, u32)) -> String {
    let one = |package: &&str| match *package {
        "libc6" => format!("libc6 (>= {major}.{minor})"),
        other => other.to_owned(),
    };
    packages.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Installs a package below its own root, with records of only its dependencies: dpkg
/// refuses a package whose dependencies are not met.
pub(super) fn install(package: &Path, root: &Path) -> anyhow::Result<()> {
    let records = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(records.join(folder))?;
    }
    let depends = run::output("dpkg-deb", &["--field", &shown(package), "Depends"])?;
    let names = depends.split(',').filter_map(|one| one.split_whitespace().next());
    let here = run::output("dpkg-query", &[&["--status"], &names.collect::<Vec<_>>()[..]].concat());
    let here = here.context("this machine does not have what the package depends on")?;
    fs::write(records.join("status"), here)?;
    let options = ["--force-bad-path", "--force-script-chrootless", "--log=/dev/null"];
    let what = [&format!("--root={}", root.display()), "--install", &shown(package)];
    let call = [&["dpkg"], &options[..], &what].concat();
    // The files belong to root; other users run it in a namespace where they are root.
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    match is_root {
        true => run::program(call[0], &call[1..]),
        false => run::program("unshare", &[&["--map-root-user"], &call[..]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::{depends, packages_of};

    #[test]
    fn dependencies_are_the_packages_of_the_libraries_that_the_program_is_linked_with() {
        let said = "\tlinux-vdso.so.1 (0x0)\n\tlibgcc_s.so.1 => /lib/libgcc_s.so.1 (0x0)\n\
                    \tlibm.so.6 => /lib/libm.so.6 (0x0)\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x0)\n";
        let packages = packages_of(said).expect("all are known");
        assert_eq!(depends(&packages, (2, 34)), "libc6 (>= 2.34), libgcc-s1");
        let error = packages_of("\tlibssl.so.3 => /lib/libssl.so.3 (0x0)\n").expect_err("unknown");
        assert!(error.to_string().contains("libssl.so.3"), "{error}");
    }
}
