//! Configuration of property tests: the same everywhere, and reproducible.

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, RandomState};

/// Uses the usual number of cases, or `PROPTEST_CASES`, and the seed in
/// `PROPTEST_RNG_SEED`, or a random one. The seed is printed, and shown when the test
/// fails.
#[must_use]
pub fn cases(usual: u32) -> Config {
    let asked = |name: &str| std::env::var(name).ok();
    let cases = asked("PROPTEST_CASES").and_then(|text| text.parse().ok()).unwrap_or(usual);
    let seed = asked("PROPTEST_RNG_SEED").and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("to repeat this: PROPTEST_RNG_SEED={seed}");
    Config {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::with_cases(cases)
    }
}
