//! Random choices by seed: the same seed gives the same choices, on every machine and in every version.

/// `SplitMix64`: small, fast and random enough to choose faults.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns an independent generator. An additional choice of one generator then changes no choice of the other.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns a number from 0 up to, but not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // The low bits of a 64-bit product are as good as any; `end` is small.
        usize::try_from(self.next() % u64::try_from(end).expect("it is small"))
            .expect("it is small")
    }

    /// True with this probability, in a thousand.
    pub fn permille(&mut self, times: usize) -> bool {
        self.below(1000) < times
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Picks among values with weights.
    pub fn weigh<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in from {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *value,
            }
        }
        unreachable!("the weights sum up")
    }
}
