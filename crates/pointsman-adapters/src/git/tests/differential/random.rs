//! Numbers that are the same for the same seed, everywhere and for ever.

/// SplitMix64.
#[derive(Clone)]
pub(in crate::git::tests) struct Random(u64);

impl Random {
    pub(in crate::git::tests) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub(in crate::git::tests) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("it is below a usize")
    }

    /// In `n` of 100 cases.
    pub(in crate::git::tests) fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    pub(in crate::git::tests) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Another source that goes its own way.
    pub(in crate::git::tests) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}
