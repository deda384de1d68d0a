//! Starting a kernel's process.

use super::home::Home;
use super::live::{Inheritance, Kernels, Live};
use crate::kernels::{Heritage, Plan};
use crate::labels::Label;
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use crate::streams::Stream;
use sessile_protocol::{KernelProgram, Language};
use sessile_session::Epoch;
use sessile_store::{SavedKernel, StreamName};
use std::io;
use std::path::{Path, PathBuf};

/// The name of a kernel's directory.
pub(super) fn letter(language: Language) -> &'static str {
    match language {
        Language::Bash => "b",
        Language::Sh => "s",
        Language::Zsh => "z",
        Language::Python => "p",
        Language::Node => "n",
    }
}

/// Starts a kernel that takes over what was saved.
pub(super) fn launch(
    (language, epoch): (Language, Epoch),
    saved: Option<&SavedKernel>,
    label: Option<Label>,
    home: &Home,
    kernels: &mut Kernels,
    reactor: &Reactor<Source>,
) -> Result<(), String> {
    let text = |error: io::Error| format!("cannot start {language}: {error}");
    let directory = home.scratch.subdirectory(letter(language)).map_err(text)?;
    let stdout = Stream::create(&directory, StreamName::Stdout).map_err(text)?;
    let stderr = Stream::create(&directory, StreamName::Stderr).map_err(text)?;
    let program = program(home, language);
    let work_dir = &home.boot.work_dir;
    let plan = Plan {
        kernel: &program,
        directory: directory.clone(),
        env: &home.env,
        cwd: if work_dir.is_dir() { work_dir } else { Path::new("/") },
        heritage: Heritage {
            state: saved,
            status: kernels.last_status.get(&language).copied().unwrap_or(0),
        },
        label,
    };
    let spawned = plan.spawn().map_err(|error| format!("cannot start {language}: {error}"))?;
    reactor.add(&spawned.reports, Source::Reports(language), Interest::Read).map_err(text)?;
    kernels.origins.add_kernel(spawned.pid, language);
    let streams = (stdout, stderr);
    let live = Live::new(epoch, spawned.pid, spawned.kernel, spawned.reports, streams, directory);
    let inheritance = saved.and_then(|saved| inheritance(home, saved));
    kernels.live.insert(language, Live { inheritance, ..live });
    kernels.launch_failures.remove(&language);
    Ok(())
}

/// What a kernel takes over from a file, and where it is to be.
fn inheritance(home: &Home, saved: &SavedKernel) -> Option<Inheritance> {
    let dump = home.directory.dump(saved.dump.as_deref()?)?;
    let cwd = saved.view.get("working_dir").and_then(|cwd| cwd.as_str()).map(PathBuf::from);
    Some(Inheritance { dump, cwd: cwd.filter(|cwd| cwd.is_dir()) })
}

/// The program of a language: what the session was started with, or what is
/// found in its PATH.
fn program(home: &Home, language: Language) -> KernelProgram {
    if home.boot.kernel.language == language {
        return home.boot.kernel.clone();
    }
    let program = match language {
        Language::Bash => "bash",
        Language::Sh => "sh",
        Language::Zsh => "zsh",
        Language::Python => "python3",
        Language::Node => "node",
    };
    KernelProgram { language, program: program.to_owned() }
}
