//! The session's state machine under random orders of events.
//!
//! A model plays the driver: it performs effects late and in any order, lets
//! kernels come up, answer, die and be captured at random, and repeats events
//! of processes that are long gone. What must hold is checked at every step.

mod world;

use proptest::prelude::*;
use sessile_session::{Close, Limits};
use world::{Act, World};

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let limit = || prop::option::of(1..3000_u64);
    let submit = (0..3_usize, limit(), limit(), any::<bool>());
    let act = prop_oneof![
        6 => submit.prop_map(|(language, timeout, silence, risky)| Act::Submit {
            language, timeout, silence, risky
        }),
        8 => any::<prop::sample::Index>().prop_map(Act::Happen),
        4 => any::<prop::sample::Index>().prop_map(Act::Die),
        2 => any::<prop::sample::Index>().prop_map(Act::Stick),
        3 => any::<prop::sample::Index>().prop_map(Act::Stale),
        2 => prop::option::of(0..40_u64).prop_map(Act::Interrupt),
        2 => Just(Act::Inspect),
        1 => Just(Act::Hold),
        2 => Just(Act::Release),
        2 => (0..3_usize, 0..3_usize).prop_map(|(language, origin)| Act::Replace { language, origin }),
        4 => any::<prop::sample::Index>().prop_map(Act::Sign),
        6 => (0..900_u64).prop_map(Act::Wait),
        1 => Just(Act::Wait(25_000)),
        1 => prop_oneof![
            3 => Just(Close::Reset),
            1 => Just(Close::End),
            1 => Just(Close::Idle)
        ].prop_map(Act::Close),
    ];
    prop::collection::vec(act, 0..120)
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop_oneof![Just(0), 1..60_000_u64], 1..8_usize, any::<bool>())
        .prop_map(|(idle_timeout, queue, gated)| Limits { idle_timeout, queue, gated })
}

/// How many random cases there are: the usual number, or what was asked for.
fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES");
    asked.ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(1000), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_order_of_events_keeps_the_promises(limits in limits(), acts in acts()) {
        World::new(limits).live(acts)?;
    }

    #[test]
    fn a_revived_session_keeps_them_too(limits in limits(), last in 0..50_u64,
                                        captured in prop::option::of(0..50_u64), acts in acts()) {
        World::revived(limits, last, captured.map(|c| c.min(last))).live(acts)?;
    }

    #[test]
    fn so_does_a_fork(limits in limits(), last in 0..50_u64, acts in acts()) {
        World::forked(limits, last).live(acts)?;
    }
}
