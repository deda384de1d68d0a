//! Reproducible random numbers.

/// Random numbers (xorshift64).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// Uses the seed of all random tests, `PROPTEST_RNG_SEED`, or the clock if it is not
    /// set. The seed is printed, and shown when the test fails.
    ///
    /// # Panics
    /// When the seed is not a number, or the clock is before 1970.
    #[must_use]
    pub fn new() -> Self {
        let seed = match std::env::var("PROPTEST_RNG_SEED") {
            Ok(seed) => seed.parse().expect("a number in PROPTEST_RNG_SEED"),
            Err(_) => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                u64::from(now.expect("a clock").subsec_nanos())
            }
        };
        eprintln!("the same again: PROPTEST_RNG_SEED={seed}");
        Self::of(seed)
    }

    /// Returns a different sequence for each number.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        // Spread over all bits; and never zero, which would stay zero.
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % limit
    }

    /// Returns one of them.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let index = self.below(of.len() as u64);
        of[usize::try_from(index).expect("an index")]
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}
