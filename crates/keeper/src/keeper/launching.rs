//! Starts a kernel's process.

use super::home::Home;
use super::live::{Inheritance, Kernels, Live};
use crate::kernels::{Plan, Previous};
use crate::labels::Label;
use crate::reactor::{Interest, Reactor};
use crate::shortage::of_scratch;
use crate::source::Source;
use crate::streams::Stream;
use sessile_protocol::{Code, Failure, KernelProgram, Language};
use sessile_session::Epoch;
use sessile_store::{SavedKernel, StreamName};
use std::io;
use std::path::PathBuf;

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

/// Starts a kernel that takes over the saved state.
pub(super) fn launch(
    (language, epoch): (Language, Epoch),
    saved: Option<&SavedKernel>,
    label: Option<Label>,
    home: &Home,
    kernels: &mut Kernels,
    reactor: &Reactor<Source>,
) -> Result<(), Failure> {
    let what = format!("cannot start {language}");
    let text = |error: io::Error| of_scratch(Code::KernelUnavailable, &what, &error);
    let directory = home.scratch.subdirectory(letter(language)).map_err(text)?;
    let stdout = Stream::create(&directory, StreamName::Stdout).map_err(text)?;
    let stderr = Stream::create(&directory, StreamName::Stderr).map_err(text)?;
    let program = program(home, language);
    let sandbox = home.confined.as_ref().map(|confined| confined.living()).transpose();
    let sandbox = sandbox.map_err(text)?;
    let plan = Plan {
        kernel: &program,
        directory: directory.clone(),
        sandbox: sandbox.as_deref(),
        tree: home.confined.as_ref().and_then(|confined| confined.tree()),
        env: &home.env,
        cwd: home.work_dir(),
        previous: Previous {
            state: saved,
            status: kernels.last_status.get(&language).copied().unwrap_or(0),
        },
        label,
    };
    let spawned = plan.spawn().map_err(|error| {
        let shortage = error.shortage();
        Failure::because(Code::KernelUnavailable, &what, &error).with_shortage(shortage)
    })?;
    reactor.add(&spawned.reports, Source::Reports(language), Interest::Read).map_err(text)?;
    kernels.origins.add_kernel(spawned.pid, language);
    let streams = (stdout, stderr);
    let live = Live::new(epoch, spawned.pid, spawned.kernel, spawned.reports, streams, directory);
    let inheritance = saved.and_then(|saved| inheritance(home, saved));
    kernels.live.insert(language, Live { inheritance, ..live });
    kernels.launch_failures.remove(&language);
    Ok(())
}

/// Returns the state file that a kernel takes over, and its working directory.
fn inheritance(home: &Home, saved: &SavedKernel) -> Option<Inheritance> {
    // If the file is gone, the kernel does not find it either, and says so.
    let name = saved.dump.as_deref()?;
    let dump = home.dumps().give(name).ok().or_else(|| home.directory.dump(name))?;
    let cwd = saved.view.get("working_dir").and_then(|cwd| cwd.as_str()).map(PathBuf::from);
    Some(Inheritance { dump, cwd: cwd.filter(|cwd| home.has_directory(cwd)) })
}

/// Returns the program of a language: the one the session was started with, or the one
/// that is found in its PATH.
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
