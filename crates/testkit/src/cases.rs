//! How random tests are run: alike everywhere, and so that they can be had again.

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, RandomState};

/// As many cases as usual, or as `PROPTEST_CASES` asks for, from the seed that
/// `PROPTEST_RNG_SEED` has, or any. It is printed, and shown when the test fails.
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
