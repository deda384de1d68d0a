//! The session's state machine under random orders of events.
//!
//! A model plays the driver: it performs effects late and in any order, lets
//! kernels come up, answer, die and be captured at random, has operations asked
//! for, fulfilled, failed and taken back, and repeats events that are long past.
//! What must hold is checked at every step.

mod world;

use proptest::prelude::*;
use sessile_protocol::Auto;
use sessile_session::operations::InStore;
use sessile_session::{Activity, Close, Ending, Limits};
use world::{Act, Asked, World};

/// In a session that is closed this often, and in which so much fails.
fn acts(closes: u32, failures: u32) -> impl Strategy<Value = Vec<Act>> {
    let limit = || prop::option::of(1..3000_u64);
    let submit = (0..4_usize, limit(), limit(), limit(), any::<bool>());
    let act = prop_oneof![
        6 => submit.prop_map(|(language, queue, timeout, silence, risky)| Act::Submit {
            language, queue, timeout, silence, risky
        }),
        8 => any::<prop::sample::Index>().prop_map(Act::Happen),
        failures + 1 => any::<prop::sample::Index>().prop_map(Act::Die),
        2 => any::<prop::sample::Index>().prop_map(Act::Stick),
        3 => any::<prop::sample::Index>().prop_map(Act::Stale),
        2 => prop::option::of(0..40_u64).prop_map(Act::Interrupt),
        2 => Just(Act::Inspect),
        5 => (orders(), any::<bool>()).prop_map(|(order, waits)| Act::Ask { order, waits }),
        1 => any::<prop::sample::Index>().prop_map(Act::Leave),
        9 => any::<prop::sample::Index>().prop_map(Act::Fulfil),
        failures => any::<prop::sample::Index>().prop_map(Act::Fail),
        2 => any::<prop::sample::Index>().prop_map(Act::Repeat),
        4 => any::<prop::sample::Index>().prop_map(Act::Sign),
        6 => (0..900_u64).prop_map(Act::Wait),
        1 => Just(Act::Wait(25_000)),
        closes.max(1) => prop_oneof![
            3 => Just(Close::Reset),
            1 => Just(Close::End(Ending::Asked)),
            1 => Just(Close::End(Ending::Idle)),
            1 => Just(Close::End(Ending::WithProgram))
        ].prop_map(move |why| if closes == 0 { Act::Wait(1) } else { Act::Close(why) }),
    ];
    prop::collection::vec(act, 0..120)
}

fn orders() -> impl Strategy<Value = Asked> {
    prop_oneof![
        2 => (1..4_u32, any::<bool>()).prop_map(|(count, files)| Asked::Fork { count, files }),
        4 => (0..3_usize, any::<bool>()).prop_map(|(name, files)| Asked::Checkpoint { name, files }),
        5 => (0..6_usize, any::<bool>()).prop_map(|(to, files)| Asked::Rewind { to, files }),
        1 => prop::option::of(0..3_usize).prop_map(Asked::Drop),
        4 => any::<bool>().prop_map(|files| Asked::Save { files }),
    ]
}

/// Some sessions save themselves, some of them to a store as well.
fn durability() -> impl Strategy<Value = Option<InStore>> {
    let store = prop_oneof![Just(InStore::None), Just(InStore::Current), Just(InStore::Behind)];
    prop::option::of(store)
}

fn limits() -> impl Strategy<Value = Limits> {
    let auto = prop::option::of((1..7_u32, any::<bool>()));
    let auto = auto.prop_map(|auto| auto.map(|(keep, files)| Auto { keep, files }));
    let activity = prop_oneof![Just(Activity::All), Just(Activity::Runs)];
    (prop_oneof![Just(0), 1..60_000_u64], activity, 1..8_usize, auto).prop_map(
        |(idle_timeout, activity, queue, auto)| Limits { idle_timeout, activity, queue, auto },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig { max_shrink_iters: 20_000, ..sessile_testkit::cases(600) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_order_of_events_keeps_the_promises(limits in limits(), durability in durability(),
                                                acts in acts(1, 3)) {
        World::new(limits).durable(durability).live(acts)?;
    }

    #[test]
    fn a_revived_session_keeps_them_too(limits in limits(), durability in durability(),
                                        last in 0..50_u64,
                                        captured in prop::option::of(0..50_u64), acts in acts(1, 3)) {
        World::revived(limits, last, captured.map(|c| c.min(last)))
            .durable(durability)
            .live(acts)?;
    }

    #[test]
    fn so_does_one_that_is_left_in_peace(limits in limits(), durability in durability(),
                                         acts in acts(0, 1)) {
        World::new(limits).durable(durability).live(acts)?;
    }

    #[test]
    fn so_does_a_fork(limits in limits(), durability in durability(), last in 0..50_u64,
                      acts in acts(1, 3)) {
        World::forked(limits, last).durable(durability).live(acts)?;
    }
}
