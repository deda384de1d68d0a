//! Kernels write their state before an operation uses it.

use super::queue::Patience;
use super::{COPY_PATIENCE, Context, ImageId, Operations, Order};
use crate::effect::Tick;
use crate::input::Input;
use sessile_protocol::Language;

/// A kernel that does not describe its state within this time is busy; the operation uses
/// the last captured state.
const GATHERING_PATIENCE: Tick = 2000;

/// A dump may be gigabytes.
const DUMP_PATIENCE: Tick = 120_000;

/// What an operation waits for before it begins its own work.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) order: Order,
    /// Kernels that have not described their state.
    pub(crate) missing: Vec<Language>,
    /// Images that are pending.
    pub(crate) images: Vec<ImageId>,
}

impl Operations {
    pub(crate) fn gather(
        &mut self,
        order: Order,
        context: &mut Context<'_>,
    ) -> (Gathering, Patience) {
        let (mut missing, mut images, mut patience) = (Vec::new(), Vec::new(), GATHERING_PATIENCE);
        match &order {
            // A kernel that cannot be copied as a process writes its state.
            Order::Fork(_) | Order::Checkpoint(_) => {
                let there = context.core.states().map(|(language, _)| language);
                missing.extend(there.filter(|language| *language != Language::Python));
                if !missing.is_empty() {
                    let effects = context.core.step(Input::Inspect, context.now);
                    context.out.extend(effects);
                }
                if missing.contains(&Language::Node) {
                    images.extend(self.checkpoints.image_of_kernel(Language::Node, context));
                    patience = DUMP_PATIENCE;
                }
            }
            // Some may have been ordered a moment ago, from kernels that a rewind replaces.
            Order::Rewind(_) | Order::Drop(_) => {
                images = self.checkpoints.images().pending();
                patience = COPY_PATIENCE;
            }
        }
        (Gathering { order, missing, images }, Patience(patience))
    }

    pub(crate) fn is_gathered(&self, gathering: &Gathering) -> bool {
        let is_pending = |id: &ImageId| self.checkpoints.images().is_pending(*id);
        gathering.missing.is_empty() && !gathering.images.iter().any(is_pending)
    }
}
