//! What the generator manages by itself, and how near a run came to that.

use super::RunOutcome;

/// The rate at which the load of a phase runs against the built-in responder, which costs less than any server.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The case, if the scenario has cases.
    pub case: Option<String>,
    /// The load phase.
    pub phase: String,
    /// Successful requests per second, above zero.
    pub requests_per_second: f64,
}

impl Ceiling {
    /// The highest share of it that the phase reached in any of `runs`: 1 is all of it. Two short measurements differ by
    /// chance, so it may be more.
    pub fn reached(&self, runs: &[RunOutcome]) -> f64 {
        let runs = runs.iter().filter(|run| run.case == self.case);
        let phases = runs.flat_map(|run| &run.phases).filter(|phase| phase.name == self.phase);
        let rates =
            phases.filter(|phase| phase.seconds > 0.0).map(|phase| phase.record.requests.ok as f64 / phase.seconds);
        rates.fold(0.0, f64::max) / self.requests_per_second
    }

    /// The one of `ceilings` to which its phase came nearest: the others were further from mattering.
    pub fn nearest<'a>(ceilings: &'a [Self], runs: &[RunOutcome]) -> Option<&'a Self> {
        // One that was passed was measured in a bad moment.
        let sound = ceilings.iter().filter(|ceiling| ceiling.reached(runs) <= 1.0);
        sound.max_by(|a, b| a.reached(runs).total_cmp(&b.reached(runs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::fixture;

    #[test]
    fn the_phase_that_came_nearest_to_its_ceiling_names_it() {
        let ceiling =
            |phase: &str, requests_per_second| Ceiling { case: None, phase: phase.to_owned(), requests_per_second };
        // Both phases make 1,000 requests in half a second; the second run is faster in `write`.
        let mut fast = fixture::good_run();
        fast.phases[1].seconds = 0.1;
        let runs = [fixture::good_run(), fast];
        let ceilings = [ceiling("write", 20_000.0), ceiling("verify", 5_000.0)];
        assert_eq!((ceilings[0].reached(&runs), ceilings[1].reached(&runs)), (0.5, 0.4));
        assert_eq!(Ceiling::nearest(&ceilings, &runs), Some(&ceilings[0]));
        assert_eq!(Ceiling::nearest(&ceilings, &runs[..1]), Some(&ceilings[1]));
        assert_eq!(Ceiling::nearest(&[], &runs), None);
        assert_eq!(ceiling("elsewhere", 1.0).reached(&runs), 0.0);
        assert_eq!(Ceiling { case: Some("other".to_owned()), ..ceilings[0].clone() }.reached(&runs), 0.0);
    }
}
