//! Which levels are tried: up in steps that grow with the level, and halfway between two bounds.

/// Climbing doubles so often, ...
const DOUBLED: u32 = 4;

/// The range of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    from: u64,
    to: u64,
}

/// How near two bounds must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    percent: f64,
}

impl Width {
    /// So many percent of the lower bound; adjacent numbers where that is less than one. Below zero counts as zero.
    pub fn percent(percent: f64) -> Self {
        Self { percent: percent.max(0.0) }
    }

    /// Whether two bounds are near enough.
    pub fn is_met(self, holds: u64, breaks: u64) -> bool {
        let wide = (holds as f64 * self.percent / 100.0).floor() as u64;
        breaks.saturating_sub(holds) <= wide.max(1)
    }
}

impl Levels {
    /// From `from` to `to`, both included. A range that is none is the one level `from`; zero is no level.
    pub fn new(from: u64, to: u64) -> Self {
        let from = from.max(1);
        Self { from, to: to.max(from) }
    }

    /// The lowest.
    pub fn from(self) -> u64 {
        self.from
    }

    /// The highest.
    pub fn to(self) -> u64 {
        self.to
    }

    /// The first level above `level` at which climbing stops; the lowest for `None`. At the top it stays there.
    pub fn above(self, level: Option<u64>) -> u64 {
        let Some(level) = level else { return self.from };
        let (mut step, mut at) = (0, self.from);
        while at <= level && at < self.to {
            step += 1;
            // ... then it grows by half, at least by one.
            let next = if step <= DOUBLED { at.saturating_mul(2) } else { at.saturating_add(at.div_ceil(2)) };
            at = next.min(self.to);
        }
        at
    }

    /// The level halfway between two bounds that are not adjacent.
    pub fn between(holds: u64, breaks: u64) -> u64 {
        holds + breaks.saturating_sub(holds) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbing_doubles_four_times_and_then_grows_by_half() {
        let levels = Levels::new(1, 100);
        let mut climbed = vec![levels.above(None)];
        while climbed.last() != Some(&100) {
            climbed.push(levels.above(climbed.last().copied()));
        }
        assert_eq!(climbed, [1, 2, 4, 8, 16, 24, 36, 54, 81, 100]);
        assert_eq!(levels.above(Some(100)), 100);
        // From a level between two steps, the next step is not left out.
        assert_eq!((levels.above(Some(17)), levels.above(Some(3))), (24, 4));
        assert_eq!(Levels::new(10, 3), Levels::new(10, 10));
        assert_eq!(Levels::new(u64::MAX / 2, u64::MAX).above(Some(u64::MAX - 1)), u64::MAX);
    }

    #[test]
    fn whole_numbers_are_never_nearer_than_neighbours() {
        let width = Width::percent(2.0);
        assert!(width.is_met(9, 10) && !width.is_met(9, 11));
        assert!(width.is_met(1000, 1020) && !width.is_met(1000, 1021));
        assert!(Width::percent(0.0).is_met(7, 8) && !Width::percent(-1.0).is_met(7, 9));
        assert_eq!(Levels::between(8, 16), 12);
        assert_eq!(Levels::between(9, 11), 10);
    }
}
