//! What is done before each run of a session that takes checkpoints by itself.
//!
//! A shell's state is written down by a fork of it, which takes longer than many
//! a run; and a run may end the shell. So the run waits for it, though not for
//! ever: what a shell does with itself must not keep it from being used.

use super::Keeper;
use super::workspace::Purpose;
use sessile_protocol::{Auto, Language, RunNo};
use sessile_session::{Epoch, Input, PointId, Tick};

/// A shell that has not written its state down by then has a reason that will
/// not go away; the checkpoint does without.
const PATIENCE: Tick = 2000;

/// A run that waits for its checkpoint.
#[derive(Debug)]
pub(super) struct Preparing {
    point: PointId,
    language: Language,
    epoch: Epoch,
    run: RunNo,
    pub(super) due: Tick,
}

impl Keeper {
    pub(super) fn prepare(&mut self, language: Language, epoch: Epoch, run: RunNo) {
        let Some(auto) = self.home.boot.auto else {
            return self.prepared(language, epoch, run);
        };
        let as_of = self.session.states().find(|(other, _)| *other == language);
        let point = self.checkpoint_before(run, auto);
        let preparing = Preparing { point, language, epoch, run, due: self.now() + PATIENCE };
        if language.is_shell() && self.is_coming_in(point, language) {
            let live = self.kernels.live.get_mut(&language);
            if let (Some(live), Some((_, as_of))) = (live, as_of) {
                live.capture_floor = self.kernels.origins.floor();
                let _ = live.kernel.capture(as_of);
            }
            self.branches.preparing.push(preparing);
        } else {
            self.go_on_preparing(&preparing, auto);
        }
    }

    /// A state has been written down, or will not be; or the time for it is over.
    pub(super) fn pump_preparing(&mut self) {
        let Some(auto) = self.home.boot.auto else {
            return;
        };
        let now = self.now();
        for preparing in std::mem::take(&mut self.branches.preparing) {
            if preparing.due > now && self.is_coming_in(preparing.point, preparing.language) {
                self.branches.preparing.push(preparing);
            } else {
                self.go_on_preparing(&preparing, auto);
            }
        }
    }

    fn go_on_preparing(&mut self, preparing: &Preparing, auto: Auto) {
        let Preparing { point, language, epoch, run, .. } = *preparing;
        let purpose = Purpose::Prepare { point, language, epoch, run };
        if !auto.files || !self.take_files(point, purpose) {
            self.prepared(language, epoch, run);
        }
    }

    pub(super) fn prepared(&mut self, language: Language, epoch: Epoch, run: RunNo) {
        self.step(Input::Prepared { language, epoch, run });
    }

    pub(super) fn preparing_due(&self) -> Option<Tick> {
        self.branches.preparing.iter().map(|preparing| preparing.due).min()
    }
}
