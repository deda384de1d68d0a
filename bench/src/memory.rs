//! Memory of idle sessions, as the system counts it.

use crate::session::Session;
use anyhow::Context;
use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::Language;
use std::path::Path;

const SESSIONS: usize = 50;

/// Returns the private and proportional kilobytes of a process.
pub(crate) fn of(pid: u32) -> anyhow::Result<(u64, u64)> {
    let memory = process(pid).and_then(Process::memory_use).context("no such process")?;
    Ok((memory.private, memory.proportional))
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let children = process(pid).map(Process::children).unwrap_or_default();
    children.into_iter().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()).collect()
}

pub(crate) fn parent(pid: u32) -> anyhow::Result<u32> {
    let stat = process(pid).and_then(Process::stat).context("no such process")?;
    Ok(stat.parent.context("no parent")?.as_raw_nonzero().get().cast_unsigned())
}

pub(crate) fn process(pid: u32) -> Option<Process> {
    Pid::from_raw(pid.cast_signed()).map(Process::new)
}

/// Returns the available kilobytes of the machine.
pub(crate) fn available() -> anyhow::Result<u64> {
    sessile_proc::available_memory().context("/proc/meminfo does not say it")
}

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    for (language, code, limit) in [(Language::Bash, "x=1", 1.5), (Language::Python, "x = 1", 8.0)]
    {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let mut session = Session::start(sessile, language)?;
            session.run(code)?;
            sessions.push(session);
        }
        // The capture after a run is over when the state is returned.
        let (mut private, mut keeper_pss, mut guardian_pss, mut kernel_pss) = (0, 0, 0, 0);
        for session in &mut sessions {
            session.settle()?;
            let (own, pss) = of(session.keeper)?;
            private += own;
            keeper_pss += pss;
            guardian_pss += of(parent(session.keeper)?)?.1;
            for kernel in children(session.keeper) {
                // A fork for a capture may be gone by now.
                kernel_pss += of(kernel).map_or(0, |(_, pss)| pss);
            }
        }
        let each = |sum: u64| sum / SESSIONS as u64;
        println!(
            "  {language}: keeper {} kB private, PSS a session at {SESSIONS}: keeper {} + guardian {} + kernel {} kB",
            each(private),
            each(keeper_pss),
            each(guardian_pss),
            each(kernel_pss)
        );
        let total = (keeper_pss + guardian_pss + kernel_pss) as f64 / SESSIONS as f64 / 1024.0;
        crate::stats::print_ratio(&format!("{language}: MiB a session"), total, Some(limit));
        crate::stats::print_ratio(
            "keeper's private MiB",
            private as f64 / SESSIONS as f64 / 1024.0,
            Some(0.5),
        );
    }
    Ok(())
}
