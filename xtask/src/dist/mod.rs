//! Release packages: a plain archive, a Debian package, a wheel and npm packages, each with
//! the program, in `target/dist`. Each is then installed in a clean environment, and has to
//! run its README's example.

mod architecture;
mod checks;
mod debian;
mod packages;
mod readme;

use crate::run;
use anyhow::{Context, bail};
use architecture::Architecture;
use std::fs;
use std::path::{Path, PathBuf};

/// The common properties of all packages.
struct Release {
    version: String,
    architecture: Architecture,
    /// The cargo profile of the program.
    profile: &'static str,
    /// The program.
    binary: PathBuf,
    /// The lowest version of the C library that it runs with: `(2, 34)`.
    libc: (u32, u32),
    /// Output directory.
    folder: PathBuf,
    /// Directory in which packages are assembled.
    work: PathBuf,
}

/// The packages that were made.
struct Made {
    archive: PathBuf,
    debian: PathBuf,
    wheel: PathBuf,
    /// Only the SDK, for other machines.
    pure_wheel: PathBuf,
    /// The SDK, and its program.
    npm: [PathBuf; 2],
}

/// `cargo xtask dist [--profile dev]`.
pub(crate) fn dist() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let profile = match args.as_slice() {
        [] | ["--profile", "release"] => "release",
        ["--profile", "dev"] => "dev",
        _ => bail!("dist takes --profile release or --profile dev, not {}", args.join(" ")),
    };
    run::cargo(&["build", "--workspace", "--bins", "--profile", profile])?;
    let built = if profile == "dev" { "debug" } else { profile };
    let release = Release::of(&run::target().join(built).join("sessile"), profile)?;
    let wheel = release.wheel()?;
    let made = Made {
        archive: release.archive()?,
        debian: release.debian()?,
        pure_wheel: release.wheel_without_program(&wheel)?,
        wheel,
        npm: release.npm()?,
    };
    checks::archive(&release, &made.archive)?;
    checks::debian(&release, &made.debian)?;
    checks::wheel(&release, &made.wheel)?;
    checks::pure_wheel(&release, &made.pure_wheel)?;
    checks::npm(&release, &made.npm)?;
    let [sdk, program] = &made.npm;
    for package in [&made.archive, &made.debian, &made.wheel, &made.pure_wheel, sdk, program] {
        println!("{} ({} bytes)", package.display(), fs::metadata(package)?.len());
    }
    Ok(())
}

impl Release {
    fn of(binary: &Path, profile: &'static str) -> anyhow::Result<Self> {
        let architecture = Architecture::here()?;
        let said = run::output(&shown(binary), &["--version"])?;
        let version = said.split_whitespace().nth(1).context("the program has no version")?;
        let folder = run::target().join("dist");
        let work = folder.join("work");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&work)?;
        // Only the release build has no debug symbols already.
        let stripped = work.join("sessile");
        run::program("strip", &["-o", &shown(&stripped), &shown(binary)])?;
        Ok(Self {
            version: version.to_owned(),
            architecture,
            profile,
            libc: libc(&fs::read(&stripped)?).context("the program needs no C library?")?,
            binary: stripped,
            folder,
            work,
        })
    }
}

/// Returns the newest version of the C library among a program's symbols.
fn libc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_2.";
    let versions = program.windows(MARK.len() + 3).filter_map(|bytes| {
        let digits = bytes.strip_prefix(MARK)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
    });
    versions.max().map(|minor| (2, minor))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_newest_symbol_says_which_c_library_is_needed() {
        assert_eq!(super::libc(b"..GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.17\0..."), Some((2, 34)));
        assert_eq!(super::libc(b"nothing"), None);
    }
}
