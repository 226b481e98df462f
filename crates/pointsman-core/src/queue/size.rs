//! The number of branches that are tested together.

/// A rate is not believed from fewer branches: those that are missing count as green, so that one early red does not
/// turn a batch into single steps.
const FEWEST_SEEN: usize = 20;

/// The size of the next batch: at most `size`, and smaller the more branches were red lately, so that a batch is more
/// likely green than not. `reds` of the last `seen` branches that were decided were red.
pub fn batch_size(size: usize, reds: usize, seen: usize) -> usize {
    let seen = seen.max(FEWEST_SEEN);
    let green = (seen - reds.min(seen)) as f64 / seen as f64;
    let chances = std::iter::successors(Some(green), |chance| Some(chance * green));
    chances.take(size).take_while(|chance| *chance >= 0.5).count().max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn batches_shrink_when_the_red_rate_rises() {
        for (size, reds, seen, expected) in [
            (8, 0, 0, 8),
            (8, 0, 100, 8),
            (8, 1, 50, 8),
            (8, 8, 100, 8),
            (8, 10, 100, 6),
            (8, 20, 100, 3),
            (8, 29, 100, 2),
            (8, 30, 100, 1),
            (8, 100, 100, 1),
            (1, 0, 9, 1),
            (0, 0, 0, 1),
            (64, 2, 100, 34),
            // Too little is known to shrink for one red branch; four of four are another matter.
            (8, 1, 1, 8),
            (8, 4, 4, 3),
            // Nonsense is no trouble.
            (8, 30, 20, 1),
        ] {
            assert_eq!(batch_size(size, reds, seen), expected, "{reds} red of {seen}, at most {size}");
        }
    }

    proptest! {
        #[test]
        fn more_reds_never_make_it_larger(size in 0..200_usize, reds in 0..300_usize, seen in 0..300_usize) {
            let now = batch_size(size, reds, seen);
            prop_assert!(now >= 1 && now <= size.max(1));
            prop_assert!(batch_size(size, reds + 1, seen) <= now);
            prop_assert!(batch_size(size, reds, seen + 1) >= now);
        }
    }
}
