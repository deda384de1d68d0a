//! Signals to a kernel whose run should end.

use super::live::{Force, Live};
use crate::kernels::SignalTarget;
use crate::processes::{self, Caught};
use rustix::process::{Pid, Signal};
use sessile_session::Pressure;

impl Live {
    pub(super) fn press(&mut self, pressure: Pressure) {
        let work = self.pressed_work(pressure);
        let to_work = match pressure {
            Pressure::Interrupt => Signal::INT,
            Pressure::Terminate => Signal::TERM,
            Pressure::KillWork | Pressure::KillKernel => Signal::KILL,
        };
        // Once per run: however the foreground program ends, the shell must not go on
        // with the next command.
        let caught = Caught::by(self.pid);
        if self.force == Force::None
            && let Some(number) = self.kernel.stop_signal(caught)
        {
            processes::signal_by_number(self.pid, number);
        }
        if pressure >= Pressure::Terminate
            && let Some(number) = self.kernel.halt_signal(caught)
        {
            processes::signal_by_number(self.pid, number);
        }
        self.force = self.force.max(Force::Signals);
        if let Some(run) = self.current {
            self.kernel.pressing(run);
        }
        // The kernel first: a shell treats its child's death by SIGINT as an interrupt of
        // its own only if it has received one.
        let to_kernel = match pressure {
            Pressure::Interrupt | Pressure::Terminate | Pressure::KillWork => {
                self.kernel.interrupt_signal(caught)
            }
            Pressure::KillKernel => Some(libc::SIGKILL),
        };
        if let Some(number) = to_kernel {
            processes::signal_by_number(self.pid, number);
        }
        processes::signal(&work, to_work);
        // A stopped process could not act on these signals.
        processes::signal(&[self.pid], Signal::CONT);
        processes::signal(&work, Signal::CONT);
        if let Some(run) = self.current {
            let _ = self.kernel.pressed(run, SignalTarget::Kernel);
        }
    }

    fn pressed_work(&self, pressure: Pressure) -> Vec<Pid> {
        match pressure {
            Pressure::Interrupt | Pressure::Terminate => self.awaited(),
            Pressure::KillWork | Pressure::KillKernel if self.kernel.waits_for_jobs() => {
                self.started()
            }
            Pressure::KillWork | Pressure::KillKernel => self.foreground(),
        }
    }
}
